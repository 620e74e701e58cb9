//! Parsers of values of options.

use std::str::FromStr;

use ctxbench_session::calibration::Calibrate;
use ctxbench_util::quantity::parse_quantity;

/// Largest accepted window, tokens.
const LARGEST_WINDOW: u64 = 1_000_000_000;

/// Parses a number of tokens: 200000, 200_000 or 200k.
pub(crate) fn tokens(text: &str) -> Result<u64, String> {
    match parse_quantity(text) {
        Some(n) if (1..=LARGEST_WINDOW).contains(&n) => Ok(n),
        _ => Err(format!(
            "a number of tokens above 0 and at most {LARGEST_WINDOW}, such as 200000 or 200k"
        )),
    }
}

/// Parses a number of things, at least one.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|n| *n > 0);
    number.ok_or_else(|| "expected a whole number above 0, such as 10".into())
}

/// Parses an amount of dollars.
pub(crate) fn usd(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|usd: &f64| usd.is_finite() && *usd >= 0.0);
    amount.ok_or_else(|| "expected dollars, such as 0.5".into())
}

/// Parses a range of percentages such as 29..92, and returns it for people.
pub(crate) fn used(text: &str) -> Result<String, String> {
    let range = text.split_once("..").and_then(|(low, high)| {
        let (low, high) = (low.parse::<u8>().ok()?, high.parse::<u8>().ok()?);
        (low <= high && high <= 100).then(|| format!("{low} to {high} %"))
    });
    range.ok_or_else(|| "expected two percentages, the lower first, such as 29..92".into())
}

/// Returns a number of things, at most as many as there can be.
pub(crate) fn many(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

pub(super) fn calibrate(text: &str) -> Result<Calibrate, String> {
    let found = Calibrate::ALL.into_iter().find(|c| c.word() == text);
    found.ok_or_else(|| format!("one of {}", Calibrate::ALL.map(Calibrate::word).join(", ")))
}

/// A range of seeds that begins with `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    pub(crate) first: u64,
    /// Number of seeds, from 1 to [`MAX_SEEDS`].
    pub(crate) count: u64,
}

const MAX_SEEDS: u64 = 10_000;

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let range = first.parse::<u64>().ok().zip(last.parse::<u64>().ok());
        range
            .and_then(|(first, last)| Some((first, last.checked_sub(first)?.checked_add(1)?)))
            .filter(|(first, count)| *count <= MAX_SEEDS && first.checked_add(*count).is_some())
            .map(|(first, count)| Seeds { first, count })
            .ok_or_else(|| {
                format!("expected a seed such as 7, or a range of at most {MAX_SEEDS} such as 0..9")
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_or_a_range_with_both_ends() {
        let parse = |text: &str| text.parse::<Seeds>();
        assert_eq!(parse("7"), Ok(Seeds { first: 7, count: 1 }));
        assert_eq!(parse("0..9"), Ok(Seeds { first: 0, count: 10 }));
        for text in ["", "-1", "9..0", "0..", "0..10000", "18446744073709551615", "a"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
