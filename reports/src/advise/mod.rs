//! Estimates the effect of a product's settings on its recorded sessions, and decides whether to
//! advise a change.
//!
//! Each value is compared with the present settings, session by session (`reports/src/stats/`). One
//! value is advised with its price: of those that save dollars beyond chance and that no other value
//! dominates in dollars and recall, the one that saves most per point of recall.

mod agree;
mod decision;
mod review;
mod text;

use std::cmp::Ordering;
use std::collections::BTreeSet;

use ctxbench_core::tokens::content_hash;
use serde::Serialize;

use crate::metrics::Metric;
use crate::record::{FactRecord, Recall, RunRecord};
use crate::stats::{self, Figure, Verdict};
use crate::{fmt, front};

use decision::{decide, percent, without_sessions};

pub use agree::{WITHIN, disagreement, effect};
pub use review::write;
pub use text::{to_summary, to_text};

/// A value of a setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettingChange {
    /// Name of the setting in ctxbench.
    pub setting: String,
    pub value: String,
    /// Its present value.
    pub today: String,
    /// Text for the product's configuration; empty if the product has no such setting.
    pub line: String,
    /// Place of that text, such as a configuration file.
    pub place: String,
    /// URL of the product's documentation.
    pub documented: String,
}

/// A change of one setting, or of two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Label of its rows.
    pub label: String,
    pub settings: Vec<SettingChange>,
    /// Label of the single change that a combination extends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
}

/// A session of the product that was not used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    pub session: String,
    /// Reason, as the end of a sentence.
    pub why: String,
}

/// Rows that were run for one product.
#[derive(Clone, Debug)]
pub struct Tried<'a> {
    /// Label of the present settings.
    pub product: &'a str,
    pub changes: Vec<Candidate>,
    /// Rows of the usable sessions: the present settings, and each change.
    pub runs: &'a [RunRecord],
    /// Rows as recorded of these sessions.
    pub recorded: &'a [RunRecord],
    /// Sessions that cannot be used.
    pub left_out: Vec<LeftOut>,
    /// Limits of these figures, as sentences.
    pub limits: Vec<String>,
    /// What the recordings show of the present settings; see [`effect`].
    pub effect: String,
    /// Day on which the newest usable session began.
    pub newest: Option<String>,
}

/// Outcome of the comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    NoSession,
    /// No value changes a request in any session.
    NothingChanges,
    /// No value changes any request in ten sessions.
    TooFew,
    /// No value is better beyond chance.
    NoChange,
    /// The row with this label is advised, at the price that the sentence tells.
    Change(String),
}

/// What can be compared between the recordings and our replay of them, over the same sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Comparable {
    pub cost_usd: f64,
    pub compactions: u64,
    /// Share of the input that was read from the prompt cache, per cent.
    pub cache_read_pct: Option<f64>,
}

impl Comparable {
    fn from_runs<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> Comparable {
        let (mut all, mut input, mut read) = (Comparable::default(), 0, 0);
        for r in runs.map(|r| &r.summary) {
            all.cost_usd += r.cost_estimate_usd.unwrap_or(r.cost_usd);
            all.compactions += r.compactions;
            input += r.input_tokens;
            read += r.cache_read_tokens;
        }
        all.cache_read_pct = (input > 0).then(|| 100.0 * read as f64 / input as f64);
        all
    }
}

/// Figures of one setting over the compared sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sums {
    pub cost_usd: f64,
    /// Waiting that compactions caused, ms, modelled.
    pub waited_ms: u64,
    pub compactions: u64,
    /// Median size of the prompt before a summary, tokens; `None` without one.
    pub compacts_at: Option<u64>,
    /// Mean recall of a session, and the number of messages with needs in all of them.
    pub recall: Recall,
    /// Recall over the messages that need what compactions had removed or changed.
    pub at_risk: Recall,
    /// Figures of each session, by its id.
    pub per_session: Vec<SessionFigures>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionFigures {
    pub session: String,
    pub cost_usd: f64,
    pub recall_pct: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeOutcome {
    #[serde(flatten)]
    pub change: Candidate,
    /// True if no other value, nor the present settings, costs less and keeps more.
    pub front: bool,
    /// Number of sessions that it did not finish, or in which it broke a rule.
    pub failed: usize,
    /// Compared sessions in which any request differs.
    pub differs: usize,
    /// Sums over the compared sessions; `None` if it failed too often to be ranked.
    pub then: Option<Sums>,
    /// Change per session, with its verdict.
    pub figures: Vec<Figure>,
    /// True unless it extends another change and is not cheaper than that one beyond chance.
    #[serde(skip)]
    pays: bool,
}

/// Report for one product.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Product with its present settings: name, version and settings.
    pub product: String,
    pub decision: Decision,
    /// Decision, as a sentence.
    pub sentence: String,
    /// Change per session of the advised value with its verdicts; empty without one.
    pub sure: String,
    /// What the recordings show of the present settings.
    pub effect: String,
    /// Number of sessions compared: usable, and finished by every ranked value.
    pub sessions: usize,
    pub models: Vec<String>,
    /// By the provider's counters.
    pub recorded: Comparable,
    /// By our replay with the present settings; beside the recorded figures, it shows the accuracy
    /// of the model.
    pub modelled: Comparable,
    /// Sums over these sessions with the present settings.
    pub now: Sums,
    /// True if no value costs less and keeps more than the present settings.
    pub front: bool,
    pub changes: Vec<ChangeOutcome>,
    pub left_out: Vec<LeftOut>,
    pub limits: Vec<String>,
    /// Day on which the newest usable session began.
    pub newest: Option<String>,
    /// Hash of the compared sessions.
    pub hash: String,
}

