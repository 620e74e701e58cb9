//! The table for a terminal: one block per scenario and model, a row per strategy.

use comfy_table::{Cell, CellAlignment, LineStyle, Row, Table, TableStyle};
use ctxbench_core::record::{Results, RunRecord};

use crate::formats::{Artifact, Format, ReportError};
use crate::score::SCORES;
use crate::view::{self, Block};
use crate::fmt;

/// The format for `report --format table`.
pub(crate) const FORMAT: Format = Format { name: "table", about: "the table of `run`, 100 columns wide", render: render_file };

/// How a table is drawn.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    /// ANSI colours; whoever calls decides by the terminal and `NO_COLOR`.
    pub color: bool,
    /// Columns of the terminal; below 100 is drawn as 100, above 160 as 160.
    pub width: usize,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions { color: false, width: 100 }
    }
}

fn render_file(results: &Results) -> Result<Vec<Artifact>, ReportError> {
    Ok(vec![Artifact { file: "summary.txt".into(), text: table(results, TableOptions::default()) }])
}

/// All blocks, then the legend. Failures stand before the scores of their block.
pub fn table(results: &Results, options: TableOptions) -> String {
    let width = options.width.clamp(100, 160);
    if results.runs.is_empty() {
        return "no runs\n".into();
    }
    let mut out = String::new();
    for block in view::blocks(results) {
        for line in block_lines(&block, width) {
            push(&mut out, &line, options.color);
        }
        for line in wrap(&view::modelled(results), width, "  ") {
            push(&mut out, &Line::Faint(line), options.color);
        }
        out.push('\n');
    }
    for line in legend(width) {
        push(&mut out, &Line::Faint(line), options.color);
    }
    out
}

enum Line {
    Heading(String),
    Alarm(String),
    Score(String),
    Faint(String),
}

fn block_lines(block: &Block<'_>, width: usize) -> Vec<Line> {
    let mut lines = vec![Line::Heading(fmt::elide(&format!("{}  ({})", block.title(), block.terms()), width))];
    for f in view::failures(block) {
        lines.extend(wrap(&format!("!! {f}"), width, "   ").into_iter().map(Line::Alarm));
    }
    let label_width = label_width(block, width);
    let drawn: Vec<String> = grid(block, width, label_width).lines().map(|l| l.trim_end().to_string()).collect();
    let rule = "─".repeat(drawn.iter().map(|l| l.chars().count()).max().unwrap_or(width).min(width));
    let (head, rows) = drawn.split_at(drawn.len().saturating_sub(block.runs.len()));
    lines.extend(head.iter().map(|l| if l.starts_with('─') { Line::Faint(rule.clone()) } else { Line::Faint(l.clone()) }));
    let mut group = None;
    for (row, run) in rows.iter().zip(&block.runs) {
        let now = (run.strategy.hypothetical, run.strategy.control);
        if group.is_some_and(|g| g != now) {
            lines.push(Line::Faint(rule.clone()));
        }
        group = Some(now);
        lines.push(if view::integrity(run) > 0 {
            Line::Alarm(row.clone())
        } else if now == (false, false) {
            Line::Score(row.clone())
        } else {
            Line::Faint(row.clone())
        });
    }
    let space = note_space(width, label_width);
    for run in &block.runs {
        let notes = view::notes(run).join("; ");
        if notes.chars().count() > space {
            let text = format!("  {}: {notes}", run.strategy.label);
            lines.extend(wrap(&text, width, "    ").into_iter().map(Line::Faint));
        } else if run.strategy.label.chars().count() > label_width {
            lines.push(Line::Faint(format!("  {} = {}", fmt::elide(&run.strategy.label, label_width), run.strategy.label)));
        }
    }
    lines
}

/// Width of every figure column, without the space before it.
const FIGURE: usize = 6;
const STEPS: usize = 11;

fn label_width(block: &Block<'_>, width: usize) -> usize {
    let longest = block.runs.iter().map(|r| r.strategy.label.chars().count()).max().unwrap_or(8);
    let room = if width < 125 { width - STEPS - 1 - SCORES.len() * (FIGURE + 2) - 1 } else { 30 };
    longest.clamp(8, room.clamp(10, 30))
}

fn note_space(width: usize, label_width: usize) -> usize {
    let used = label_width + 1 + STEPS + 1 + SCORES.len() * (FIGURE + 2);
    width.saturating_sub(used + 1).min(60)
}

