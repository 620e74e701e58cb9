//! Pareto front of cost against recall: rows that no other row dominates.

use std::collections::{BTreeMap, BTreeSet};

use crate::metrics::{Better, Metric};
use crate::record::RunRecord;
use crate::stats::{self, Differences, StrategyDifference};
use crate::view::ReportBlock;

/// Mark of a row on the front.
pub(crate) const MARK: &str = "◆";

/// Explanation of the mark.
pub(crate) const HELP: &str = "on the front of cost against recall: no other product is at least \
     as good in both and better in one";

/// Returns for each point whether it is on the Pareto front: no other point is at least as good in
/// every metric and better in one. Lower is better. A point with a missing figure is not on the
/// front.
pub(crate) fn unbeaten(points: &[Option<Vec<f64>>]) -> Vec<bool> {
    let beats = |a: &[f64], b: &[f64]| {
        a.iter().zip(b).all(|(x, y)| x <= y) && a.iter().zip(b).any(|(x, y)| x < y)
    };
    let on_it = |p: &Option<Vec<f64>>| {
        p.as_ref().is_some_and(|p| !points.iter().flatten().any(|other| beats(other, p)))
    };
    points.iter().map(on_it).collect()
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
        let figure = |m: &&'static Metric| Some(downward(m.better, m.value(r)?));
        compared.then(|| metrics.iter().map(figure).collect::<Option<Vec<f64>>>()).flatten()
    };
    let points: Vec<_> = block.runs.iter().map(point).collect();
    // A single row does not dominate anything.
    if points.iter().flatten().count() < 2 {
        return vec![false; points.len()];
    }
    unbeaten(&points)
}

/// Sessions that a comparison can use, and the rows that it ranks.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Common<'a> {
    /// Sessions that every ranked row finished without a broken rule.
    pub(crate) sessions: BTreeSet<&'a str>,
    /// Labels of the ranked rows.
    pub(crate) ranked: BTreeSet<&'a str>,
}

/// Selects sessions and rows: the rows whose failures leave at least nine tenths of the sessions to
/// all of them, or else the rows that failed least. So neither a single failure in many sessions nor
/// a row that fails often ends a comparison. Sessions that no row finished do not count.
pub(crate) fn common<'a>(runs: &[&'a RunRecord]) -> Common<'a> {
    let mut finished: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for r in runs.iter().filter(|r| r.is_contender()) {
        let own = finished.entry(&r.strategy.label).or_default();
        own.extend(r.is_whole().then_some(r.scenario.id.as_str()));
    }
    let all: BTreeSet<&str> = finished.values().flatten().copied().collect();
    let most_failures = |limit: usize| {
        let ranked = finished.iter().filter(|(_, own)| all.len() - own.len() <= limit);
        let ranked: BTreeSet<&str> = ranked.map(|(label, _)| *label).collect();
        let by_all = |s: &&str| ranked.iter().all(|label| finished[label].contains(s));
        Common { sessions: all.iter().copied().filter(by_all).collect(), ranked }
    };
    let limits: BTreeSet<usize> = finished.values().map(|own| all.len() - own.len()).collect();
    let is_enough = |c: &Common<'_>| 10 * c.sessions.len() >= 9 * all.len();
    let enough = limits.iter().rev().map(|limit| most_failures(*limit)).find(is_enough);
    enough.or_else(|| limits.first().map(|least| most_failures(*least))).unwrap_or_default()
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
        let point = |s: &StrategyDifference| {
            let figures = metrics()
                .map(|(i, metric)| d.position(&s.figures[i]).map(|x| downward(metric.better, x)));
            let ranked = common.ranked.contains(&*s.strategy);
            ranked.then(|| figures.collect::<Option<Vec<f64>>>()).flatten()
        };
        let points: Vec<Option<Vec<f64>>> = d.strategies.iter().map(point).collect();
        let on_it = unbeaten(&points);
        let mut front: Vec<usize> = (0..points.len()).filter(|i| on_it[*i]).collect();
        let cost = |i: usize| points[i].as_ref().map_or(f64::NAN, |p| p[0]);
        let label = |i: usize| &d.strategies[i].strategy;
        front.sort_by(|a, b| cost(*a).total_cmp(&cost(*b)).then_with(|| label(*a).cmp(label(*b))));
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
        assert_eq!(unbeaten(&points), [true, false, true, false, true, false]);
        // Equal points do not dominate each other.
        assert_eq!(unbeaten(&[at(1.0, 1.0), at(1.0, 1.0)]), [true, true]);
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