/// Remark on all figures.
const LIMIT: &str = "Cache, summaries and waiting are modelled; the replies are the recorded ones.";

/// Remark for a value that was selected by its result.
const PICKED: &str = "The value was picked on these sessions: expect less on others.";

/// Builds the report of a product from its rows. Compares the sessions that every ranked value
/// finished; who fails often is not ranked (`front::common`).
pub fn advise(tried: Tried<'_>) -> Advice {
    let Tried { product, changes, runs, recorded, left_out, mut limits, effect, newest } = tried;
    let all: Vec<&RunRecord> = runs.iter().collect();
    let common = front::common(&all);
    let used: Vec<&RunRecord> =
        all.iter().filter(|r| common.sessions.contains(&*r.scenario.id)).copied().collect();
    let of = |label: &str| -> Vec<&RunRecord> {
        used.iter().filter(|r| r.strategy.label == label).copied().collect()
    };
    let (now, differences) = (of(product), stats::by_settings(&used, product));
    let contents: BTreeSet<&str> = now.iter().map(|r| &*r.scenario.content).collect();
    let hash = content_hash(contents.into_iter().collect::<String>().as_bytes());
    let sums = Sums::from_runs(&now);
    let outcome = |change: Candidate| {
        let row = differences.as_ref()?.row(&change.label)?;
        let own = all.iter().filter(|r| r.strategy.label == change.label && !r.is_whole());
        let ranked = common.ranked.contains(&*change.label);
        let cheaper = |other: &String| {
            stats::pair(&used, other, &change.label, 0).figures[COST].verdict == Verdict::Better
        };
        Some(ChangeOutcome {
            front: false,
            failed: own.count(),
            differs: if ranked { row.compacted } else { 0 },
            then: ranked.then(|| Sums::from_runs(&of(&change.label))),
            figures: row.figures.clone(),
            pays: change.extends.iter().all(cheaper),
            change,
        })
    };
    let mut outcomes: Vec<ChangeOutcome> = changes.into_iter().filter_map(outcome).collect();
    let places: Vec<Option<Vec<f64>>> = outcomes
        .iter()
        .map(|o| o.then.as_ref().map(Sums::place))
        .chain([Some(sums.place())])
        .collect();
    let axes: Vec<(usize, &Metric)> = front::metrics().collect();
    let row = |i: usize| match outcomes.get(i) {
        Some(o) => differences.as_ref()?.row(&o.change.label),
        None => differences.as_ref()?.row(product),
    };
    let unbeaten = front::unbeaten(&places, |a, b, i| {
        let (at, metric) = axes[i];
        row(a).zip(row(b)).is_some_and(|(a, b)| {
            stats::is_apart_by_nothing(&a.figures[at], &b.figures[at], metric)
        })
    });
    // Equal rows have no marks: they would say nothing.
    let has_marks = places.iter().flatten().any(|p| *p != sums.place());
    outcomes.iter_mut().zip(&unbeaten).for_each(|(o, on_it)| o.front = has_marks && *on_it);
    let (decision, sentence, sure) = match differences {
        Some(_) => decide(product, now.len(), &sums, &outcomes),
        None => (Decision::NoSession, without_sessions(product, left_out.len()), String::new()),
    };
    let picked = matches!(decision, Decision::Change(_)).then(|| PICKED.into());
    limits = picked.into_iter().chain([LIMIT.into()]).chain(limits).collect();
    let models: BTreeSet<&str> = now.iter().map(|r| r.model.as_str()).collect();
    Advice {
        product: product.into(),
        decision,
        sentence,
        sure,
        effect,
        sessions: now.len(),
        models: models.into_iter().map(str::to_string).collect(),
        recorded: Comparable::from_runs(recorded.iter()),
        modelled: Comparable::from_runs(runs.iter().filter(|r| r.strategy.label == product)),
        now: sums,
        front: has_marks && unbeaten.last() == Some(&true),
        changes: outcomes,
        left_out,
        limits,
        newest,
        hash: format!("{hash:016x}"),
    }
}