fn grid(block: &Block<'_>, width: usize, label_width: usize) -> String {
    let space = note_space(width, label_width);
    let with_notes = space >= 12;
    let best: Vec<Option<String>> = SCORES.iter().map(|s| s.best(&block.runs)).collect();
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    let mut head = vec![Cell::new("\nstrategy"), Cell::new("\nsteps")];
    head.extend(SCORES.iter().map(|s| Cell::new(format!("{} \n{} ", s.head[0], s.head[1])).set_alignment(CellAlignment::Right)));
    if with_notes {
        head.push(Cell::new("\nnotes"));
    }
    table.set_header(head);
    for run in &block.runs {
        let mut cells = vec![Cell::new(fmt::elide(&fmt::one_line(&run.strategy.label), label_width)), Cell::new(view::steps(run))];
        for (score, best) in SCORES.iter().zip(&best) {
            let text = score.text(run);
            let mark = if view::in_competition(run) && best.as_ref() == Some(&text) { '*' } else { ' ' };
            cells.push(Cell::new(format!("{text}{mark}")).set_alignment(CellAlignment::Right));
        }
        if with_notes {
            cells.push(Cell::new(short_notes(run, space)));
        }
        table.add_row(Row::from(cells));
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((usize::from(i > 0 && (i < 2 || i > SCORES.len() + 1)) as u16, 0));
    }
    for column in table.column_iter_mut().skip(2).take(SCORES.len()) {
        column.set_padding((1, 0));
    }
    table.lines().collect::<Vec<_>>().join("\n")
}

fn short_notes(run: &RunRecord, space: usize) -> String {
    let notes = view::notes(run).join("; ");
    if notes.chars().count() <= space {
        return notes;
    }
    let mut cut: String = notes.chars().take(space - 1).collect();
    cut.push('…');
    cut
}

fn legend(width: usize) -> Vec<String> {
    let mut text = String::from("* best of the products that finished; n/a = not applicable or unknown. steps: taken/recorded.");
    for s in &SCORES {
        text.push_str(&format!(" {}: {}.", s.title().replace("- ", ""), s.help));
    }
    wrap(&text, width, "")
}

fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let lead: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut lines = vec![lead];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is always a line");
        let fresh = last.trim().is_empty();
        if !fresh && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("{indent}{word}"));
        } else {
            if !fresh {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

fn push(out: &mut String, line: &Line, color: bool) {
    let (code, text) = match line {
        Line::Heading(t) => ("1", t),
        Line::Alarm(t) => ("31", t),
        Line::Faint(t) => ("2", t),
        Line::Score(t) => ("", t),
    };
    if !color {
        out.push_str(text);
    } else if code.is_empty() {
        out.push_str(&green_best(text));
    } else {
        out.push_str(&format!("\u{1b}[{code}m{text}\u{1b}[0m"));
    }
    out.push('\n');
}

/// Colours figures that end in the mark of the best.
fn green_best(text: &str) -> String {
    text.split(' ')
        .map(|w| match w.strip_suffix('*') {
            Some(n) if n.starts_with(|c: char| c.is_ascii_digit() || c == '-') => format!("\u{1b}[32m{w}\u{1b}[0m"),
            _ => w.to_string(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn at(width: usize) -> String {
        table(&sample::results(), TableOptions { color: false, width })
    }

    #[test]
    fn fits_the_width() {
        for width in [100, 120, 140, 160] {
            for line in at(width).lines() {
                assert!(line.chars().count() <= width, "{} > {width}: {line}", line.chars().count());
            }
        }
    }

    #[test]
    fn failures_stand_before_scores_and_reference_first() {
        let text = at(140);
        let alarm = text.find("INTEGRITY FAILURE").unwrap();
        let head = text.find("strategy").unwrap();
        let reference = text.find("\nreference").unwrap();
        let aider = text.find("\naider").unwrap();
        let control = text.find("\nkeep-nothing").unwrap();
        assert!(alarm < head && head < reference && reference < aider && aider < control);
        assert!(text.contains("modelled: latency"));
        assert!(text.contains("never triggered") && text.contains("died at step"));
    }

    #[test]
    fn broken_rows_never_win() {
        let mut results = sample::results();
        for r in &mut results.runs {
            if r.strategy.label == "x<&\"y" {
                r.summary.cost_usd = 0.000_1;
            }
        }
        assert!(!table(&results, TableOptions::default()).contains("0.0001*"));
    }

    #[test]
    fn colour_only_when_asked() {
        assert!(!at(120).contains('\u{1b}'));
        assert!(table(&sample::results(), TableOptions { color: true, width: 120 }).contains("\u{1b}[32m"));
        assert_eq!(table(&Results::default(), TableOptions::default()), "no runs\n");
    }
}
