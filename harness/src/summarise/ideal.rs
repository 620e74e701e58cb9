//! Summarisers with access to the facts. They give an upper bound, exact or with given losses.
//!
//! A fact is visible if each of its literals occurs verbatim in the conversation of the prompt.
//! Invisible facts are never written, so a strategy cannot recover a dropped fact here.

use std::borrow::Cow;

use ctxbench_core::tokens::{content_hash, o200k};
use ctxbench_session::fact::{Fact, FactKind, Match};

use super::SummaryJob;
use super::ask::Instruction;
use super::collect::SummaryCandidate;
use super::extractive::{fit, nothing};
use super::read::read;
use super::topic::Topic;

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
    let reading = read(job.prompt);
    let ask = Instruction::parse(&reading.instruction, &reading.wishes);
    let limit = reading.limit(job.room());
    if reading.segments.is_empty() {
        return nothing(ask, limit);
    }
    let said = reading.segments.iter().map(|s| s.text).collect::<Vec<_>>().join("\n");
    let mut units: Vec<SummaryCandidate<'_>> = Vec::new();
    for (n, f) in job.facts.iter().enumerate().filter(|(_, f)| visible(f, &said)) {
        let Some(text) = outcome(f, job, rates) else { continue };
        let tokens = o200k(&text) as u32 + 2;
        let rank = RANK.iter().position(|k| *k == f.kind).unwrap_or(RANK.len());
        let score = (RANK.len() - rank) as f32;
        units.push(SummaryCandidate {
            text,
            topic: topic(f.kind),
            score,
            order: n as u64,
            tokens,
            user: false,
            cut: false,
            raw: true,
            asked: false,
        });
    }
    fit(ask, &units, limit, &reading.thoughts(), by_kind)
}

/// Returns whether the conversation contains every literal. The empty second text disables the more
/// lenient matching.
fn visible(f: &Fact, said: &str) -> bool {
    !f.tokens.is_empty() && f.matches(said, "") == Match::Verbatim
}

/// Returns the candidates that fit, with kinds in the order of [`RANK`].
fn by_kind(units: &[SummaryCandidate<'_>], budget: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by(|&a, &b| units[b].score.total_cmp(&units[a].score));
    let mut left = budget;
    order.retain(|&i| {
        let cost = u64::from(units[i].tokens);
        let fits = cost <= left;
        left -= if fits { cost } else { 0 };
        fits
    });
    order
}

/// Returns the form of a visible fact in the summary: its literals, a distorted version, or
/// nothing.
fn outcome<'a>(
    f: &'a Fact,
    job: &SummaryJob<'_>,
    rates: Option<(f64, f64)>,
) -> Option<Cow<'a, str>> {
    let exact = || f.tokens.join(" · ");
    let Some((keep, distort)) = rates else { return Some(exact().into()) };
    if chance(job, &f.id, "keep") >= keep {
        return None;
    }
    Some(if chance(job, &f.id, "distort") < distort {
        distorted(&exact()).into()
    } else {
        exact().into()
    })
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

fn topic(kind: FactKind) -> Topic {
    match kind {
        FactKind::Goal => Topic::Request,
        FactKind::Constraint => Topic::Constraint,
        FactKind::Artifact => Topic::File,
        FactKind::Decision => Topic::Decision,
        FactKind::Error => Topic::Error,
        FactKind::Value | FactKind::Superseded => Topic::Value,
        FactKind::Todo => Topic::Next,
    }
}
