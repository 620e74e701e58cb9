//! Pareto front of cost against recall: rows that no other row dominates.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use ctxbench_core::strategy::Standing;

use crate::group::grouped;
use crate::metrics::{Better, Metric, Unit};
use crate::record::{RunRecord, Status};
use crate::stats::{self, Differences, Scale, StrategyDifference};
use crate::view::ReportBlock;

/// Mark of a row on the front.
pub(crate) const MARK: &str = "◆";

/// Explanation of the mark.
pub(crate) const HELP: &str = "on the front of cost against recall: no other product is at least \
     as good in both and better in one";

/// Returns for each point whether it is on the Pareto front: no other point is at least as good in
/// every metric and better in one. Lower is better. A point with a missing figure is not on the
/// front. Points have figures as they are printed, so that equal rows are marked alike.
///
/// `is_same` gets two indices and a metric, and returns true if the difference is too small to
/// matter. Such a difference does not keep a row on the front that is worse otherwise.
pub(crate) fn unbeaten<T: PartialOrd>(
    points: &[Option<Vec<T>>],
    is_same: impl Fn(usize, usize, usize) -> bool,
) -> Vec<bool> {
    let beats = |a: usize, b: usize| {
        let (Some(x), Some(y)) = (&points[a], &points[b]) else { return false };
        let better = |i: &usize| x[*i] < y[*i];
        let worse = |i: &usize| x[*i] > y[*i];
        let matters = |i: &usize| !is_same(a, b, *i);
        let axes = || 0..x.len();
        let in_print = axes().any(|i| better(&i)) && !axes().any(|i| worse(&i));
        let in_effect = axes().filter(matters).any(|i| better(&i))
            && !axes().filter(matters).any(|i| worse(&i));
        in_print || in_effect
    };
    let all = 0..points.len();
    all.clone().map(|b| points[b].is_some() && !all.clone().any(|a| beats(a, b))).collect()
}

/// Axes of the front, cost first, each with its index among the judged metrics.
pub(crate) fn metrics() -> impl Iterator<Item = (usize, &'static Metric)> {
    stats::judged().enumerate().filter(|(_, m)| m.on_front)
}

/// Negates a figure if higher is better.
pub(crate) fn downward(better: Better, x: f64) -> f64 {
    if better == Better::Higher { -x } else { x }
}

/// Rows of one session that are on its front. Only rows that can win are compared.
pub(crate) fn of_block(block: &ReportBlock<'_>) -> Vec<bool> {
    let metrics: Vec<&'static Metric> = metrics().map(|(_, m)| m).collect();
    let point = |r: &&RunRecord| {
        let compared = r.can_win();
        let figure = |m: &&'static Metric| Some(downward(m.better, m.unit.printed(m.value(r)?)));
        compared.then(|| metrics.iter().map(figure).collect::<Option<Vec<f64>>>()).flatten()
    };
    let points: Vec<_> = block.runs.iter().map(point).collect();
    // A single row does not dominate anything.
    if points.iter().flatten().count() < 2 {
        return vec![false; points.len()];
    }
    unbeaten(&points, |a, b, i| {
        let value = |row: usize| metrics[i].value(block.runs[row]);
        value(a).zip(value(b)).is_some_and(|(x, y)| stats::is_same(metrics[i], x, y))
    })
}

/// Sessions that a comparison can use, and the rows that it ranks.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Common<'a> {
    /// Sessions that every ranked row finished without a broken rule.
    pub(crate) sessions: BTreeSet<&'a str>,
    /// Labels of the ranked rows.
    pub(crate) ranked: BTreeSet<&'a str>,
    /// Number of sessions that any row finished.
    pub(crate) all: usize,
}

