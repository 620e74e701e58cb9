//! Sentences of a conclusion: who needed to compact, the front, the trade-off along it, and how sure they
//! are.

use std::collections::BTreeSet;

use crate::comparison::Names;
use crate::fmt;
use crate::front::{self, Pooled};
use crate::metrics::Metric;
use crate::record::RunRecord;
use crate::stats::{self, StrategyDifference, Verdict};

/// Returns up to four sentences, or `None` with fewer than two ranked products: whether anybody
/// needed to compact, the front, the trade-off along it, and how sure the last two are.
pub(super) fn sentences(pooled: &Pooled<'_>) -> Option<Vec<String>> {
    let d = &pooled.differences;
    let front: Vec<&StrategyDifference> = pooled.front().collect();
    let strategies: usize = pooled.ranked().map(|s| 1 + s.same.len()).sum();
    if pooled.products.len() < 2 {
        return None;
    }
    let names = Names::new(&pooled.runs);
    let unneeded = unneeded(pooled, &names);
    let (Some(first), Some(last)) = (front.first(), front.last()) else {
        return unneeded.map(|told| vec![told]);
    };
    let axes: Vec<(usize, &Metric)> = front::metrics().collect();
    let apart = |from: &StrategyDifference, to: &StrategyDifference| -> Vec<String> {
        let figure = |(i, m): &(usize, &Metric)| {
            let told = stats::apart(&from.figures[*i], &to.figures[*i], m)?;
            Some(format!("{} {told}", m.name))
        };
        axes.iter().filter_map(figure).collect()
    };
    let is_same = |to: &StrategyDifference| {
        apart(first, to).iter().all(|told| told.ends_with(stats::NO_CHANGE))
    };
    let all_same = pooled.ranked().all(is_same);
    if unneeded.is_some() && all_same {
        return unneeded.map(|told| vec![told]);
    }
    let listed: Vec<String> = front.iter().map(|s| names.of_row(s)).collect();
    let what = match &*names.setting {
        "" => fmt::pluralize(strategies, "strategy"),
        setting => format!("{} of {}", fmt::pluralize(strategies, "value"), fmt::one_line(setting)),
    };
    let what = match (pooled.common.sessions.len(), pooled.common.all) {
        (n, all) if n < all => format!("Over {n} of {all} sessions, of {what}"),
        _ => format!("Of {what}"),
    };
    let ranked = &pooled.common.ranked;
    let failed: Vec<&str> =
        pooled.products.difference(ranked).map(|label| names.by_label(label)).collect();
    let left_out = match &failed[..] {
        [] => String::new(),
        all if all.len() <= NAMED => format!("; not ranked: {}", all.join(", ")),
        all => format!("; {} with failures are not ranked", all.len()),
    };
    let choice = match (strategies, &listed[..]) {
        (1, [only]) => format!("Only {only} is ranked{left_out}."),
        (2.., _) if all_same => {
            format!("{what}, none costs less or recalls more than another{left_out}.")
        }
        (_, [best]) => {
            format!("{what}, {best} is the cheapest and recalls most{left_out}.")
        }
        (_, [others @ .., last]) => format!(
            "{what}, nothing is both cheaper and recalls more than {} or {last}{left_out}.",
            others.join(", ")
        ),
        (_, []) => return None,
    };
    let stake = (!is_same(last)).then(|| {
        format!(
            "From the cheapest{}, {}, to the one that recalls most, {}: {}.",
            if d.sessions > 1 { " on average" } else { "" },
            names.of_row(first),
            names.of_row(last),
            apart(first, last).join(", ")
        )
    });
    let sure = match d.sessions {
        1 => Some(caution(pooled)),
        _ => sure(pooled, &front, &names),
    };
    Some(unneeded.into_iter().chain([choice]).chain(stake).chain(sure).collect())
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

/// Says in how many of the compared sessions no ranked product needed to compact, if in any. Rows
/// with settings, own programs, and a single row among several that compacts do not count as
/// products; they are named.
fn unneeded(pooled: &Pooled<'_>, names: &Names) -> Option<String> {
    let ranked = &pooled.common.ranked;
    let own = pooled.runs.iter().filter(|r| ranked.contains(&*r.strategy.label));
    let is_own = |r: &RunRecord| !r.strategy.given.is_empty() || r.strategy.program.is_some();
    if own.clone().all(|r| is_own(r)) {
        return None;
    }
    let compacted: Vec<&RunRecord> = own.copied().filter(|r| r.summary.compactions > 0).collect();
    let who: BTreeSet<&str> = compacted.iter().map(|r| &*r.strategy.label).collect();
    let is_lone = who.len() == 1 && ranked.len() > 2;
    let is_other = |r: &RunRecord| is_lone || is_own(r);
    let (others, products): (Vec<&RunRecord>, Vec<&RunRecord>) =
        compacted.into_iter().partition(|r| is_other(r));
    let needed: BTreeSet<&str> = products.iter().map(|r| &*r.scenario.id).collect();
    let others = others.iter().filter(|r| !needed.contains(&*r.scenario.id));
    let others: BTreeSet<&str> = others.map(|r| names.by_label(&r.strategy.label)).collect();
    let all = pooled.common.sessions.len();
    let sessions = match all - needed.len() {
        0 => return None,
        n if n == all => String::new(),
        n => format!(" in {n} of {all} sessions"),
    };
    let others = others.into_iter().collect::<Vec<_>>().join(", ");
    let who = if others.is_empty() { "product".into() } else { format!("row but {others}") };
    Some(format!("No {who} needed to compact{sessions}."))
}

/// Tests what the sentences before it say: neighbours on the front, and its two ends, or a row that
/// is alone on it and the next best in each figure; `None` without another row. The rows were picked
/// by their result, so each test is one of those of all pairs in both figures.
fn sure(pooled: &Pooled<'_>, front: &[&StrategyDifference], names: &Names) -> Option<String> {
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
    let needed = stats::sessions_needed(family);
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
        let is_known = |(i, _): &(usize, &Metric)| d.figures[*i].verdict != Verdict::DifferenceOnly;
        let told = match d.compacted < needed && !axes.iter().all(is_known) {
            true => format!("differ in {}, {needed} needed", fmt::sessions(d.compacted)),
            false => axes.iter().map(word).collect::<Vec<_>>().join(", "),
        };
        (d.compacted, format!("{} to {}: {told}", names.of_row(from), names.of_row(to)))
    };
    let tests: Vec<(usize, String)> = pairs.iter().map(tested).collect();
    let most = tests.iter().map(|(sessions, _)| *sessions).max()?;
    let told: Vec<String> = tests.into_iter().map(|(_, told)| told).collect();
    Some(match most < needed {
        true => format!(
            "Caution: these rows differ in {} at most; {needed} are needed to rule out chance.",
            fmt::sessions(most)
        ),
        false => format!("How sure, pair by pair: {}.", told.join("; ")),
    })
}
