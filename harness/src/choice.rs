//! Selection of the sessions of a corpus.
//!
//! All commands use this order: a session has to pass the filters, then a sample or the newest are
//! selected from these, and finally a limit applies, in the order in which the sessions are read.

use std::collections::BTreeMap;

use ctxbench_core::tokens::content_hash;
use ctxbench_scenarios::formats::millis;
use ctxbench_session::{Session, calibration};
use ctxbench_util::plural::pluralize;

use crate::commands::values::{self, many};

/// Options that select sessions. Without any, every session is selected.
#[derive(clap::Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Take the first N sessions, by their paths
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub limit: Option<u64>,
    /// Take N random sessions, the same ones wherever the folder is
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub sample: Option<u64>,
    /// Take the N newest sessions; those without a date count as the oldest
    #[arg(long, value_name = "N", value_parser = values::count, conflicts_with = "sample", hide = true)]
    pub last: Option<u64>,
    /// Seed of the sample.
    #[arg(skip)]
    pub seed: u64,
    /// Take sessions with at least N tokens of content, such as 20000 or 20k
    #[arg(long, value_name = "N", value_parser = values::tokens)]
    pub min_tokens: Option<u64>,
    /// Take sessions that began on this day or later, UTC; sessions without a date are left out
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub since: Option<String>,
}

impl Choice {
    /// Returns true if each session can be accepted or rejected as soon as it is read.
    pub fn is_in_order(&self) -> bool {
        self.sample.or(self.last).is_none()
    }
}

/// Returns the tokens of a session's content, counted as for the family of its model.
pub fn tokens(session: &Session) -> u64 {
    let by = calibration::counting_of(session.header.model.as_deref()).for_visible_text();
    calibration::content(&session.entries, &by)
}

/// What the selection of a session depends on.
#[derive(Clone, Debug)]
pub struct Candidate {
    id: String,
    /// Time at which the session began, ms since 1970.
    began: Option<i64>,
    is_early: bool,
    is_small: bool,
}

impl Candidate {
    /// Judges a session by the filters.
    pub fn new(session: &Session, choice: &Choice) -> Candidate {
        let began = session.header.started.as_deref().and_then(millis);
        let first = choice.since.as_ref().map(|day| millis(&format!("{day}T00:00:00Z")));
        let is_early = first.is_some_and(|first| began.is_none() || began < first);
        let is_small = choice.min_tokens.filter(|_| !is_early);
        let is_small = is_small.is_some_and(|least| tokens(session) < least);
        Candidate { id: session.header.id.clone(), began, is_early, is_small }
    }

    /// Returns whether the session does not pass the filters.
    pub fn is_refused(&self) -> bool {
        self.is_early || self.is_small
    }
}

/// Proof that a session passed the filters, with its sort key: the random draw of a sample, or the
/// age. The lowest keys are kept.
#[derive(Debug)]
pub struct Ticket(Option<u64>);

/// Selects sessions one by one. `T` is the value that the caller derives from a session.
#[derive(Debug)]
pub struct Chooser<T> {
    choice: Choice,
    /// The sample or the newest sessions so far, by the key of the ticket and the order of
    /// addition.
    drawn: BTreeMap<(u64, usize), T>,
    offered: usize,
    taken: usize,
    small: usize,
    early: usize,
    undated: usize,
}

impl<T> Chooser<T> {
    /// Creates a chooser that has not selected any session.
    pub fn new(choice: &Choice) -> Chooser<T> {
        Chooser {
            choice: choice.clone(),
            drawn: BTreeMap::new(),
            offered: 0,
            taken: 0,
            small: 0,
            early: 0,
            undated: 0,
        }
    }

    /// Returns true if no further session can be selected, so that the caller can stop reading.
    pub fn is_full(&self) -> bool {
        self.choice.is_in_order() && self.choice.limit.is_some_and(|most| self.taken >= many(most))
    }

    /// Applies the filters to a session. `place` is its path below the argument that named it. A
    /// session with the same place and ID gets the same draw, regardless of the reading order.
    pub fn admit(&mut self, candidate: &Candidate, place: &str) -> Option<Ticket> {
        let Candidate { id, began, is_early, is_small } = candidate;
        if self.is_full() {
            return None;
        }
        if *is_early {
            *(if began.is_some() { &mut self.early } else { &mut self.undated }) += 1;
            return None;
        }
        if *is_small {
            self.small += 1;
            return None;
        }
        if self.choice.sample.is_some() {
            return Some(Ticket(Some(draw(self.choice.seed, place, id))));
        }
        if self.choice.last.is_some() {
            return Some(Ticket(Some(began.map_or(u64::MAX, |at| i64::MAX.abs_diff(at)))));
        }
        self.taken += 1;
        Some(Ticket(None))
    }

    /// Adds the value of a session that passed the filters. Returns it at once, unless a sample is
    /// drawn or the newest are kept: [`Self::end`] returns these.
    pub fn take(&mut self, ticket: Ticket, what: T) -> Option<T> {
        let most = self.choice.sample.or(self.choice.last);
        let (Some(place), Some(most)) = (ticket.0, most) else { return Some(what) };
        self.drawn.insert((place, self.offered), what);
        self.offered += 1;
        if self.drawn.len() > many(most) {
            self.drawn.pop_last();
        }
        None
    }

    /// Returns the sample or the newest sessions in the order in which they were added, and a
    /// message about the omitted sessions, if there are any.
    pub fn end(mut self) -> (Vec<T>, Option<String>) {
        let drawn = std::mem::take(&mut self.drawn);
        let mut sample: Vec<(usize, T)> = drawn.into_iter().map(|((_, n), t)| (n, t)).collect();
        sample.sort_by_key(|(n, _)| *n);
        let (by_sample, drew) = (self.offered - sample.len(), self.choice.sample.is_some());
        let most = self.choice.limit.map_or(usize::MAX, many);
        let by_limit = sample.len().saturating_sub(most);
        sample.truncate(most);
        let since = self.choice.since.as_deref().unwrap_or_default();
        let min = self.choice.min_tokens.unwrap_or_default();
        let told = [
            (self.small, format!("with less than {min} tokens")),
            (self.early, format!("begun before {since}")),
            (self.undated, "without a date".to_string()),
            (by_sample, if drew { "not drawn" } else { "older" }.to_string()),
            (by_limit, "beyond the limit".to_string()),
        ];
        let told: Vec<String> =
            told.into_iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}")).collect();
        let left_out = self.small + self.early + self.undated + by_sample + by_limit;
        let mut line = match left_out {
            0 => String::new(),
            n => format!("{} left out: {}", pluralize(n, "session"), told.join(", ")),
        };
        if self.is_full() {
            line += if line.is_empty() { "" } else { "; " };
            line += &format!("read no further after {}", pluralize(self.taken, "session"));
        }
        (sample.into_iter().map(|(_, t)| t).collect(), (!line.is_empty()).then_some(line))
    }
}

/// Returns a pseudo-random number that depends only on the seed and the session.
fn draw(seed: u64, place: &str, id: &str) -> u64 {
    content_hash(format!("{seed}\0{place}\0{id}").as_bytes())
}

/// Parses a day in the form `YYYY-MM-DD`.
pub fn day(text: &str) -> Result<String, String> {
    let plain = text.len() == 10 && text.is_ascii();
    let stamp = plain.then(|| format!("{text}T00:00:00Z"));
    match stamp.and_then(|s| millis(&s)) {
        Some(_) => Ok(text.to_string()),
        None => Err("expected a day as YYYY-MM-DD, such as 2026-03-01".into()),
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
