//! Compares results with a baseline, row by row and metric by metric.

use ctxbench_util::plural::pluralize;
use std::cmp::Ordering;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::record::{Results, RunRecord, Status, yardstick};

use super::{Baseline, BaselineRow, Check, GateOptions, GateReport, Limit, Outcome};
use crate::metrics::{self, Better, Metric, Slack, Unit};
use crate::{fmt, view};

/// Slack for decimal arithmetic on figures of six decimals.
const EPSILON: f64 = 1e-9;

/// Compares new results with a baseline and with absolute limits.
///
/// A missing row fails, and a new row is noted. If a run ended with another status than its
/// baseline, its other figures are not compared, because they do not measure the same work.
pub fn gate(new: &Results, baseline: &Baseline, options: &GateOptions) -> GateReport {
    let new = &*view::told_apart(new);
    let several = view::models(new).len() > 1
        || baseline.rows.iter().map(|r| &r.model).collect::<BTreeSet<_>>().len() > 1;
    let mut gate = Checks { report: GateReport::default(), several, is_exact: options.is_exact };
    if baseline.rows.is_empty() {
        gate.report.faults.push("the baseline is empty, so nothing was compared".into());
        return gate.report;
    }
    let other = yardstick::differences(&baseline.yardstick, &new.assumptions);
    if !other.is_empty() {
        gate.report.faults.push(format!(
            "the baseline was measured with another yardstick, so nothing was compared ({}); run \
             with the same options",
            other.join("; ")
        ));
        return gate.report;
    }
    let rows: Vec<BaselineRow> = new.runs.iter().map(BaselineRow::from_run).collect();
    let fresh = gate.index(&rows, "the new results");
    let stored = gate.index(&baseline.rows, "the baseline");
    for (key, base) in &stored {
        match fresh.get(key) {
            Some((i, row)) => gate.row(base.1, row, &new.runs[*i]),
            None => gate.add(
                base.1,
                "row",
                Outcome::Fail,
                "is in the baseline but not in the new results".into(),
            ),
        }
    }
    for (_, (_, row)) in fresh.iter().filter(|(key, _)| !stored.contains_key(*key)) {
        gate.add(row, "row", Outcome::Noted, "is new: not in the baseline".into());
        if row.integrity_failures > 0 {
            gate.add(
                row,
                "integrity_failures",
                Outcome::Fail,
                format!("{} integrity failures in a new row (allowed 0)", row.integrity_failures),
            );
        }
    }
    let products: Vec<(&RunRecord, &BaselineRow)> = fresh
        .values()
        .map(|(i, row)| (&new.runs[*i], *row))
        .filter(|(run, _)| run.is_contender())
        .collect();
    for limit in &options.limits {
        gate.limit(limit, &products);
    }
    gate.report
}

type Key<'a> = (&'a str, &'a str, &'a str);

struct Checks {
    report: GateReport,
    several: bool,
    is_exact: bool,
}

