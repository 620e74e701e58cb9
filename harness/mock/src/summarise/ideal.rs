//! Summarisers with access to the facts. They give an upper bound, exact or with given losses.
//!
//! A fact is visible if each of its literals occurs verbatim in the conversation of the prompt.
//! Invisible facts are never written, so a strategy cannot recover a dropped fact here.

use ctxbench_core::tokens::content_hash;
use ctxbench_session::fact::{Fact, FactKind, Match};

use super::SummaryJob;
use super::request::SummaryRequest;

/// Default probability that `lossy` keeps a visible fact (our choice for a mid-range model).
pub const KEEP: f64 = 0.8;
/// Default share of the kept facts that `lossy` distorts (our choice).
pub const DISTORT: f64 = 0.05;

/// Order of the facts, for summaries that do not have room for all of them.
const RANK: [FactKind; 8] = [
    FactKind::Constraint,
    FactKind::Goal,
    FactKind::Todo,
    FactKind::Decision,
    FactKind::Value,
    FactKind::Error,
    FactKind::Artifact,
    FactKind::Superseded,
];

/// Returns the visible facts that fit, each as a line with its literals. `rates` = (keep, distort)
/// for losses.
pub(super) fn write(job: &SummaryJob<'_>, rates: Option<(f64, f64)>) -> String {
    let request = SummaryRequest::read(job.prompt);
    let said = request.segments.iter().map(|s| s.text).collect::<Vec<_>>().join("\n");
    let mut visible: Vec<(usize, &Fact)> =
        job.facts.iter().enumerate().filter(|(_, f)| visible(f, &said)).collect();
    visible.sort_by_key(|(_, f)| RANK.iter().position(|k| *k == f.kind).unwrap_or(RANK.len()));
    let lines = visible.into_iter().filter_map(|(n, f)| Some(((0, n), outcome(f, job, rates)?)));
    request.answer(job.room(), &[], lines)
}

/// Returns whether the conversation contains every literal. The empty second text disables the more
/// lenient matching.
fn visible(f: &Fact, said: &str) -> bool {
    !f.tokens.is_empty() && f.matches(said, "") == Match::Verbatim
}

/// Returns the form of a visible fact in the summary: its literals, a distorted version, or
/// nothing.
fn outcome(f: &Fact, job: &SummaryJob<'_>, rates: Option<(f64, f64)>) -> Option<String> {
    let exact = f.tokens.join(" · ");
    let Some((keep, distort)) = rates else { return Some(exact) };
    if chance(job, &f.id, "keep") >= keep {
        return None;
    }
    let is_distorted = chance(job, &f.id, "distort") < distort;
    Some(if is_distorted { distorted(&exact) } else { exact })
}

/// Returns a number in [0, 1) that depends only on seed, summary and fact.
fn chance(job: &SummaryJob<'_>, fact: &str, what: &str) -> f64 {
    let h = content_hash(format!("{}/{}/{what}/{fact}", job.seed, job.index).as_bytes());
    (h >> 11) as f64 / (1u64 << 53) as f64
}

/// Distorts a text: changes the last digit, or drops the last term if there is no digit, or drops
/// the last character of a single term.
fn distorted(text: &str) -> String {
    if let Some(at) = text.rfind(|c: char| c.is_ascii_digit()) {
        let digit = text.as_bytes()[at] - b'0';
        return format!("{}{}{}", &text[..at], (digit + 1) % 10, &text[at + 1..]);
    }
    match text.trim_end().rfind(char::is_whitespace) {
        Some(at) => text[..at].trim_end_matches([' ', '·']).to_string(),
        None => text.chars().take(text.chars().count().saturating_sub(1)).collect(),
    }
}
