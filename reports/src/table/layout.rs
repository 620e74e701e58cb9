//! Layout of a table of a block: its columns, and the widths of the flexible ones.

use super::line::{Lines, Style};
use super::widest;
use crate::metrics::Metric;
use crate::record::RunRecord;
use crate::view::{self, ReportBlock, Scored};
use crate::{fmt, front, grid};

/// Cells of the rows, and the widths of the two flexible columns.
pub(super) struct Layout {
    head: Vec<String>,
    /// Cells without the notes. The first has the mark of a row on the front, without the label.
    rows: Vec<Vec<String>>,
    label: usize,
    gap: usize,
    /// Width of the column of notes; 0 if the notes are below the table.
    notes: usize,
}

impl Layout {
    pub(super) fn new(
        block: &ReportBlock<'_>,
        width: usize,
        columns: &[&'static Metric],
    ) -> Layout {
        let gap = if width < 150 { 1 } else { 2 };
        let mut head = vec!["\nstrategy".to_string(), "\nsteps".into()];
        head.extend(columns.iter().map(|m| m.score_head().join("\n")));
        let front = front::of_block(block);
        let room = if front.contains(&true) { 2 } else { 0 };
        let figures = block.figures(columns);
        let mut rows = Vec::new();
        for ((run, figures), on_front) in block.runs.iter().zip(figures).zip(front) {
            let mark = if on_front { format!(" {}", front::MARK) } else { String::new() };
            let mut cells = vec![mark, view::steps(run)];
            let best = |f: Scored| f.text + if f.best { "*" } else { " " };
            cells.extend(figures.into_iter().map(best));
            rows.push(cells);
        }
        let column = |i| widest(rows.iter().chain([&head]), i) + gap;
        let used = room + (1..head.len()).map(column).sum::<usize>();
        let labels = block.runs.iter().map(|r| fmt::one_line(&r.strategy.label).chars().count());
        let longest = labels.max().unwrap_or(0).clamp(8, if width < 125 { 34 } else { 26 });
        let label = longest.min(width.saturating_sub(used).max(10));
        let left = width.saturating_sub(used + label + gap);
        let notes = if left >= 16 { left.min(70) } else { 0 };
        Layout { head, rows, label, gap, notes }
    }

    pub(super) fn draw(&self, block: &ReportBlock<'_>) -> Vec<String> {
        let mut head = self.head.clone();
        head.extend((self.notes > 0).then(|| "\nnotes".into()));
        let rows = block.runs.iter().zip(&self.rows).map(|(run, cells)| {
            let mut cells = cells.clone();
            cells[0].insert_str(0, &self.short_label(block, run));
            if self.notes > 0 {
                cells.push(cut(&view::notes(run).join("; "), self.notes));
            }
            cells
        });
        let is_figure = |i: usize| (2..self.head.len()).contains(&i);
        grid::draw(head, rows, is_figure, |i| (if i > 0 { self.gap as u16 } else { 0 }, 0))
    }

    /// Shortens a label to the column width. If several short labels are equal, each gets a number.
    fn short_label(&self, block: &ReportBlock<'_>, run: &RunRecord) -> String {
        let short = |r: &RunRecord| fmt::elide(&fmt::one_line(&r.strategy.label), self.label);
        let own = short(run);
        let alike: Vec<&str> = block
            .runs
            .iter()
            .filter(|r| short(r) == own)
            .map(|r| r.strategy.label.as_str())
            .collect();
        match alike.iter().position(|l| *l == run.strategy.label) {
            Some(n) if alike.len() > 1 => {
                let number = format!(" #{}", n + 1);
                let kept: String =
                    own.chars().take(self.label.saturating_sub(number.len())).collect();
                kept + &number
            }
            _ => own,
        }
    }

    /// Labels and notes that do not fit into the table.
    pub(super) fn add_footnotes(&self, out: &mut Lines, block: &ReportBlock<'_>) {
        for run in &block.runs {
            let label = fmt::one_line(&run.strategy.label);
            let notes = view::notes(run).join("; ");
            if notes.chars().count() > self.notes {
                out.wrap(Style::Faint, &format!("  {label}: {notes}"), "    ");
            } else if label.chars().count() > self.label {
                let text = format!("  {} = {label}", self.short_label(block, run));
                out.wrap(Style::Faint, &text, "    ");
            }
        }
    }
}

fn cut(text: &str, space: usize) -> String {
    if text.chars().count() <= space {
        return text.to_string();
    }
    text.chars().take(space - 1).chain(['…']).collect()
}
