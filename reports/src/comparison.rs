//! The table of a run: a row per strategy over the compared sessions, the cheapest first.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use ctxbench_core::strategy::Standing;

use crate::front::{self, Costs, Pooled, is_finished, percent};
use crate::group::grouped;
use crate::metrics;
use crate::record::{RunRecord, Summary};
use crate::sheet::{Group, Sheet};
use crate::stats::StrategyDifference;
use crate::{fmt, view};

/// Version of a strategy that models a design instead of a program.
const DESIGN: &str = "blueprint";

/// Number of products from which on the controls are left out.
const MANY: usize = 3;

/// Rows of one strategy, one per session.
struct Row<'r, 'a> {
    name: &'r str,
    runs: &'r [&'a RunRecord],
}

impl Row<'_, '_> {
    fn label(&self) -> &str {
        &self.runs[0].strategy.label
    }

    /// Sum over the sessions.
    fn sum(&self, of: impl Fn(&Summary) -> f64) -> f64 {
        self.runs.iter().map(|r| of(&r.summary)).sum()
    }

    /// Mean of the known values, each with its weight.
    fn mean(&self, of: impl Fn(&Summary) -> Option<(f64, f64)>) -> Option<f64> {
        let known: Vec<(f64, f64)> = self.runs.iter().filter_map(|r| of(&r.summary)).collect();
        let weight: f64 = known.iter().map(|(_, weight)| weight).sum();
        (weight > 0.0).then(|| known.iter().map(|(x, weight)| x * weight).sum::<f64>() / weight)
    }

    fn wait(&self) -> Option<f64> {
        let metric = metrics::numbers().find(|m| m.column == "blocked_ms")?;
        self.runs.iter().map(|r| Some(metric.unit.converted(metric.value(r)?))).sum()
    }
}

/// Mark of a row that finished with broken rules.
const BROKEN: &str = "✗";

/// Builds the table of these runs. Rows that did not finish every session have no figures to
/// compare, so they are left out. Rows that broke a rule come last.
///
/// `used` is the share of what is present that a model uses, for the legend.
pub(crate) fn sheet(
    runs: &[&RunRecord],
    pooled: Option<&Pooled<'_>>,
    used: Option<&String>,
) -> Sheet {
    let Names { setting, names } = Names::new(runs);
    let sessions = grouped(runs.iter().copied(), |r| &r.scenario.id).len();
    let groups = grouped(runs.iter().copied(), |r| &r.strategy.label);
    let products = groups.iter().filter(|g| g[0].is_product()).count();
    let is_shown = |g: &&Vec<&RunRecord>| {
        is_finished(g) && (g[0].strategy.standing != Standing::Control || products < MANY)
    };
    let shown = groups.iter().filter(is_shown);
    let mut rows: Vec<Row<'_, '_>> =
        shown.map(|g| Row { name: &names[&g[0].strategy.label], runs: g }).collect();
    let baseline = pooled.map_or("reference", |p| &p.differences.baseline);
    let costs = Costs::new(runs);
    let change = |r: &Row<'_, '_>| {
        costs.change(r.label(), baseline, pooled.and_then(|p| p.differences.row(r.label())))
    };
    let is_broken = |r: &Row<'_, '_>| r.runs.iter().any(|r| r.broken_rules() > 0);
    let key = |r: &Row<'_, '_>| (is_broken(r), costs.printed_place(r.label(), change(r)));
    rows.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(Ordering::Equal));
    let is_on_front = |r: &Row<'_, '_>| {
        pooled.is_some_and(|p| p.ranked().count() > 1 && p.is_on_front(r.label()))
    };
    let cells = |r: &Row<'_, '_>| {
        let summary = &r.runs[0].summary;
        let change = change(r).filter(|_| r.label() != baseline);
        let cached = r.sum(|s| s.cache_read_tokens as f64) / r.sum(|s| s.input_tokens as f64);
        let at_risk = r.mean(|s| Some((s.recall_at_risk_pct?, s.at_risk? as f64)));
        let needs = r.sum(|s| s.at_risk.unwrap_or(0) as f64);
        let counted = summary.at_risk.is_some();
        let is_part = r.runs.len() < sessions;
        let part = format!("{} ({} of {sessions})", r.name, r.runs.len());
        vec![
            if is_part { part } else { r.name.to_string() },
            format!("${}", costs.format(r.label())),
            change.map_or("–".into(), |x| fmt::signed(x, percent) + " %"),
            fmt::known(r.mean(|s| Some((s.recall_pct?, 1.0))), |x| match x {
                x if x < 99.95 => format!("{x:.1} %"),
                _ => "100 %".into(),
            }),
            match at_risk {
                Some(x) => format!("{x:.0} % of {needs}"),
                None => if counted { "–" } else { "n/a" }.into(),
            },
            fmt::known(cached.is_finite().then_some(100.0 * cached), |x| format!("{x:.0} %")),
            fmt::known(r.wait(), |x| format!("{x:.0} s")),
            r.sum(|s| s.compactions as f64).to_string(),
            match (is_on_front(r), is_broken(r)) {
                (true, _) => front::MARK.into(),
                (_, true) => BROKEN.into(),
                _ => String::new(),
            },
        ]
    };
    let is_mean = pooled.is_some_and(|p| p.differences.sessions > 1);
    let is_today = names.get(baseline).is_some_and(|n| n.contains(TODAY));
    let against = match (baseline, is_mean) {
        ("reference", true) => "mean vs\nnever",
        ("reference", false) => "vs\nnever",
        (_, true) if is_today => "mean vs\ntoday",
        (_, false) if is_today => "vs\ntoday",
        _ => "change",
    };
    let head =
        [&setting, "cost", against, "recall", "at risk", "cached", "wait", "compactions", ""];
    Sheet {
        title: String::new(),
        note: {
            let marks = [rows.iter().any(is_on_front), rows.iter().any(is_broken)];
            legend(marks, against, baseline, used)
        },
        head: head.map(String::from).to_vec(),
        groups: vec![Group { name: String::new(), rows: rows.iter().map(cells).collect() }],
    }
}

