//! Common data of all views of the page: metrics, strategies, the front over sessions, and the
//! figures of every run.

use std::collections::{BTreeMap, BTreeSet};

use ctxbench_core::strategy::Standing;
use serde::Serialize;
use serde_json::{Number, Value, json};

use crate::comparison::Names;
use crate::fmt;
use crate::front::{self, Pooled};
use crate::metrics::{self, Metric};
use crate::record::{Results, RunRecord, Status, is_zero};
use crate::stats::{self, Differences, Figure, StrategyDifference};
use crate::terms::{Terms, terms};
use crate::view::{self, ReportBlock};

/// Data of all views, without the details of sessions.
pub(super) struct Overview<'a> {
    data: Value,
    /// Index of each label among the strategies.
    places: Places<'a>,
}

type Places<'a> = BTreeMap<&'a str, usize>;

#[derive(Serialize)]
struct OverviewRow {
    /// Index of the strategy.
    s: usize,
    /// Outcome, if the run did not finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    broken: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    front: bool,
    /// True for a second row of a product, which does not compete.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    beside: bool,
    /// Values in the order of the metrics.
    v: Vec<Option<Number>>,
}

impl<'a> Overview<'a> {
    pub(super) fn new(results: &'a Results, blocks: &[ReportBlock<'a>]) -> Overview<'a> {
        let labels = labels(blocks);
        let places: Places<'_> = labels.iter().enumerate().map(|(i, r)| (*r, i)).collect();
        let metrics: Vec<&'static Metric> = metrics::numbers().collect();
        let (mut names, terms) = (BTreeSet::new(), terms(blocks));
        let session = |b: &ReportBlock<'_>| session(b, &metrics, &places, &mut names);
        let data = json!({
            "front": front::HELP,
            "metrics": metrics.iter().map(|m| metric(m)).collect::<Vec<_>>(),
            "strategies": strategies(results, &labels),
            "groups": terms.iter().filter_map(|t| group(t, &places)).collect::<Vec<_>>(),
            "blocks": blocks.iter().map(session).collect::<Vec<_>>(),
        });
        Overview { data, places }
    }

    /// JSON of the page that is safe within a script element, whatever its texts contain.
    pub(super) fn json(&self) -> String {
        self.data.to_string().replace('<', "\\u003c")
    }

    /// Returns the index of the strategy of a run; every label of the results has one.
    pub(super) fn strategy_index(&self, run: &RunRecord) -> usize {
        self.places.get(run.strategy.label.as_str()).copied().unwrap_or_default()
    }
}

/// Distinct labels, in the order of the rows of the sessions.
fn labels<'a>(blocks: &[ReportBlock<'a>]) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let mut runs: Vec<&'a RunRecord> = blocks.iter().flat_map(|b| b.runs.iter().copied()).collect();
    runs.sort_by(|a, b| view::row_order(a, b));
    runs.iter().map(|r| r.strategy.label.as_str()).filter(|l| seen.insert(*l)).collect()
}

/// Makes a text unique, for links to views.
fn unique(text: String, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|n| format!("{text} ({n})"));
    let mut names = std::iter::once(text.clone()).chain(numbered);
    names.find(|name| taken.insert(name.clone())).expect("some number is free")
}

fn strategies(results: &Results, labels: &[&str]) -> Vec<Value> {
    let standing: BTreeMap<&str, Standing> =
        results.runs.iter().map(|r| (r.strategy.label.as_str(), r.strategy.standing)).collect();
    let names = Names::new(&results.runs.iter().collect::<Vec<_>>());
    let mut taken = BTreeSet::new();
    let one = |label: &&str| {
        json!({
            "label": unique(fmt::one_line(label), &mut taken),
            // As short as what differs; links have the label.
            "name": names.by_label(label),
            "standing": standing[label],
        })
    };
    labels.iter().map(one).collect()
}

fn metric(m: &Metric) -> Value {
    json!({
        "column": m.column,
        "title": m.title(),
        "suffix": m.unit.suffix(),
        "kind": m.unit,
        "better": m.better,
        "help": m.help,
        // True for a column of the tables of strategies, and for what is compared over sessions.
        "scored": m.scored.is_some() || m.judged.is_some(),
    })
}

/// Ranked products with their cost and what they lose of recall; `None` if there is nothing to
/// compare.
fn group(terms: &Terms<'_, '_>, places: &Places<'_>) -> Option<Value> {
    let pooled = Pooled::from_runs(&terms.evidence())?;
    let d = &pooled.differences;
    let best: Vec<(usize, &Metric)> = front::metrics().collect();
    let [cost, kept] = best[..] else { return None };
    let product = |s: &StrategyDifference| {
        let value = d.position(&s.figures[cost.0]).filter(|x| x.is_finite())?;
        Some(json!({
            "s": places.get(s.strategy.as_str())?,
            "same": s.same.iter().filter_map(|l| places.get(l.as_str())).collect::<Vec<_>>(),
            "x": rounded(value),
            // Percentage points of recall below the baseline.
            "loss": rounded(loss(&s.figures[kept.0], d)?),
            "cost": stats::position(d, &s.figures[cost.0], cost.1),
            "kept": stats::position(d, &s.figures[kept.0], kept.1),
        }))
    };
    let ranked = pooled.ranked().filter(|s| pooled.products.contains(&*s.strategy));
    Some(json!({
        "name": terms.name(),
        "against": Names::new(&pooled.runs).by_label(&d.baseline),
        "points": ranked.filter_map(product).collect::<Vec<_>>(),
    }))
}

fn loss(kept: &Figure, d: &Differences) -> Option<f64> {
    match d.sessions {
        1 => Some(kept.base_mean? - kept.own_mean?),
        _ => kept.mean.map(|x| -x),
    }
}

/// A session with one model and, where there are several, one summariser.
fn session(
    block: &ReportBlock<'_>,
    metrics: &[&Metric],
    places: &Places<'_>,
    names: &mut BTreeSet<String>,
) -> Value {
    let run = block.first();
    let row = |(r, front): (&&RunRecord, bool)| OverviewRow {
        s: places.get(r.strategy.label.as_str()).copied().unwrap_or_default(),
        end: (r.status != Status::Completed).then(|| view::ending(r)).flatten(),
        broken: r.broken_rules(),
        front,
        beside: r.beside.is_some(),
        v: metrics.iter().map(|m| m.value(r).and_then(number)).collect(),
    };
    let lines = |all: &[String]| all.iter().map(|l| fmt::one_line(l)).collect::<Vec<_>>();
    json!({
        // Unique, for links.
        "name": unique(block.name(), names),
        "title": block.title(),
        "terms": block.terms(),
        "why": fmt::one_line(&run.scenario.why),
        "warnings": lines(&run.scenario.warnings),
        "tags": lines(&run.scenario.tags),
        "model": fmt::one_line(&run.model),
        "window": block.window(),
        "rows": block.runs.iter().zip(front::of_block(block)).map(row).collect::<Vec<_>>(),
    })
}

/// Serialises integers without a decimal point, because there are many.
fn number(x: f64) -> Option<Number> {
    let x = rounded(x);
    let is_whole = x.fract() == 0.0 && x.abs() < 1e15;
    if is_whole { Some(Number::from(x as i64)) } else { Number::from_f64(x) }
}

/// Rounds a figure to the precision of all machine-readable files.
fn rounded(x: f64) -> f64 {
    fmt::exact(x).parse().unwrap_or(x)
}
