use super::*;
use crate::record::{FactPlace, FactRecord, Status};
use crate::testing;
use ctxbench_session::fact::Match;

/// A row of Claude Code on a recording, with `lost` of 100 facts missing in the one message that
/// needs them.
fn row(session: usize, label: &str, cost: f64, lost: usize, compactions: u64) -> RunRecord {
    let need = |i: usize| FactRecord {
        fact: format!("f{i}"),
        need: "n".into(),
        gap: Some(9),
        counts: true,
        exposed: Some(true),
        share: if i < lost { 0.0 } else { 1.0 },
        request: Some(1),
        found: if i < lost { Match::Absent } else { Match::Verbatim },
        place: if i < lost { FactPlace::Nowhere } else { FactPlace::Verbatim },
        compactions_before: 1,
        ..FactRecord::default()
    };
    let mut r = testing::scored(&format!("s{session:02}"), label, cost, 100.0 - lost as f64);
    r.scenario.recorded = true;
    (r.summary.compactions, r.summary.blocked_ms) = (compactions, 1_000 * compactions);
    r.facts = (0..100).map(need).collect();
    // Rows that sent the same requests would be merged into one.
    r.requests[0].cost_usd = cost;
    r.requests[0].input_tokens = 1_000 * compactions + lost as u64;
    r
}

fn setting(name: &str, value: u64) -> SettingChange {
    SettingChange {
        setting: name.into(),
        value: value.to_string(),
        today: "100".into(),
        line: format!("export CLAUDE_AUTOCOMPACT_PCT_OVERRIDE={value}"),
        place: "the shell".into(),
        documented: "https://code.claude.com/docs/en/env-vars".into(),
    }
}

fn change(value: u64) -> Candidate {
    Candidate {
        label: format!("claude-code:threshold_percent={value}"),
        settings: vec![setting("threshold_percent", value)],
        extends: None,
    }
}

fn advice_of(changes: Vec<Candidate>, runs: &[RunRecord]) -> Advice {
    let recorded = [row(0, "as-recorded", 7.5, 0, 1)];
    advise(Tried {
        product: "claude-code",
        changes,
        runs,
        recorded: &recorded,
        left_out: vec![],
        limits: vec![],
        effect: String::new(),
        newest: None,
    })
}

fn text(a: &Advice) -> String {
    to_text(a, false)
}

fn advice(values: &[u64], runs: &[RunRecord]) -> Advice {
    advice_of(values.iter().copied().map(change).collect(), runs)
}

/// Runs of `n` sessions at 10 USD with a recall of 95 %. Each value is (setting, factor of the cost,
/// points of recall lost in every second session); the cost also varies a little between the
/// sessions.
fn runs(n: usize, values: &[(u64, f64, usize)]) -> Vec<RunRecord> {
    let mut out = Vec::new();
    for s in 0..n {
        out.push(row(s, "claude-code", 10.0, 5, 1));
        for (value, factor, lost) in values {
            let spread = 1.0 + s as f64 / 1_000.0;
            let cost = 10.0 * factor * spread;
            out.push(row(s, &change(*value).label, cost, 5 + lost * (s % 2), 2));
        }
    }
    out
}

/// Gives the rows of the tried values another cost and number of missing facts, by session and cost.
fn changed(all: &mut [RunRecord], to: impl Fn(usize, f64) -> (f64, usize)) {
    for r in all.iter_mut().filter(|r| r.strategy.label != "claude-code") {
        let s = r.scenario.id[1..].parse().unwrap();
        let (cost, lost) = to(s, r.summary.cost_usd);
        *r = row(s, &r.strategy.label, cost, lost, 2);
    }
}