/// Explains the table. `marks` are whether the front and broken rows are marked; `used` is the share of what is present that a model uses.
fn legend(marks: [bool; 2], against: &str, baseline: &str, used: Option<&String>) -> String {
    let mean = if against.starts_with("mean") { " in the mean" } else { "" };
    let told = [
        format!("{} no ranked row costs less{mean} and recalls more. ", front::MARK),
        format!("{BROKEN} broke a rule, so it is not ranked. "),
    ];
    let marks: String = told.into_iter().zip(marks).filter(|(_, on)| *on).map(|(t, _)| t).collect();
    let used = used.map(|share| format!(" (models use {})", fmt::one_line(share)));
    let change = match against {
        "change" => format!(" Change: against {}.", fmt::one_line(baseline)),
        _ => String::new(),
    };
    format!(
        "{marks}Recall: share of later needs in the prompt{}; at risk: of those \
         touched or read again.{change}",
        used.unwrap_or_default()
    )
}

/// Name of the row with the setting of today.
pub(crate) const TODAY: &str = "today";

/// Names of the rows, as short as what differs.
pub(crate) struct Names {
    /// The only setting that differs, if all products are one strategy; else empty.
    pub(crate) setting: String,
    /// Names by label.
    names: BTreeMap<String, String>,
}