/// Selects sessions and rows: the rows whose failures leave at least nine tenths of the sessions to
/// all of them, and of the replies. Thus neither a failure in one of many sessions nor a row that
/// fails often ends a comparison, and no row is ahead because it failed in the longest session. If
/// fewer than two rows remain, the number of sessions decides alone, and then the fewest failures.
/// Sessions that no row finished do not count.
pub(crate) fn common<'a>(runs: &[&'a RunRecord]) -> Common<'a> {
    let mut finished: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut lengths: BTreeMap<&str, u64> = BTreeMap::new();
    for r in runs.iter().filter(|r| r.is_contender()) {
        let own = finished.entry(&r.strategy.label).or_default();
        if r.is_whole() {
            own.insert(&r.scenario.id);
            lengths.insert(&r.scenario.id, r.summary.steps_total);
        }
    }
    let all: BTreeSet<&str> = lengths.keys().copied().collect();
    let size = |own: &BTreeSet<&str>, in_replies: bool| match in_replies {
        true => own.iter().map(|s| lengths[s]).sum(),
        false => own.len() as u64,
    };
    // Choices that rank fewer and fewer rows: those that finished least are left out first.
    let choices = |in_replies: bool| -> Vec<Common<'a>> {
        let sizes: BTreeSet<u64> = finished.values().map(|own| size(own, in_replies)).collect();
        let choice = |least: &u64| {
            let ranked = finished.iter().filter(|(_, own)| size(own, in_replies) >= *least);
            let ranked: BTreeSet<&str> = ranked.map(|(label, _)| *label).collect();
            let by_all = |s: &&str| ranked.iter().all(|label| finished[label].contains(s));
            let sessions = all.iter().copied().filter(by_all).collect();
            Common { sessions, ranked, all: all.len() }
        };
        sizes.iter().map(choice).collect()
    };
    let is_enough = |c: &Common<'_>, in_replies: bool| {
        10 * size(&c.sessions, in_replies) >= 9 * size(&all, in_replies)
    };
    let is_fair = |c: &Common<'_>| [true, false].iter().all(|by| is_enough(c, *by));
    let fair = choices(true).into_iter().find(|c| c.ranked.len() > 1 && is_fair(c));
    fair.or_else(|| choices(false).into_iter().find(|c| is_enough(c, false)))
        .or_else(|| choices(false).pop())
        .unwrap_or_default()
}

/// Products compared over sessions, with their Pareto front.
pub(crate) struct Pooled<'a> {
    /// Comparison of every product with one baseline, over the common sessions.
    pub(crate) differences: Differences,
    pub(crate) products: BTreeSet<&'a str>,
    /// Places of the rows on the front in `differences`, the cheapest first.
    front: Vec<usize>,
    pub(crate) common: Common<'a>,
    /// Runs of the common sessions.
    pub(crate) runs: Vec<&'a RunRecord>,
}

