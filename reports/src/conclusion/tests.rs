use super::*;
use crate::record::{IntegrityFailure, Rule, Status};
use crate::{front, stats, testing};

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

fn failures(results: &Results) -> Vec<String> {
    conclusions(results).remove(0).failures
}

#[test]
fn products_that_all_finished_have_no_failures() {
    assert!(failures(&sessions()).is_empty());
}

#[test]
fn mechanism_test_is_not_compared_but_its_failures_are_listed() {
    let mut r = sessions();
    for run in r.runs.iter_mut().filter(|r| r.scenario.id == "two") {
        run.scenario.mechanism = true;
    }
    r.runs[5].status = Status::Overflow;
    assert!(line(&r, "not compared").text.starts_with("1 session testing one mechanism"));
    let mut cut = r.clone();
    cut.runs.iter_mut().for_each(|run| {
        run.scenario.continues = std::mem::take(&mut run.scenario.mechanism);
    });
    let why = "1 session continuing a conversation that its file lacks";
    assert_eq!(line(&cut, "not compared").text, why);
    let why = "failed at reply 120 of 120: prompt too long for the window";
    assert_eq!(failures(&r), [format!("b, in two: {why}")]);
    // Of more than two failed rows, the number of sessions is told.
    let third = run("three", "a", 1.0, 50.0, 0);
    r.runs.extend([RunRecord { status: Status::Overflow, ..third.clone() }]);
    r.runs.push(RunRecord {
        strategy: r.runs[5].strategy.clone(),
        status: Status::Overflow,
        ..third
    });
    r.runs[6..].iter_mut().for_each(|r| r.scenario.mechanism = true);
    assert_eq!(failures(&r), ["Failed in the 2 other sessions: b in 2, a in 1"]);
    assert!(!r.runs[4].can_win() && r.runs[1].can_win());
}

#[test]
fn a_session_of_its_own_has_a_table_even_if_it_tests_a_mechanism() {
    let mut r = sessions();
    r.runs.truncate(3);
    r.runs.iter_mut().for_each(|r| r.scenario.mechanism = true);
    let told = conclusions(&r).remove(0);
    assert_eq!((told.table.rows().count(), told.lines.len()), (3, 0));
    assert_eq!(told.sentences, Vec::<String>::new());
}

#[test]
fn broken_rules_are_told_in_words() {
    let mut r = sessions();
    let broken =
        |request| IntegrityFailure { rule: Rule::OrphanedCall, request, detail: "call_3".into() };
    r.runs[4].integrity.extend([broken(5), broken(7)]);
    let told = "a, in two: sent a tool call without its result 2 times, first at request 5: call_3";
    assert_eq!(failures(&r), [told]);
}

#[test]
fn product_that_fails_everywhere_is_listed_as_a_failure() {
    let mut r = sessions();
    for session in ["one", "two"] {
        let mut dead = run(session, "dead", 0.1, 100.0, 0);
        (dead.status, dead.summary.steps_completed) = (Status::Overflow, 7);
        r.runs.push(dead);
    }
    let told = "dead, in 2 of 2 sessions, first one: failed at reply 7 of 120: prompt too long \
                for the window";
    assert_eq!(failures(&r), [told]);
    assert!(sentences(&r)[0].contains("; not ranked: dead."));
}

#[test]
fn sessions_with_a_model_each_are_compared_together() {
    let mut r = sessions();
    r.runs[3..].iter_mut().for_each(|r| r.model = "other".into());
    let told = conclusions(&r);
    assert_eq!((told.len(), told[0].table.rows().count()), (1, 3));
    // A session with two models makes two scopes.
    r.runs.push(RunRecord { model: "other".into(), ..r.runs[0].clone() });
    assert_eq!(conclusions(&r).len(), 2);
}

