//! Estimates the effect of a product's settings on its recorded sessions, and decides whether to
//! advise a change.
//!
//! Each value is compared with the present settings, session by session (`reports/src/stats/`). A
//! change is advised only if it saves cost or needs beyond chance and loses neither beyond chance.

mod agree;
mod text;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::metrics::Metric;
use crate::record::RunRecord;
use crate::stats::{self, Differences, Figure, MIN_SESSIONS, StrategyDifference, Verdict};
use crate::{fmt, front, lost};

pub use agree::{WITHIN, disagreement};
pub use text::to_text;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingChange {
    pub label: String,
    /// Name of the setting in ctxbench.
    pub setting: String,
    pub value: String,
    /// Text for the product's configuration.
    pub line: String,
    /// Place of that text, such as a configuration file.
    pub place: String,
    /// URL of the product's documentation.
    pub documented: String,
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
    pub changes: Vec<SettingChange>,
    /// Rows of the usable sessions: the present settings, and each change.
    pub runs: &'a [RunRecord],
    /// Rows as recorded of these sessions.
    pub recorded: &'a [RunRecord],
    /// Sessions that cannot be used.
    pub left_out: Vec<LeftOut>,
    /// Limits of these figures, as sentences.
    pub limits: Vec<String>,
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
    /// Every gain comes with a loss, or the sessions do not decide.
    Trade,
    /// The row with this label is advised.
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sums {
    pub cost_usd: f64,
    /// Waiting that compactions caused, ms, modelled.
    pub waited_ms: u64,
    /// Needs that ask for memory.
    pub needs: usize,
    /// Needs with a fact that the context did not contain.
    pub lost: usize,
    pub compactions: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeOutcome {
    #[serde(flatten)]
    pub change: SettingChange,
    /// True if the value is on the Pareto front of cost and recall. The front includes the
    /// present settings.
    pub front: bool,
    /// Sessions that both rows finished without a broken rule. All sums and figures are over these.
    pub finished: usize,
    /// Sessions in which any request differs.
    pub differs: usize,
    /// Sums with the present settings.
    pub now: Sums,
    pub then: Sums,
    /// Change per session, with its verdict.
    pub figures: Vec<Figure>,
}

/// Report for one product.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Product with its present settings: name, version and settings.
    pub product: String,
    pub decision: Decision,
    /// Decision, as a sentence.
    pub sentence: String,
    /// Number of sessions used.
    pub sessions: usize,
    pub models: Vec<String>,
    /// By the provider's counters.
    pub recorded: Comparable,
    /// By our replay with the present settings; beside the recorded figures, it shows the accuracy
    /// of the model.
    pub modelled: Comparable,
    /// Median cost of a session with the present settings, USD.
    pub median_usd: Option<f64>,
    /// Sums over all sessions with the present settings.
    pub now: Sums,
    pub changes: Vec<ChangeOutcome>,
    pub left_out: Vec<LeftOut>,
    pub limits: Vec<String>,
}

/// Remarks on all figures.
const LIMITS: [&str; 2] = [
    "Modelled: a simulated provider and cache, and summaries made of the session's own sentences \
     instead of by a model. What the agent would have done otherwise afterwards is not known.",
    "Each value alone; combinations are not tried.",
];

/// Remark for a value that was selected by its result.
const PICKED: &str = "The value was picked on the sessions that it is told of, so expect less on \
                      others.";

/// Builds the report of a product from its rows.
pub fn advise(tried: Tried<'_>) -> Advice {
    let Tried { product, changes, runs, recorded, left_out, mut limits } = tried;
    let now: Vec<&RunRecord> = runs_of(runs, product).collect();
    let all: Vec<&RunRecord> = runs.iter().collect();
    let differences = stats::by_settings(&all, product);
    let outcomes: Vec<ChangeOutcome> = match &differences {
        Some(d) => {
            let front = on_front(d);
            changes.into_iter().filter_map(|c| outcome(d, &front, product, c, runs)).collect()
        }
        None => Vec::new(),
    };
    let (decision, sentence) = match &differences {
        Some(d) => decide(d, product, Sums::from_runs(&now).compactions, &outcomes),
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
        recorded: Comparable::from_runs(recorded.iter()),
        modelled: Comparable::from_runs(now.iter().copied()),
        median_usd: stats::middle(now.iter().map(|r| r.summary.cost_usd).collect()),
        now: Sums::from_runs(&now),
        changes: outcomes,
        left_out,
        limits,
    }
}

impl Sums {
    fn from_runs(runs: &[&RunRecord]) -> Sums {
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

/// Labels on the Pareto front, among those that finished every session.
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
    change: SettingChange,
    runs: &[RunRecord],
) -> Option<ChangeOutcome> {
    let row = d.row(&change.label)?;
    let pairs: Vec<(&RunRecord, &RunRecord)> = runs_of(runs, product)
        .filter_map(|now| {
            let mut changed = runs_of(runs, &change.label);
            Some((now, changed.find(|then| then.scenario.id == now.scenario.id)?))
        })
        .filter(|(now, then)| now.is_whole() && then.is_whole())
        .collect();
    let (before, after): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    Some(ChangeOutcome {
        front: row.compacted > 0 && front.contains(row.strategy.as_str()),
        finished: row.sessions,
        differs: row.compacted,
        now: Sums::from_runs(&before),
        then: Sums::from_runs(&after),
        figures: row.figures.clone(),
        change,
    })
}

fn runs_of<'a>(runs: &'a [RunRecord], label: &'a str) -> impl Iterator<Item = &'a RunRecord> {
    runs.iter().filter(move |r| r.strategy.label == label)
}

fn decide(
    d: &Differences,
    product: &str,
    compactions: u64,
    outcomes: &[ChangeOutcome],
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
    let words = |o: &ChangeOutcome| -> Vec<Verdict> {
        deciding.iter().map(|(i, _)| o.figures[*i].verdict).collect()
    };
    let better: Vec<&ChangeOutcome> =
        outcomes.iter().filter(|o| words(o).contains(&Verdict::Better)).collect();
    let free = |o: &&&ChangeOutcome| {
        let open = |v: &Verdict| matches!(v, Verdict::Worse | Verdict::DifferenceOnly);
        !words(o).iter().any(open) && o.finished == d.sessions
    };
    let told = |o: &ChangeOutcome| {
        let parts: Vec<String> =
            deciding.iter().map(|(i, m)| format_figure(&o.figures[*i], m)).collect();
        let finished = match d.sessions - o.finished {
            0 => String::new(),
            n => format!(", {} not finished", fmt::sessions(n)),
        };
        parts.join(", ") + &finished
    };
    let by_cost = |a: &&&ChangeOutcome, b: &&&ChangeOutcome| {
        let cost = |o: &ChangeOutcome| deciding.first().and_then(|(i, _)| o.figures[*i].mean);
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

/// Formats a change with its verdict.
fn format_figure(figure: &Figure, metric: &Metric) -> String {
    let change = format!("{} {}", metric.name, stats::change_within(figure, metric));
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
