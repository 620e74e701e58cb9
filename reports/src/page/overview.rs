//! Common data of all views of the page: metrics, strategies, the front over sessions, and the
//! figures of every run.

use std::collections::{BTreeMap, BTreeSet};

use ctxbench_core::strategy::Standing;
use serde::Serialize;
use serde_json::Number;

use crate::fmt;
use crate::front::{self, Pooled};
use crate::metrics::{self, Better, Metric, Unit};
use crate::plots::{self, Hues, Mark};
use crate::record::{Results, RunRecord, Status};
use crate::stats::{self, Differences, Figure, StrategyDifference};
use crate::terms::{Terms, terms};
use crate::view::{self, ReportBlock};

/// Data of all views, without the details of sessions.
#[derive(Serialize)]
pub(super) struct Overview<'a> {
    /// Explanation of the mark on the front.
    front: &'static str,
    metrics: Vec<MetricInfo>,
    strategies: Vec<Strategy>,
    groups: Vec<Group>,
    blocks: Vec<SessionOverview>,
    /// Index of each label in `strategies`.
    #[serde(skip)]
    places: BTreeMap<&'a str, usize>,
}

#[derive(Serialize)]
struct MetricInfo {
    column: &'static str,
    title: String,
    suffix: &'static str,
    kind: &'static str,
    better: &'static str,
    help: &'static str,
    /// True if the metric is a column of the tables of strategies.
    scored: bool,
}

#[derive(Serialize)]
struct Strategy {
    label: String,
    standing: &'static str,
    mark: Mark,
}

/// A chart of cost against needs kept over sessions.
#[derive(Serialize)]
struct Group {
    name: String,
    /// Baseline of the changes, as text.
    against: String,
    x: Axis,
    y: Axis,
    points: Vec<FrontPoint>,
}

#[derive(Serialize)]
struct Axis {
    title: String,
}

/// A strategy, or several that sent the same requests.
#[derive(Serialize)]
struct FrontPoint {
    /// Index in `strategies`.
    s: usize,
    same: Vec<usize>,
    x: Option<f64>,
    y: Option<f64>,
    /// Percentage points of needs kept below the baseline.
    loss: Option<f64>,
    cost: String,
    kept: String,
    front: bool,
    /// True if the point is compared with others: the strategy compacted, and it finished as many
    /// sessions as any other.
    counted: bool,
    product: bool,
    told: Vec<String>,
}

/// A session with one model and, where there are several, one summariser.
#[derive(Serialize)]
struct SessionOverview {
    /// Unique name, for links.
    name: String,
    title: String,
    terms: String,
    why: String,
    warnings: Vec<String>,
    tags: Vec<String>,
    model: String,
    window: Option<u64>,
    rows: Vec<OverviewRow>,
}

