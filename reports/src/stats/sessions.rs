//! Pairs of rows to compare: strategies of one run by session and model, or one strategy in two
//! results.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::record::{Results, RunRecord};
use serde::Serialize;

use super::figures::{Figure, Scale, figures};
use super::runs::{Exposure, RunPair, Runs, pairs, sent_the_same};
use crate::metrics::Metric;
use crate::metrics::judged;
use crate::{seeds, view};

/// Comparison of every strategy with one baseline, for one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Differences {
    pub model: String,
    /// Label of the baseline; `base` for two results.
    pub baseline: String,
    /// Number of sessions with this model, usable or not.
    pub sessions: usize,
    /// The session with at least half of the baseline's sum, or else the two largest; empty for two
    /// results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heaviest: Vec<Heavy>,
    /// A row per strategy; empty with fewer than two sessions.
    pub strategies: Vec<StrategyDifference>,
}

/// A session by its share of the baseline's sum.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heavy {
    pub session: String,
    /// Column of the sum: `cost_usd`, or `input_tokens` without prices.
    pub column: &'static str,
    pub share_pct: f64,
}

/// One strategy, or several that sent the same requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StrategyDifference {
    pub strategy: String,
    /// Other strategies with the same requests in every session. They are judged once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub same: Vec<String>,
    /// Number of sessions that the strategy and the baseline finished without a broken rule.
    pub sessions: usize,
    /// Number of these sessions in which the strategy compacted.
    pub compacted: usize,
    /// Figures for cost, tokens, recall and waiting.
    pub figures: Vec<Figure>,
}

impl Differences {
    /// Finds the row of a label; several labels may share a row.
    pub(crate) fn row(&self, label: &str) -> Option<&StrategyDifference> {
        let own =
            |s: &&StrategyDifference| s.strategy == label || s.same.iter().any(|l| l == label);
        self.strategies.iter().find(own)
    }

    /// Position of a row on the axis of a figure: the mean change, or with a single session the
    /// figure itself.
    pub(crate) fn position(&self, figure: &Figure) -> Option<f64> {
        if self.sessions == 1 { figure.own_mean } else { figure.mean }
    }

    /// Suffix of the positions on the axis of a judged metric, given by its index.
    pub(crate) fn suffix(&self, index: usize, metric: &Metric) -> &'static str {
        match self.sessions {
            1 => metric.unit.suffix(),
            _ if self.is_relative(index) => " %",
            _ => metric.unit.of_change(),
        }
    }

    /// Returns true if the changes of a judged metric are in per cent of the baseline.
    pub(crate) fn is_relative(&self, index: usize) -> bool {
        self.strategies.iter().any(|s| s.figures[index].scale == Scale::Ratio)
    }
}

/// Compares, per model, every product with `reference` and, if that exceeds a real window, also
/// with `sliding-window`.
///
/// Uses the recordings that are evidence: scripted sessions are no sample. A model without
/// recordings or without `reference` has no entry.
pub(crate) fn over_sessions(results: &Results) -> Vec<Differences> {
    let results = &*seeds::averaged(results);
    let blocks = view::blocks(results);
    let mut out = Vec::new();
    for model in view::models(results) {
        let evidence = |r: &&RunRecord| r.model == model && r.is_evidence() && r.scenario.recorded;
        let runs = Runs::from_records(results.runs.iter().filter(evidence));
        let Some(reference) = runs.label("reference") else { continue };
        let too_large = blocks.iter().filter(|b| b.first().model == model).any(|b| {
            let own = b.runs.iter().find(|r| r.strategy.label == reference);
            own.zip(b.window()).is_some_and(|(r, window)| r.summary.peak_context_tokens > window)
        });
        let several = runs.sessions().len() > 1;
        let real = runs.label("sliding-window").filter(|_| too_large && several);
        for baseline in [Some(reference), real].into_iter().flatten() {
            let mut labels = if several { runs.products() } else { vec![] };
            labels.retain(|l| *l != baseline);
            out.push(against(&runs, model, baseline, &labels, (Exposure::Own, 0)));
        }
    }
    out
}

