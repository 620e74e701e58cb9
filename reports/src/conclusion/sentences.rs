//! Sentences of a conclusion: who needed to compact, the front, the trade-off along it, and how sure they
//! are.

use std::collections::BTreeSet;

use crate::fmt;
use crate::front::{self, Pooled};
use crate::metrics::Metric;
use crate::record::RunRecord;
use crate::stats::{self, Figure, MIN_SESSIONS, StrategyDifference, Verdict};

/// Returns up to four sentences, or `None` with fewer than two ranked products: whether anybody
/// needed to compact, the front, the trade-off along it, and how sure the last two are.
pub(super) fn sentences(pooled: &Pooled<'_>) -> Option<Vec<String>> {
    let d = &pooled.differences;
    let front: Vec<&StrategyDifference> = pooled.front().collect();
    let (first, last) = (front.first()?, front.last()?);
    let products: usize = pooled.ranked().map(|s| 1 + s.same.len()).sum();
    if pooled.products.len() < 2 {
        return None;
    }
    let unneeded = unneeded(pooled);
    let alike = |s: &StrategyDifference| s.figures.iter().all(|f| f.mean == Some(0.0));
    if unneeded.is_some() && pooled.ranked().all(alike) {
        return unneeded.map(|told| vec![told]);
    }
    let axes: Vec<(usize, &Metric)> = front::metrics().collect();
    let figures = |s: &StrategyDifference| {
        let of = |(i, m): &(usize, &Metric)| {
            let figure = &s.figures[*i];
            let said = match d.sessions {
                1 => fmt::known(figure.own_mean, |x| m.unit.describe(x)),
                _ if figure.sessions < s.sessions => {
                    format!("{} in {} of them", stats::change(figure, m), figure.sessions)
                }
                _ => stats::change(figure, m),
            };
            let bill = stats::bill(figure).map_or(String::new(), |b| format!(", bill {b}"));
            format!("{} {said}{bill}", m.name)
        };
        axes.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let listed: Vec<String> =
        front.iter().map(|s| format!("{} ({})", stats::name(s), figures(s))).collect();
    let (finished, against) = match d.sessions {
        1 => (String::new(), String::new()),
        n => (
            format!(" in the {n} sessions that all of them finished"),
            format!(", by the mean change against {}", fmt::one_line(&d.baseline)),
        ),
    };
    let left_out = match pooled.products.len() - products {
        0 => String::new(),
        n => format!("; {n} that failed more often are not ranked"),
    };
    let choice = match (products, &listed[..]) {
        (1, [only]) => format!("Only {only} is ranked{finished}{left_out}."),
        (n, [best]) => {
            format!("Of {n} products{finished}, {best} is best in both{against}{left_out}.")
        }
        (n, _) => format!(
            "Of {n} products{finished}, these are on the front, the cheapest first{against}: {}; \
             nothing else is both cheaper and keeps more{left_out}.",
            listed.join(", ")
        ),
    };
    let stake = (front.len() > 1).then(|| {
        let apart = axes
            .iter()
            .filter_map(|(i, m)| stats::apart(&first.figures[*i], &last.figures[*i], m))
            .collect::<Vec<_>>();
        format!(
            "From the cheapest{}, {}, to the one that keeps most, {}: {}.",
            if d.sessions > 1 { " on average" } else { "" },
            stats::name(first),
            stats::name(last),
            apart.join(", ")
        )
    });
    let sure = match d.sessions {
        1 => "One session does not predict others.".to_string(),
        _ => sure(pooled, &front),
    };
    Some(unneeded.into_iter().chain([choice]).chain(stake).chain([sure]).collect())
}

/// Says in how many of the compared sessions no ranked product compacted, if in any.
fn unneeded(pooled: &Pooled<'_>) -> Option<String> {
    let all = pooled.common.sessions.len();
    let compacted = |r: &&&RunRecord| {
        r.summary.compactions > 0 && pooled.common.ranked.contains(&*r.strategy.label)
    };
    let in_which = pooled.runs.iter().filter(compacted).map(|r| &*r.scenario.id);
    let sessions: BTreeSet<&str> = in_which.collect();
    match all - sessions.len() {
        0 => None,
        1 if all == 1 => Some("No product needed to compact.".into()),
        n => Some(format!("No product needed to compact in {n} of {all} sessions.")),
    }
}

/// Tests what the sentences before it say: neighbours on the front, and its two ends, or a row that
/// is alone on it and the next best in each figure. The rows were picked by their result, so each
/// test is one of those of all pairs in both figures.
fn sure(pooled: &Pooled<'_>, front: &[&StrategyDifference]) -> String {
    let ranked: Vec<&StrategyDifference> = pooled.ranked().collect();
    let axes: Vec<(usize, &Metric)> = front::metrics().collect();
    let runner_up = |(i, m): &(usize, &Metric)| {
        let at = |s: &StrategyDifference| {
            s.figures[*i].mean.map_or(f64::INFINITY, |x| front::downward(m.better, x))
        };
        let others = ranked.iter().filter(|s| s.strategy != front[0].strategy);
        others.min_by(|a, b| at(a).total_cmp(&at(b))).copied()
    };
    let mut pairs: Vec<[&StrategyDifference; 2]> = match front {
        [only] => axes.iter().filter_map(runner_up).map(|other| [*only, other]).collect(),
        _ => front.windows(2).map(|two| [two[0], two[1]]).collect(),
    };
    pairs.dedup_by(|a, b| a[1].strategy == b[1].strategy);
    if let [first, _, .., last] = front {
        pairs.push([first, last]);
    }
    let family = ranked.len() * (ranked.len() - 1);
    let tests = pairs.iter().map(|[from, to]| {
        let d = stats::pair(&pooled.runs, &from.strategy, &to.strategy, family);
        let word = |figure: &Figure, m: &Metric| match figure.verdict {
            Verdict::Better | Verdict::Worse => {
                format!("{} {} beyond chance", m.name, stats::change(figure, m))
            }
            Verdict::Equal => format!("{} no change", m.name),
            Verdict::Unresolved => format!("{} may be chance", m.name),
            Verdict::DifferenceOnly => String::new(),
        };
        let told: Vec<String> = match d.compacted < MIN_SESSIONS {
            true => {
                vec![format!("differ in {}, {MIN_SESSIONS} needed", fmt::sessions(d.compacted))]
            }
            false => axes.iter().map(|(i, m)| word(&d.figures[*i], m)).collect(),
        };
        format!("{} to {}: {}", stats::name(from), stats::name(to), told.join(", "))
    });
    let told: Vec<String> = tests.collect();
    match told.is_empty() {
        true => "How sure: one row, nothing to compare.".into(),
        false => format!("How sure, pair by pair: {}.", told.join("; ")),
    }
}