#[test]
fn a_saving_that_loses_nothing_is_advised_with_its_line() {
    let a = advice(&[50, 60], &runs(12, &[(50, 0.8, 0), (60, 0.9, 0)]));
    let fifty = change(50);
    assert_eq!(a.decision, Decision::Change(fifty.label.clone()));
    // 0.8 · 10 · (12 + 0.066) against 120.
    assert_eq!(
        a.sentence,
        "Set threshold_percent to 50 for claude-code: over 12 sessions $96.528 instead of $120.0 \
         (−19.6 %). The price: 12 s more waiting in all."
    );
    // 0.8 times the geometric mean of 1 to 1.011.
    let mean = (0..12).map(|s| (1.0 + f64::from(s) / 1_000.0).ln()).sum::<f64>() / 12.0;
    let expected = format!("How sure: per session cost −{:.1} %", 100.0 - 80.0 * mean.exp());
    assert!(a.sure.starts_with(&expected) && a.sure.ends_with("recall unchanged."), "{}", a.sure);
    let text = to_text(&a, true);
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    assert!(to_text(&a, false).lines().count() < text.lines().count());
    let written = format!("      {}", fifty.settings[0].line);
    testing::assert_contains(
        &text,
        &[&written, "as recorded: $7.500, 1 compaction, 94.7 % read from the cache"],
    );
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    testing::assert_contains(
        &words,
        &["expect less on others", "check on new sessions that it took effect"],
    );
    assert!(!text.contains("OVERRIDE=60"), "60 is beaten by 50:\n{text}");
    let best = &a.changes[0];
    assert!(best.front && !a.changes[1].front);
    assert_eq!((best.failed, best.differs), (0, 12));
    let then = best.then.as_ref().unwrap();
    // One message in each session needs the facts, and compactions had removed all of them.
    let recall = Recall { pct: Some(95.0), events: 12 };
    assert_eq!([a.now.recall, a.now.at_risk, then.recall], [recall; 3]);
    assert_eq!((a.now.compactions, then.compactions), (12, 24));
}

#[test]
fn a_loss_is_the_price_of_the_one_value_that_saves_most_per_point_of_recall() {
    // Of 120 dollars 50 saves 24 for 11 points of recall, 70 saves 18 for 3, and 80 saves 6 for 2:
    // 2.2, 6 and 3 dollars a point.
    let mut all = runs(12, &[(50, 0.8, 0), (70, 0.85, 0), (80, 0.95, 0)]);
    changed(&mut all, |_, cost| match cost {
        x if x < 8.4 => (8.0, 16),
        x if x < 9.0 => (8.5, 8),
        _ => (9.5, 7),
    });
    let a = advice(&[50, 70, 80], &all);
    assert_eq!(a.decision, Decision::Change(change(70).label));
    let price = "$102.0 instead of $120.0 (−15.0 %). The price: recall 92.0 % instead of 95.0 %, \
                 12 s more waiting in all.";
    assert!(a.sentence.ends_with(price), "{}", a.sentence);
    assert!(a.sure.contains("recall −3.0 points"), "{}", a.sure);
    // All three are on the front, and one is written.
    let text = text(&a);
    assert!(a.changes.iter().all(|o| o.front) && text.matches("export").count() == 1, "{text}");
    assert!(text.contains("−15.0 %*") && text.contains(" 92.0*"), "{text}");
}

#[test]
fn a_saving_that_is_not_worth_what_it_forgets_is_no_change() {
    // 4 % of the bill for 33 points of recall.
    let mut all = runs(12, &[(50, 0.96, 0)]);
    changed(&mut all, |_, _| (9.6, 38));
    let a = advice(&[50], &all);
    assert_eq!(a.decision, Decision::NoChange);
    let why = "no value tried is worth what it forgets: setting threshold_percent to 50 changes the bill by \
               −4.0 % for 33.0 points of recall.";
    assert!(a.sentence.ends_with(why), "{}", a.sentence);
}

