//! Amounts as people write them: `90000`, `90_000`, `90k`.

/// Parses a whole number with an optional unit: `k` is 1,000 and `m` is 1,000,000, in either case.
/// Underscores between digits are ignored. Returns `None` for anything else, or above `u64::MAX`.
///
/// ```
/// use ctxbench_util::quantity::parse_quantity;
/// assert_eq!(parse_quantity("90_000"), parse_quantity("90k"));
/// ```
pub fn parse_quantity(text: &str) -> Option<u64> {
    if text.contains('.') { None } else { parse_decimal(text, 0) }
}

/// Parses a decimal number with the units of [`parse_quantity`] as a multiple of `10^-places`:
/// `parse_decimal("1.5k", 2)` is 150,000. Returns `None` if it has more than `places` decimals.
pub fn parse_decimal(text: &str, places: u32) -> Option<u64> {
    let text: String = text.chars().filter(|c| *c != '_').collect();
    let (number, factor) = match text.char_indices().next_back()? {
        (end, 'k' | 'K') => (&text[..end], 1_000),
        (end, 'm' | 'M') => (&text[..end], 1_000_000),
        _ => (&*text, 1),
    };
    let (whole, decimals) = match number.split_once('.') {
        Some((whole, decimals)) if decimals.len() <= places as usize => (whole, decimals),
        Some(_) => return None,
        None => (number, ""),
    };
    let missing = places - decimals.len() as u32;
    let decimals = if decimals.is_empty() { 0 } else { digits(decimals)? };
    let whole = digits(whole)?.checked_mul(10_u64.checked_pow(places)?)?;
    whole.checked_add(decimals.checked_mul(10_u64.checked_pow(missing)?)?)?.checked_mul(factor)
}

/// Formats a whole number with a separator between groups of three digits: `30,012`.
pub fn grouped(n: u64, separator: char) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(separator);
        }
        out.push(c);
    }
    out
}

/// Parses digits only: unlike `str::parse`, no sign is allowed.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_quantity_reads_units_of_1000() {
        for text in ["90000", "90_000", "90k", "90K"] {
            assert_eq!(parse_quantity(text), Some(90_000), "{text}");
        }
        assert_eq!(parse_quantity("64m"), Some(64_000_000));
        assert_eq!(parse_quantity("0"), Some(0));
        assert_eq!(parse_quantity("18446744073709551615"), Some(u64::MAX));
    }

    #[test]
    fn parse_quantity_rejects_other_text() {
        for text in ["", "k", "-1", "+1", "1.5k", "1.", "1g", "9 k", "1kk", "64KiB", "é"] {
            assert_eq!(parse_quantity(text), None, "{text}");
        }
        for text in ["18446744073709551616", "18446744073709551615k"] {
            assert_eq!(parse_quantity(text), None, "{text}");
        }
    }

    #[test]
    fn grouped_separates_thousands() {
        let all = [7, 100, 1_000, 30_012, 1_234_567].map(|n| grouped(n, ','));
        assert_eq!(all, ["7", "100", "1,000", "30,012", "1,234,567"]);
    }

    #[test]
    fn parse_decimal_counts_in_places() {
        assert_eq!(parse_decimal("1.5k", 2), Some(150_000));
        assert_eq!(parse_decimal("62.5", 6), Some(62_500_000));
        assert_eq!(parse_decimal("1.", 6), Some(1_000_000));
        for text in [".5", "1.234", "1.-1", "99999999999999999999.0"] {
            assert_eq!(parse_decimal(text, 2), None, "{text}");
        }
    }
}
