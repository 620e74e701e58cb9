//! What a product's own knobs would have changed on its recorded sessions, and whether that is
//! enough to advise one.
//!
//! Each value is held alone against the product as it is set now, session by session
//! (`reports/src/stats/`). A change is advised only if it saves dollars or needs beyond what chance
//! explains and loses none of the other beyond that.

mod agree;
mod text;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::metrics::Metric;
use crate::record::RunRecord;
use crate::stats::{self, Differences, Figure, MIN_SESSIONS, StrategyDifference, Verdict};
use crate::{fmt, front, lost};

pub use agree::{WITHIN, disagreement};

/// One value of one knob.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Label of the row that was run with it.
    pub label: String,
    /// Name of our setting.
    pub setting: String,
    /// Its value.
    pub value: String,
    /// What to write into the product's configuration.
    pub line: String,
    /// Where that goes.
    pub place: String,
    /// Where the product's makers document it.
    pub documented: String,
}

/// A session of the product that was looked at and not used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// Its id.
    pub session: String,
    /// Why, as the end of a sentence.
    pub why: String,
}

/// What was run for one product.
#[derive(Clone, Debug)]
pub struct Tried<'a> {
    /// Label of the product as it is set now.
    pub product: &'a str,
    /// The values that were tried.
    pub changes: Vec<Change>,
    /// The rows of the sessions that can be used: the product as it is set now, and each change.
    pub runs: &'a [RunRecord],
    /// What these sessions cost by the provider's counters, USD.
    pub recorded_usd: f64,
    /// The sessions that cannot.
    pub left_out: Vec<LeftOut>,
    /// What these figures cannot show, as sentences.
    pub limits: Vec<String>,
}

/// What can be said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// No session can be used.
    NoSession,
    /// No value changes a request of any session.
    NothingChanges,
    /// No value changes anything in ten sessions.
    TooFew,
    /// No value is better beyond chance.
    NoChange,
    /// What is better in one is worse in the other, or that cannot be told.
    Trade,
    /// The row of this label is advised.
    Change(String),
}

/// Sums over sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sums {
    /// USD.
    pub cost_usd: f64,
    /// Waiting that compactions caused, ms, modelled.
    pub waited_ms: u64,
    /// Needs that ask for memory.
    pub needs: usize,
    /// Of these, those whose fact was gone.
    pub lost: usize,
    /// Compactions of every kind.
    pub compactions: u64,
}

/// What a value changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The value.
    #[serde(flatten)]
    pub change: Change,
    /// It changes something, and no other value, nor the present setting, is at least as good in
    /// cost and needs kept and better in one.
    pub front: bool,
    /// Sessions that it and the present setting both finished without a broken rule: all sums and
    /// figures are over these.
    pub finished: usize,
    /// Of these, those in which any request differs.
    pub differs: usize,
    /// As it is set now.
    pub now: Sums,
    /// With the value.
    pub then: Sums,
    /// The change session by session, and what may be said of it.
    pub figures: Vec<Figure>,
}

/// What a person learns of one product.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The product as it is set now: name, version and settings.
    pub product: String,
    pub decision: Decision,
    /// The decision in words.
    pub sentence: String,
    /// Sessions used.
    pub sessions: usize,
    /// Their models.
    pub models: Vec<String>,
    /// What they cost by the provider's counters, USD: how near the model comes.
    pub recorded_usd: f64,
    /// The middle of what a session costs as it is set now, USD.
    pub median_usd: Option<f64>,
    /// All sessions, as it is set now.
    pub now: Sums,
    pub changes: Vec<Outcome>,
    pub left_out: Vec<LeftOut>,
    pub limits: Vec<String>,
}

/// What holds for every figure.
const LIMITS: [&str; 2] = [
    "Modelled: a simulated provider and cache, and summaries made of the session's own sentences \
     instead of by a model. What the agent would have done otherwise afterwards is not known.",
    "Each value alone; combinations are not tried.",
];