impl Checks {
    /// Rows with their indices, by scenario, strategy and model. A duplicate is a fault of the
    /// gate.
    fn index<'a>(
        &mut self,
        rows: &'a [BaselineRow],
        whose: &str,
    ) -> BTreeMap<Key<'a>, (usize, &'a BaselineRow)> {
        let mut out = BTreeMap::new();
        for (i, row) in rows.iter().enumerate() {
            let key = row.key();
            if let Entry::Vacant(place) = out.entry(key) {
                place.insert((i, row));
                continue;
            }
            let name = view::name(key.0, key.1, key.2, true);
            self.report
                .faults
                .push(format!("{name} is twice in {whose}, so it cannot be told which row counts"));
        }
        out
    }

    fn add(&mut self, row: &BaselineRow, metric: &str, outcome: Outcome, text: String) {
        let name = view::name(&row.scenario, &row.strategy, &row.model, self.several);
        let metric = metric.into();
        self.report.checks.push(Check { row: name, metric, outcome, reason: text });
    }

    fn row(&mut self, base: &BaselineRow, new: &BaselineRow, run: &RunRecord) {
        self.integrity(base, new, run);
        if !self.is_comparable(base, new) || !self.same_ending(base, new) {
            return;
        }
        for (metric, gate) in metrics::sorted_columns(|m| &m.gated) {
            let figure = |row: &BaselineRow| row.figures.get(metric.column).copied().flatten();
            let (b, n) = (figure(base), figure(new));
            let slack = if self.is_exact { Slack::By(0.0) } else { gate.slack };
            let (outcome, text) = judge(metric, gate.name, slack, b, n);
            self.add(new, metric.column, outcome, text);
        }
    }

    fn integrity(&mut self, base: &BaselineRow, new: &BaselineRow, run: &RunRecord) {
        let (b, n) = (base.integrity_failures, new.integrity_failures);
        let outcome = match n.cmp(&b) {
            Ordering::Greater => Outcome::Fail,
            Ordering::Equal => Outcome::Pass,
            Ordering::Less => Outcome::Improved,
        };
        let rules = view::broken_rules(run).filter(|_| outcome == Outcome::Fail);
        let rules = rules.map_or(String::new(), |rules| format!(": {rules}"));
        let text = format!("integrity failures {b} → {n} (no more allowed){rules}");
        self.add(new, "integrity_failures", outcome, text);
    }

    /// Returns true if both rows ran the same program on the same session and in the same window;
    /// otherwise adds a failed check. Figures of other sessions, or of the same one with other facts,
    /// cannot be compared.
    fn is_comparable(&mut self, base: &BaselineRow, new: &BaselineRow) -> bool {
        // A completed run cannot take more steps in the same session.
        let whole = (base.status == Status::Completed).then_some(base.steps_completed);
        let lengths = match (base.steps_total, new.steps_total) {
            (Some(b), Some(n)) => Some((b, n)).filter(|(b, n)| b != n),
            _ => whole.map(|b| (b, new.steps_completed)).filter(|(b, n)| n > b),
        };
        let text = if !base.program.is_empty() && base.program != new.program {
            let (b, n) = (&base.program, &new.program);
            format!("another program than in the baseline (`{b}` → `{n}`)")
        } else if let Some((b, n)) = lengths {
            format!("another session than in the baseline ({b} → {n} recorded steps)")
        } else if !new.content.is_empty() && base.content != new.content {
            "another session than in the baseline (same length, other texts or facts)".into()
        } else if base.window != new.window {
            format!("another window than in the baseline ({} → {} tokens)", base.window, new.window)
        } else {
            return true;
        };
        let text = format!("{text}, so its figures are not compared");
        self.add(new, "session", Outcome::Fail, text);
        false
    }

    /// Returns true if the figures measure the same work, and adds a check of the status.
    fn same_ending(&mut self, base: &BaselineRow, new: &BaselineRow) -> bool {
        let (b, n) = (base.status, new.status);
        let change = format!("status {} → {}", b.word(), n.word());
        let steps = format!("steps {} → {}", base.steps_completed, new.steps_completed);
        let further = new.steps_completed.cmp(&base.steps_completed);
        let (outcome, allowed) = match severity(n).cmp(&severity(b)) {
            Ordering::Greater => (Outcome::Fail, ""),
            Ordering::Less => (Outcome::Improved, ""),
            Ordering::Equal if n != Status::NotApplicable && further == Ordering::Less => {
                (Outcome::Fail, " (nothing worse allowed)")
            }
            Ordering::Equal if further == Ordering::Greater => (Outcome::Improved, ""),
            Ordering::Equal if b != n => {
                self.add(new, "status", Outcome::Noted, change);
                return true;
            }
            Ordering::Equal => {
                self.add(new, "status", Outcome::Pass, format!("status {}", n.word()));
                return n != Status::NotApplicable;
            }
        };
        let text = format!("{change}, {steps}{allowed}; its other figures are not compared");
        self.add(new, "status", outcome, text);
        false
    }

    fn limit(&mut self, limit: &Limit, products: &[(&RunRecord, &BaselineRow)]) {
        let word = if limit.is_ceiling { "ceiling" } else { "floor" };
        let (metric, bound) = (limit.metric.column, fmt::exact(limit.bound));
        let mut unknown = 0;
        for (run, row) in products {
            let Some(x) = limit.metric.value(run) else {
                unknown += 1;
                continue;
            };
            let within = match limit.is_ceiling {
                true => x <= limit.bound + EPSILON,
                false => x >= limit.bound - EPSILON,
            };
            let outcome = if within { Outcome::Pass } else { Outcome::Fail };
            let text = format!("{metric} is {} ({word} {bound})", fmt::exact(x));
            self.add(row, &format!("{metric} {word}"), outcome, text);
        }
        if unknown == products.len() {
            self.report.faults.push(format!(
                "the {word} {bound} on {metric} checked nothing: no row has a number there"
            ));
        } else if unknown > 0 {
            self.report.remarks.push(format!(
                "the {word} on {metric} could not be held against {} that {} n/a",
                pluralize(unknown, "row"),
                if unknown == 1 { "reads" } else { "read" }
            ));
        }
    }
}

