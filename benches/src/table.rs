//! Tables on standard output.

use std::time::Duration;

/// Formats a table with a title. The first column is a name, the others are figures.
pub fn table(title: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |i: usize| {
        rows.iter()
            .map(|r| r[i].chars().count())
            .chain([head[i].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let mut out = String::new();
        for (i, (cell, w)) in cells.into_iter().zip(&widths).enumerate() {
            out += &if i == 0 { format!("  {cell:<w$}") } else { format!("  {cell:>w$}") };
        }
        out.trim_end().to_string() + "\n"
    };
    let mut out = format!("\n{title}\n") + &line(head.to_vec());
    for r in rows {
        out += &line(r.iter().map(String::as_str).collect());
    }
    out
}

/// Formats millions per second, or `n/a` if no time was measured.
pub fn per_second(count: u64, took: Duration) -> String {
    match took.as_secs_f64() {
        0.0 => "n/a".into(),
        s => format!("{:.1}", count as f64 / 1e6 / s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_by_hand() {
        assert_eq!(per_second(3_000_000, Duration::from_millis(2_000)), "1.5");
        assert_eq!(per_second(1, Duration::ZERO), "n/a");
    }

    #[test]
    fn columns_line_up() {
        let rows = [
            vec!["a".to_string(), "10.0".to_string()],
            vec!["long".to_string(), "9.5".to_string()],
        ];
        assert_eq!(
            table("T", &["name", "ms"], &rows),
            "\nT\n  name    ms\n  a     10.0\n  long   9.5\n"
        );
    }
}
