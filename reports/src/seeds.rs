//! Averages runs that were repeated with several seeds: one row with the mean of every figure, and
//! the range of the compared ones.
//!
//! Several seeds of one session do not count as several sessions: statistics use their mean, so
//! that repetition does not add certainty. Machine-readable files (`results.json`, CSV) contain
//! every seed.

use std::borrow::Cow;
use std::ptr;

use crate::record::{Results, RunRecord, Status, Summary};
use serde_json::{Map, Value, json};

use crate::group::grouped;
use crate::{fmt, metrics};

/// Returns true if any row was repeated with several seeds.
pub(crate) fn several(results: &Results) -> bool {
    results.runs.iter().any(|r| r.seed.is_some())
}

/// Results with one row for all seeds of a scenario, strategy, model and summariser. Requests,
/// compactions and facts are those of the first seed.
pub(crate) fn averaged(results: &Results) -> Cow<'_, Results> {
    match as_one(&results.runs) {
        Cow::Borrowed(_) => Cow::Borrowed(results),
        Cow::Owned(runs) => Cow::Owned(Results { runs, ..results.without_rows() }),
    }
}

/// Averages the rows of whole sessions.
pub(crate) fn as_one<'a>(runs: &'a [RunRecord]) -> Cow<'a, [RunRecord]> {
    if runs.iter().all(|r| r.seed.is_none()) {
        return Cow::Borrowed(runs);
    }
    let key = |r: &&'a RunRecord| {
        let keys = [&*r.scenario.id, &*r.strategy.label, &*r.model];
        // A row that was not repeated is a group of its own.
        let own = r.seed.is_none().then_some(ptr::from_ref(*r));
        (keys, r.summariser.as_deref(), own)
    };
    let groups = grouped(runs, key);
    Cow::Owned(groups.iter().map(|g| mean_run(g)).collect())
}

/// Averages these rows, the lowest seed first.
fn mean_run(seeds: &[&RunRecord]) -> RunRecord {
    let first = seeds[0];
    if first.seed.is_none() {
        return first.clone();
    }
    // The average must not hide a failure of one seed.
    let worst = seeds.iter().find(|r| r.status != Status::Completed).unwrap_or(&first);
    let broken = seeds.iter().rev().max_by_key(|r| r.broken_rules()).unwrap_or(&first);
    let summaries: Vec<Value> = seeds.iter().map(|r| json!(r.summary)).collect();
    let mean = mean(&summaries.iter().collect::<Vec<_>>());
    let mut summary: Summary =
        serde_json::from_value(mean).expect("a mean has the form of what it is made of");
    summary.integrity_failures = broken.summary.integrity_failures;
    let name = |r: &RunRecord| format!("seed {}", r.seed.unwrap_or_default());
    let mut integrity = broken.integrity.clone();
    integrity.iter_mut().for_each(|f| f.detail = format!("{}: {}", name(broken), f.detail));
    RunRecord {
        seed: None,
        status: worst.status,
        error: worst.error.as_ref().map(|e| format!("{}: {e}", name(worst))),
        note: Some(note(seeds)),
        summary,
        integrity,
        ..first.clone()
    }
}

/// Remark for a mean: number of seeds, and ranges of the figures in the table.
fn note(seeds: &[&RunRecord]) -> String {
    let said =
        seeds[0].note.as_deref().filter(|n| seeds.iter().all(|r| r.note.as_deref() == Some(n)));
    let mut out: Vec<String> = said.map(str::to_string).into_iter().collect();
    out.push(format!("mean of {} seeds", seeds.len()));
    let finished = seeds.iter().filter(|r| r.status == Status::Completed).count();
    if finished > 0 && finished < seeds.len() {
        out.push(format!("finished with {finished} of them"));
    }
    let before = out.len();
    for metric in metrics::scores() {
        let mut values: Vec<f64> = seeds.iter().filter_map(|r| metric.value(r)).collect();
        values.sort_by(f64::total_cmp);
        let (Some(low), Some(high)) = (values.first(), values.last()) else { continue };
        let (low, high) = (metric.unit.format_value(*low), metric.unit.format_value(*high));
        if low != high {
            out.push(format!("{} {low}–{high}", metric.score_title()));
        }
    }
    if out.len() == before {
        out.push("all alike".into());
    }
    fmt::one_line(&out.join("; "))
}

