use super::*;
use crate::record::{FactPlace, FactRecord, Status};
use crate::testing;
use ctxbench_session::fact::Match;

/// A row of Claude Code on a recording with `lost` of 100 needs lost.
fn row(session: usize, label: &str, cost: f64, lost: usize, compactions: u64) -> RunRecord {
    let need = |i: usize| FactRecord {
        fact: format!("f{i}"),
        need: "n".into(),
        gap: Some(9),
        counts: true,
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

fn change(value: u64) -> SettingChange {
    SettingChange {
        label: format!("claude-code:threshold_percent={value}"),
        setting: "threshold_percent".into(),
        value: value.to_string(),
        line: format!("export CLAUDE_AUTOCOMPACT_PCT_OVERRIDE={value}"),
        place: "the shell".into(),
        documented: "https://code.claude.com/docs/en/env-vars".into(),
    }
}

fn advice(values: &[u64], runs: &[RunRecord]) -> Advice {
    let changes = values.iter().copied().map(change).collect();
    let (left_out, limits) = (vec![], vec![]);
    let recorded = [row(0, "as-recorded", 7.5, 0, 1)];
    let recorded = &recorded[..];
    advise(Tried { product: "claude-code", changes, runs, recorded, left_out, limits })
}

/// Runs of `n` sessions at 10 USD with 5 of 100 needs lost. Each value is (setting, factor of the
/// cost, needs lost in addition in every second session); the cost also varies a little between the
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

/// Gives the rows of the tried values another cost and number of lost needs, by session and cost.
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
    // 0.8 times the geometric mean of 1 to 1.011.
    let mean = (0..12).map(|s| (1.0 + f64::from(s) / 1_000.0).ln()).sum::<f64>() / 12.0;
    let expected = format!("cost −{:.1} %", 100.0 - 80.0 * mean.exp());
    assert!(a.sentence.starts_with("Set threshold_percent of claude-code to 50: over 12 sessions"));
    assert!(a.sentence.contains(&expected), "{} has no {expected}", a.sentence);
    assert!(a.sentence.ends_with("recall unchanged."), "{}", a.sentence);
    let text = to_text(&a);
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|l| *l == "What to write").unwrap();
    assert_eq!(lines[at + 2].trim(), fifty.line);
    assert!(!text.contains("OVERRIDE=60"), "60 is beaten by 50:\n{text}");
    assert!(text.contains("expect less on others"), "{text}");
    testing::assert_contains(
        &text,
        &["as recorded:  $7.500, 1 compaction, 94.7 % read from the cache"],
    );
    let best = &a.changes[0];
    assert!(best.front && !a.changes[1].front);
    assert_eq!((best.finished, best.differs), (12, 12));
    assert_eq!((best.now.lost, best.then.lost, best.now.needs), (60, 60, 1_200));
    assert_eq!((best.now.compactions, best.then.compactions), (12, 24));
}

#[test]
fn what_saves_dollars_and_loses_needs_is_a_trade() {
    // Six more needs are lost in every session, which is beyond chance.
    let mut all = runs(12, &[(50, 0.8, 0)]);
    changed(&mut all, |_, cost| (cost, 11));
    let a = advice(&[50], &all);
    assert_eq!(a.decision, Decision::Trade);
    assert!(a.sentence.contains("without a price, so none is advised"), "{}", a.sentence);
    assert!(a.sentence.contains("recall −6.0 pp"), "{}", a.sentence);
    let text = to_text(&a);
    assert!(text.contains("132 (+72) WORSE") && text.contains("BETTER"), "{text}");
    assert!(text.contains("To try the value that is on the front, write\n"), "{text}");
    assert!(!text.contains("expect less"), "{text}");
}

#[test]
fn what_chance_explains_is_no_change() {
    // Cheaper in six sessions and more expensive in six.
    let mut all = runs(12, &[(50, 1.0, 0)]);
    changed(&mut all, |s, _| (if s < 6 { 9.0 } else { 11.2 }, 5));
    let a = advice(&[50], &all);
    assert_eq!(a.decision, Decision::NoChange);
    assert!(a.sentence.starts_with("No change is clearly better for claude-code: over 12"));
}

#[test]
fn nine_sessions_are_too_few() {
    let a = advice(&[50], &runs(9, &[(50, 0.5, 0)]));
    assert_eq!(a.decision, Decision::TooFew);
    assert_eq!(
        a.sentence,
        "Too few sessions to say for claude-code: the value that changes most changes 9 of 9 \
         sessions, and a verdict needs 10. Below are differences only."
    );
    assert!(to_text(&a).contains("export CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=50"));
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
    let told = "Nothing to change for claude-code: over 12 sessions";
    assert_eq!(a.sentence, format!("{told} no value tried changes a request."));
    assert!(!a.changes[0].front && !to_text(&a).contains("export"), "nothing to write");
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
    assert!(!to_text(&a).contains("export"));
}

#[test]
fn a_value_that_does_not_finish_everywhere_is_not_advised() {
    let mut all = runs(12, &[(50, 0.8, 0)]);
    let last = all.iter_mut().rfind(|r| r.strategy.label != "claude-code").unwrap();
    last.status = Status::Overflow;
    let a = advice(&[50], &all);
    assert_eq!((a.decision.clone(), a.changes[0].finished), (Decision::Trade, 11));
    assert!(a.sentence.contains("1 session not finished"), "{}", a.sentence);
    let told = "threshold_percent=50: 1 session not finished; its figures are of the other 11.";
    assert!(to_text(&a).contains(told), "{}", to_text(&a));
}

#[test]
fn what_cannot_be_judged_for_want_of_needs_is_a_trade() {
    let mut all = runs(12, &[(50, 0.8, 0)]);
    for r in &mut all {
        r.summary.recall_pct = None;
        r.facts.clear();
    }
    let a = advice(&[50], &all);
    assert_eq!(a.decision, Decision::Trade);
    assert!(a.sentence.contains("recall n/a, in too few sessions to judge"), "{}", a.sentence);
    assert!(to_text(&a).contains("no needs"), "{}", to_text(&a));
}