/// Every mark is read from the printed table: no other row is at least as good in dollars and recall
/// and better in one. A row without a mark is worse than another, but for half a per cent of dollars
/// or half a point of recall.
#[test]
fn what_is_dominated_in_the_table_is_never_marked() {
    use ctxbench_util::rng::SplitMix64;
    let mut rng = SplitMix64::named("dominated");
    for _ in 0..40 {
        let mut all = runs(12, &[(50, 1.0, 0), (60, 1.0, 0), (70, 1.0, 0), (80, 1.0, 0)]);
        for r in all.iter_mut().filter(|r| r.strategy.label != "claude-code") {
            let s = r.scenario.id[1..].parse().unwrap();
            let (cost, lost) = (6 + rng.below(8), rng.below(12) as usize);
            *r = row(s, &r.strategy.label, cost as f64, lost, 2);
        }
        let text = text(&advice(&[50, 60, 70, 80], &all));
        let number = |s: &str| s.trim_end_matches('*').parse::<f64>().unwrap();
        let rows: Vec<(bool, f64, f64)> = text
            .lines()
            .filter(|l| l.starts_with("today") || l.contains("threshold_percent="))
            .filter(|l| !l.contains(':'))
            .map(|l| {
                let cells: Vec<&str> = l.trim_end_matches('◆').split_whitespace().collect();
                // Recall, "95 % of 12", waiting, compactions.
                let recall = cells.iter().rev().nth(6).unwrap();
                (l.ends_with('◆'), number(cells[2]), number(recall))
            })
            .collect();
        assert_eq!(rows.len(), 5, "{text}");
        for (marked, cost, kept) in &rows {
            let beaten =
                rows.iter().any(|(_, c, k)| c <= cost && k >= kept && (c, k) != (cost, kept));
            assert!(!*marked || !beaten, "{text}");
            let is_worse = |(_, c, k): &(bool, f64, f64)| {
                (c, k) != (cost, kept)
                    && (c <= cost && k + 0.6 >= *kept || k >= kept && *c <= cost * 1.006)
            };
            assert!(*marked || rows.iter().any(is_worse), "{text}");
        }
    }
}

#[test]
fn what_chance_explains_is_no_change() {
    // Cheaper in six sessions and more expensive in six.
    let mut all = runs(12, &[(50, 1.0, 0)]);
    changed(&mut all, |s, _| (if s < 6 { 9.0 } else { 11.2 }, 5));
    let a = advice(&[50], &all);
    assert_eq!((a.decision.clone(), &*a.sure), (Decision::NoChange, ""));
    assert!(a.sentence.starts_with("No change for claude-code: over 12 sessions"));
    assert!(!text(&a).contains("export"));
    // A saving of less than a cent over all sessions, in every session.
    changed(&mut all, |_, _| (9.999_5, 5));
    assert_eq!(advice(&[50], &all).decision, Decision::NoChange);
}

/// Eight values whose costs vary about today's by chance: a change is advised in at most 5 % of the
/// trials. A saving of 10 % that varies as much is always found among them, and advised.
#[test]
fn noise_is_no_advice_and_ten_per_cent_are() {
    use crate::stats::simulation_tests::SampleSource;
    use ctxbench_util::rng::SplitMix64;
    let values = [10, 20, 30, 40, 50, 60, 70, 80];
    let mut source = SampleSource(SplitMix64::named("advice"));
    let mut trial = |planted: Option<u64>| {
        let drawn: Vec<(u64, f64, usize)> = values.iter().map(|v| (*v, 1.0, 0)).collect();
        let mut all = runs(23, &drawn);
        let planted = planted.map(|v| change(v).label);
        for r in all.iter_mut().filter(|r| r.strategy.label != "claude-code") {
            let s = r.scenario.id[1..].parse().unwrap();
            let effect = if planted.as_ref() == Some(&r.strategy.label) { 0.9 } else { 1.0 };
            let cost = 10.0 * effect * (0.05 * source.normal()).exp();
            *r = row(s, &r.strategy.label, cost, 5, 2);
        }
        advice(&values, &all).decision
    };
    let advised = |d: &Decision| matches!(d, Decision::Change(_));
    let false_advice = (0..40).map(|_| trial(None)).filter(advised).count();
    assert!(false_advice <= 2, "{false_advice} of 40");
    for _ in 0..10 {
        assert_eq!(trial(Some(30)), Decision::Change(change(30).label));
    }
}

#[test]
fn nine_sessions_are_too_few() {
    let a = advice(&[50], &runs(9, &[(50, 0.5, 0)]));
    assert_eq!(a.decision, Decision::TooFew);
    // 5 × (9 + 0.036) of 90 dollars; 5 of 100 facts are missing in each.
    let told = "Not enough for claude-code: 9 sessions, 10 needed. So far, setting threshold_percent \
                to 50 changes the bill by −49.8 % (cheaper in 9 of 9 sessions), recall stays 95.0 %.";
    assert_eq!(a.sentence, told);
    assert!(!text(&a).contains("export"), "no line to write: {}", text(&a));
    let mut all = runs(12, &[(50, 0.5, 0)]);
    let same = |r: &RunRecord, label: &str| {
        let mut r = r.clone();
        r.strategy.label = label.into();
        r
    };
    for s in 3..12 {
        all[2 * s + 1] = same(&all[2 * s], &change(50).label);
    }
    // Half of 3 of 12 bills.
    let told = "Not enough for claude-code: 3 of 12 sessions change with any value, 10 needed. So far, \
                setting threshold_percent to 50 changes the bill by −12.5 % (cheaper in 3 of 12 \
                sessions), recall stays 95.0 %.";
    assert_eq!(advice(&[50], &all).sentence, told);
}

