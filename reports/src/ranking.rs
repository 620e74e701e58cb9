//! How the order of the products changes with the model that writes the summaries.

use std::collections::BTreeSet;

use crate::record::{Results, RunRecord, Status};

use crate::fmt;
use crate::sheet::{Group, Sheet};
use crate::view;

/// The summariser that the others are compared with, where it is among them.
const FIRST: &str = "extractive";

/// A sheet per model, if the results have several summarisers.
pub(crate) fn sheets(results: &Results) -> Vec<Sheet> {
    let mut summarisers: Vec<&str> = view::summarisers(results).into_iter().collect();
    summarisers.sort_by_key(|s| *s != FIRST);
    if summarisers.len() < 2 {
        return vec![];
    }
    view::models(results).into_iter().filter_map(|m| sheet(results, m, &summarisers)).collect()
}

fn ranked(run: &RunRecord) -> bool {
    run.is_contender() && run.is_evidence()
}

/// One figure of one strategy under one summariser, over all scenarios.
#[derive(Clone, Debug, Default, PartialEq)]
struct Standing {
    /// Mean retention over the scenarios that have needs, per cent.
    kept: Option<f64>,
    /// USD over all scenarios.
    cost: f64,
}

fn sheet(results: &Results, model: &str, summarisers: &[&str]) -> Option<Sheet> {
    let runs: Vec<&RunRecord> =
        results.runs.iter().filter(|r| r.model == model && ranked(r)).collect();
    let scenarios: BTreeSet<&str> = runs.iter().map(|r| r.scenario.id.as_str()).collect();
    let labels: BTreeSet<&str> = runs.iter().map(|r| r.strategy.label.as_str()).collect();
    let mut ranked: Vec<(&str, Vec<Standing>)> = Vec::new();
    let mut left_out = 0;
    for label in labels {
        let own: Vec<&RunRecord> =
            runs.iter().copied().filter(|r| r.strategy.label == label).collect();
        match summarisers.iter().map(|s| standing(&own, s, &scenarios)).collect::<Option<Vec<_>>>()
        {
            Some(all) => ranked.push((label, all)),
            None => left_out += 1,
        }
    }
    if ranked.is_empty() {
        return None;
    }
    let n = summarisers.len();
    // By how each is shown, so that what looks alike has the same rank.
    let kept: Vec<Vec<Option<usize>>> = (0..n)
        .map(|i| ranks(ranked.iter().map(|(_, s)| s[i].kept.map(|x| -round(x, 10.0)))))
        .collect();
    let cost: Vec<Vec<Option<usize>>> =
        (0..n).map(|i| ranks(ranked.iter().map(|(_, s)| Some(round(s[i].cost, 1e4))))).collect();
    let mut rows: Vec<(usize, Vec<String>)> = Vec::new();
    for (k, (label, all)) in ranked.iter().enumerate() {
        let mut row = vec![(*label).to_string()];
        row.extend((0..n).map(|i| cell(all[i].kept.map(fmt::pct), kept[0][k], kept[i][k])));
        row.extend((0..n).map(|i| cell(Some(fmt::usd(all[i].cost)), cost[0][k], cost[i][k])));
        rows.push((kept[0][k].unwrap_or(usize::MAX), row));
    }
    rows.sort_by(|a, b| (a.0, &a.1[0]).cmp(&(b.0, &b.1[0])));
    let mut head = vec!["strategy".to_string()];
    head.extend(summarisers.iter().map(|s| format!("kept %: {s}")));
    head.extend(summarisers.iter().map(|s| format!("cost $: {s}")));
    let moved = |all: &[Vec<Option<usize>>]| {
        (0..ranked.len()).filter(|&k| all.iter().any(|r| r[k] != all[0][k])).count()
    };
    let over = if scenarios.len() == 1 {
        "1 scenario".to_string()
    } else {
        format!("{} scenarios", scenarios.len())
    };
    let out = if left_out == 0 {
        String::new()
    } else {
        format!(" {left_out} that did not finish everything are left out.")
    };
    Some(Sheet {
        title: format!(
            "Ranking by summariser ({}, {over}): {} of {} change their rank in facts kept, {} in \
             cost",
            fmt::one_line(model),
            moved(&kept),
            ranked.len(),
            moved(&cost)
        ),
        note: format!(
            "Figure #rank, 1 = best; ↑ and ↓ = places won and lost against {}. Kept: mean over the \
             scenarios; cost: their sum. No statistics: \
             neighbours may be equal.{out}",
            summarisers[0]
        ),
        head,
        groups: vec![Group {
            name: String::new(),
            rows: rows.into_iter().map(|(_, r)| r).collect(),
        }],
    })
}

