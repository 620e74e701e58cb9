//! Summarisers with access to the facts. They give an upper bound, exact or with given losses.
//!
//! Of each fact, the lines are written that state it in the conversation of the prompt. What is not
//! there is never written, so a strategy cannot recover a dropped fact here.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use ctxbench_core::tokens::{content_hash, o200k};
use ctxbench_session::fact::{Fact, fold};
use ctxbench_session::matcher::Matcher;

use super::SummaryJob;
use super::request::SummaryRequest;
use super::sentences::on_one_line;

/// Default probability that `lossy` keeps a visible fact (our choice for a mid-range model).
pub const KEEP: f64 = 0.8;
/// Default share of the kept facts that `lossy` distorts (our choice).
pub const DISTORT: f64 = 0.05;

/// Number of bytes on each side of a literal that are written with it.
const AROUND: usize = 120;

/// Returns the lines of the visible facts, as far as the reply has room: first those that answer most
/// needs per token. `rates` = (keep, distort) for losses.
pub(super) fn write(job: &SummaryJob<'_>, rates: Option<(f64, f64)>) -> String {
    let request = SummaryRequest::read(job.prompt);
    let mut units: Vec<Unit<'_>> = job.facts.iter().enumerate().flat_map(Unit::of).collect();
    let facts: Vec<Fact> = units.iter().map(Unit::fact).collect();
    let matcher = Matcher::new(&facts);
    for text in request.segments.iter().rev().map(|s| s.text) {
        for (unit, _) in matcher.find(text, &fold(text)) {
            if units[unit].line.is_empty() {
                let states = |line: &&str| facts[unit].occurs_in(line);
                units[unit].line = text.lines().rfind(states).unwrap_or_default();
            }
        }
    }
    units.retain(|unit| !unit.line.is_empty());
    units.sort_by_cached_key(|unit| Reverse(unit.needs_per_token()));
    let mut written = BTreeSet::new();
    let lines = units.iter().filter_map(|unit| {
        let chance = |what| rates.map(|_| chance(job, &unit.of.id, what)).unwrap_or_default();
        let (keep, distort) = rates.unwrap_or((1.0, 0.0));
        let line = (chance("keep") < keep).then(|| unit.excerpt(chance("distort") < distort))?;
        written.insert(line.clone()).then_some(((0, unit.number), line))
    });
    request.answer(job.room().unwrap_or(u64::MAX / 4), &[], lines)
}

/// A fact or one of its literals, with the newest line of the conversation that states it.
struct Unit<'a> {
    number: usize,
    of: &'a Fact,
    literal: Option<&'a str>,
    line: &'a str,
}

impl<'a> Unit<'a> {
    fn of((number, of): (usize, &'a Fact)) -> Vec<Unit<'a>> {
        let unit = |literal| Unit { number, of, literal, line: "" };
        match of.tokens.is_empty() {
            true => vec![unit(None)],
            false => of.tokens.iter().map(|t| unit(Some(t.as_str()))).collect(),
        }
    }

    fn fact(&self) -> Fact {
        let tokens = self.literal.iter().map(ToString::to_string).collect();
        Fact { tokens, ..self.of.clone() }
    }

    /// Returns the answered shares of needs per million tokens of the excerpt.
    fn needs_per_token(&self) -> u64 {
        let literals = self.of.tokens.len().max(1) as u64;
        1_000_000 * self.of.needs.len() as u64 / literals / o200k(&self.excerpt(false)).max(1)
    }

    /// Returns the part of the line around the literal, which may be distorted.
    fn excerpt(&self, is_distorted: bool) -> String {
        let found = self.literal.and_then(|l| Some((l, self.line.find(l)?)));
        let Some((literal, at)) = found else { return on_one_line(self.line) };
        let from = self.line.ceil_char_boundary(at.saturating_sub(AROUND));
        let end = at + literal.len();
        let to = self.line.floor_char_boundary(end + AROUND);
        let form = if is_distorted { distorted(literal) } else { literal.into() };
        on_one_line(&[&self.line[from..at], &form, &self.line[end..to]].concat())
    }
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