#[test]
fn a_session_speaks_about_a_value_if_any_request_differs() {
    // Neither row compacts, but a smaller tool output changes the session.
    let mut all = runs(12, &[(50, 0.8, 0)]);
    all.iter_mut().for_each(|r| r.summary.compactions = 0);
    assert!(matches!(advice(&[50], &all).decision, Decision::Change(_)));

    let now: Vec<RunRecord> = (0..12).map(|s| row(s, "claude-code", 10.0, 5, 1)).collect();
    let same = |r: &RunRecord| RunRecord {
        strategy: crate::record::StrategyInfo { label: change(50).label, ..r.strategy.clone() },
        ..r.clone()
    };
    let mut all: Vec<RunRecord> = now.iter().map(same).chain(now.clone()).collect();
    let a = advice(&[50], &all);
    assert_eq!(a.decision, Decision::NothingChanges);
    let told = "No change for claude-code: over 12 sessions";
    assert_eq!(a.sentence, format!("{told} no value tried changes a request."));
    assert!(!a.changes[0].front && !text(&a).contains("export"), "nothing to write");
    all.iter_mut().for_each(|r| r.summary.compactions = 0);
    let a = advice(&[50], &all);
    let none = "it compacts in none, and no value tried changes a request.";
    assert_eq!(a.sentence, format!("{told} {none}"));
}

#[test]
fn the_present_setting_may_beat_a_value() {
    // More expensive and worse than the present settings, but no other value dominates it.
    let mut all = runs(12, &[(50, 1.2, 0)]);
    changed(&mut all, |_, cost| (cost, 9));
    let a = advice(&[50], &all);
    assert_eq!((a.decision.clone(), a.changes[0].front), (Decision::NoChange, false));
    assert!(!text(&a).contains("export"));
}

#[test]
fn a_value_that_fails_often_is_named_and_does_not_end_the_advice() {
    let fail = |all: &mut [RunRecord], value: u64, n: usize| {
        let label = change(value).label;
        let own = all.iter_mut().filter(|r| r.strategy.label == label);
        own.take(n).for_each(|r| r.status = Status::Overflow);
    };
    let mut all = runs(23, &[(50, 0.7, 0), (60, 0.8, 0)]);
    fail(&mut all, 50, 3);
    let a = advice(&[50, 60], &all);
    assert_eq!(a.decision, Decision::Change(change(60).label));
    assert_eq!((a.sessions, a.changes[0].failed, &a.changes[0].then), (23, 3, &None));
    testing::assert_contains(
        &text(&a),
        &["Not finished: threshold_percent=50 (3 sessions; not ranked)"],
    );
    // One failure in 23: over the other 22, it is advised.
    let mut all = runs(23, &[(50, 0.7, 0), (60, 0.8, 0)]);
    fail(&mut all, 50, 1);
    let a = advice(&[50, 60], &all);
    assert_eq!((a.decision.clone(), a.sessions), (Decision::Change(change(50).label), 22));
    testing::assert_contains(&text(&a), &["Not finished: threshold_percent=50 (1 session)\n"]);
}

#[test]
fn unknown_needs_are_said_with_the_advice() {
    let mut all = runs(12, &[(50, 0.8, 0)]);
    for r in &mut all {
        r.summary.recall_pct = None;
        r.facts.clear();
    }
    let a = advice(&[50], &all);
    assert!(a.sure.contains("recall n/a, in too few sessions to judge"), "{}", a.sure);
    assert!(text(&a).contains(" n/a"), "{}", text(&a));
}

