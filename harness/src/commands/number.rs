//! Whole numbers of the command line.

use std::ops::RangeInclusive;

/// Reads a whole number of a range.
pub(super) fn within(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync {
    move |text| {
        let read = text.parse().ok().filter(|n| range.contains(n));
        read.ok_or_else(|| match (range.start(), range.end()) {
            (least, &u64::MAX) => format!("a whole number from {least} on"),
            (least, most) => format!("a whole number from {least} to {most}"),
        })
    }
}

/// Reads a whole number above 0.
pub(super) fn above_0(text: &str) -> Result<u64, String> {
    within(1..=u64::MAX)(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_outside_is_told_with_the_range() {
        let few = within(1..=9);
        assert_eq!(few("9"), Ok(9));
        for text in ["-1", "0", "10", "x", ""] {
            assert_eq!(few(text), Err("a whole number from 1 to 9".into()), "{text}");
        }
        assert_eq!(above_0("-1"), Err("a whole number from 1 on".into()));
    }
}
