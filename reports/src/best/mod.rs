//! `ctxbench best`: the row that wins by one metric under conditions on others, and whether these
//! sessions suffice to say so.
//!
//! A choice made on sessions looks better on them than it is, the more rows there are to choose
//! from. So it is made on random halves of the sessions and told by the other halves. A row is
//! named only when 199 of 200 halves choose it. Means of random halves vary about the mean of all
//! as that varies about the truth (variance s² ÷ n both), so this is a two-sided test. Measured on
//! 3,000 samples each, one of two rows that are alike is named in 5.2 % of them at ten sessions,
//! 3.8 % at twelve, 2.9 % at twenty, 2.4 % at thirty, whether differences are normal or log-normal;
//! one of four in 0.6 %, since the best two of many lie closer. The tests simulate it.

mod splits;
mod text;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::gate::{Limit, LimitError};
use crate::metrics::{self, Better, Metric};
use crate::record::{Results, RunRecord, Status};
use crate::stats::MIN_SESSIONS;
use crate::terms::{Terms, terms};
use crate::{seeds, view};
use ctxbench_core::counted::many;
use ctxbench_core::natural;
use splits::{Field, SPLITS, Splits, Values, splits};

pub use text::text;

/// Share of the halves that must choose a row before it is named.
const DECIDED: f64 = 0.995;

/// Rows that fewer halves choose are no candidates.
const CANDIDATE: f64 = 0.005;

/// What is asked.
pub struct Question {
    by: &'static Metric,
    conditions: Vec<Condition>,
}

struct Condition {
    metric: &'static Metric,
    asked: Asked,
}

/// A bound for the mean per session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// Column of `summary.csv`.
    pub metric: &'static str,
    /// The mean must reach the bound; else it must not exceed it.
    pub at_least: bool,
    /// In the unit of the column.
    pub bound: f64,
}

/// A question that cannot be answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// A condition that was not understood.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// No such metric.
    #[error("--by: there is no metric `{metric}`; {hint}")]
    Unknown {
        /// What was given.
        metric: String,
        /// Names near it.
        hint: String,
    },
    /// Less of it is neither good nor bad.
    #[error(
        "--by {0}: neither more nor less of it is better by itself; choose by cost_usd, \
         needs_kept_pct or blocked_ms, and make it a condition with --min or --max"
    )]
    NoDirection(String),
}

impl Question {
    /// `by` = column of `summary.csv`; `min` and `max` = `METRIC=NUMBER`, a bound for its mean per
    /// session, in the unit of the column.
    pub fn new<S: AsRef<str>>(by: &str, min: &[S], max: &[S]) -> Result<Question, QuestionError> {
        let metric =
            metrics::find(by).map_err(|hint| QuestionError::Unknown { metric: by.into(), hint })?;
        if metric.better == Better::Neither {
            return Err(QuestionError::NoDirection(by.into()));
        }
        let mut conditions = Vec::new();
        for (texts, at_least) in [(min, true), (max, false)] {
            for text in texts {
                let limit: Limit = text.as_ref().parse()?;
                let metric = metrics::find(&limit.metric).expect("a limit is of a known metric");
                let asked = Asked { metric: metric.column, at_least, bound: limit.bound };
                conditions.push(Condition { metric, asked });
            }
        }
        Ok(Question { by: metric, conditions })
    }
}

/// The answer for one model (and one summariser, where there are several).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Model, and summariser where there are several.
    pub about: String,
    /// Column that is chosen by.
    pub by: &'static str,
    pub conditions: Vec<Asked>,
    /// Sessions that every candidate finished.
    pub sessions: usize,
    /// Of these, recordings.
    pub recordings: usize,
    /// Random halves; 0 below two sessions.
    pub halves: usize,
    /// Of these, those on which no row met the conditions, per cent.
    pub none_pct: f64,
    pub verdict: Verdict,
    /// What choosing on one half was worth on the other; `None` without halves, or if none chose.
    pub elsewhere: Option<Elsewhere>,
    /// Rows that could be chosen, the most chosen first.
    pub rows: Vec<Row>,
    /// Rows that could not.
    pub set_aside: Vec<SetAside>,
}