/// Where a value was picked for what it shows.
const PICKED: &str = "The value was picked on the sessions that it is told of, so expect less on \
                      others.";

/// What a person learns of a product from what was run.
pub fn advise(tried: Tried<'_>) -> Advice {
    let Tried { product, changes, runs, recorded_usd, left_out, mut limits } = tried;
    let now: Vec<&RunRecord> = of(runs, product).collect();
    let all: Vec<&RunRecord> = runs.iter().collect();
    let differences = stats::by_settings(&all, product);
    let outcomes: Vec<Outcome> = match &differences {
        Some(d) => {
            let front = on_front(d);
            changes.into_iter().filter_map(|c| outcome(d, &front, product, c, runs)).collect()
        }
        None => Vec::new(),
    };
    let (decision, sentence) = match &differences {
        Some(d) => decide(d, product, Sums::of(&now).compactions, &outcomes),
        None => (Decision::NoSession, without_sessions(product, left_out.len())),
    };
    limits.extend(LIMITS.map(str::to_string));
    if matches!(decision, Decision::Change(_)) {
        limits.push(PICKED.into());
    }
    let models: BTreeSet<&str> = now.iter().map(|r| r.model.as_str()).collect();
    Advice {
        product: product.into(),
        decision,
        sentence,
        sessions: now.len(),
        models: models.into_iter().map(str::to_string).collect(),
        recorded_usd,
        median_usd: stats::middle(now.iter().map(|r| r.summary.cost_usd).collect()),
        now: Sums::of(&now),
        changes: outcomes,
        left_out,
        limits,
    }
}

/// For people.
pub fn to_text(advice: &Advice) -> String {
    text::page(advice)
}

impl Sums {
    fn of(runs: &[&RunRecord]) -> Sums {
        runs.iter().fold(Sums::default(), |sums, r| {
            let lost = lost::of_run(r);
            Sums {
                cost_usd: sums.cost_usd + r.summary.cost_usd,
                waited_ms: sums.waited_ms + r.summary.blocked_ms,
                needs: sums.needs + lost.needs,
                lost: sums.lost + lost.lost.len(),
                compactions: sums.compactions + r.summary.compactions,
            }
        })
    }
}

/// Labels of the rows that no other beats, among those that finished every session.
fn on_front(d: &Differences) -> BTreeSet<&str> {
    let most = d.strategies.iter().map(|s| s.sessions).max().unwrap_or(0);
    let point = |s: &StrategyDifference| -> Option<Vec<f64>> {
        let figures =
            front::metrics().map(|(i, m)| s.figures[i].mean.map(|x| front::downward(m.better, x)));
        if s.sessions == most { figures.collect() } else { None }
    };
    let points: Vec<Option<Vec<f64>>> = d.strategies.iter().map(point).collect();
    let on_it = d.strategies.iter().zip(front::unbeaten(&points)).filter(|(_, on_it)| *on_it);
    on_it.map(|(s, _)| s.strategy.as_str()).collect()
}

fn outcome(
    d: &Differences,
    front: &BTreeSet<&str>,
    product: &str,
    change: Change,
    runs: &[RunRecord],
) -> Option<Outcome> {
    let row = d.row(&change.label)?;
    let pairs: Vec<(&RunRecord, &RunRecord)> = of(runs, product)
        .filter_map(|now| Some((now, of(runs, &change.label).find(|r| is_of(r, now))?)))
        .filter(|(now, then)| now.is_whole() && then.is_whole())
        .collect();
    let (before, after): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    Some(Outcome {
        front: row.compacted > 0 && front.contains(row.strategy.as_str()),
        finished: row.sessions,
        differs: row.compacted,
        now: Sums::of(&before),
        then: Sums::of(&after),
        figures: row.figures.clone(),
        change,
    })
}

fn of<'a>(runs: &'a [RunRecord], label: &'a str) -> impl Iterator<Item = &'a RunRecord> {
    runs.iter().filter(move |r| r.strategy.label == label)
}

fn is_of(r: &RunRecord, other: &RunRecord) -> bool {
    r.scenario.id == other.scenario.id
}

