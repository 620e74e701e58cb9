//! Conclusion of a report: failures first, then the Pareto front, and how sure it is.

mod sentences;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::{Results, RunRecord, Status};

use crate::front::Pooled;
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
    /// Up to four sentences: whether anybody needed to compact, the front, the trade-off along it, and
    /// how sure these are.
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
        let mut lines = vec![failures(own)];
        for (label, text) in recorded::cost_lines(own) {
            lines.push(line(label, text));
        }
        let pooled = Pooled::from_runs(&terms.evidence());
        lines.extend(not_compared(own));
        lines.extend(terms.others().map(|b| line("another story", alone(b))));
        // The conclusion of a drive is the agreement of our implementation and the real agent.
        let agreed = agreement::sentences(own);
        let sentences = match agreed.is_empty() {
            true => pooled.as_ref().and_then(sentences::sentences).unwrap_or_default(),
            false => agreed,
        };
        let conclusion = Conclusion {
            heading: format!("Conclusion: {}, {}", terms.scope(), terms.name()),
            sentences,
            front: pooled.iter().flat_map(Pooled::labels).cloned().collect(),
            lines,
        };
        (pooled.is_some() || conclusion.lines.len() > 1).then_some(conclusion)
    };
    terms(&blocks).iter().filter_map(conclusion).collect()
}

