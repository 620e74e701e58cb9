//! Tables for a terminal or in Markdown.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// Draws lines for a terminal. Columns of figures are right-aligned. `padding` returns the blanks
/// before and after the cells of a column.
pub fn draw(
    head: Vec<String>,
    rows: impl IntoIterator<Item = Vec<String>>,
    is_figure: impl Fn(usize) -> bool,
    padding: impl Fn(usize) -> (u16, u16),
) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
    table.set_header(head);
    table.add_rows(rows);
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding(padding(i));
        if is_figure(i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|l| l.trim_end().to_string()).collect()
}

/// Formats a Markdown table. Cells must be escaped; columns of figures are right-aligned.
pub fn markdown<T: AsRef<str>>(
    head: &[T],
    rows: impl IntoIterator<Item = Vec<String>>,
    is_figure: impl Fn(usize) -> bool,
) -> String {
    let rules = (0..head.len()).map(|i| if is_figure(i) { "--:|" } else { "---|" });
    let rules: String = rules.collect();
    let head = head.iter().map(|h| match h.as_ref() {
        "" => "| ".to_string(),
        text => format!("| {text} "),
    });
    let head: String = head.collect();
    let rows = rows.into_iter().map(|row| format!("| {} |\n", row.join(" | ")));
    format!("{head}|\n|{rules}\n") + &rows.collect::<String>()
}
