//! Which runs are paired: strategies of one run by session and model, or one strategy in two
//! results.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{Results, RunRecord};
use ctxbench_core::strategy::Standing;
use serde::Serialize;

use super::figures::{Figure, Pair, figures};
use crate::{seeds, view};

/// Every strategy against one baseline with one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Differences {
    /// Model name.
    pub model: String,
    /// Label of the strategy that the others are held against; `base` between two results.
    pub baseline: String,
    /// Sessions that there are with this model, usable or not.
    pub sessions: usize,
    /// A row per strategy; none below two sessions.
    pub strategies: Vec<StrategyDifference>,
}

/// One strategy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StrategyDifference {
    /// Its label.
    pub strategy: String,
    /// Cost, tokens, retention, waiting.
    pub figures: Vec<Figure>,
}

/// Runs of one model by label and session. Of a row that stands twice the first counts.
struct Runs<'a>(BTreeMap<&'a str, BTreeMap<&'a str, &'a RunRecord>>);

impl<'a> Runs<'a> {
    fn of(results: &'a Results, model: &str, counts: impl Fn(&RunRecord) -> bool) -> Runs<'a> {
        let mut out: BTreeMap<&str, BTreeMap<&str, &RunRecord>> = BTreeMap::new();
        for r in results.runs.iter().filter(|r| r.model == model && counts(r)) {
            out.entry(r.strategy.label.as_str())
                .or_default()
                .entry(r.scenario.id.as_str())
                .or_insert(r);
        }
        Runs(out)
    }

    fn sessions(&self) -> BTreeSet<&'a str> {
        self.0.values().flat_map(|by_session| by_session.keys().copied()).collect()
    }

    /// The label under which a strategy ran, the plain one first.
    fn label(&self, name: &str) -> Option<&'a str> {
        self.0
            .iter()
            .find(|(_, runs)| runs.values().any(|r| r.strategy.name == name))
            .map(|(label, _)| *label)
    }

    fn product(&self, label: &str) -> bool {
        self.0
            .get(label)
            .into_iter()
            .flat_map(BTreeMap::values)
            .all(|r| r.strategy.standing == Standing::Contender)
    }
}

/// Per model: every product against `reference` and, where that exceeds a real window, against
/// `sliding-window` too.
///
/// Over the sessions that are evidence. A model without `reference` in them has no entry.
pub(crate) fn over_sessions(results: &Results) -> Vec<Differences> {
    let results = &*seeds::averaged(results);
    let blocks = view::blocks(results);
    let mut out = Vec::new();
    for model in view::models(results) {
        let runs = Runs::of(results, model, RunRecord::is_evidence);
        let Some(reference) = runs.label("reference") else { continue };
        let too_large = blocks.iter().filter(|b| b.first().model == model).any(|b| {
            let peak = b
                .runs
                .iter()
                .find(|r| r.strategy.label == reference)
                .map(|r| r.summary.peak_context_tokens);
            peak.zip(b.window()).is_some_and(|(peak, window)| peak > window)
        });
        let real = runs.label("sliding-window").filter(|_| too_large && runs.sessions().len() > 1);
        for baseline in [Some(reference), real].into_iter().flatten() {
            let labels: Vec<&str> =
                runs.0.keys().copied().filter(|l| *l != baseline && runs.product(l)).collect();
            out.push(differences(model, baseline, runs.sessions().len(), &labels, |label| {
                let base = &runs.0[baseline];
                runs.0[label]
                    .iter()
                    .filter_map(|(session, own)| Some((*base.get(session)?, *own)))
                    .collect()
            }));
        }
    }
    out
}

/// Per model: every strategy of `new` against itself in `base`, over the sessions of both, tests of
/// a mechanism too: nobody is ranked.
pub(crate) fn between(base: &Results, new: &Results) -> Vec<Differences> {
    let (base, new) = (&*seeds::averaged(base), &*seeds::averaged(new));
    let models: Vec<&str> = view::models(base).intersection(&view::models(new)).copied().collect();
    let of_model = |model: &str| {
        let any = |_: &RunRecord| true;
        let (old, new) = (Runs::of(base, model, any), Runs::of(new, model, any));
        let labels: Vec<&str> = new.0.keys().copied().filter(|l| old.0.contains_key(l)).collect();
        let sessions = old.sessions().intersection(&new.sessions()).count();
        differences(model, "base", sessions, &labels, |label| {
            let before = &old.0[label];
            new.0[label]
                .iter()
                .filter_map(|(session, own)| Some((*before.get(session)?, *own)))
                .collect()
        })
    };
    models.into_iter().map(of_model).collect()
}