/// Mean of each number; integers stay integers. A value that is unknown for one seed is unknown in
/// the mean.
fn mean(values: &[&Value]) -> Value {
    let n = values.len();
    if let Some(all) = values.iter().map(|v| v.as_u64()).collect::<Option<Vec<u64>>>() {
        let sum: u128 = all.into_iter().map(u128::from).sum();
        return Value::from(((sum + n as u128 / 2) / n as u128) as u64);
    }
    if let Some(all) = values.iter().map(|v| v.as_f64()).collect::<Option<Vec<f64>>>() {
        return Value::from(all.iter().sum::<f64>() / n as f64);
    }
    let Some(all) = values.iter().map(|v| v.as_object()).collect::<Option<Vec<_>>>() else {
        return Value::Null;
    };
    let known = |name: &str| all.iter().map(|o| o.get(name)).collect::<Option<Vec<_>>>();
    let fields: Map<String, Value> =
        all[0].keys().filter_map(|name| Some((name.clone(), mean(&known(name)?)))).collect();
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use crate::record::{IntegrityFailure, Rule};

    use super::*;
    use crate::stats;
    use crate::testing;

    fn seeded(seed: u64, change: impl Fn(&mut RunRecord)) -> RunRecord {
        let mut r = testing::run("s", "codex", 1);
        r.summariser = Some("lossy".into());
        r.seed = Some(seed);
        change(&mut r);
        r
    }

    fn fold(runs: Vec<RunRecord>) -> RunRecord {
        let results = testing::of(runs);
        let mut out = averaged(&results).into_owned().runs;
        assert_eq!(out.len(), 1);
        out.remove(0)
    }

    #[test]
    fn a_row_is_the_mean_of_its_seeds_and_says_the_range() {
        let of = |seed, cost, kept, saved: Option<f64>| {
            seeded(seed, |r| {
                r.summary.cost_usd = cost;
                r.summary.recall_pct = Some(kept);
                r.summary.requests = 10 + seed;
                r.summary.saved_pct = saved;
            })
        };
        let row = fold(vec![
            of(0, 1.0, 50.0, Some(20.0)),
            of(1, 2.0, 60.0, Some(40.0)),
            of(2, 6.0, 100.0, Some(0.0)),
        ]);
        let s = &row.summary;
        assert_eq!(
            (s.cost_usd, s.recall_pct, s.requests, s.saved_pct),
            (3.0, Some(70.0), 11, Some(20.0))
        );
        let note = row.note.unwrap();
        testing::assert_contains(&note, &["mean of 3 seeds", "cost $ 1.0", "recall % 50.0–100"]);
        assert!(!note.contains("prefix stable"), "what does not differ has no range: {note}");
        // A value that is unknown for one seed is unknown.
        let gap = fold(vec![of(0, 1.0, 50.0, Some(20.0)), of(1, 1.0, 50.0, None)]);
        assert_eq!(gap.summary.saved_pct, None);
    }

    #[test]
    fn what_went_wrong_with_one_seed_is_not_averaged_away() {
        let broken = |r: &mut RunRecord| {
            r.status = Status::Overflow;
            r.error = Some("too long".into());
            r.summary.integrity_failures = 1;
            r.integrity =
                vec![IntegrityFailure { request: 3, rule: Rule::Roles, detail: "detail".into() }];
        };
        let plain = |r: &mut RunRecord| r.summary.integrity_failures = 0;
        let row =
            fold(vec![seeded(0, plain), seeded(1, broken), seeded(2, plain), seeded(3, plain)]);
        assert_eq!(
            (row.status, row.error.as_deref(), row.summary.integrity_failures),
            (Status::Overflow, Some("seed 1: too long"), 1)
        );
        assert_eq!(row.integrity[0].detail, "seed 1: detail");
        assert!(row.note.unwrap().contains("finished with 3 of them"));
    }

    #[test]
    fn results_without_seeds_are_left_alone() {
        let plain = testing::results();
        assert!(matches!(averaged(&plain), Cow::Borrowed(_)));
        // A row that does not depend on the seed is unchanged next to repeated ones.
        let reference = testing::run("s", "reference", 1);
        let mixed = testing::of(vec![seeded(0, |_| ()), seeded(1, |_| ()), reference.clone()]);
        let out = averaged(&mixed).into_owned().runs;
        assert_eq!((out.len(), &out[1]), (2, &reference));
        assert!(out[0].note.as_deref().unwrap().ends_with("all alike"));
    }

    #[test]
    fn seeds_are_no_further_sessions() {
        let mut results = Results::default();
        for session in ["a", "b"] {
            for (seed, cost) in [(0, 1.0), (1, 3.0)] {
                results.runs.push(seeded(seed, |r| {
                    (r.scenario.id, r.summary.cost_usd) = (session.into(), cost)
                }));
            }
            let mut reference = testing::run(session, "reference", 1);
            reference.summary.cost_usd = 5.0;
            results.runs.push(reference);
        }
        results.runs.iter_mut().for_each(|r| r.scenario.recorded = true);
        let found = stats::over_sessions(&results);
        let cost = &found[0].strategies[0].figures[0];
        assert_eq!((found[0].sessions, cost.sessions, cost.own_mean), (2, 2, Some(2.0)));
        // In each session 2 dollars, the mean of 1 and 3, against 5.
        assert!(cost.mean.is_some_and(|x| (x + 60.0).abs() < 1e-9), "{cost:?}");
    }
}