/// What may be said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Verdict {
    /// The first row.
    Decided,
    /// The sessions do not tell the candidates apart, or are too few.
    Undecided {
        /// Why, for a person.
        why: String,
    },
    /// No row meets the conditions over all sessions.
    NoneFits,
    /// There is no row to choose from.
    NoRows,
}

/// The other halves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Elsewhere {
    /// Mean of what was chosen, in the unit of the column; of amounts the geometric one.
    pub by: f64,
    /// Halves whose choice met the conditions there, of those that chose, per cent.
    pub held_pct: f64,
    /// How much worse the choice was there than the best one there, on average: per cent of
    /// amounts, else in the unit of the column. `None` = no choice met the conditions there.
    pub regret_mean: Option<f64>,
    /// The same, exceeded by one half in twenty.
    pub regret_p95: Option<f64>,
    /// Whether these are per cent.
    pub relative: bool,
}

/// A row that could be chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub strategy: String,
    /// Others with the same figures in every session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub same: Vec<String>,
    /// Halves that chose it, per cent.
    pub chosen_pct: f64,
    /// Mean over all sessions, in the unit of the column; of amounts the geometric one.
    pub by: f64,
    /// Mean over all sessions of what each condition asks of.
    pub values: Vec<Option<f64>>,
    /// Whether it meets the conditions over all sessions.
    pub fits: bool,
}

impl Row {
    /// Chosen too often to be ruled out.
    pub(crate) fn is_candidate(&self) -> bool {
        self.chosen_pct / 100.0 >= CANDIDATE
    }
}

/// A row that could not be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetAside {
    pub strategy: String,
    pub why: String,
}

/// An answer per model and summariser.
pub fn best(results: &Results, question: &Question) -> Vec<Answer> {
    let results = &*seeds::averaged(results);
    let blocks = view::blocks(results);
    let answer = |t: &Terms<'_, '_>| of_runs(t.name(), &t.evidence(), question);
    let told = |a: &Answer| !a.rows.is_empty() || !a.set_aside.is_empty();
    terms(&blocks).iter().map(answer).filter(told).collect()
}

/// One strategy on the sessions, in one order for all.
struct Candidate<'a> {
    labels: Vec<&'a str>,
    runs: Vec<&'a RunRecord>,
}

fn of_runs(about: String, runs: &[&RunRecord], question: &Question) -> Answer {
    let (rows, set_aside) = candidates(runs, question);
    let first = rows.first().map_or(&[][..], |c| &c.runs);
    let sessions: Vec<usize> = (0..first.len()).collect();
    let recorded = |i: &&usize| first[**i].scenario.recorded;
    let relative = question.by.unit.is_relative()
        && question.by.better == Better::Lower
        && rows.iter().flat_map(|c| &c.runs).all(|r| value(question.by, r) > 0.0);
    let field = field(&rows, question, relative);
    let found = splits(&field);
    let halves = found.as_ref().map_or(0, |_| SPLITS);
    let told = |score: f64| match (relative, question.by.better) {
        (true, _) => score.exp(),
        (false, Better::Higher) => -score,
        (false, _) => score,
    };
    let mut out: Vec<(usize, Row)> = rows
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let chosen = found.as_ref().map_or(0, |s| s.chosen[i]);
            let row = Row {
                strategy: c.labels[0].into(),
                same: c.labels[1..].iter().map(ToString::to_string).collect(),
                chosen_pct: share(chosen, halves) * 100.0,
                by: told(field.score(i, &sessions)),
                values: field.conditions.iter().map(|c| c.mean(i, &sessions)).collect(),
                fits: field.holds(i, &sessions),
            };
            (i, row)
        })
        .collect();
    out.sort_by(|(i, a), (j, b)| {
        let score = |i: &usize| field.score(*i, &sessions);
        let chosen = b.chosen_pct.total_cmp(&a.chosen_pct);
        chosen.then(b.fits.cmp(&a.fits)).then(score(i).total_cmp(&score(j)))
    });
    let candidates: Vec<&Candidate<'_>> =
        out.iter().filter(|(_, row)| row.is_candidate()).map(|(i, _)| &rows[*i]).collect();
    let verdict = match (out.first(), field.choose(&sessions)) {
        (None, _) => Verdict::NoRows,
        (Some(_), None) => Verdict::NoneFits,
        (Some(_), Some(_)) if halves == 0 && out.len() > 1 => {
            let why = "one session can be told by no other; a choice takes several".into();
            Verdict::Undecided { why }
        }
        (Some((_, most)), Some(_)) => undecided(most, &candidates, out.len())
            .map_or(Verdict::Decided, |why| Verdict::Undecided { why }),
    };
    Answer {
        about,
        by: question.by.column,
        conditions: question.conditions.iter().map(|c| c.asked).collect(),
        sessions: sessions.len(),
        recordings: sessions.iter().filter(recorded).count(),
        halves,
        none_pct: share(found.as_ref().map_or(0, |s| s.none), halves) * 100.0,
        verdict,
        elsewhere: found.as_ref().and_then(|s| elsewhere(s, relative, told)),
        rows: out.into_iter().map(|(_, row)| row).collect(),
        set_aside,
    }
}