#[test]
fn a_swept_setting_is_compared_with_today() {
    let runs = [("", 4.0, 80.0), ("50", 2.0, 60.0), ("60%", 3.0, 70.0)];
    let runs = runs.map(|(value, cost, kept)| match value {
        "" => testing::with_settings("s", &[], cost, kept),
        value => testing::with_settings("s", &[("threshold_percent", value)], cost, kept),
    });
    let told = conclusions(&testing::of(runs)).remove(0);
    assert_eq!(told.table.head[..3], ["threshold_percent", "cost", "vs\ntoday"]);
    let rows: Vec<_> = told.table.rows().map(|r| r[..4].join(" ")).collect();
    let want = ["50 % $2.000 −50 % 60.0 %", "60 % $3.000 −25 % 70.0 %", "today $4.000 – 80.0 %"];
    assert_eq!(rows, want);
    let want = "Of 3 values of threshold_percent, nothing is both cheaper and recalls more than \
                50 %, 60 % or today.";
    assert_eq!(told.sentences[0], want);
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
    assert_eq!(told.sentences[0], "No row but sdk needed to compact.");
    assert!(
        told.sentences[1].starts_with("Of 3 strategies, b = c is the cheapest and recalls most")
    );
    let none = conclusions(&testing::of([idle("a", 3.1), idle("b", 3.1), idle("c", 3.1)]));
    assert_eq!(none[0].sentences, ["No product needed to compact."]);
    // A session without facts has no front.
    let mut no_facts = testing::of([idle("a", 3.1), idle("b", 3.2)]);
    no_facts.runs.iter_mut().for_each(|r| r.summary.recall_pct = None);
    assert_eq!(sentences(&no_facts), ["No product needed to compact."]);
    // Three cents of $9.30 in all, over three sessions.
    let several = |cost: fn(&str) -> f64| {
        let rows = ["one", "two", "three"].map(|session| {
            ["a", "b", "c"].map(|label| RunRecord {
                scenario: run(session, label, 0.0, 0.0, 0).scenario,
                ..idle(label, cost(label))
            })
        });
        let mut r = testing::of(rows.concat());
        recorded(&mut r);
        r
    };
    let cents = several(|label| if label == "a" { 3.11 } else { 3.10 });
    assert_eq!(sentences(&cents), ["No product needed to compact."]);
    // Values of a setting, or programs of your own, compact.
    let mut own = several(|label| if label == "a" { 2.0 } else { 3.10 });
    for (label, key) in [("a", "threshold"), ("b", "threshold")] {
        testing::labelled(&mut own, label).take(2).for_each(|r| {
            r.summary.compactions = 1;
            r.strategy.given.insert(key.into(), label.into());
        });
    }
    let told = sentences(&own).remove(0);
    assert!(told.starts_with("No row but "), "{told}");
    let mut settings_only = own.clone();
    settings_only.runs.retain(|r| !r.strategy.given.is_empty());
    let told = sentences(&settings_only).remove(0);
    assert!(told.starts_with("Of 2 "), "{told}");
    testing::labelled(&mut own, "b").for_each(|r| r.strategy.given.clear());
    let told = sentences(&own).remove(0);
    assert!(told.starts_with("No product needed to compact in 1 of 3 sessions."), "{told}");
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
    assert!(told.heading.starts_with("66 of 67 sessions, finished by all"), "{told:?}");
    let failed: Vec<&str> = told.failures.iter().filter_map(|f| f.split(':').next()).collect();
    assert_eq!(failed, ["a, in s00", "often, in 8 of 67 sessions, first s00"]);
}

#[test]
fn who_fails_in_the_longest_session_does_not_win_by_it() {
    let mut r = Results::default();
    for i in 0..12 {
        let id = format!("s{i:02}");
        let rows = [("a", 1.0, 50.0), ("b", 2.0, 70.0), ("short", 0.5, 99.0)];
        r.runs.extend(rows.map(|(label, cost, kept)| run(&id, label, cost, kept, 3)));
        let replies = if i == 0 { 500 } else { 10 };
        r.runs.iter_mut().rev().take(3).for_each(|r| r.summary.steps_total = replies);
    }
    recorded(&mut r);
    assert_eq!(conclusions(&r).remove(0).front, ["short"]);
    testing::labelled(&mut r, "short").take(1).for_each(|r| r.status = Status::Overflow);
    let told = conclusions(&r).remove(0);
    assert_eq!(told.front, ["a", "b"]);
    assert!(told.heading.starts_with("12 sessions, "), "{told:?}");
    assert!(told.sentences[0].ends_with("; not ranked: short."), "{told:?}");
    assert!(told.failures[0].starts_with("short, in s00: "), "{told:?}");
    // If only one row finished it, the others are compared over what they finished.
    testing::labelled(&mut r, "a").take(1).for_each(|r| r.status = Status::Overflow);
    let told = conclusions(&r).remove(0);
    assert_eq!(told.front, ["short"]);
    let want = "Over 11 of 12 sessions, of 3 strategies, short is the cheapest and recalls most.";
    assert_eq!(told.sentences[0], want);
}