fn differences<'a>(
    model: &str,
    baseline: &str,
    sessions: usize,
    labels: &[&str],
    pairs: impl Fn(&str) -> Vec<Pair<'a>>,
) -> Differences {
    let labels = if sessions < 2 { &[] } else { labels };
    let pairs: Vec<Vec<Pair<'a>>> = labels.iter().map(|l| pairs(l)).collect();
    let figures = figures(&pairs);
    let strategies = labels
        .iter()
        .zip(figures)
        .map(|(l, figures)| StrategyDifference { strategy: (*l).into(), figures })
        .collect();
    Differences { model: model.into(), baseline: baseline.into(), sessions, strategies }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Status;
    use crate::sample;
    use crate::stats::Verdict;

    /// `n` sessions of every strategy of the sample; in session `i`, codex costs `i` dollars less
    /// than the reference.
    fn several(n: usize) -> Results {
        let mut results = sample::results();
        let one = std::mem::take(&mut results.runs);
        for i in 1..=n {
            for run in &one {
                let mut run = run.clone();
                run.scenario.id = format!("s{i:02}");
                run.summary.cost_usd =
                    if run.strategy.label == "codex" { 100.0 - i as f64 } else { 100.0 };
                results.runs.push(run);
            }
        }
        results
    }

    fn row<'a>(d: &'a Differences, label: &str) -> &'a StrategyDifference {
        d.strategies.iter().find(|r| r.strategy == label).unwrap()
    }

    #[test]
    fn products_are_held_against_the_reference_session_by_session() {
        let found = over_sessions(&several(12));
        assert_eq!(found.len(), 1, "no sliding-window in the sample");
        let (d, cost) = (&found[0], &row(&found[0], "codex").figures[0]);
        assert_eq!(
            (d.baseline.as_str(), d.sessions, cost.sessions, cost.column),
            ("reference", 12, 12, "cost_usd")
        );
        // Mean of −1 … −12; all twelve of one sign: 2/4096, the only member with a difference.
        assert_eq!(
            (cost.mean, cost.base_mean, cost.verdict),
            (Some(-6.5), Some(100.0), Verdict::Better)
        );
        assert_eq!((cost.p, cost.p_holm), (Some(2.0 / 4096.0), Some(2.0 / 4096.0)));
        assert_eq!(row(d, "aider").figures[0].verdict, Verdict::Equal);
        assert!(
            d.strategies
                .iter()
                .all(|r| !["reference", "none", "keep-nothing"].contains(&r.strategy.as_str()))
        );
        assert_eq!(
            row(d, "x<&\"y").figures[0].sessions,
            0,
            "a run that broke a rule measures nothing"
        );
    }

    #[test]
    fn tests_of_a_mechanism_are_no_sessions_to_rank_by() {
        let mut results = several(12);
        let small = |r: &&mut RunRecord| r.scenario.id.as_str() > "s10";
        results.runs.iter_mut().filter(small).for_each(|r| r.scenario.mechanism = true);
        let found = over_sessions(&results);
        let cost = &row(&found[0], "codex").figures[0];
        assert_eq!((found[0].sessions, cost.sessions, cost.mean), (10, 10, Some(-5.5)));
        let same = between(&results, &results);
        assert_eq!(same[0].sessions, 12, "the same strategy twice is no ranking");
    }

    #[test]
    fn below_ten_sessions_differences_and_no_verdict() {
        let found = over_sessions(&several(9));
        let cost = &row(&found[0], "codex").figures[0];
        assert_eq!((cost.mean, cost.verdict, cost.p), (Some(-5.0), Verdict::DifferenceOnly, None));
        assert!(cost.interval.is_some());
        assert!(over_sessions(&several(1))[0].strategies.is_empty());
    }

    #[test]
    fn a_session_that_was_not_finished_is_no_pair() {
        let mut results = several(12);
        results
            .runs
            .iter_mut()
            .filter(|r| r.strategy.label == "codex")
            .take(3)
            .for_each(|r| r.status = Status::Overflow);
        let found = over_sessions(&results);
        let cost = &row(&found[0], "codex").figures[0];
        assert_eq!(
            (cost.sessions, cost.mean, cost.verdict),
            (9, Some(-8.0), Verdict::DifferenceOnly)
        );
    }

    #[test]
    fn sliding_window_joins_where_the_reference_is_hypothetical() {
        let mut results = several(3);
        let mut windows: Vec<RunRecord> =
            results.runs.iter().filter(|r| r.strategy.label == "codex").cloned().collect();
        for r in &mut windows {
            (r.strategy.label, r.strategy.name) =
                ("sliding-window".into(), "sliding-window".into());
            r.summary.cost_usd = 98.0;
        }
        results.runs.extend(windows);
        let found = over_sessions(&results);
        assert_eq!(
            found.iter().map(|d| d.baseline.as_str()).collect::<Vec<_>>(),
            ["reference", "sliding-window"]
        );
        assert_eq!(row(&found[1], "codex").figures[0].mean, Some(0.0));
        results
            .runs
            .iter_mut()
            .filter(|r| r.strategy.label == "reference")
            .for_each(|r| r.summary.peak_context_tokens = 150_000);
        assert_eq!(over_sessions(&results).len(), 1, "the reference fits the window of 200,000");
    }

    #[test]
    fn models_are_kept_apart() {
        let mut results = several(2);
        let mut other = results.runs.clone();
        other.iter_mut().for_each(|r| r.model = "other".into());
        results.runs.extend(other);
        let found = over_sessions(&results);
        assert_eq!(
            found.iter().map(|d| (d.model.as_str(), d.sessions)).collect::<Vec<_>>(),
            [("claude-sonnet-4-6", 2), ("other", 2)]
        );
    }

    #[test]
    fn two_results_are_paired_by_session_strategy_and_model() {
        let (old, mut new) = (several(12), several(12));
        new.runs
            .iter_mut()
            .filter(|r| r.strategy.label == "codex")
            .for_each(|r| r.summary.cost_usd += 1.0);
        new.runs.retain(|r| r.scenario.id != "s12");
        let found = between(&old, &new);
        let cost = &row(&found[0], "codex").figures[0];
        assert_eq!(
            (found[0].sessions, cost.sessions, cost.mean, cost.verdict),
            (11, 11, Some(1.0), Verdict::Worse)
        );
        assert_eq!(row(&found[0], "aider").figures[0].verdict, Verdict::Equal);
    }
}
