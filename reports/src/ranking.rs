//! How the order of the products changes with what a comparison rests on: the model that writes
//! the summaries, the error of the counting model.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::record::{Results, RunRecord};

use crate::fmt;
use crate::metrics::{Better, Metric, Named};
use crate::sheet::{Group, Sheet};
use crate::stats::{self, Differences, Figure, StrategyDifference};
use crate::view;

/// The summariser that the others are compared with, where it is among them.
const FIRST: &str = "extractive";

/// The rows of one model in one of several worlds, beside those in the others.
struct World<'a> {
    name: String,
    runs: Vec<Cow<'a, RunRecord>>,
}

/// What a sheet is about.
struct Topic<'a> {
    /// What the worlds differ in, as in "Ranking by …".
    by: &'a str,
    model: &'a str,
    /// The first is the one that the others are compared with.
    worlds: Vec<World<'a>>,
}

/// A sheet per model, if the results have several summarisers.
pub(crate) fn sheets(results: &Results) -> Vec<Sheet> {
    let mut summarisers: Vec<&str> = view::summarisers(results).into_iter().collect();
    summarisers.sort_by_key(|s| *s != FIRST);
    let topics = view::models(results).into_iter().filter_map(|model| {
        let runs: Vec<&RunRecord> =
            results.runs.iter().filter(|r| r.model == model && r.is_evidence()).collect();
        by_summariser(model, &runs, &summarisers)
    });
    topics.filter_map(|t| sheet(&t)).collect()
}

/// Whether a row belongs to what was measured with a summariser: who never asked for a summary is
/// the same with each.
fn with(summariser: Option<&&str>, r: &RunRecord) -> bool {
    r.summariser.as_deref().is_none_or(|own| summariser.is_none_or(|s| *s == own))
}

fn by_summariser<'a>(
    model: &'a str,
    runs: &[&'a RunRecord],
    summarisers: &[&str],
) -> Option<Topic<'a>> {
    let world = |s: &&str| {
        let runs = runs.iter().filter(|r| with(Some(s), r)).map(|r| Cow::Borrowed(*r)).collect();
        World { name: s.to_string(), runs }
    };
    let worlds: Vec<World<'_>> = summarisers.iter().map(world).collect();
    (worlds.len() > 1).then_some(Topic { by: "summariser", model, worlds })
}

/// What ranks the products, the best first.
fn ranking() -> Vec<(usize, &'static Metric)> {
    stats::ranking().filter(|(.., how)| how.named == Named::Best).map(|(i, m, _)| (i, m)).collect()
}

fn sheet(topic: &Topic<'_>) -> Option<Sheet> {
    let Topic { by, model, worlds } = topic;
    let held = |w: &World<'_>| {
        stats::by_yardstick(&w.runs.iter().map(|r| r.as_ref()).collect::<Vec<&RunRecord>>())
    };
    let held: Vec<Differences> = worlds.iter().map(held).collect::<Option<_>>()?;
    let contenders = worlds.iter().flat_map(|w| &w.runs).filter(|r| r.is_contender());
    let labels: BTreeSet<&str> = contenders.map(|r| r.strategy.label.as_str()).collect();
    let all = labels.len();
    let of = |label| Some((label, held.iter().map(|d| row(d, label)).collect::<Option<Vec<_>>>()?));
    let ranked: Vec<(&str, Vec<&StrategyDifference>)> = labels.into_iter().filter_map(of).collect();
    if ranked.is_empty() {
        return None;
    }
    let n = worlds.len();
    let mut head = vec!["strategy".to_string()];
    let mut rows: Vec<Vec<String>> = ranked.iter().map(|(l, _)| vec![(*l).to_string()]).collect();
    let mut moved = Vec::new();
    let mut order: Vec<Option<usize>> = Vec::new();
    for (i, metric) in ranking() {
        let places: Vec<Vec<Option<usize>>> = (0..n)
            .map(|s| ranks(ranked.iter().map(|(_, under)| place(&under[s].figures[i], metric))))
            .collect();
        head.extend(worlds.iter().map(|w| format!("{}: {}", metric.name, w.name)));
        for (k, (row, (_, under))) in rows.iter_mut().zip(&ranked).enumerate() {
            row.extend((0..n).map(|s| {
                let figure = Some(stats::change(&under[s].figures[i], metric));
                cell(figure, places[0][k], places[s][k])
            }));
        }
        let moves = |k: &usize| places.iter().any(|p| p[*k] != places[0][*k]);
        moved.push(format!("{} in {}", (0..ranked.len()).filter(moves).count(), metric.name));
        if order.is_empty() {
            order.clone_from(&places[0]);
        }
    }
    let mut rows: Vec<(usize, Vec<String>)> =
        order.into_iter().map(|at| at.unwrap_or(usize::MAX)).zip(rows).collect();
    rows.sort_by(|a, b| (a.0, &a.1[0]).cmp(&(b.0, &b.1[0])));
    let sessions = held[0].sessions;
    let over = fmt::sessions(sessions);
    let out = match all - ranked.len() {
        0 => String::new(),
        left => format!(" {left} that never compacted or finished less than half are left out."),
    };
    Some(Sheet {
        title: format!(
            "Ranking by {by} ({}, {over}): of {} change their rank {}",
            fmt::one_line(model),
            ranked.len(),
            moved.join(", ")
        ),
        note: format!(
            "Mean change against {}, each over the sessions that both finished. #rank, 1 = best; ↑ \
             and ↓ = places won and lost against {}. No statistics: neighbours may be equal.{out}",
            fmt::one_line(&held[0].baseline),
            worlds[0].name
        ),
        head,
        groups: vec![Group {
            name: String::new(),
            rows: rows.into_iter().map(|(_, r)| r).collect(),
        }],
    })
}

