//! Bounds of the numbers in a session. They are far above the numbers of real sessions, and low
//! enough that sums over a session do not overflow and filler texts fit into memory.
//!
//! A session file with a number out of bounds is refused. In a recording, the bound replaces the
//! number, with a warning, and a limit of 0 counts as unknown.

use ctxbench_core::Millis;
use ctxbench_session::{Entry, Header, RecordedUsage, ToolEntry, UserEntry};

use crate::check::Located;
use crate::error::InputError;

/// Maximum of any counter or limit, tokens.
pub const TOKENS: u64 = 1_000_000_000;

/// Maximum length of a text that the replay generates (`prefix_tokens`, the `tokens` of a fault),
/// tokens. This is 20 MB of text, or ten times the largest known window.
pub const FILLER_TOKENS: u64 = 10_000_000;

/// Maximum time, ms: a century of 36,525 days.
pub const MS: Millis = 36_525 * 86_400_000;

/// Range of the factor on windows and token constants.
pub(crate) const SCALE: std::ops::RangeInclusive<f64> = 0.000_001..=1_000.0;

/// A number with its field and its bounds.
pub(crate) struct BoundedNumber<'a> {
    pub(crate) field: &'a str,
    pub(crate) value: &'a mut u64,
    least: u64,
    pub(crate) most: u64,
}

impl<'a> BoundedNumber<'a> {
    pub(crate) fn new(field: &'a str, value: &'a mut u64, most: u64) -> Self {
        BoundedNumber { field, value, least: 0, most }
    }

    /// Creates a limit, a number of tokens that is at least 1.
    pub(crate) fn limit(field: &'a str, value: &'a mut u64) -> Self {
        BoundedNumber { field, value, least: 1, most: TOKENS }
    }
}

/// Returns the numbers of a header.
pub(crate) fn of_header(h: &mut Header) -> Vec<BoundedNumber<'_>> {
    let window = h.context_window.as_mut().map(|n| BoundedNumber::limit("context_window", n));
    let output = h.max_output.as_mut().map(|n| BoundedNumber::limit("max_output", n));
    let prefix = h.prefix_tokens.as_mut();
    let prefix = prefix.map(|n| BoundedNumber::new("prefix_tokens", n, FILLER_TOKENS));
    [window, output, prefix].into_iter().flatten().collect()
}

fn of_usage(u: &mut RecordedUsage) -> Vec<BoundedNumber<'_>> {
    let mut out = vec![
        BoundedNumber::new("usage.input", &mut u.input, TOKENS),
        BoundedNumber::new("usage.output", &mut u.output, TOKENS),
        BoundedNumber::new("usage.cache_read", &mut u.cache_read, TOKENS),
        BoundedNumber::new("usage.cache_write", &mut u.cache_write, TOKENS),
        BoundedNumber::new("usage.cache_write_1h", &mut u.cache_write_1h, TOKENS),
    ];
    let estimate = u.output_estimate.as_mut();
    out.extend(estimate.map(|n| BoundedNumber::new("usage.output_estimate", n, TOKENS)));
    out
}

/// Returns the numbers of an entry.
pub(crate) fn of_entry(entry: &mut Entry) -> Vec<BoundedNumber<'_>> {
    let (mut at, mut usage, mut out) = (None, None, Vec::new());
    match entry {
        Entry::Idle { ms, .. } => out.push(BoundedNumber::new("ms", ms, MS)),
        Entry::RecordedCompaction(c) => {
            let sizes = [("pre_tokens", &mut c.pre_tokens), ("post_tokens", &mut c.post_tokens)];
            let number = |(field, n)| Some(BoundedNumber::new(field, Option::as_mut(n)?, TOKENS));
            out.extend(sizes.into_iter().filter_map(number));
            (at, usage) = (c.at.as_mut(), c.usage.as_mut());
        }
        Entry::RecordedCall(c) => (at, usage) = (c.at.as_mut(), Some(&mut c.usage)),
        Entry::Assistant(a) => (at, usage) = (a.at.as_mut(), a.usage.as_mut()),
        Entry::User(UserEntry { at: time, .. })
        | Entry::Tool(ToolEntry { at: time, .. })
        | Entry::Compact { at: time, .. } => at = time.as_mut(),
        _ => {}
    }
    out.extend(at.map(|n| BoundedNumber::new("at", n, MS)));
    out.extend(usage.into_iter().flat_map(of_usage));
    out
}

/// Returns an error for a number out of bounds.
pub(crate) fn check(numbers: Vec<BoundedNumber<'_>>, line: usize) -> Result<(), InputError> {
    match numbers.into_iter().find(|n| !(n.least..=n.most).contains(n.value)) {
        None => Ok(()),
        Some(BoundedNumber { field, value, least, most }) => {
            let from = if least > 0 { format!("at least {least} and ") } else { String::new() };
            let unit = if most == MS { "ms, a century" } else { "tokens" };
            let expected = format!("{from}at most {most} {unit}");
            Err(InputError::new(
                line,
                format!("{field:?} is {value}"),
                expected,
                "correct the number",
            ))
        }
    }
}

/// Marks, in a warning, the value that replaces an unusable number.
pub(crate) const TAKEN: &str = "; taken as ";

/// Returns whether a warning reports a replaced number, so that figures may be wrong.
pub fn is_about_a_number(warning: &str) -> bool {
    warning.contains(TAKEN)
}

/// Replaces numbers above their bound by the bound, with a warning.
pub(crate) fn clamp(
    numbers: Vec<BoundedNumber<'_>>,
    file: &str,
    line: usize,
    warnings: &mut Vec<String>,
) {
    for n in numbers.into_iter().filter(|n| *n.value > n.most) {
        warnings.push(format!(
            "{file}:{line}: {:?} is {}{TAKEN}{}, the largest there is",
            n.field, n.value, n.most
        ));
        *n.value = n.most;
    }
}

/// Clamps all numbers of a recording.
pub(crate) fn clamp_all(
    header: &mut Header,
    items: &mut [Located],
    file: &str,
    warnings: &mut Vec<String>,
) {
    // Programs write 0 for an unknown limit.
    for limit in [&mut header.context_window, &mut header.max_output] {
        limit.take_if(|n| *n == 0);
    }
    clamp(of_header(header), file, 1, warnings);
    for i in items {
        clamp(of_entry(&mut i.entry), file, i.line, warnings);
    }
}

#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