/// Why nothing is decided, if it is not.
fn undecided(most: &Row, candidates: &[&Candidate<'_>], rows: usize) -> Option<String> {
    if rows == 1 {
        return Some("there is one row alone".into());
    }
    // Sessions in which nobody compacted tell nobody apart, and scripted ones retell one story.
    let first = candidates.first()?;
    let apart = (0..first.runs.len())
        .filter(|i| first.runs[*i].scenario.recorded)
        .filter(|i| candidates.iter().any(|c| c.runs[*i].summary.compactions > 0))
        .count();
    if apart < MIN_SESSIONS {
        return Some(format!(
            "{} in which one of these compacted; a choice takes {MIN_SESSIONS}",
            many(apart, "recording")
        ));
    }
    (most.chosen_pct / 100.0 < DECIDED).then(|| "no row is chosen by 199 of 200 halves".into())
}

fn elsewhere(found: &Splits, relative: bool, told: impl Fn(f64) -> f64) -> Option<Elsewhere> {
    let n = found.regrets.len();
    let regret = |x: f64| if relative { x.exp_m1() * 100.0 } else { x };
    let mean = found.regrets.iter().sum::<f64>() / n as f64;
    Some(Elsewhere {
        by: told(found.score?),
        held_pct: share(found.held, SPLITS - found.none) * 100.0,
        regret_mean: (n > 0).then(|| regret(mean)),
        regret_p95: found.regrets.get((n * 19 / 20).min(n.saturating_sub(1))).map(|x| regret(*x)),
        relative,
    })
}

fn share(part: usize, all: usize) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

/// Known for every candidate in every session.
fn value(metric: &Metric, run: &RunRecord) -> f64 {
    metric.value(run).unwrap_or(0.0)
}

fn field(rows: &[Candidate<'_>], question: &Question, relative: bool) -> Field {
    let score = |r: &&RunRecord| {
        let x = value(question.by, r);
        match (relative, question.by.better) {
            (true, _) => x.ln(),
            (false, Better::Higher) => -x,
            (false, _) => x,
        }
    };
    let values = |c: &Condition| Values {
        values: rows.iter().map(|r| r.runs.iter().map(|r| c.metric.value(r)).collect()).collect(),
        bound: c.asked.bound,
        floor: c.asked.at_least,
    };
    Field {
        scores: rows.iter().map(|c| c.runs.iter().map(score).collect()).collect(),
        conditions: question.conditions.iter().map(values).collect(),
    }
}

/// The products that can be chosen, and why the others cannot. A row that left a session out may
/// have left out the dear one, so only those are candidates that finished every session that any
/// of them finished.
fn candidates<'a>(
    runs: &[&'a RunRecord],
    question: &Question,
) -> (Vec<Candidate<'a>>, Vec<SetAside>) {
    let by = question.by;
    let asked = || std::iter::once(by).chain(question.conditions.iter().map(|c| c.metric));
    let mut labels: Vec<&'a str> = runs
        .iter()
        .copied()
        .filter(|r| r.is_product())
        .map(|r| r.strategy.label.as_str())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    labels.sort_by(|a, b| natural::order(a, b));
    let of = |label| of_label(runs, label);
    let mut aside = Vec::new();
    let mut leave = |label: &str, why: String| {
        aside.push(SetAside { strategy: label.into(), why });
        false
    };
    labels.retain(|label| {
        let compacted = || of(label).filter(|r| r.summary.compactions > 0 && r.is_whole());
        let unknown = asked().find(|m| compacted().all(|r| m.value(r).is_none()));
        if compacted().next().is_none() {
            leave(label, "compacted in no session that it finished".into())
        } else if let Some(m) = unknown {
            // Others say nothing of it.
            leave(label, format!("its {} is known in no session in which it compacted", m.name))
        } else {
            true
        }
    });
    let finished: BTreeSet<&str> = labels
        .iter()
        .flat_map(|l| of(l))
        .filter(|r| r.is_whole())
        .map(|r| r.scenario.id.as_str())
        .collect();
    // Sessions that have the figure for nobody, or not for all.
    let known = |session: &&str| {
        let here = |r: &&RunRecord| r.scenario.id == **session && r.is_whole();
        labels.iter().flat_map(|l| of(l)).filter(here).all(|r| by.value(r).is_some())
    };
    let sessions: Vec<&str> = finished.iter().copied().filter(known).collect();
    labels.retain(|label| {
        let here = |s: &&str| of(label).any(|r| r.scenario.id == **s && r.is_whole());
        let missing: Vec<&str> = finished.iter().copied().filter(|s| !here(s)).collect();
        match missing.first() {
            None => true,
            Some(first) => {
                let all = finished.len();
                let ran = of(label).find(|r| r.scenario.id == *first);
                let how = ran.map_or(": not run".into(), how_it_ended);
                let which = format!("{} of {all} sessions ({first}{how})", missing.len());
                leave(label, format!("did not finish {which}"))
            }
        }
    });
    let mut out: Vec<Candidate<'a>> = Vec::new();
    for label in labels {
        let run = |s: &&str| of(label).find(|r| r.scenario.id == **s && r.is_whole());
        let runs: Vec<&RunRecord> = sessions.iter().filter_map(run).collect();
        let same = out.iter_mut().find(|c| alike(&c.runs, &runs));
        match same {
            Some(c) => c.labels.push(label),
            None => out.push(Candidate { labels: vec![label], runs }),
        }
    }
    if sessions.is_empty() {
        for c in out.drain(..) {
            let why = format!("no session has its {}", by.column);
            aside.extend(
                c.labels.iter().map(|l| SetAside { strategy: l.to_string(), why: why.clone() }),
            );
        }
    }
    (out, aside)
}

fn of_label<'r, 'a>(
    runs: &'r [&'a RunRecord],
    label: &'r str,
) -> impl Iterator<Item = &'a RunRecord> + use<'r, 'a> {
    runs.iter().copied().filter(move |r| r.strategy.label == label)
}

fn how_it_ended(r: &RunRecord) -> String {
    match r.status {
        Status::Completed => ": broke a rule".into(),
        Status::NotApplicable => ": cannot exist".into(),
        other => view::end(other).map(|(_, how)| format!(": {how}")).unwrap_or_default(),
    }
}

/// Whether two rows have the same figures in every session.
fn alike(a: &[&RunRecord], b: &[&RunRecord]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.summary == b.summary)
}

#[cfg(test)]
mod tests;
