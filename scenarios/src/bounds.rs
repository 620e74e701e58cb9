//! Bounds of the numbers in a session. They are far above the numbers of real sessions, and low
//! enough that sums over a session do not overflow and filler texts fit into memory.
//!
//! A session file with a number out of bounds is refused. In a recording, the bound replaces the
//! number, with a warning, and a limit of 0 counts as unknown.

use std::ops::RangeInclusive;

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
pub(crate) const SCALE: RangeInclusive<f64> = 0.000_001..=1_000.0;

pub(crate) type BoundedNumber<'a> = (&'a str, &'a mut u64, RangeInclusive<u64>);

/// Range of a limit, a number of tokens that is at least 1.
pub(crate) const LIMIT: RangeInclusive<u64> = 1..=TOKENS;

pub(crate) fn of_header(h: &mut Header) -> Vec<BoundedNumber<'_>> {
    let all = [
        ("context_window", &mut h.context_window, LIMIT),
        ("max_output", &mut h.max_output, LIMIT),
        ("prefix_tokens", &mut h.prefix_tokens, 0..=FILLER_TOKENS),
    ];
    all.into_iter().filter_map(given).collect()
}

pub(crate) fn given<'a>(
    (field, number, range): (&'a str, &'a mut Option<u64>, RangeInclusive<u64>),
) -> Option<BoundedNumber<'a>> {
    Some((field, number.as_mut()?, range))
}

fn of_usage(u: &mut RecordedUsage) -> impl Iterator<Item = BoundedNumber<'_>> {
    let counters = [
        ("usage.input", &mut u.input),
        ("usage.output", &mut u.output),
        ("usage.cache_read", &mut u.cache_read),
        ("usage.cache_write", &mut u.cache_write),
        ("usage.cache_write_1h", &mut u.cache_write_1h),
    ];
    let estimate = given(("usage.output_estimate", &mut u.output_estimate, 0..=TOKENS));
    counters.into_iter().map(|(field, n)| (field, n, 0..=TOKENS)).chain(estimate)
}

pub(crate) fn of_entry(entry: &mut Entry) -> Vec<BoundedNumber<'_>> {
    let (mut at, mut usage, mut out) = (None, None, Vec::new());
    match entry {
        Entry::Idle { ms, .. } => out.push(("ms", ms, 0..=MS)),
        Entry::RecordedCompaction(c) => {
            out.extend(given(("pre_tokens", &mut c.pre_tokens, 0..=TOKENS)));
            out.extend(given(("post_tokens", &mut c.post_tokens, 0..=TOKENS)));
            (at, usage) = (c.at.as_mut(), c.usage.as_mut());
        }
        Entry::RecordedCall(c) => (at, usage) = (c.at.as_mut(), Some(&mut c.usage)),
        Entry::Assistant(a) => (at, usage) = (a.at.as_mut(), a.usage.as_mut()),
        Entry::User(UserEntry { at: time, .. })
        | Entry::Tool(ToolEntry { at: time, .. })
        | Entry::Compact { at: time, .. } => at = time.as_mut(),
        _ => {}
    }
    out.extend(at.map(|n| ("at", n, 0..=MS)));
    out.extend(usage.into_iter().flat_map(of_usage));
    out
}

pub(crate) fn check(numbers: Vec<BoundedNumber<'_>>, line: usize) -> Result<(), InputError> {
    let wrong = numbers.into_iter().find(|(_, value, range)| !range.contains(value));
    let Some((field, value, range)) = wrong else { return Ok(()) };
    let (least, most) = range.into_inner();
    let from = if least > 0 { format!("at least {least} and ") } else { String::new() };
    let unit = if most == MS { "ms, a century" } else { "tokens" };
    let (what, expected) =
        (format!("{field:?} is {value}"), format!("{from}at most {most} {unit}"));
    Err(InputError::new(line, what, expected, "correct the number"))
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
    for (field, value, range) in numbers {
        let most = *range.end();
        if *value > most {
            let told = format!("{field:?} is {value}{TAKEN}{most}, the largest there is");
            warnings.push(format!("{file}:{line}: {told}"));
            *value = most;
        }
    }
}

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
