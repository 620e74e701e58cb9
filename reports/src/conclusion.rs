//! Conclusion of a report: failures first, then the Pareto front with its statistics.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::{Results, RunRecord, Status};

use crate::front::{self, Pooled};
use crate::metrics::Metric;
use crate::stats::{self, Differences, StrategyDifference, Verdict};
use crate::terms::{Terms, terms};
use crate::view::{self, ReportBlock};
use crate::{agreement, fmt, recorded};

/// Conclusion for one model (and one summariser, if there are several).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Conclusion {
    #[serde(rename = "about")]
    pub(crate) heading: String,
    #[serde(skip)]
    pub(crate) lines: Vec<ConclusionLine>,
    /// Labels on the Pareto front over these sessions, the cheapest first.
    pub(crate) front: Vec<String>,
    /// Up to three sentences: the front, the trade-off along it, and the verdicts.
    pub(crate) sentences: Vec<String>,
}

/// A labelled line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConclusionLine {
    pub(crate) label: &'static str,
    pub(crate) text: String,
    /// True if the line reports a failure.
    pub(crate) alarm: bool,
}

/// Conclusions in the order of the blocks.
pub(crate) fn conclusions(results: &Results) -> Vec<Conclusion> {
    let blocks = view::blocks(results);
    let conclusion = |terms: &Terms<'_, '_>| {
        let own = &terms.blocks;
        let count = fmt::sessions(own.len());
        let mut lines = vec![failures(own)];
        for (label, text) in recorded::cost_lines(own) {
            lines.push(line(label, text));
        }
        let pooled = Pooled::from_runs(&terms.evidence());
        lines.extend(not_compared(own));
        lines.extend(pooled.iter().map(|p| line("verdicts", verdicts(&p.differences))));
        // The conclusion of a drive is the agreement of our implementation and the real agent.
        let agreed = agreement::sentences(own);
        let sentences = match agreed.is_empty() {
            true => pooled.as_ref().and_then(sentences).unwrap_or_default(),
            false => agreed,
        };
        Conclusion {
            heading: format!("Conclusion: {count}, {}", terms.name()),
            lines,
            sentences,
            front: pooled.iter().flat_map(Pooled::labels).cloned().collect(),
        }
    };
    terms(&blocks).iter().map(conclusion).filter(|c| c.lines.len() > 1).collect()
}