impl<'a> Pooled<'a> {
    /// Compares the products of these runs over the sessions that all ranked rows finished. A row
    /// that did not need to compact competes with its own figures. `None` without a baseline.
    pub(crate) fn from_runs(runs: &[&'a RunRecord]) -> Option<Pooled<'a>> {
        let products: BTreeSet<&str> =
            runs.iter().filter(|r| r.is_contender()).map(|r| &*r.strategy.label).collect();
        let common = common(runs);
        let used = |r: &&&RunRecord| common.sessions.contains(&*r.scenario.id);
        let runs: Vec<&RunRecord> = runs.iter().filter(used).copied().collect();
        let d = stats::by_yardstick(&runs)?;
        let costs = Costs::new(&runs);
        let point = |s: &StrategyDifference| {
            let place = |(i, metric): (usize, &Metric)| {
                d.position(&s.figures[i])?;
                Some(match metric.unit {
                    Unit::Usd => costs.printed_place(
                        &s.strategy,
                        costs.change(&s.strategy, &d.baseline, Some(s)),
                    ),
                    unit => (downward(metric.better, unit.printed(s.figures[i].own_mean?)), 0.0),
                })
            };
            let ranked = common.ranked.contains(&*s.strategy);
            ranked.then(|| metrics().map(place).collect::<Option<Vec<(f64, f64)>>>()).flatten()
        };
        let points: Vec<_> = d.strategies.iter().map(point).collect();
        let axes: Vec<(usize, &Metric)> = metrics().collect();
        let on_it = unbeaten(&points, |a, b, i| {
            let figure = |row: usize| &d.strategies[row].figures[axes[i].0];
            stats::is_apart_by_nothing(figure(a), figure(b), axes[i].1)
        });
        let mut front: Vec<usize> = (0..points.len()).filter(|i| on_it[*i]).collect();
        let exact = |i: usize| d.strategies[i].figures[0].mean.unwrap_or(f64::NAN);
        front.sort_by(|a, b| {
            let printed = points[*a].partial_cmp(&points[*b]).unwrap_or(Ordering::Equal);
            printed.then_with(|| exact(*a).total_cmp(&exact(*b)))
        });
        Some(Pooled { front, common, runs, products, differences: d })
    }

    /// Ranked rows; several strategies may share one.
    pub(crate) fn ranked(&self) -> impl Iterator<Item = &StrategyDifference> {
        let all = self.differences.strategies.iter();
        all.filter(|s| self.common.ranked.contains(&*s.strategy))
    }

    /// Rows on the front, the cheapest first.
    pub(crate) fn front(&self) -> impl Iterator<Item = &StrategyDifference> {
        self.front.iter().map(|i| &self.differences.strategies[*i])
    }

    /// Labels on the front; several strategies may share a row.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &String> {
        self.front().flat_map(|s| std::iter::once(&s.strategy).chain(&s.same))
    }

    pub(crate) fn is_on_front(&self, label: &str) -> bool {
        self.labels().any(|l| l == label)
    }
}

/// Returns true for the rows of a label that finished all sessions, or are as recorded.
pub(crate) fn is_finished(rows: &[&RunRecord]) -> bool {
    let is_done = |r: &&RunRecord| r.status == Status::Completed;
    rows[0].strategy.standing == Standing::Recorded || rows.iter().all(is_done)
}

/// Dollars of each session, by the labels that finished the same sessions.
pub(crate) struct Costs<'a>(BTreeMap<&'a str, BTreeMap<&'a str, f64>>);

impl<'a> Costs<'a> {
    pub(crate) fn new(runs: &[&'a RunRecord]) -> Costs<'a> {
        let mut groups = grouped(runs.iter().copied(), |r| &r.strategy.label);
        groups.retain(|rows| is_finished(rows));
        let by_session = |rows: Vec<&'a RunRecord>| {
            let costs = rows.iter().map(|r| (&*r.scenario.id, r.summary.cost_usd));
            (&*rows[0].strategy.label, costs.collect())
        };
        Costs(groups.into_iter().map(by_session).collect())
    }

    fn sum(&self, label: &str) -> f64 {
        self.0[label].values().sum()
    }

    /// Formats the dollars of a label with as many decimals as the largest amount needs.
    pub(crate) fn format(&self, label: &str) -> String {
        let decimals = match self.0.keys().map(|label| self.sum(label)).fold(0.0, f64::max) {
            x if x >= 10.0 => 2,
            x if x >= 1.0 => 3,
            _ => 4,
        };
        format!("{:.decimals$}", self.sum(label))
    }

    /// Change against the baseline, per cent: over several sessions the geometric mean, which decides
    /// who is on the front, and not that of the sum. A row of fewer sessions is compared over these.
    pub(crate) fn change(
        &self,
        label: &str,
        baseline: &str,
        row: Option<&StrategyDifference>,
    ) -> Option<f64> {
        let figure = row.and_then(|row| Some(&row.figures[metrics().next()?.0]));
        let mean = figure.filter(|f| f.scale == Scale::Ratio).and_then(|f| f.mean);
        mean.or_else(|| {
            let base = self.0.get(baseline)?;
            let both =
                self.0[label].iter().filter_map(|(session, usd)| Some((usd, base.get(session)?)));
            let changes: Vec<f64> = both.map(|(usd, base)| (usd / base).ln()).collect();
            let mean = changes.iter().sum::<f64>() / changes.len() as f64;
            mean.is_finite().then(|| mean.exp_m1() * 100.0)
        })
    }

    /// Place of a label on the axis of dollars, as printed: its change, and then its dollars.
    pub(crate) fn printed_place(&self, label: &str, change: Option<f64>) -> (f64, f64) {
        let change = change.unwrap_or(0.0);
        let printed = |text: String| text.parse::<f64>().unwrap_or(f64::INFINITY);
        (printed(percent(change.abs())).copysign(change), printed(self.format(label)))
    }
}

pub(crate) fn percent(x: f64) -> String {
    if x < 9.95 { format!("{x:.1}") } else { format!("{x:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Status;
    use crate::{testing, view};

    #[test]
    fn who_is_beaten_on_both_is_not_on_it() {
        let at = |cost, lost| Some(vec![cost, lost]);
        let points =
            [at(1.0, 30.0), at(2.0, 30.0), at(2.0, 10.0), at(3.0, 10.0), at(9.0, 0.0), None];
        let exact = |_: usize, _: usize, _: usize| false;
        assert_eq!(unbeaten(&points, exact), [true, false, true, false, true, false]);
        // Equal points do not dominate each other.
        assert_eq!(unbeaten(&[at(1.0, 1.0), at(1.0, 1.0)], exact), [true, true]);
        // A third more dollars for a tenth of a point; a tenth of a cent for the same recall.
        let points = [at(3.0, 10.1), at(4.0, 10.0), at(3.001, 10.1), at(5.0, 9.0)];
        let near = |a: usize, b: usize, axis: usize| {
            let figure = |i: usize| -> f64 { points[i].as_ref().unwrap()[axis] };
            (figure(a) - figure(b)).abs() < 0.5
        };
        assert_eq!(unbeaten(&points, near), [true, false, false, true]);
    }

    #[test]
    fn a_session_marks_its_own_and_sessions_are_pooled() {
        let rows = |session| {
            vec![
                testing::scored(session, "reference", 4.0, 100.0),
                testing::scored(session, "aider", 1.0, 50.0),
                testing::scored(session, "codex", 2.0, 90.0),
                testing::scored(session, "opencode", 3.0, 80.0),
            ]
        };
        let mut runs = rows("one");
        runs.extend(rows("two"));
        runs.iter_mut().for_each(|r| r.scenario.recorded = true);
        let results = testing::of(runs);
        let blocks = view::blocks(&results);
        let on: Vec<&str> = blocks[0]
            .runs
            .iter()
            .zip(of_block(&blocks[0]))
            .filter(|(_, on)| *on)
            .map(|(r, _)| r.strategy.label.as_str())
            .collect();
        assert_eq!(on, ["aider", "codex"]);

        let pooled = |runs: &[RunRecord]| -> Vec<String> {
            let pooled = Pooled::from_runs(&runs.iter().collect::<Vec<_>>()).unwrap();
            pooled.labels().cloned().collect()
        };
        let mut all: Vec<RunRecord> = results.runs;
        assert_eq!(pooled(&all), ["aider", "codex"]);
        // A row that failed in one of them is not compared.
        all.iter_mut().filter(|r| r.strategy.label == "aider").take(1).for_each(|r| {
            r.status = Status::Overflow;
        });
        assert_eq!(pooled(&all), ["codex"]);
    }

    #[test]
    fn common_sessions_are_those_of_all_ranked_rows() {
        // Twenty sessions; each label fails in the first of them, as often as given.
        let ranked = |failures: &[(&str, usize)]| {
            let mut runs = Vec::new();
            for (label, n) in failures {
                runs.extend((0..20).map(|i| {
                    let mut r = testing::scored(&format!("s{i:02}"), label, 1.0, 50.0);
                    r.status = if i < *n { Status::Overflow } else { Status::Completed };
                    r
                }));
            }
            let runs: Vec<&RunRecord> = runs.iter().collect();
            let found = common(&runs);
            (found.ranked.into_iter().collect::<Vec<_>>().concat(), found.sessions.len())
        };
        assert_eq!(ranked(&[("a", 0), ("b", 2), ("c", 3)]), ("ab".into(), 18));
        assert_eq!(ranked(&[("a", 0), ("b", 0), ("c", 20)]), ("ab".into(), 20));
        // What no row finished is no session; the others are 17.
        assert_eq!(ranked(&[("a", 3), ("b", 4)]), ("ab".into(), 16));
        assert_eq!(ranked(&[("a", 20)]), ("a".into(), 0));
        assert_eq!(common(&[]), Common::default());
    }
}