fn decide(
    d: &Differences,
    product: &str,
    compactions: u64,
    outcomes: &[Outcome],
) -> (Decision, String) {
    let name = fmt::one_line(product);
    let over = fmt::sessions(d.sessions);
    let deciding: Vec<(usize, &Metric)> = front::metrics().collect();
    let seen = outcomes.iter().map(|o| o.differs).max().unwrap_or(0);
    if seen == 0 {
        let none = if compactions == 0 { "it compacts in none, and " } else { "" };
        let text = format!(
            "Nothing to change for {name}: over {over} {none}no value tried changes a request."
        );
        return (Decision::NothingChanges, text);
    }
    if seen < MIN_SESSIONS {
        let text = format!(
            "Too few sessions to say for {name}: the value that changes most changes {seen} of \
             {over}, and a verdict needs {MIN_SESSIONS}. Below are differences only."
        );
        return (Decision::TooFew, text);
    }
    let words = |o: &Outcome| -> Vec<Verdict> {
        deciding.iter().map(|(i, _)| o.figures[*i].verdict).collect()
    };
    let better: Vec<&Outcome> =
        outcomes.iter().filter(|o| words(o).contains(&Verdict::Better)).collect();
    let free = |o: &&&Outcome| {
        let open = |v: &Verdict| matches!(v, Verdict::Worse | Verdict::DifferenceOnly);
        !words(o).iter().any(open) && o.finished == d.sessions
    };
    let told = |o: &Outcome| {
        let parts: Vec<String> = deciding.iter().map(|(i, m)| said(&o.figures[*i], m)).collect();
        let finished = match d.sessions - o.finished {
            0 => String::new(),
            n => format!(", {} not finished", fmt::sessions(n)),
        };
        parts.join(", ") + &finished
    };
    let by_cost = |a: &&&Outcome, b: &&&Outcome| {
        let cost = |o: &Outcome| deciding.first().and_then(|(i, _)| o.figures[*i].mean);
        let (a, b) = (cost(a).unwrap_or(f64::MAX), cost(b).unwrap_or(f64::MAX));
        a.total_cmp(&b)
    };
    if let Some(best) = better.iter().filter(free).min_by(by_cost) {
        let (setting, value) = (&best.change.setting, &best.change.value);
        let text = format!(
            "Set {setting} of {name} to {value}: over {over}, per session, {}.",
            told(best)
        );
        return (Decision::Change(best.change.label.clone()), text);
    }
    if better.is_empty() {
        let text = format!(
            "No change is clearly better for {name}: over {over} no value tried saves dollars, or \
             keeps more of what is needed, beyond what chance explains."
        );
        return (Decision::NoChange, text);
    }
    let listed: Vec<String> = better
        .iter()
        .map(|o| format!("{}={} ({})", o.change.setting, o.change.value, told(o)))
        .collect();
    let text = format!(
        "No change is better for {name} without a price, so none is advised. Over {over}, per \
         session: {}.",
        listed.join("; ")
    );
    (Decision::Trade, text)
}

/// A change with what may be said of it.
fn said(figure: &Figure, metric: &Metric) -> String {
    let interval = stats::interval(figure, metric).map(|i| format!(" {i}")).unwrap_or_default();
    let change = format!("{} {}{interval}", metric.name, stats::change(figure, metric));
    match figure.verdict {
        Verdict::Equal => format!("{} unchanged", metric.name),
        Verdict::Better | Verdict::Worse => change,
        Verdict::Unresolved => format!("{change}, which chance may explain"),
        Verdict::DifferenceOnly => format!("{change}, in too few sessions to judge"),
    }
}

fn without_sessions(product: &str, left_out: usize) -> String {
    let name = fmt::one_line(product);
    match left_out {
        0 => format!("No advice for {name}: no recording of it is here."),
        1 => format!("No advice for {name}: its one session cannot be used."),
        n => format!("No advice for {name}: none of its {n} sessions can be used."),
    }
}

#[cfg(test)]
mod tests;