#[derive(Serialize)]
struct OverviewRow {
    /// Index in `strategies`.
    s: usize,
    /// Outcome, if the run did not finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    /// Number of broken rules.
    #[serde(skip_serializing_if = "is_zero")]
    broken: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    front: bool,
    /// True for a second row of a product, which does not compete.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    beside: bool,
    /// Values in the order of `metrics`.
    v: Vec<Option<Number>>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl<'a> Overview<'a> {
    pub(super) fn new(
        results: &'a Results,
        blocks: &[ReportBlock<'a>],
        hues: &Hues,
    ) -> Overview<'a> {
        let labels = labels(blocks);
        let places: BTreeMap<&str, usize> =
            labels.iter().enumerate().map(|(i, r)| (*r, i)).collect();
        let metrics: Vec<&'static Metric> = metrics::numbers().collect();
        let mut taken = BTreeSet::new();
        let mut names = BTreeSet::new();
        Overview {
            front: front::HELP,
            metrics: metrics.iter().map(|m| MetricInfo::new(m)).collect(),
            strategies: strategies(results, &labels, hues, &mut taken),
            groups: terms(blocks).iter().filter_map(|t| Group::from_metric(t, &places)).collect(),
            blocks: blocks
                .iter()
                .map(|b| SessionOverview::new(b, &metrics, &places, &mut names))
                .collect(),
            places,
        }
    }

    /// JSON of the page.
    pub(super) fn json(&self) -> String {
        embedded(self)
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
    let name = std::iter::once(text.clone()).chain(numbered).find(|t| !taken.contains(t));
    let name = name.expect("some number is free");
    taken.insert(name.clone());
    name
}

fn strategies(
    results: &Results,
    labels: &[&str],
    hues: &Hues,
    taken: &mut BTreeSet<String>,
) -> Vec<Strategy> {
    let marks = plots::marks(results, hues);
    let standing: BTreeMap<&str, Standing> =
        results.runs.iter().map(|r| (r.strategy.label.as_str(), r.strategy.standing)).collect();
    let one = |label: &&str| Strategy {
        label: unique(fmt::one_line(label), taken),
        standing: match standing[label] {
            Standing::Contender => "contender",
            Standing::Control => "control",
            Standing::Hypothetical => "hypothetical",
            Standing::Recorded => "recorded",
        },
        mark: marks[*label].clone(),
    };
    labels.iter().map(one).collect()
}

impl MetricInfo {
    fn new(m: &Metric) -> MetricInfo {
        MetricInfo {
            column: m.column,
            title: m.title(),
            suffix: m.unit.suffix(),
            kind: match m.unit {
                Unit::Tokens => "tokens",
                Unit::Usd => "usd",
                Unit::Percent => "percent",
                Unit::Share => "share",
                Unit::Ratio => "ratio",
                Unit::Millis => "millis",
                Unit::Count => "count",
            },
            better: match m.better {
                Better::Lower => "lower",
                Better::Higher => "higher",
                Better::Neither => "neither",
            },
            help: m.help,
            scored: m.scored.is_some(),
        }
    }
}

impl Group {
    /// Returns `None` if there is nothing to compare.
    fn from_metric(terms: &Terms<'_, '_>, places: &BTreeMap<&str, usize>) -> Option<Group> {
        let pooled = Pooled::from_runs(&terms.evidence())?;
        let d = &pooled.differences;
        let best: Vec<(usize, &Metric)> = front::metrics().collect();
        let [cost, kept] = best[..] else { return None };
        let baseline = fmt::one_line(&d.baseline);
        let title = |(i, m): (usize, &Metric)| match d.sessions {
            1 => format!("{}{}", m.name, d.suffix(i, m)),
            _ => format!("{}, mean change against {baseline},{}", m.name, d.suffix(i, m)),
        };
        let point = |s: &StrategyDifference| {
            let value = |(i, _): (usize, &Metric)| {
                d.position(&s.figures[i]).filter(|x| x.is_finite()).map(rounded)
            };
            let said = |(i, m): (usize, &'static Metric)| stats::position(d, &s.figures[i], m);
            let counted = s.compacted > 0 && s.sessions == pooled.sessions;
            let product = pooled.products.contains(s.strategy.as_str());
            let mut told = Vec::new();
            if d.sessions > 1 {
                told.push(format!("finished {} of {} sessions", s.sessions, d.sessions));
            }
            told.push(format!("compacted in {} of them", s.compacted));
            Some(FrontPoint {
                s: places.get(s.strategy.as_str()).copied()?,
                same: s.same.iter().filter_map(|l| places.get(l.as_str()).copied()).collect(),
                x: value(cost),
                y: value(kept),
                loss: loss(&s.figures[kept.0], d).map(rounded),
                cost: said(cost),
                kept: said(kept),
                front: pooled.is_on_front(&s.strategy),
                counted: counted && product,
                product,
                told,
            })
        };
        let sessions = fmt::sessions(d.sessions);
        Some(Group {
            name: format!("{sessions}, {}", terms.name()),
            x: Axis { title: title(cost) },
            y: Axis { title: title(kept) },
            points: d.strategies.iter().filter_map(point).collect(),
            against: baseline,
        })
    }
}

fn loss(kept: &Figure, d: &Differences) -> Option<f64> {
    match d.sessions {
        1 => Some(kept.base_mean? - kept.own_mean?),
        _ => kept.mean.map(|x| -x),
    }
}

impl SessionOverview {
    fn new(
        block: &ReportBlock<'_>,
        metrics: &[&Metric],
        places: &BTreeMap<&str, usize>,
        names: &mut BTreeSet<String>,
    ) -> SessionOverview {
        let run = block.first();
        let row = |(r, front): (&&RunRecord, bool)| OverviewRow {
            s: places.get(r.strategy.label.as_str()).copied().unwrap_or_default(),
            end: (r.status != Status::Completed).then(|| view::ending(r)).flatten(),
            broken: r.broken_rules(),
            front,
            beside: r.beside.is_some(),
            v: metrics.iter().map(|m| m.value(r).and_then(number)).collect(),
        };
        SessionOverview {
            name: unique(block.name(), names),
            title: block.title(),
            terms: block.terms(),
            why: fmt::one_line(&run.scenario.why),
            warnings: run.scenario.warnings.iter().map(|w| fmt::one_line(w)).collect(),
            tags: run.scenario.tags.iter().map(|t| fmt::one_line(t)).collect(),
            model: fmt::one_line(&run.model),
            window: block.window(),
            rows: block.runs.iter().zip(front::of_block(block)).map(row).collect(),
        }
    }
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

/// Serialises JSON that is safe within a script element, whatever its texts contain.
fn embedded(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data always serialises").replace('<', "\\u003c")
}