/// Compares every product of these runs, of one summariser, with one baseline: if all are one
/// strategy with several settings, that without any; else `reference`, or without it the product
/// that finished most sessions. A product has a row, too. One session is enough.
pub(crate) fn by_yardstick(records: &[&RunRecord]) -> Option<Differences> {
    let runs = Runs::from_records(records.iter().copied());
    let labels = runs.products();
    let most = || labels.iter().copied().max_by_key(|l| (runs.finished(l), Reverse(*l)));
    let mut products = records.iter().filter(|r| labels.contains(&&*r.strategy.label));
    let is_one = |name: &str| records.iter().all(|r| !r.is_product() || r.strategy.name == name);
    let today = products.find(|r| r.strategy.given.is_empty() && is_one(&r.strategy.name));
    let today = today.filter(|_| labels.len() > 1).map(|r| &*r.strategy.label);
    let baseline = today.or_else(|| runs.label("reference")).or_else(most)?;
    Some(against(&runs, &records.first()?.model, baseline, &labels, (Exposure::Own, 0)))
}

/// Compares two rows of these runs, session by session, over those in which their requests differ.
/// `family` is the number of tests from which these were picked.
pub(crate) fn pair(
    records: &[&RunRecord],
    from: &str,
    to: &str,
    family: usize,
) -> StrategyDifference {
    let runs = Runs::from_records(records.iter().copied());
    let d = against(&runs, "", from, &[to], (Exposure::Differs, family));
    d.strategies.into_iter().next().expect("a row per label")
}

/// Compares every product of these runs with one of them, which has a row, too: one product with
/// several settings, each session with its own model. `compacted` counts the sessions in which any
/// request differs, because not every setting concerns compaction.
pub(crate) fn by_settings(records: &[&RunRecord], baseline: &str) -> Option<Differences> {
    let runs = Runs::from_records(records.iter().copied());
    let models: BTreeSet<&str> = records.iter().map(|r| r.model.as_str()).collect();
    let models = models.into_iter().collect::<Vec<_>>().join(", ");
    let labels = runs.products();
    let known = labels.iter().copied().find(|l| *l == baseline)?;
    Some(against(&runs, &models, known, &labels, (Exposure::Differs, 0)))
}

/// Compares, per model, every strategy of `new` with the same strategy in `base`, over the sessions
/// in both, including tests of a mechanism. Scripted sessions are compared one by one only.
pub(crate) fn between(base: &Results, new: &Results) -> Vec<Differences> {
    let (base, new) = (&*seeds::averaged(base), &*seeds::averaged(new));
    let models: Vec<&str> = view::models(base).intersection(&view::models(new)).copied().collect();
    let of_model = |model: &str| {
        let own = |r: &&RunRecord| r.model == model && r.scenario.recorded;
        let old = Runs::from_records(base.runs.iter().filter(own));
        let new = Runs::from_records(new.runs.iter().filter(own));
        let sessions = old.sessions().intersection(&new.sessions()).count();
        let mut labels: Vec<&str> = new.0.keys().copied().collect();
        labels.retain(|l| sessions > 1 && old.0.contains_key(l));
        (!old.0.is_empty()).then(|| Differences {
            model: model.into(),
            baseline: "base".into(),
            sessions,
            heaviest: vec![],
            strategies: rows(&labels, 0, |label| {
                pairs(&old.0[label], &new.0[label], Exposure::Either)
            }),
        })
    };
    models.into_iter().filter_map(of_model).collect()
}

