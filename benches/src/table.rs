//! Tables on standard output.

use std::time::Duration;

use ctxbench_reports::text_table;

/// Formats a table with a title. The first column is a name, the others are figures.
pub fn table(title: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let head = head.iter().map(ToString::to_string).collect();
    let lines = text_table(head, rows.to_vec(), |i| i > 0, |_| (2, 0));
    format!("\n{title}\n{}\n", lines.join("\n"))
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
}