/// Products that broke a rule or did not finish, with the number of sessions.
fn failures(blocks: &[&ReportBlock<'_>]) -> ConclusionLine {
    let all = blocks.len();
    let counted = |failed: fn(&RunRecord) -> bool| -> Vec<String> {
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for r in blocks.iter().flat_map(|b| &b.runs).filter(|r| r.is_contender() && failed(r)) {
            *found.entry(&r.strategy.label).or_default() += 1;
        }
        let mut found: Vec<(&str, usize)> = found.into_iter().collect();
        found.sort_by_key(|(label, n)| (std::cmp::Reverse(*n), *label));
        let told = |(label, n)| match all {
            1 => fmt::one_line(label),
            _ => format!("{} (in {n} of {all} sessions)", fmt::one_line(label)),
        };
        found.into_iter().map(told).collect()
    };
    let rules = counted(|r| r.broken_rules() > 0);
    let unfinished = counted(|r| r.status != Status::Completed && r.broken_rules() == 0);
    let parts = [("INTEGRITY FAILURES of", rules), ("not finished by", unfinished)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, who)| !who.is_empty())
        .map(|(what, who)| format!("{what} {}", who.join(", ")))
        .collect();
    let alarm = !parts.is_empty();
    let text = if alarm { parts.join("; ") } else { "none".into() };
    ConclusionLine { label: "failures", text, alarm }
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

/// Describes a session that is not compared with others: what compacting cost in it.
fn alone(block: &ReportBlock<'_>) -> String {
    let usd = |r: &RunRecord| r.summary.cost_usd;
    let reference = block.runs.iter().find(|r| r.strategy.name == "reference").map(|r| usd(r));
    let told = |r: &RunRecord| match reference.filter(|base| *base > 0.0) {
        Some(base) => format!("{} %", fmt::signed((usd(r) / base - 1.0) * 100.0, fmt::pct)),
        None => format!("${}", fmt::usd(usd(r))),
    };
    let mut compacted: Vec<&RunRecord> =
        block.runs.iter().filter(|r| r.can_win() && r.summary.compactions > 0).copied().collect();
    compacted.sort_by(|a, b| usd(a).total_cmp(&usd(b)));
    let named = |r: &&RunRecord| format!("{} {}", fmt::one_line(&r.strategy.label), told(r));
    let ends: Vec<String> = match &compacted[..] {
        [] => vec!["no product needed to compact".into()],
        [only] => vec![named(only)],
        [first, .., last] => vec![named(first), named(last)],
    };
    let replies = fmt::pluralize(block.first().summary.steps_total, "reply");
    let cost = if compacted.is_empty() { "" } else { "cost of compacting: " };
    format!(
        "{} ({replies}): {cost}{}",
        fmt::one_line(&block.first().scenario.id),
        ends.join(" to ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{IntegrityFailure, Rule};
    use crate::{stats, testing};

    fn run(session: &str, label: &str, cost: f64, kept: f64, waited_s: u64) -> RunRecord {
        let mut r = testing::scored(session, label, cost, kept);
        (r.summary.input_tokens, r.summary.blocked_ms) = (0, waited_s * 1000);
        r.requests[0].cost_usd = cost;
        r
    }

    /// Two recordings.
    fn sessions() -> Results {
        let mut r = testing::of([
            run("one", "reference", 9.0, 100.0, 0),
            run("one", "a", 1.0, 50.0, 3),
            run("one", "b", 2.0, 70.0, 0),
            run("two", "reference", 9.0, 100.0, 0),
            run("two", "a", 1.5, 30.0, 4),
            run("two", "b", 2.0, 90.0, 1),
        ]);
        recorded(&mut r);
        r
    }

    fn recorded(results: &mut Results) {
        results.runs.iter_mut().for_each(|r| r.scenario.recorded = true);
    }

    fn line(results: &Results, label: &str) -> ConclusionLine {
        let all = conclusions(results);
        assert_eq!(all.len(), 1);
        let found = all[0].lines.iter().find(|l| l.label == label).cloned();
        found.unwrap_or_else(|| panic!("no line {label}: {all:?}"))
    }

    fn sentences(results: &Results) -> Vec<String> {
        conclusions(results).remove(0).sentences
    }

    #[test]
    fn products_that_all_finished_have_no_failures() {
        let r = sessions();
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
        assert!(line(&r, "failures").text.contains("not finished by b (in 1 of 2 sessions)"));
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
            first.alarm && first.text == "INTEGRITY FAILURES of a (in 1 of 2 sessions)",
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
        }
        assert_eq!(line(&r, "failures").text, "not finished by dead (in 2 of 2 sessions)");
        assert!(sentences(&r)[0].contains("1 that failed more often are not ranked"));
    }

    /// $3.116 with 83 % next to $3.10 with everything kept.
    #[test]
    fn a_product_that_did_not_need_to_compact_competes() {
        let idle = |label: &str, cost| {
            let mut r = run("one", label, cost, 100.0, 0);
            r.summary.compactions = 0;
            r
        };
        let rows = [run("one", "sdk", 3.116, 83.0, 9), idle("b", 3.1), idle("c", 3.1)];
        let told = conclusions(&testing::of(rows)).remove(0);
        assert_eq!(told.front, ["b", "c"]);
        assert!(
            told.sentences[0].starts_with("Of 3 products, b = c (cost $3.100, recall 100.0 %)")
        );
        let none = conclusions(&testing::of([idle("a", 3.1), idle("b", 3.1), idle("c", 3.1)]));
        assert_eq!(none[0].sentences, ["No product needed to compact."]);
        // In one of two recordings.
        let mut r = sessions();
        r.runs[4..].iter_mut().for_each(|r| r.summary.compactions = 0);
        assert_eq!(sentences(&r)[0], "No product needed to compact in 1 of 2 sessions.");
    }

    #[test]
    fn one_failure_in_67_does_not_end_the_answer() {
        let mut r = Results::default();
        for i in 0..67 {
            let id = format!("s{i:02}");
            r.runs.extend([
                run(&id, "reference", 9.0, 100.0, 0),
                run(&id, "a", 1.0, 50.0, 3),
                run(&id, "b", 2.0, 70.0, 3),
                run(&id, "often", 0.5, 99.0, 3),
            ]);
        }
        recorded(&mut r);
        // Were it compared over 66 sessions and b over 67, the dearest would be missing from its mean.
        testing::labelled(&mut r, "a").take(1).for_each(|r| r.status = Status::Overflow);
        testing::labelled(&mut r, "often").take(8).for_each(|r| r.status = Status::Overflow);
        let told = conclusions(&r).remove(0);
        assert_eq!(told.front, ["a", "b"]);
        assert!(
            told.sentences[0]
                .starts_with("Of 2 products in the 66 sessions that all of them finished"),
            "{}",
            told.sentences[0]
        );
        assert_eq!(
            line(&r, "failures").text,
            "not finished by often (in 8 of 67 sessions), a (in 1 of 67 sessions)"
        );
    }

    #[test]
    fn unlike_stories_are_never_averaged() {
        // The default run: +33 %, −83 % and +43 % of the reference.
        let mut r = Results::default();
        let stories =
            [("short", 12, 0.165, 0.219), ("long", 272, 41.706, 7.127), ("tight", 12, 0.15, 0.215)];
        for (id, replies, reference, cost) in stories {
            r.runs.extend([
                run(id, "reference", reference, 100.0, 0),
                run(id, "a", cost, 10.0, 0),
                run(id, "b", 1.5 * cost, 60.0, 0),
            ]);
            r.runs.iter_mut().rev().take(3).for_each(|r| r.summary.steps_total = replies);
        }
        let told = conclusions(&r).remove(0);
        assert_eq!(told.heading, "Conclusion: long, claude-sonnet-4-6");
        assert!(told.sentences[0].contains("a (cost $7.127, recall 10.0 %)"), "{told:?}");
        let others: Vec<&str> =
            told.lines.iter().filter(|l| l.label == "another story").map(|l| &*l.text).collect();
        // 0.219 ÷ 0.165, 0.3285 ÷ 0.165; 0.215 ÷ 0.15, 0.3225 ÷ 0.15.
        let cost = "(12 replies): cost of compacting: a";
        assert_eq!(
            others,
            [
                format!("short {cost} +32.7 % to b +99.1 %"),
                format!("tight {cost} +43.3 % to b +115.0 %"),
            ]
        );
        assert_eq!(stats::over_sessions(&r), []);
        // Next to recordings, each scripted session has its own line.
        r.runs.extend(sessions().runs);
        let told = conclusions(&r).remove(0);
        assert_eq!(told.heading, "Conclusion: 2 sessions, claude-sonnet-4-6");
        assert_eq!(told.lines.iter().filter(|l| l.label == "another story").count(), 3);
    }

    #[test]
    fn a_mean_over_fewer_sessions_says_so() {
        let mut r = sessions();
        let two = r.runs.iter_mut().filter(|r| r.scenario.id == "two");
        two.for_each(|r| r.summary.recall_pct = None);
        let said = &sentences(&r)[0];
        assert!(
            said.contains("b (cost −77.8 %, bill −77.8 %, recall −30.0 pp in 1 of them)"),
            "{said}"
        );
    }

    #[test]
    fn sentences_name_front_trade_off_and_certainty() {
        let mut r = sessions();
        // More expensive than b, and keeps less.
        r.runs.extend([run("one", "c", 3.0, 60.0, 0), run("two", "c", 3.0, 60.0, 0)]);
        recorded(&mut r);
        assert_eq!(
            sentences(&r),
            [
                "Of 3 products in the 2 sessions that all of them finished, these are on the front, \
                 the cheapest first, by the mean change against reference: a (cost −86.4 %, bill \
                 −86.1 %, recall −60.0 pp), b (cost −77.8 %, bill −77.8 %, recall −20.0 pp); \
                 nothing else is both cheaper and keeps more.",
                // 2 ÷ √1.5 = 1.633; 80 − 40.
                "From the cheapest on average, a, to the one that keeps most, b: cost +63.3 %, recall \
                 +40.0 pp.",
                "How sure, pair by pair: a to b: differ in 2 sessions, 10 needed.",
            ]
        );
        // Rows that failed in one of two sessions are not ranked.
        let mut died = r.clone();
        for r in died.runs.iter_mut().filter(|r| r.scenario.id == "one") {
            if ["a", "c"].contains(&&*r.strategy.label) {
                r.status = Status::Overflow;
            }
        }
        assert_eq!(
            sentences(&died)[0],
            "Only b (cost −77.8 %, bill −77.8 %, recall −20.0 pp) is ranked in the 2 sessions that \
             all of them finished; 2 that failed more often are not ranked."
        );
        r.runs.retain(|r| r.scenario.id == "one" && r.strategy.label != "b");
        assert_eq!(
            sentences(&r)[..2],
            [
                "Of 2 products, these are on the front, the cheapest first: a (cost $1.000, recall \
                 50.0 %), c (cost $3.000, recall 60.0 %); nothing else is both cheaper and keeps \
                 more.",
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
        let said = &sentences(&r)[0];
        assert!(said.contains("by the mean change against a: a (cost ±0"), "{said}");
        assert!(said.contains("b (cost +63.3 %"), "{said}");
    }

    /// `n` recordings with these rows: label, cost and recall of a session.
    fn drawn(n: usize, rows: &[(&str, f64)], mut one: impl FnMut(f64) -> (f64, f64)) -> Results {
        let mut r = Results::default();
        for i in 0..n {
            let id = format!("s{i:02}");
            r.runs.push(run(&id, "reference", 20.0, 100.0, 0));
            for (label, cost) in rows {
                let (cost, kept) = one(*cost);
                let own = run(&id, label, cost, kept, 0);
                r.runs.push(own);
            }
        }
        recorded(&mut r);
        r
    }

    #[test]
    fn the_pairs_of_the_sentences_are_tested() {
        let mut i = 0.0;
        let r = drawn(12, &[("a", 5.0), ("b", 6.0), ("c", 7.0)], |cost| {
            i += 1.0;
            (cost + i / 1e3, cost * 10.0 + if cost == 6.0 { (i - 18.5) * 2.0 } else { 0.0 })
        });
        let sure = sentences(&r).pop().unwrap();
        let a_to_c = "a to c: cost +39.9 % beyond chance, recall +20.0 pp beyond chance.";
        assert!(sure.starts_with("How sure, pair by pair: a to b: cost +"), "{sure}");
        assert!(
            sure.contains("recall may be chance; b to c: ") && sure.ends_with(a_to_c),
            "{sure}"
        );
        // A copy of a recording is no further one.
        let mut twice = r.clone();
        for mut copy in r.runs.iter().filter(|r| r.scenario.id == "s00").cloned() {
            copy.scenario.counted_as = Some("s00".into());
            copy.scenario.id = "copy".into();
            twice.runs.push(copy);
        }
        assert_eq!(sentences(&twice), sentences(&r));
        // A thousandth of a cent in every session is nothing.
        let mut i = 0.0;
        let r = drawn(12, &[("a", 5.0), ("b", 6.0)], |cost| {
            i += 1.0;
            (5.0 + cost / 1e6 + i / 1e9, cost * 10.0)
        });
        let sure = sentences(&r).pop().unwrap();
        assert!(sure.contains("a to b: cost no change, recall +10.0 pp beyond"), "{sure}");
    }

    /// Six products that differ by chance only: at most 5 % of the answers speak of a difference
    /// beyond chance, although they name the extremes. A planted −10 % is always found.
    #[test]
    fn false_certainty_is_rare_and_ten_per_cent_are_found() {
        use crate::stats::simulation_tests::SampleSource;
        use ctxbench_util::rng::SplitMix64;
        let mut source = SampleSource(SplitMix64::named("conclusion"));
        let mut trial = |planted: f64| {
            let rows =
                ["a", "b", "c", "d", "e", "f"].map(|l| (l, if l == "a" { planted } else { 10.0 }));
            let r = drawn(23, &rows, |cost| {
                (cost * (0.05 * source.normal()).exp(), 60.0 + 5.0 * source.normal())
            });
            sentences(&r).pop().unwrap()
        };
        let wrong = (0..60).filter(|_| trial(10.0).contains("beyond chance")).count();
        assert!(wrong <= 3, "{wrong} of 60");
        for _ in 0..20 {
            let sure = trial(9.0);
            assert!(
                sure.contains("a to ") && sure.contains("cost +") && sure.contains("beyond"),
                "{sure}"
            );
        }
    }
}