/// One row per strategy, or per group of strategies that sent the same requests: duplicate data
/// would enlarge the family without adding evidence.
fn rows<'a>(
    labels: &[&str],
    family: usize,
    pairs: impl Fn(&str) -> Vec<RunPair<'a>>,
) -> Vec<StrategyDifference> {
    let mut rows: Vec<StrategyDifference> = Vec::new();
    let mut distinct: Vec<Vec<RunPair<'a>>> = Vec::new();
    for label in labels {
        let own = pairs(label);
        if let Some(i) = distinct.iter().position(|other| sent_the_same(other, &own)) {
            rows[i].same.push((*label).into());
            continue;
        }
        let whole = || own.iter().filter(|p| p.is_whole());
        rows.push(StrategyDifference {
            strategy: (*label).into(),
            same: vec![],
            sessions: whole().count(),
            compacted: whole().filter(|p| p.compacted()).count(),
            figures: vec![],
        });
        distinct.push(own);
    }
    for (row, figures) in rows.iter_mut().zip(figures(&distinct, family)) {
        row.figures = figures;
    }
    rows
}

/// Compares these strategies with one of them.
fn against(
    runs: &Runs<'_>,
    model: &str,
    baseline: &str,
    labels: &[&str],
    (seen, family): (Exposure, usize),
) -> Differences {
    let strategies = rows(labels, family, |label| pairs(&runs.0[baseline], &runs.0[label], seen));
    Differences {
        model: model.into(),
        baseline: baseline.into(),
        sessions: runs.sessions().len(),
        heaviest: heaviest(&runs.0[baseline]),
        strategies,
    }
}