/// Ranks outcomes. Completed is best; a pair that cannot exist is better than a failure.
fn severity(status: Status) -> u8 {
    match status {
        Status::Completed => 0,
        Status::NotApplicable => 1,
        Status::Overflow | Status::Failed | Status::Livelock => 2,
        Status::Error => 3,
    }
}

/// Formats a change, such as `cost 1.000 $ → 1.020 $`.
fn change(metric: &Metric, name: &str, base: Option<f64>, new: Option<f64>) -> String {
    let unit = metric.unit;
    let show = |x: f64| format!("{}{}", unit.format_value(x), unit.suffix());
    let text = |x: Option<f64>| fmt::known(x, show);
    if let (Some(b), Some(n)) = (base, new)
        && text(base) == text(new)
        && b != n
    {
        return format!("{name} {} → {}{}", fmt::exact(b), fmt::exact(n), unit.suffix());
    }
    format!("{name} {} → {}", text(base), text(new))
}

fn judge(
    metric: &Metric,
    name: &str,
    slack: Slack,
    base: Option<f64>,
    new: Option<f64>,
) -> (Outcome, String) {
    let change = change(metric, name, base, new);
    // Where nothing was at risk, nothing was lost.
    let without_risk = (metric.column == "recall_at_risk_pct").then_some(100.0);
    let (base, new) = match base.or(new) {
        Some(_) => (base.or(without_risk), new.or(without_risk)),
        None => (None, None),
    };
    let (Some(base), Some(new)) = (base, new) else {
        return match (base, new) {
            (Some(_), None) => {
                (Outcome::Fail, format!("{change} (a known figure must not become unknown)"))
            }
            (None, Some(_)) => {
                (Outcome::Fail, format!("{change} (not in the baseline, so it cannot be checked)"))
            }
            _ => (Outcome::Pass, change),
        };
    };
    let sign = if metric.better == Better::Lower { '+' } else { '−' };
    let allowed = match slack {
        Slack::Percent(p) => format!("{sign}{} %", fmt::exact(p)),
        Slack::By(x) if metric.unit == Unit::Percent => format!("{sign}{} points", fmt::exact(x)),
        Slack::By(x) => format!("{sign}{}", fmt::exact(x)),
    };
    let (gain, slack) = (metric.better.gain(base, new), slack.allowance(base));
    let change = format!("{change} (allowed {allowed})");
    // The order of the comparisons makes NaN fail.
    if gain > slack + EPSILON {
        (Outcome::Improved, change)
    } else if gain >= -slack - EPSILON {
        (Outcome::Pass, change)
    } else {
        (Outcome::Fail, change)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