/// Products that broke a rule or did not finish, with the number of sessions.
fn failures(blocks: &[&ReportBlock<'_>]) -> ConclusionLine {
    let several = blocks.len() > 1;
    let counted = |failed: fn(&RunRecord) -> bool| -> Vec<String> {
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for r in blocks.iter().flat_map(|b| &b.runs).filter(|r| r.is_contender() && failed(r)) {
            *found.entry(&r.strategy.label).or_default() += 1;
        }
        let mut found: Vec<(&str, usize)> = found.into_iter().collect();
        found.sort_by_key(|(label, n)| (std::cmp::Reverse(*n), *label));
        let told = |(label, n)| match several {
            true => format!("{} ({n})", fmt::one_line(label)),
            false => fmt::one_line(label),
        };
        found.into_iter().map(told).collect()
    };
    let rules = counted(|r| r.broken_rules() > 0);
    let unfinished = counted(|r| r.status != Status::Completed && r.broken_rules() == 0);
    let mut parts = Vec::new();
    if !rules.is_empty() {
        parts.push(format!("INTEGRITY FAILURES of {}", rules.join(", ")));
    }
    if !unfinished.is_empty() {
        parts.push(format!("not finished by {}", unfinished.join(", ")));
    }
    let alarm = !parts.is_empty();
    if alarm && several {
        parts.push("number of sessions in parentheses".into());
    }
    ConclusionLine {
        label: "failures",
        text: if alarm { parts.join("; ") } else { "none".into() },
        alarm,
    }
}

/// Sessions that are left out of the comparison.
fn not_compared(blocks: &[&ReportBlock<'_>]) -> Option<ConclusionLine> {
    let left_out = blocks.iter().map(|b| b.first()).filter(|r| !r.is_evidence());
    let (copies, tests): (Vec<&RunRecord>, Vec<&RunRecord>) =
        left_out.partition(|r| r.scenario.counted_as.is_some());
    let told = |n: usize, one: &str, several: &str| match n {
        0 => None,
        1 => Some(format!("1 session that {one}")),
        n => Some(format!("{n} sessions that {several}")),
    };
    let tests = told(tests.len(), "tests one mechanism", "test one mechanism each");
    let copies = told(
        copies.len(),
        "shares calls with another one and counts as that one",
        "share calls with another one and count as that one",
    );
    let which: Vec<String> = tests.into_iter().chain(copies).collect();
    let text = format!("{}; see their tables", which.join(", "));
    (!which.is_empty()).then(|| line("not compared", text))
}

fn line(label: &'static str, text: String) -> ConclusionLine {
    ConclusionLine { label, text, alarm: false }
}

/// Returns up to three sentences, or `None` with fewer than two products that compacted.
fn sentences(pooled: &Pooled<'_>) -> Option<Vec<String>> {
    let d = &pooled.differences;
    let front: Vec<&StrategyDifference> = pooled.front().collect();
    let (first, last) = (front.first()?, front.last()?);
    if pooled.compared + pooled.fewer < 2 {
        return None;
    }
    let best: Vec<(usize, &Metric)> = front::metrics().collect();
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
            format!("{} {said}", m.name)
        };
        best.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let listed: Vec<String> =
        front.iter().map(|s| format!("{} ({})", stats::name(s), figures(s))).collect();
    let (finished, against) = match d.sessions {
        1 => (String::new(), String::new()),
        all => (
            format!(" and finished {} of {all} sessions", pooled.sessions),
            format!(", by the mean change against {}", fmt::one_line(&d.baseline)),
        ),
    };
    let fewer = match pooled.fewer {
        0 => String::new(),
        n => format!("; {n} that finished fewer are not compared"),
    };
    let n = pooled.compared;
    let choice = match (n, listed.len()) {
        (1, _) => format!("Only {} compacted{finished}{fewer}.", stats::name(first)),
        (_, 1) => format!(
            "Of {n} products that compacted{finished}, {} is best in both{against}{fewer}.",
            listed[0]
        ),
        (_, on_it) => {
            let rest = match n - on_it {
                0 => "",
                1 => "; the other one is no better than one of these in either",
                _ => "; each of the others is no better than one of these in either",
            };
            format!(
                "Of {n} products that compacted{finished}, {on_it} are on the front, the cheapest \
                 first{against}: {}{rest}{fewer}.",
                listed.join(", ")
            )
        }
    };
    let stake = (front.len() > 1).then(|| {
        let apart = best
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
        _ => format!("Verdicts: {}.", verdicts(d)),
    };
    Some(std::iter::once(choice).chain(stake).chain([sure]).collect())
}

/// Verdicts over the sessions, or the reason for their absence.
fn verdicts(d: &Differences) -> String {
    if !d.has_verdicts() {
        return stats::allowed(d);
    }
    let told: Vec<String> = stats::judged()
        .enumerate()
        .filter_map(|(i, m)| {
            let part = |word: &str, v: Verdict| {
                let of = d.strategies.iter().filter(|s| s.figures[i].verdict == v);
                let names: Vec<String> = of.map(stats::name).collect();
                (!names.is_empty()).then(|| format!("{word}: {}", names.join(", ")))
            };
            let parts = [part("better", Verdict::Better), part("worse", Verdict::Worse)];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            (!parts.is_empty()).then(|| format!("{} {}", m.name, parts.join(", ")))
        })
        .collect();
    let told = if told.is_empty() { "none beyond chance".into() } else { told.join("; ") };
    format!("against {}: {told}", fmt::one_line(&d.baseline))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{IntegrityFailure, Rule};
    use crate::testing;

    fn run(session: &str, label: &str, cost: f64, kept: f64, waited_s: u64) -> RunRecord {
        let mut r = testing::scored(session, label, cost, kept);
        (r.summary.input_tokens, r.summary.blocked_ms) = (0, waited_s * 1000);
        r
    }

    fn sessions() -> Results {
        testing::of([
            run("one", "reference", 9.0, 100.0, 0),
            run("one", "a", 1.0, 50.0, 3),
            run("one", "b", 2.0, 70.0, 0),
            run("two", "reference", 9.0, 100.0, 0),
            run("two", "a", 1.5, 30.0, 4),
            run("two", "b", 2.0, 90.0, 1),
        ])
    }

    fn line(results: &Results, label: &str) -> ConclusionLine {
        let all = conclusions(results);
        assert_eq!(all.len(), 1);
        let found = all[0].lines.iter().find(|l| l.label == label).cloned();
        found.unwrap_or_else(|| panic!("no line {label}: {all:?}"))
    }

    #[test]
    fn products_that_all_finished_have_no_failures() {
        let r = sessions();
        assert_eq!(
            line(&r, "verdicts").text,
            "2 sessions: differences only; scripted ones retell one story"
        );
        let failures = line(&r, "failures");
        assert_eq!((&*failures.text, failures.alarm), ("none", false));
    }

    #[test]
    fn mechanism_test_is_not_compared_but_its_failures_are_listed() {
        let mut r = sessions();
        for run in r.runs.iter_mut().filter(|r| r.scenario.id == "two") {
            run.scenario.mechanism = true;
        }
        r.runs[5].status = Status::Overflow;
        assert!(line(&r, "not compared").text.starts_with("1 session that tests one mechanism"));
        assert!(line(&r, "failures").text.contains("not finished by b (1)"));
        assert!(!r.runs[4].can_win() && r.runs[1].can_win());
    }

    #[test]
    fn broken_rules_come_first() {
        let mut r = sessions();
        r.runs[4].integrity.push(IntegrityFailure {
            rule: Rule::OverTheWindow,
            request: 1,
            detail: String::new(),
        });
        let first = &conclusions(&r)[0].lines[0];
        assert!(
            first.alarm
                && first.text == "INTEGRITY FAILURES of a (1); number of sessions in parentheses",
            "{first:?}"
        );
    }

    #[test]
    fn product_that_fails_everywhere_is_listed_as_a_failure() {
        let mut r = sessions();
        for session in ["one", "two"] {
            let mut dead = run(session, "dead", 0.1, 100.0, 0);
            dead.status = Status::Overflow;
            r.runs.push(dead);
            let mut idle = run(session, "idle", 0.2, 100.0, 0);
            idle.summary.compactions = 0;
            r.runs.push(idle);
        }
        assert_eq!(
            line(&r, "failures").text,
            "not finished by dead (2); number of sessions in parentheses"
        );
    }

    #[test]
    fn a_mean_over_fewer_sessions_says_so() {
        let mut r = sessions();
        let two = r.runs.iter_mut().filter(|r| r.scenario.id == "two");
        two.for_each(|r| r.summary.recall_pct = None);
        let said = &conclusions(&r)[0].sentences[0];
        assert!(said.contains("b (cost −77.8 %, recall −30.0 pp in 1 of them)"), "{said}");
    }

    #[test]
    fn sentences_name_front_trade_off_and_verdicts() {
        let mut r = sessions();
        // More expensive than b, and keeps less.
        r.runs.extend([run("one", "c", 3.0, 60.0, 0), run("two", "c", 3.0, 60.0, 0)]);
        assert_eq!(
            conclusions(&r)[0].sentences,
            [
                "Of 3 products that compacted and finished 2 of 2 sessions, 2 are on the front, \
                 the cheapest first, by the mean change against reference: a (cost −86.4 %, needs \
                 kept −60.0 pp), b (cost −77.8 %, recall −20.0 pp); the other one is no better \
                 than one of these in either.",
                // 2 ÷ √1.5 = 1.633; 80 − 40.
                "From the cheapest on average, a, to the one that keeps most, b: cost +63.3 %, recall \
                 +40.0 pp.",
                "Verdicts: 2 sessions: differences only; scripted ones retell one story.",
            ]
        );
        // A row that failed in one session is not compared.
        let mut died = r.clone();
        for r in died.runs.iter_mut().filter(|r| r.scenario.id == "one") {
            if ["a", "c"].contains(&&*r.strategy.label) {
                r.status = Status::Overflow;
            }
        }
        assert_eq!(
            conclusions(&died)[0].sentences[0],
            "Only b compacted and finished 2 of 2 sessions; 2 that finished fewer are not compared."
        );
        r.runs.retain(|r| r.scenario.id == "one" && r.strategy.label != "b");
        assert_eq!(
            conclusions(&r)[0].sentences[..2],
            [
                "Of 2 products that compacted, 2 are on the front, the cheapest first: a (cost \
                 $1.000, recall 50.0 %), c (cost $3.000, recall 60.0 %).",
                "From the cheapest, a, to the one that keeps most, c: cost +200.0 %, recall \
                 +10.0 pp.",
            ]
        );
    }

    #[test]
    fn without_reference_a_product_is_the_baseline() {
        let mut r = sessions();
        r.runs.retain(|r| r.strategy.label != "reference");
        // b: √(2/1 · 2/1.5) = 1.633.
        let said = &conclusions(&r)[0].sentences[0];
        assert!(said.contains("by the mean change against a: a (cost ±0"), "{said}");
        assert!(said.contains("b (cost +63.3 %"), "{said}");
    }

    #[test]
    fn twelve_recordings_give_verdicts() {
        let mut r = Results::default();
        for i in 0..12 {
            let id = format!("s{i:02}");
            r.runs.extend([
                run(&id, "reference", 9.0, 100.0, 0),
                run(&id, "a", 1.0, 50.0, 3),
                run(&id, "b", 9.0, 70.0, 3),
            ]);
        }
        r.runs.iter_mut().for_each(|r| r.scenario.recorded = true);
        let told = "against reference: cost better: a; recall worse: a, b; waited worse: a, b";
        assert_eq!(line(&r, "verdicts").text, told);
        // b compacted in nine of them.
        r.runs.iter_mut().filter(|r| r.strategy.label == "b").take(3).for_each(|r| {
            r.summary.compactions = 0;
        });
        assert_eq!(
            line(&r, "verdicts").text,
            "against reference: cost better: a; recall worse: a; waited worse: a"
        );
    }
}
