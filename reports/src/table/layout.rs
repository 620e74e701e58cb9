//! Layout of a table of a block: its columns, and the widths of the flexible ones.

use super::line::{Lines, Style};
use crate::metrics::Metric;
use crate::record::RunRecord;
use crate::view::{self, ReportBlock, Scored};
use crate::{fmt, front, grid};

/// Cells of a row, and the widths of its two flexible columns.
pub(super) struct Layout<'a> {
    columns: &'a [&'static Metric],
    figures: Vec<Vec<String>>,
    /// Mark after each label if the row is on the front, else empty.
    marks: Vec<String>,
    label: usize,
    gap: usize,
    /// Width of the column of notes; 0 if the notes are below the table.
    notes: usize,
}

impl<'a> Layout<'a> {
    pub(super) fn new(
        block: &ReportBlock<'_>,
        width: usize,
        columns: &'a [&'static Metric],
    ) -> Layout<'a> {
        let gap = if width < 150 { 1 } else { 2 };
        let mark = |f: Scored| format!("{}{}", f.text, if f.best { '*' } else { ' ' });
        let figures: Vec<Vec<String>> = block
            .figures(columns.iter().copied())
            .into_iter()
            .map(|row| row.into_iter().map(mark).collect())
            .collect();
        let chars = |t: &str| t.chars().count();
        let column = |i: usize| {
            figures
                .iter()
                .map(|f| chars(&f[i]))
                .chain(columns[i].score_head().map(chars))
                .max()
                .unwrap_or(0)
                + gap
        };
        let front = front::of_block(block);
        let room = if front.contains(&true) { 2 } else { 0 };
        let marks: Vec<String> = front
            .into_iter()
            .map(|on_it| if on_it { format!(" {}", front::MARK) } else { String::new() })
            .collect();
        let steps =
            block.runs.iter().map(|r| chars(&view::steps(r))).max().unwrap_or(0).max(5) + gap;
        let used = room + steps + (0..columns.len()).map(column).sum::<usize>();
        let longest = block
            .runs
            .iter()
            .map(|r| chars(&fmt::one_line(&r.strategy.label)))
            .max()
            .unwrap_or(0)
            .clamp(8, if width < 125 { 34 } else { 26 });
        let label = longest.min(width.saturating_sub(used).max(10));
        let left = width.saturating_sub(used + label + gap);
        let notes = if left >= 16 { left.min(70) } else { 0 };
        Layout { columns, figures, marks, label, gap, notes }
    }

    pub(super) fn draw(&self, block: &ReportBlock<'_>) -> Vec<String> {
        let mut head = vec!["\nstrategy".to_string(), "\nsteps".into()];
        head.extend(self.columns.iter().map(|m| m.score_head().join("\n")));
        head.extend((self.notes > 0).then(|| "\nnotes".into()));
        let rows = block.runs.iter().zip(&self.figures).zip(&self.marks);
        let rows = rows.map(|((run, figures), mark)| {
            let mut cells = vec![self.short_label(block, run) + mark, view::steps(run)];
            cells.extend_from_slice(figures);
            if self.notes > 0 {
                cells.push(cut(&view::notes(run).join("; "), self.notes));
            }
            cells
        });
        let is_figure = |i: usize| (2..2 + self.columns.len()).contains(&i);
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
