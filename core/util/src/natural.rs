//! Natural order of labels: numbers by value, the rest as text.

use std::cmp::Ordering;

/// Compares two labels. A number after `=` may have decimals; any other number is part of a version
/// and ends at a point. Returns `Equal` only for equal texts.
///
/// ```
/// use ctxbench_util::natural;
/// let mut labels = ["codex:limit=120000", "codex:limit=90000", "codex", "codex@0.104", "codex@0.63"];
/// labels.sort_by(|a, b| natural::order(a, b));
/// assert_eq!(
///     labels,
///     ["codex", "codex:limit=90000", "codex:limit=120000", "codex@0.63", "codex@0.104"]
/// );
/// ```
pub fn order(a: &str, b: &str) -> Ordering {
    parts(a).partial_cmp(parts(b)).unwrap_or(Ordering::Equal).then_with(|| a.cmp(b))
}

#[derive(PartialEq, PartialOrd)]
enum NamePart<'a> {
    Number(f64),
    Text(&'a str),
}

fn parts(text: &str) -> impl Iterator<Item = NamePart<'_>> {
    let (mut rest, mut value) = (text, false);
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let digits = |t: &str| t.bytes().take_while(u8::is_ascii_digit).count();
        if !first.is_ascii_digit() {
            let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            (rest, value) = (after, part.ends_with('='));
            return Some(NamePart::Text(part));
        }
        let mut end = digits(rest);
        if value && rest[end..].starts_with('.') {
            end += 1 + digits(&rest[end + 1..]);
        }
        let (part, after) = rest.split_at(end);
        (rest, value) = (after, false);
        Some(NamePart::Number(part.parse().unwrap_or(f64::INFINITY)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted<const N: usize>(mut labels: [&str; N]) -> [&str; N] {
        labels.sort_by(|a, b| order(a, b));
        labels
    }

    #[test]
    fn order_compares_decimals_of_values_only() {
        assert_eq!(sorted(["x:s=0.5", "x:s=0.45", "x:s=10"]), ["x:s=0.45", "x:s=0.5", "x:s=10"]);
        assert_eq!(sorted(["x@1.10", "x@1.9", "x"]), ["x", "x@1.9", "x@1.10"]);
        assert_eq!(sorted(["b", "a", "c2"]), ["a", "b", "c2"]);
    }

    #[test]
    fn order_is_equal_for_equal_texts_only() {
        for (a, b) in [("x=1", "x=1.0"), ("x=01", "x=1"), ("a1b", "a1c"), ("", "a"), ("1", "a")] {
            assert_ne!(order(a, b), Ordering::Equal, "{a} {b}");
            assert_eq!(order(a, b), order(b, a).reverse(), "{a} {b}");
        }
        assert_eq!(order("x=1", "x=1"), Ordering::Equal);
    }
}