#[test]
fn a_combination_must_pay_beyond_its_first_value() {
    let pair = Candidate {
        label: "both".into(),
        settings: vec![setting("threshold_percent", 70), setting("window", 9)],
        extends: Some(change(70).label),
    };
    let window =
        Candidate { label: "window".into(), settings: vec![setting("window", 9)], extends: None };
    let with = |factor: f64, lost: usize| {
        let mut all = runs(12, &[(70, 0.8, 0)]);
        for s in 0..12 {
            all.push(row(s, "window", 9.5 + s as f64 / 100.0, 5, 3));
            all.push(row(s, "both", factor * (10.0 + s as f64 / 100.0), 5 + lost, 4));
        }
        let single = advice_of(vec![change(70), window.clone()], &all);
        let tried: Vec<[String; 2]> =
            combinations(&single).iter().map(|two| two.map(|c| c.label.clone())).collect();
        assert_eq!(tried, [[change(70).label, "window".into()]]);
        advice_of(vec![change(70), window.clone(), pair.clone()], &all)
    };
    let a = with(0.6, 0);
    assert_eq!(a.decision, Decision::Change("both".into()));
    assert!(a.sentence.starts_with("Set threshold_percent to 70 and window to 9 for"), "{a:?}");
    testing::assert_contains(&text(&a), &["\nwith threshold_percent=70:\n  window=9 "]);
    // Cheaper by a tenth of a cent in all: the single value is advised.
    let mut same = with(0.8, 0);
    let both = same.changes.pop().unwrap();
    let cost = |o: &ChangeOutcome| o.then.as_ref().unwrap().cost_usd;
    assert!(!both.pays || cost(&both) >= cost(&same.changes[0]));
}

#[test]
fn a_change_without_a_setting_is_shown_and_never_advised() {
    let mut cheaper = change(50);
    cheaper.settings[0].line.clear();
    let a = advice_of(vec![cheaper], &runs(12, &[(50, 0.5, 0)]));
    assert_eq!(a.decision, Decision::NoChange);
    testing::assert_contains(
        &text(&a),
        &["−49.7 %*", "The product has no setting for: threshold_percent=50"],
    );
}

/// The files of a review, by name.
fn review(all: &[Advice]) -> Vec<(String, String)> {
    let dir = tempfile::tempdir().unwrap();
    let mut files = crate::stored::OutputFolder::new(dir.path(), false);
    write(all, "ctxbench 9.9", "ctxbench advise <mine>", &mut files).unwrap();
    let read = |name: &String| std::fs::read_to_string(dir.path().join(name)).unwrap();
    files.names.iter().map(|name| (name.clone(), read(name))).collect()
}

#[test]
fn the_picture_has_a_dot_per_session_and_value_and_the_present_value() {
    let mut all = runs(12, &[(50, 0.8, 0), (60, 0.9, 0)]);
    changed(&mut all, |_, cost| (cost, if cost < 8.5 { 9 } else { 5 }));
    let a = advice(&[60, 50], &all);
    let files = review(std::slice::from_ref(&a));
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["advice-claude-code.svg", "advice.md", "advice.html"]);
    let svg = &files[0].1;
    // In each of two panels, 12 sessions with two values, and the means of these and of today.
    assert_eq!(svg.matches("fill-opacity=\"0\"><title>").count(), 2 * (2 * 12 + 3), "{svg}");
    // s03 costs 0.3 % more than the first session: 8.024 of 10 dollars.
    testing::assert_contains(svg, &["<title>s03: −19.8</title>", "<title>s03: −4.0</title>"]);
    let order: Vec<usize> =
        ["50", "60", "today"].iter().map(|v| svg.find(&format!("\n{v}\n")).unwrap()).collect();
    assert!(order.is_sorted(), "{order:?}");
    let hash = format!("hash of the sessions {}", a.hash);
    for (name, text) in &files {
        let words = text.replace('\\', "").split_whitespace().collect::<Vec<_>>().join(" ");
        // The picture breaks its lines.
        let words = words.replace("</text>", "");
        testing::assert_contains(
            &words,
            &["export CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=60", "ctxbench 9.9"],
        );
        assert!(name.ends_with("svg") || words.contains(&hash), "{words}");
        assert!(!text.contains("<mine>"), "{text}");
    }
}

#[test]
fn without_a_session_the_files_have_no_picture() {
    let a = advice(&[50], &[]);
    assert_eq!(a.decision, Decision::NoSession);
    let files = review(&[a]);
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|(_, text)| text.contains("No advice for claude-code")));
}