#[test]
fn rows_that_print_alike_are_marked_alike() {
    let mark = |rows: &[(&str, f64, f64)]| {
        let mut rows: Vec<_> = rows.iter().map(|(l, c, k)| run("one", l, *c, *k, 0)).collect();
        rows.insert(0, run("one", "reference", 20.0, 100.0, 0));
        let told = conclusions(&testing::of(rows)).remove(0);
        let marked = told.table.rows().filter(|r| r[8] == front::MARK);
        (marked.map(|r| r[0].clone()).collect::<Vec<_>>().concat(), told.sentences)
    };
    let (marked, told) = mark(&[("a", 9.001, 70.01), ("b", 9.002, 70.0), ("c", 9.5, 60.0)]);
    assert_eq!(marked, "ab");
    assert_eq!(told.len(), 2);
    let want = "Of 3 strategies, nothing is both cheaper and recalls more than a or b.";
    assert_eq!(told[0], want);
    // A cent more is dearer in print, although both are −55 %.
    assert_eq!(mark(&[("a", 9.001, 70.01), ("b", 9.01, 70.0)]).0, "a");
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
    assert!(told.heading.starts_with("long: ") && told.heading.contains(", 272 replies, "));
    let row: Vec<_> = told.table.rows().next().unwrap()[..4].to_vec();
    assert_eq!(row, ["a", "$7.13", "−83 %", "10.0 %"]);
    let others: Vec<&str> =
        told.lines.iter().filter(|l| l.label == "also").map(|l| &*l.text).collect();
    // 0.219 ÷ 0.165, 0.3285 ÷ 0.165; 0.215 ÷ 0.15, 0.3225 ÷ 0.15.
    let want =
        ["short (12 replies): a +33 % to b +99 %", "tight (12 replies): a +43 % to b +115 %"];
    assert_eq!(others, want);
    assert_eq!(stats::over_sessions(&r), []);
    // Next to recordings, each scripted session has its own line.
    r.runs.extend(sessions().runs);
    let told = conclusions(&r).remove(0);
    assert!(told.heading.starts_with("2 sessions, 240 replies, "), "{}", told.heading);
    assert_eq!(told.lines.iter().filter(|l| l.label == "also").count(), 3);
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
            "Of 3 strategies, nothing is both cheaper and recalls more than a or b.",
            // 2 ÷ √1.5 = 1.633; 80 − 40.
            "From the cheapest on average, a, to the one that recalls most, b: cost +63.3 %, recall \
             +40.0 points.",
            "Caution: these rows differ in 2 sessions at most; 10 are needed to rule out chance.",
        ]
    );
    // Rows that failed in one of two sessions are not ranked.
    let mut died = r.clone();
    for r in died.runs.iter_mut().filter(|r| r.scenario.id == "one") {
        if ["a", "c"].contains(&&*r.strategy.label) {
            r.status = Status::Overflow;
        }
    }
    assert_eq!(sentences(&died)[0], "Only b is ranked; not ranked: a, c.");
    r.runs.retain(|r| r.scenario.id == "one" && r.strategy.label != "b");
    assert_eq!(
        sentences(&r)[..2],
        [
            "Of 2 strategies, nothing is both cheaper and recalls more than a or c.",
            "From the cheapest, a, to the one that recalls most, c: cost +200.0 %, recall \
             +10.0 points.",
        ]
    );
}

#[test]
fn without_reference_a_product_is_the_baseline() {
    let mut r = sessions();
    r.runs.retain(|r| r.strategy.label != "reference");
    // b: √(2/1 · 2/1.5) = 1.633.
    let table = conclusions(&r).remove(0).table;
    let rows: Vec<_> = table.rows().map(|r| r[..3].join(" ")).collect();
    assert_eq!(
        (rows, &*table.head[2]),
        (vec!["a $2.500 –".into(), "b $4.000 +63 %".into()], "change")
    );
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
    let a_to_c = "a to c: cost +39.9 % beyond chance, recall +20.0 points beyond chance.";
    assert!(sure.starts_with("How sure, pair by pair: a to b: cost +"), "{sure}");
    assert!(sure.contains("recall may be chance; b to c: ") && sure.ends_with(a_to_c), "{sure}");
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
    assert!(sure.contains("b to a: cost no change, recall −10.0 points beyond"), "{sure}");
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

/// Two products that always differ by up to a cent of ten dollars, with a copy of each session:
/// the test is sure of it, and no sentence speaks of it. Three recordings with eleven copies of
/// each are three.
#[test]
fn cents_and_copies_are_never_beyond_chance() {
    use crate::stats::simulation_tests::SampleSource;
    use ctxbench_util::rng::SplitMix64;
    let mut source = SampleSource(SplitMix64::named("cents"));
    for n in [3, 12, 23] {
        for _ in 0..10 {
            let mut r = drawn(n, &[("a", 10.0), ("b", 10.0)], |cost| {
                let dearer = if source.normal() > 0.0 { 0.01 } else { 0.005 };
                (cost + dearer, 60.0 + 0.1 * source.normal())
            });
            testing::labelled(&mut r, "a").for_each(|r| {
                (r.summary.cost_usd, r.requests[0].cost_usd) = (10.0, 10.0);
            });
            let own = r.runs.clone();
            for copy in 1..12 {
                for mut run in own.clone() {
                    run.scenario.counted_as = Some(run.scenario.id.clone());
                    run.scenario.id += &format!("-{copy}");
                    r.runs.push(run);
                }
            }
            let told = sentences(&r).join(" ");
            assert!(!told.contains("beyond") && !told.contains("cost +"), "{told}");
            assert_eq!(told.contains("Caution: these rows differ in 3 sessions"), n == 3);
        }
    }
}
