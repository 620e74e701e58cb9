//! Text tables for a terminal or in Markdown.

use std::fmt::Write as _;
use std::ops::Range;

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

/// A right-aligned cell for figures; other cells are left-aligned.
pub(crate) fn figure(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Draws lines for a terminal. `padding` returns the blanks before and after the cells of a column.
pub(crate) fn draw(
    head: Vec<Cell>,
    rows: impl IntoIterator<Item = Vec<Cell>>,
    padding: impl Fn(usize) -> (u16, u16),
) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
    table.set_header(head);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding(padding(i));
    }
    table.lines().map(|l| l.trim_end().to_string()).collect()
}

/// Writes a Markdown table. Cells must be escaped; the columns in `figures` are right-aligned.
pub(crate) fn markdown(
    head: &[String],
    figures: Range<usize>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let rule = |i: usize| if figures.contains(&i) { "--:|" } else { "---|" };
    let rules: String = (0..head.len()).map(rule).collect();
    let mut out = format!("| {} |\n|{rules}\n", head.join(" | "));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out
}