/// Places of the deciding figures among the judged ones.
const COST: usize = 0;
const KEPT: usize = 2;

/// Most combinations of two settings that are tried.
const COMBINATIONS: usize = 3;

impl Advice {
    /// The advised change.
    fn advised(&self) -> Option<&ChangeOutcome> {
        let Decision::Change(label) = &self.decision else { return None };
        self.changes.iter().find(|o| o.change.label == *label)
    }

    /// Single changes that a user can make and that change a request, the best one first.
    fn useful(&self) -> Vec<&ChangeOutcome> {
        let is_useful = |o: &&ChangeOutcome| {
            o.differs > 0 && o.then.is_some() && o.change.settings.len() == 1 && o.is_settable()
        };
        let mut useful: Vec<&ChangeOutcome> = self.changes.iter().filter(is_useful).collect();
        let gain = |o: &ChangeOutcome| {
            let then = o.then.as_ref()?;
            Some((then.cost_usd < self.now.cost_usd, worth(&self.now, then)))
        };
        // The order of equal ones is that of the settings.
        useful.sort_by(|a, b| gain(b).partial_cmp(&gain(a)).unwrap_or(Ordering::Equal));
        useful
    }

    /// The change that is shown session by session: the advised one, or else the best one.
    fn focus(&self) -> Option<&ChangeOutcome> {
        self.advised().or_else(|| self.useful().first().copied())
    }
}

impl ChangeOutcome {
    fn is_settable(&self) -> bool {
        self.change.settings.iter().all(|s| !s.line.is_empty())
    }
}

/// Returns the pairs of single changes that are worth trying together: the best one, with the best of
/// each other setting. A value that switches compaction off is in no pair.
pub fn combinations(single: &Advice) -> Vec<[&Candidate; 2]> {
    let saves = |o: &&ChangeOutcome| {
        let cheaper = o.then.as_ref().is_some_and(|then| then.cost_usd < single.now.cost_usd);
        cheaper && o.change.settings[0].setting != "auto"
    };
    let mut seen = BTreeSet::new();
    let best = single.useful().into_iter().filter(saves).map(|o| &o.change);
    let mut firsts = best.filter(|c| seen.insert(c.settings[0].setting.as_str()));
    let Some(lead) = firsts.next() else { return vec![] };
    firsts.take(COMBINATIONS).map(|other| [lead, other]).collect()
}

/// Dollars saved per point of recall; more dollars are better where recall does not fall.
fn worth(now: &Sums, then: &Sums) -> (bool, f64) {
    let (saved, lost) = (now.cost_usd - then.cost_usd, now.kept_pct() - then.kept_pct());
    if lost > 0.0 { (false, saved / lost) } else { (true, saved) }
}

impl Sums {
    fn from_runs(runs: &[&RunRecord]) -> Sums {
        let recall = |r: &RunRecord, is_counted: fn(&FactRecord) -> bool| {
            Recall::over(r.facts.iter().filter(|f| is_counted(f)))
        };
        let sum = |of: fn(&RunRecord) -> u64| runs.iter().map(|r| of(r)).sum();
        let session = |r: &&RunRecord| SessionFigures {
            session: r.scenario.id.clone(),
            cost_usd: r.summary.cost_usd,
            recall_pct: recall(r, FactRecord::is_need).pct,
        };
        let mut per_session: Vec<SessionFigures> = runs.iter().map(session).collect();
        per_session.sort_by(|a, b| a.session.cmp(&b.session));
        let sizes = agree::sizes(runs.iter().copied());
        let known: Vec<f64> = per_session.iter().filter_map(|s| s.recall_pct).collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        Sums {
            cost_usd: runs.iter().map(|r| r.summary.cost_usd).sum(),
            waited_ms: sum(|r| r.summary.blocked_ms),
            compactions: sum(|r| r.summary.compactions),
            compacts_at: sizes.get(sizes.len() / 2).copied(),
            recall: Recall {
                pct: mean.is_finite().then_some(mean),
                events: runs.iter().map(|r| recall(r, FactRecord::is_need).events).sum(),
            },
            at_risk: Recall::pooled(runs.iter().map(|r| recall(r, FactRecord::is_at_risk))),
            per_session,
        }
    }

    fn kept_pct(&self) -> f64 {
        self.recall.pct.unwrap_or(100.0)
    }

    /// Place on the axes of the front, as the table prints it.
    fn place(&self) -> Vec<f64> {
        let printed = |text: String| text.parse::<f64>().unwrap_or(f64::INFINITY);
        vec![printed(fmt::usd(self.cost_usd)), -printed(fmt::pct(self.kept_pct()))]
    }
}

#[cfg(test)]
mod tests;