/// `None` where the strategy did not finish every scenario.
fn standing(own: &[&RunRecord], summariser: &str, scenarios: &BTreeSet<&str>) -> Option<Standing> {
    let mut kept = Vec::new();
    let mut cost = 0.0;
    for s in scenarios {
        let here = |r: &&&RunRecord| {
            r.scenario.id == *s && r.summariser.as_deref().is_none_or(|x| x == summariser)
        };
        let run = own.iter().find(here).filter(|r| r.status == Status::Completed)?;
        kept.extend(run.summary.needs_kept_pct);
        cost += run.summary.cost_usd;
    }
    let mean = (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64);
    Some(Standing { kept: mean, cost })
}

/// Ranks from 1, the smallest first; equal values share a rank.
fn ranks(values: impl Iterator<Item = Option<f64>>) -> Vec<Option<usize>> {
    let values: Vec<Option<f64>> = values.collect();
    values
        .iter()
        .map(|v| v.map(|v| 1 + values.iter().flatten().filter(|o| **o < v).count()))
        .collect()
}

fn round(x: f64, steps: f64) -> f64 {
    (x * steps).round()
}

/// `93.8 #2 ↑1`
fn cell(figure: Option<String>, first: Option<usize>, now: Option<usize>) -> String {
    let (Some(figure), Some(now)) = (figure, now) else { return "n/a".to_string() };
    let change = match first {
        Some(f) if f > now => format!(" ↑{}", f - now),
        Some(f) if f < now => format!(" ↓{}", now - f),
        _ => String::new(),
    };
    format!("{figure} #{now}{change}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn run(label: &str, summariser: Option<&str>, kept: f64, cost: f64) -> RunRecord {
        let mut r = sample::run("s", label, 1);
        r.status = Status::Completed;
        r.summariser = summariser.map(str::to_string);
        (r.summary.needs_kept_pct, r.summary.cost_usd) = (Some(kept), cost);
        r
    }

    #[test]
    fn ranks_and_their_changes_by_hand() {
        let runs = vec![
            run("aider", Some("extractive"), 50.0, 1.0),
            run("aider", Some("ideal"), 95.0, 2.0),
            run("codex", Some("extractive"), 70.0, 1.5),
            run("codex", Some("ideal"), 90.0, 1.5),
            // Never asked for a summary: the same row under both.
            run("opencode", None, 60.0, 1.0),
        ];
        let all = sheets(&Results { runs, ..Results::default() });
        assert_eq!(all.len(), 1);
        let rows: Vec<Vec<&str>> =
            all[0].rows().map(|r| r.iter().map(String::as_str).collect()).collect();
        // Extractive: codex 70, opencode 60, aider 50. Ideal: aider 95, codex 90, opencode 60.
        // Cost, extractive: aider and opencode 1.0, codex 1.5. Ideal: opencode 1.0, codex 1.5,
        // aider 2.0.
        let usd = fmt::usd;
        assert_eq!(
            rows[0],
            [
                "codex",
                "70.0 #1",
                "90.0 #2 ↓1",
                &format!("{} #3", usd(1.5)),
                &format!("{} #2 ↑1", usd(1.5))
            ]
        );
        assert_eq!(
            rows[1],
            [
                "opencode",
                "60.0 #2",
                "60.0 #3 ↓1",
                &format!("{} #1", usd(1.0)),
                &format!("{} #1", usd(1.0))
            ]
        );
        assert_eq!(
            rows[2],
            [
                "aider",
                "50.0 #3",
                "95.0 #1 ↑2",
                &format!("{} #1", usd(1.0)),
                &format!("{} #3 ↓2", usd(2.0))
            ]
        );
        assert!(
            all[0].title.contains("3 of 3 change their rank in facts kept, 2 in cost"),
            "{}",
            all[0].title
        );
    }

    #[test]
    fn a_test_of_a_mechanism_is_not_ranked() {
        let mut runs = vec![
            run("codex", Some("extractive"), 70.0, 1.5),
            run("codex", Some("ideal"), 90.0, 1.5),
        ];
        assert_eq!(sheets(&Results { runs: runs.clone(), ..Results::default() }).len(), 1);
        runs.iter_mut().for_each(|r| r.scenario.mechanism = true);
        assert!(sheets(&Results { runs, ..Results::default() }).is_empty());
    }

    #[test]
    fn one_summariser_has_no_ranking_and_unfinished_ones_are_left_out() {
        assert!(sheets(&sample::results()).is_empty());
        let mut runs = vec![
            run("codex", Some("extractive"), 70.0, 1.5),
            run("codex", Some("ideal"), 70.0, 1.5),
            run("aider", Some("extractive"), 50.0, 1.0),
            run("aider", Some("ideal"), 95.0, 2.0),
        ];
        runs[3].status = Status::Overflow;
        let all = sheets(&Results { runs, ..Results::default() });
        assert_eq!(all[0].rows().count(), 1);
        assert!(all[0].note.contains("1 that did not finish"), "{}", all[0].note);
    }
}