/// `None` where it never compacted or finished less than half.
fn row<'a>(d: &'a Differences, label: &str) -> Option<&'a StrategyDifference> {
    let is = |s: &&StrategyDifference| s.strategy == label || s.same.iter().any(|l| l == label);
    let ranks = |s: &&StrategyDifference| s.compacted > 0 && s.sessions * 2 >= d.sessions;
    d.strategies.iter().find(is).filter(ranks)
}

/// The change as it is shown, so that what looks alike has the same rank; the best the smallest.
fn place(figure: &Figure, metric: &Metric) -> Option<f64> {
    let shown = figure.mean.map(|x| (x * 10.0).round());
    if metric.better == Better::Lower { shown } else { shown.map(|x| -x) }
}

/// Ranks from 1, the smallest first; equal values share a rank.
fn ranks(values: impl Iterator<Item = Option<f64>>) -> Vec<Option<usize>> {
    let values: Vec<Option<f64>> = values.collect();
    values
        .iter()
        .map(|v| v.map(|v| 1 + values.iter().flatten().filter(|o| **o < v).count()))
        .collect()
}

/// `−6.2 pp #2 ↑1`
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
    use crate::record::{Status, Summary};
    use crate::sample;

    fn run(label: &str, summariser: Option<&str>, kept: f64, cost: f64) -> RunRecord {
        let mut r = sample::run("s", label, 1);
        r.status = Status::Completed;
        r.summariser = summariser.map(str::to_string);
        r.summary.compactions = u64::from(label != "reference");
        (r.summary.needs_kept_pct, r.summary.cost_usd) = (Some(kept), cost);
        r
    }

    fn rows(runs: Vec<RunRecord>) -> (Sheet, Vec<Vec<String>>) {
        let mut all = sheets(&Results { runs, ..Results::default() });
        assert_eq!(all.len(), 1);
        let rows = all[0].rows().map(|r| r.to_vec()).collect();
        (all.remove(0), rows)
    }

    #[test]
    fn ranks_and_their_changes_by_hand() {
        let (sheet, rows) = rows(vec![
            run("reference", None, 100.0, 2.0),
            run("aider", Some("extractive"), 50.0, 1.0),
            run("aider", Some("ideal"), 95.0, 2.0),
            run("codex", Some("extractive"), 70.0, 1.5),
            run("codex", Some("ideal"), 90.0, 1.5),
            // Never asked for a summary: the same row under both.
            run("opencode", None, 60.0, 1.0),
        ]);
        // Extractive: aider and opencode half the cost, codex three quarters. Ideal: opencode half,
        // codex three quarters, aider the same.
        assert_eq!(rows[0][..3], ["aider", "−50.0 % #1", "±0 #3 ↓2"]);
        assert_eq!(rows[1][..3], ["opencode", "−50.0 % #1", "−50.0 % #1"]);
        assert_eq!(rows[2][..3], ["codex", "−25.0 % #3", "−25.0 % #2 ↑1"]);
        // Extractive: codex 70, opencode 60, aider 50. Ideal: aider 95, codex 90, opencode 60.
        assert_eq!(rows[0][3..], ["−50.0 pp #3", "−5.0 pp #1 ↑2"]);
        assert_eq!(rows[1][3..], ["−40.0 pp #2", "−40.0 pp #3 ↓1"]);
        assert_eq!(rows[2][3..], ["−30.0 pp #1", "−10.0 pp #2 ↓1"]);
        let title = "of 3 change their rank 2 in cost, 3 in needs kept";
        assert!(sheet.title.contains(title), "{}", sheet.title);
    }

    #[test]
    fn a_test_of_a_mechanism_is_not_ranked() {
        let mut runs = vec![
            run("reference", None, 100.0, 2.0),
            run("codex", Some("extractive"), 70.0, 1.5),
            run("codex", Some("ideal"), 90.0, 1.5),
        ];
        assert_eq!(sheets(&Results { runs: runs.clone(), ..Results::default() }).len(), 1);
        runs.iter_mut().for_each(|r| r.scenario.mechanism = true);
        assert!(sheets(&Results { runs, ..Results::default() }).is_empty());
    }

    #[test]
    fn one_summariser_has_no_ranking_and_who_broke_or_never_compacted_has_no_rank() {
        assert!(sheets(&sample::results()).is_empty());
        let mut runs = vec![
            run("reference", None, 100.0, 2.0),
            run("codex", Some("extractive"), 70.0, 1.5),
            run("codex", Some("ideal"), 70.0, 1.5),
            run("aider", Some("extractive"), 50.0, 1.0),
            run("aider", Some("ideal"), 95.0, 2.0),
            run("opencode", None, 100.0, 1.0),
        ];
        runs[4].status = Status::Overflow;
        runs[5].summary.compactions = 0;
        let (sheet, rows) = rows(runs);
        assert_eq!(rows.len(), 1);
        assert!(sheet.note.contains("2 that never compacted or finished"), "{}", sheet.note);
    }
}