impl Names {
    pub(crate) fn new(runs: &[&RunRecord]) -> Names {
        let distinct: BTreeMap<&str, &RunRecord> =
            runs.iter().map(|r| (&*r.strategy.label, *r)).collect();
        let strategies = grouped(distinct.into_values(), |r| without_settings(r));
        let products = strategies.iter().filter(|s| s[0].is_product()).count();
        let mut out = Names { setting: String::new(), names: BTreeMap::new() };
        for rows in strategies {
            let differing = differing(&rows);
            let (strategy, is_only) = (without_settings(rows[0]), products == 1);
            if let ([setting], true) = (&differing[..], is_only) {
                out.setting = (*setting).into();
            }
            for r in &rows {
                let mut name = match (r.strategy.standing, &differing[..]) {
                    (Standing::Hypothetical, _) => {
                        r.strategy.label.replacen("reference", "never compacting", 1)
                    }
                    (Standing::Recorded, _) => "as recorded".into(),
                    (Standing::Control, _) => format!("{} (control)", r.strategy.label),
                    (_, []) => r.strategy.label.clone(),
                    (_, settings) if is_only => value(r, settings),
                    (_, settings) => format!("{strategy} {}", value(r, settings)),
                };
                name += if r.strategy.version == DESIGN { " (design)" } else { "" };
                out.names.insert(r.strategy.label.clone(), fmt::one_line(&name));
            }
        }
        out
    }

    /// Name of the row with this label.
    pub(crate) fn by_label(&self, label: &str) -> &str {
        &self.names[label]
    }

    /// Names of a row of a comparison, which several strategies may share.
    pub(crate) fn of_row(&self, row: &StrategyDifference) -> String {
        let labels = std::iter::once(&row.strategy).chain(&row.same);
        labels.map(|label| &*self.names[label]).collect::<Vec<_>>().join(" = ")
    }
}

/// Label without the given settings.
fn without_settings(r: &RunRecord) -> &str {
    let label = &*r.strategy.label;
    if r.strategy.given.is_empty() { label } else { label.split(':').next().unwrap_or(label) }
}

/// Settings that are not the same in all these rows.
fn differing<'a>(rows: &[&'a RunRecord]) -> Vec<&'a str> {
    let all: BTreeSet<&str> =
        rows.iter().flat_map(|r| r.strategy.given.keys()).map(String::as_str).collect();
    let values = |s: &str| rows.iter().map(|r| r.strategy.given.get(s)).collect::<BTreeSet<_>>();
    all.into_iter().filter(|s| values(s).len() > 1).collect()
}

/// Values of the differing settings, such as `50 %`.
fn value(r: &RunRecord, settings: &[&str]) -> String {
    let (given, all) = (&r.strategy.given, &r.strategy.settings);
    let with_unit = |setting: &str, value: &str| match value.strip_suffix('%') {
        Some(number) => format!("{number} %"),
        None if ["true", "false"].contains(&value) => format!("{setting}={value}"),
        None if setting.ends_with("percent") => format!("{value} %"),
        None => value.to_string(),
    };
    match settings {
        [only] => match (given.get(*only), all.get(*only)) {
            (Some(value), _) => with_unit(only, value),
            (None, Some(value)) => format!("{TODAY} ({})", with_unit(only, value)),
            (None, None) if r.strategy.program.is_some() => "as given".into(),
            (None, None) => TODAY.into(),
        },
        several => {
            let given = several.iter().filter_map(|s| Some(format!("{s}={}", given.get(*s)?)));
            let given: Vec<String> = given.collect();
            if given.is_empty() { TODAY.into() } else { given.join(", ") }
        }
    }
}

/// A line for each product that failed in these sessions.
pub(crate) fn failures(runs: &[&RunRecord]) -> Vec<String> {
    let names = Names::new(runs);
    let sessions: BTreeSet<&str> = runs.iter().map(|r| &*r.scenario.id).collect();
    let products = grouped(runs.iter().filter(|r| r.is_product()), |r| &r.strategy.label);
    let line = |rows: &Vec<&&RunRecord>| {
        let failed: Vec<(&RunRecord, String)> =
            rows.iter().filter_map(|r| Some((**r, view::failure(r)?))).collect();
        let (first, why) = failed.first()?;
        let (name, session) =
            (names.by_label(&first.strategy.label), fmt::one_line(&first.scenario.id));
        Some(match (failed.len(), sessions.len()) {
            (_, 1) => format!("{name} {why}"),
            (1, _) => format!("{name}, in {session}: {why}"),
            (n, all) => format!("{name}, in {n} of {all} sessions, first {session}: {why}"),
        })
    };
    products.iter().filter_map(line).collect()
}
