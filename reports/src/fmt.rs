//! Formats numbers for people. Machine-readable files use [`exact`] only.

pub(crate) use ctxbench_util::plural::pluralize;

/// Tokens in at most five characters: `950`, `9.5k`, `182k`, `1.23M`.
pub(crate) fn tokens(n: f64) -> String {
    match n {
        n if n < 1_000.0 => format!("{n:.0}"),
        n if n < 9_950.0 => format!("{:.1}k", n / 1e3),
        n if n < 999_500.0 => format!("{:.0}k", n / 1e3),
        n if n < 99_950_000.0 => format!("{:.2}M", n / 1e6),
        n => format!("{:.0}M", n / 1e6),
    }
}

/// US dollars without the sign; small amounts get more digits.
pub(crate) fn usd(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        a if a < 0.1 => format!("{x:.4}"),
        a if a < 100.0 => format!("{x:.3}"),
        _ => format!("{x:.1}"),
    }
}

/// Per cent with one decimal, without the sign.
pub(crate) fn pct(x: f64) -> String {
    unsigned_zero(format!("{x:.1}"))
}

/// A ratio between 0 and 1 with three decimals.
pub(crate) fn ratio(x: f64) -> String {
    unsigned_zero(format!("{x:.3}"))
}

/// Seconds with one decimal.
pub(crate) fn seconds(x: f64) -> String {
    if x == 0.0 {
        "0".into()
    } else if x >= 1000.0 {
        format!("{x:.0}")
    } else {
        format!("{x:.1}")
    }
}

pub(crate) fn count(x: f64) -> String {
    format!("{x:.0}")
}

/// Six decimals at most, without trailing zeros, never `-0`; `n/a` for values that are not numbers.
pub(crate) fn exact(x: f64) -> String {
    if !x.is_finite() {
        return "n/a".into();
    }
    let text = format!("{x:.6}");
    unsigned_zero(text.trim_end_matches('0').trim_end_matches('.').to_string())
}

/// A signed change: `+2.8`, `−0.5`.
pub(crate) fn signed(x: f64, show: impl Fn(f64) -> String) -> String {
    let text = show(x.abs());
    match text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        false => "±0".into(),
        true if x < 0.0 => format!("−{text}"),
        true => format!("+{text}"),
    }
}

/// Formats a value, or `n/a` for one that does not apply or is not known.
pub(crate) fn known<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "n/a".into(), show)
}

pub(crate) fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.into()
}

pub(crate) fn sessions(n: usize) -> String {
    pluralize(n, "session")
}

/// Remark on replies of a recording without counters.
pub fn uncounted(replies: u64) -> String {
    format!("{} without counters not in it", pluralize(replies, "reply"))
}

/// Cuts a text to `max` characters. `…` replaces the middle, so that the name and the last setting
/// stay readable.
pub(crate) fn elide(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max || max < 3 {
        return text.to_string();
    }
    let head = max / 2;
    let tail = max - 1 - head;
    let mut out: String = text.chars().take(head).collect();
    out.push('…');
    out.extend(text.chars().skip(count - tail));
    out
}

pub(crate) use ctxbench_util::files::safe_name as slug;

/// Replaces characters with a space if they would break a row, control a terminal or hide text.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_invisible(c) { ' ' } else { c }).collect()
}

/// The text on one line, for cells and labels.
pub fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Characters that change the text direction or have no width. No name needs them, and they can
/// hide text.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Escapes markup and replaces characters that XML forbids.
pub(crate) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn unsigned_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| matches!(b, b'0' | b'.')) => rest.to_string(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(tokens(950.0), "950");
        assert_eq!(tokens(9_499.0), "9.5k");
        assert_eq!(tokens(181_900.0), "182k");
        assert_eq!(tokens(1_234_000.0), "1.23M");
        assert_eq!(usd(0.0042), "0.0042");
        assert_eq!(pct(-0.01), "0.0");
        assert_eq!(signed(-0.5, pct), "−0.5");
        assert_eq!(signed(0.001, pct), "±0");
    }

    #[test]
    fn numbers_for_machines() {
        assert_eq!(exact(1.5), "1.5");
        assert_eq!(exact(2.0), "2");
        assert_eq!(exact(100.0), "100");
        assert_eq!(exact(1.0 / 3.0), "0.333333");
        assert_eq!(exact(-0.000_000_01), "0");
        assert_eq!(exact(f64::NAN), "n/a");
    }

    #[test]
    fn names_and_labels() {
        assert_eq!(slug("../a b<c"), "a-b-c");
        assert_eq!(slug("…"), "unnamed");
        assert_eq!(elide("codex:auto_compact_limit=90000", 11), "codex…90000");
        assert_eq!(one_line(" a\n\tb\u{1b}c "), "a b c");
        assert_eq!(printable("a  b\u{1b}[1m\u{202e}"), "a  b [1m ");
        assert_eq!(xml("<&\"\u{1}"), "&lt;&amp;&quot;\u{fffd}");
    }
}
