//! Sentences of a conclusion: who needed to compact, the front, the trade-off along it, and how sure they
//! are.

use std::collections::BTreeSet;

use crate::comparison::Names;
use crate::fmt;
use crate::front::{self, Pooled};
use crate::metrics::Metric;
use crate::record::RunRecord;
use crate::stats::{self, MIN_SESSIONS, StrategyDifference, Verdict};

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
    let names = Names::new(&pooled.runs);
    let listed: Vec<String> = front.iter().map(|s| names.of_row(s)).collect();
    let what = match &*names.setting {
        "" => fmt::pluralize(products, "strategy"),
        setting => format!("{} of {}", fmt::pluralize(products, "value"), fmt::one_line(setting)),
    };
    let ranked = &pooled.common.ranked;
    let failed: Vec<&str> =
        pooled.products.difference(ranked).map(|label| names.by_label(label)).collect();
    let left_out = match &failed[..] {
        [] => String::new(),
        all if all.len() <= NAMED => format!("; not ranked: {}", all.join(", ")),
        all => format!("; {} with failures are not ranked", all.len()),
    };
    let choice = match (products, &listed[..]) {
        (1, [only]) => format!("Only {only} is ranked{left_out}."),
        (_, [best]) => {
            format!("Of {what}, {best} is the cheapest and recalls most{left_out}.")
        }
        (_, [others @ .., last]) => format!(
            "Of {what}, nothing is both cheaper and recalls more than {} or {last}{left_out}.",
            others.join(", ")
        ),
        (_, []) => return None,
    };
    let stake = (front.len() > 1).then(|| {
        let apart = axes
            .iter()
            .filter_map(|(i, m)| stats::apart(&first.figures[*i], &last.figures[*i], m))
            .collect::<Vec<_>>();
        format!(
            "From the cheapest{}, {}, to the one that recalls most, {}: {}.",
            if d.sessions > 1 { " on average" } else { "" },
            names.of_row(first),
            names.of_row(last),
            apart.join(", ")
        )
    });
    let sure = match d.sessions {
        1 => caution(pooled),
        _ => sure(pooled, &front, &names),
    };
    Some(unneeded.into_iter().chain([choice]).chain(stake).chain([sure]).collect())
}

/// Number of rows up to which those that are not ranked are named.
const NAMED: usize = 2;

/// Says what one session cannot show.
fn caution(pooled: &Pooled<'_>) -> String {
    let by: BTreeSet<&str> = pooled.runs.iter().filter_map(|r| r.summariser.as_deref()).collect();
    let by: Vec<String> = by.into_iter().map(fmt::one_line).collect();
    let modelled = match by.is_empty() {
        true => "waiting is modelled".into(),
        false => format!("summaries are {}, waiting is modelled", by.join(" or ")),
    };
    format!("Caution: one session does not predict others; {modelled}.")
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
fn sure(pooled: &Pooled<'_>, front: &[&StrategyDifference], names: &Names) -> String {
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
    let tested = |[from, to]: &[&StrategyDifference; 2]| {
        let d = stats::pair(&pooled.runs, &from.strategy, &to.strategy, family);
        let word = |(i, m): &(usize, &Metric)| match d.figures[*i].verdict {
            Verdict::Better | Verdict::Worse => {
                format!("{} {} beyond chance", m.name, stats::change(&d.figures[*i], m))
            }
            Verdict::Equal => format!("{} no change", m.name),
            Verdict::Unresolved => format!("{} may be chance", m.name),
            Verdict::DifferenceOnly => String::new(),
        };
        let told = match d.compacted < MIN_SESSIONS {
            true => format!("differ in {}, {MIN_SESSIONS} needed", fmt::sessions(d.compacted)),
            false => axes.iter().map(word).collect::<Vec<_>>().join(", "),
        };
        (d.compacted, format!("{} to {}: {told}", names.of_row(from), names.of_row(to)))
    };
    let tests: Vec<(usize, String)> = pairs.iter().map(tested).collect();
    match tests.iter().map(|(sessions, _)| *sessions).max() {
        None => "How sure: one row, nothing to compare.".into(),
        Some(most) if most < MIN_SESSIONS => format!(
            "Caution: these rows differ in {} at most; {MIN_SESSIONS} are needed to rule out chance.",
            fmt::sessions(most)
        ),
        Some(_) => {
            let told: Vec<String> = tests.into_iter().map(|(_, told)| told).collect();
            format!("How sure, pair by pair: {}.", told.join("; "))
        }
    }
}