fn heaviest(base: &BTreeMap<&str, &RunRecord>) -> Vec<Heavy> {
    let weighed = judged().find_map(|m| {
        let whole = base.iter().filter(|(_, r)| r.is_whole());
        let all: Vec<(&str, f64)> = whole.filter_map(|(s, r)| Some((*s, m.value(r)?))).collect();
        let sum: f64 = all.iter().map(|(_, x)| x).sum();
        (sum > 0.0).then_some((m.column, all, sum))
    });
    let Some((column, mut all, sum)) = weighed else { return vec![] };
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named = if all[0].1 * 2.0 >= sum { 1 } else { 2 };
    let heavy = |(session, x): (&str, f64)| Heavy {
        session: session.into(),
        column,
        share_pct: x / sum * 100.0,
    };
    all.into_iter().take(named).map(heavy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Status;
    use crate::stats::Verdict;
    use crate::testing::{self, labelled};

    /// `n` recordings with every strategy of the sample; in session `i`, codex costs `100 − i`
    /// dollars and all others 100.
    fn several(n: usize) -> Results {
        let mut results = testing::recordings(n);
        results.runs.iter_mut().for_each(|r| r.summary.cost_usd = 100.0);
        for (r, i) in labelled(&mut results, "codex").zip(1..) {
            r.summary.cost_usd -= f64::from(i);
        }
        results
    }

    fn add_copy_of_codex(results: &mut Results, label: &str) {
        let mut copies: Vec<RunRecord> = labelled(results, "codex").map(|r| r.clone()).collect();
        copies.iter_mut().for_each(|r| r.strategy.label = label.into());
        results.runs.extend(copies);
    }

    /// Change of the geometric mean, per cent, of `100 − i` over 100 for i from 1 to `n`.
    fn saved(n: u32) -> Option<f64> {
        let product: f64 = (1..=n).map(|i| f64::from(100 - i) / 100.0).product();
        Some((product.powf(1.0 / f64::from(n)) - 1.0) * 100.0)
    }

    fn near(found: Option<f64>, expected: Option<f64>) -> bool {
        found.zip(expected).is_some_and(|(f, e): (f64, f64)| (f - e).abs() < 1e-9)
    }

    fn cost_of_codex(d: &Differences) -> &Figure {
        &d.row("codex").unwrap().figures[0]
    }

    #[test]
    fn products_are_held_against_the_reference_session_by_session() {
        let found = over_sessions(&several(12));
        assert_eq!(found.len(), 1, "no sliding-window in the sample");
        let (d, cost) = (&found[0], cost_of_codex(&found[0]));
        assert_eq!(
            (d.baseline.as_str(), d.sessions, cost.sessions, cost.column),
            ("reference", 12, 12, "cost_usd")
        );
        // All twelve have one sign: p = 2/4096, and codex is the only member with a difference.
        assert!(near(cost.mean, saved(12)));
        assert_eq!(
            (cost.base_mean, cost.own_mean, cost.verdict),
            (Some(100.0), Some(93.5), Verdict::Better)
        );
        assert_eq!((cost.p, cost.p_holm), (Some(2.0 / 4096.0), Some(2.0 / 4096.0)));
        assert_eq!(d.row("aider").unwrap().figures[0].verdict, Verdict::Equal);
        let yardsticks = ["reference", "none", "keep-nothing"];
        assert!(!d.strategies.iter().any(|r| yardsticks.contains(&&*r.strategy)));
        let broken = &d.row("x<&\"y").unwrap().figures[0];
        assert_eq!(broken.sessions, 0, "a run that broke a rule measures nothing");
    }

    #[test]
    fn tests_of_a_mechanism_are_no_sessions_to_rank_by() {
        let mut results = several(12);
        let small = |r: &&mut RunRecord| r.scenario.id.as_str() > "s10";
        results.runs.iter_mut().filter(small).for_each(|r| r.scenario.mechanism = true);
        let found = over_sessions(&results);
        let cost = cost_of_codex(&found[0]);
        assert_eq!((found[0].sessions, cost.sessions, cost.own_mean), (10, 10, Some(94.5)));
        let same = between(&results, &results);
        assert_eq!(same[0].sessions, 12, "one strategy twice is not a ranking");
    }

    #[test]
    fn below_ten_sessions_differences_and_no_verdict() {
        let found = over_sessions(&several(9));
        let cost = cost_of_codex(&found[0]);
        assert_eq!((cost.verdict, cost.p), (Verdict::DifferenceOnly, None));
        assert!(near(cost.mean, saved(9)));
        assert!(cost.interval.is_some());
        assert!(over_sessions(&several(1))[0].strategies.is_empty());
    }

    #[test]
    fn a_session_that_was_not_finished_is_no_pair() {
        let mut results = several(12);
        labelled(&mut results, "codex").take(3).for_each(|r| r.status = Status::Overflow);
        let found = over_sessions(&results);
        let cost = cost_of_codex(&found[0]);
        assert_eq!(
            (cost.sessions, cost.own_mean, cost.verdict),
            (9, Some(92.0), Verdict::DifferenceOnly)
        );
    }

    #[test]
    fn sliding_window_joins_where_the_reference_is_hypothetical() {
        let mut results = several(3);
        add_copy_of_codex(&mut results, "sliding-window");
        labelled(&mut results, "sliding-window").for_each(|r| {
            (r.strategy.name, r.summary.cost_usd) = ("sliding-window".into(), 98.0);
        });
        let found = over_sessions(&results);
        assert_eq!(
            found.iter().map(|d| d.baseline.as_str()).collect::<Vec<_>>(),
            ["reference", "sliding-window"]
        );
        // 99, 98 and 97 against 98.
        let cost = cost_of_codex(&found[1]);
        let expected = ((0.99_f64 * 0.97 / 0.98 / 0.98).cbrt() - 1.0) * 100.0;
        assert!(near(cost.mean, Some(expected)) && near(cost.median, Some(0.0)), "{cost:?}");
        labelled(&mut results, "reference").for_each(|r| r.summary.peak_context_tokens = 150_000);
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
        labelled(&mut new, "codex").for_each(|r| r.summary.cost_usd += 1.0);
        new.runs.retain(|r| r.scenario.id != "s12");
        let found = between(&old, &new);
        let cost = cost_of_codex(&found[0]);
        assert_eq!(
            (found[0].sessions, cost.sessions, cost.own_mean, cost.verdict),
            (11, 11, Some(95.0), Verdict::Worse)
        );
        assert_eq!(found[0].row("aider").unwrap().figures[0].verdict, Verdict::Equal);
    }

    #[test]
    fn a_verdict_needs_ten_recordings_in_which_it_compacted() {
        let cost_of = |results: &Results| {
            let found = over_sessions(results);
            let codex = found[0].row("codex").unwrap().clone();
            (codex.compacted, codex.sessions, codex.figures[0].verdict)
        };
        let mut results = several(21);
        assert_eq!(cost_of(&results), (21, 21, Verdict::Better));
        labelled(&mut results, "codex").skip(4).for_each(|r| r.summary.compactions = 0);
        assert_eq!(cost_of(&results), (4, 21, Verdict::DifferenceOnly));
        let mut scripted = several(21);
        scripted.runs.iter_mut().for_each(|r| r.scenario.recorded = false);
        assert_eq!(over_sessions(&scripted), [], "scripted sessions are never averaged");
    }

    #[test]
    fn strategies_that_sent_the_same_requests_are_one_member_of_the_family() {
        let mut results = several(12);
        add_copy_of_codex(&mut results, "zeta");
        let found = over_sessions(&results);
        let codex = found[0].row("codex").unwrap();
        assert_eq!(codex.same, ["zeta"]);
        assert_eq!(codex.figures[0].p_holm, Some(2.0 / 4096.0), "a family of one");
        assert!(found[0].strategies.iter().all(|s| s.strategy != "zeta"));
        // One different request separates the two, so there are two members.
        let last = results.runs.len() - 1;
        results.runs[last].requests[0].cache_read += 1;
        let found = over_sessions(&results);
        assert!(found[0].row("codex").unwrap().same.is_empty());
        assert_eq!(found[0].row("zeta").unwrap().figures[0].p_holm, Some(4.0 / 4096.0));
    }

    #[test]
    fn the_heaviest_sessions_are_named_with_their_share() {
        let with = |costs: [f64; 4]| {
            let mut results = several(4);
            let reference = labelled(&mut results, "reference");
            reference.zip(costs).for_each(|(r, x)| r.summary.cost_usd = x);
            over_sessions(&results)[0].heaviest.clone()
        };
        let heavy = |session: &str, share_pct| Heavy {
            session: session.into(),
            column: "cost_usd",
            share_pct,
        };
        assert_eq!(with([1.0, 6.0, 2.0, 1.0]), [heavy("s02", 60.0)]);
        assert_eq!(with([4.0, 1.0, 2.0, 3.0]), [heavy("s01", 40.0), heavy("s04", 30.0)]);
        // Without prices, tokens are decisive. In the sample, they are equal in all sessions.
        assert_eq!(
            with([0.0; 4]).iter().map(|h| h.column).collect::<Vec<_>>(),
            ["input_tokens"; 2]
        );
    }

    #[test]
    fn without_a_reference_the_product_that_finished_most_is_the_yardstick() {
        let mut results = several(3);
        results.runs.retain(|r| ["aider", "codex"].contains(&&*r.strategy.label));
        labelled(&mut results, "aider").next().unwrap().status = Status::Overflow;
        let records: Vec<&RunRecord> = results.runs.iter().collect();
        let found = by_yardstick(&records).unwrap();
        assert_eq!((&*found.baseline, found.strategies.len()), ("codex", 2));
        let aider = found.row("aider").unwrap();
        // 100 against 98 and 97.
        let expected = ((1e4_f64 / 98.0 / 97.0).sqrt() - 1.0) * 100.0;
        assert_eq!(aider.sessions, 2);
        assert!(near(aider.figures[0].mean, Some(expected)));
        assert!(by_yardstick(&[]).is_none());
    }
}
