use super::*;
use crate::testing;

fn results() -> Results {
    let mut r = testing::results();
    r.runs.retain(|r| r.strategy.label != "x<&\"y");
    r
}

fn codex(r: &mut Results) -> &mut RunRecord {
    testing::labelled(r, "codex").next().unwrap()
}

fn gated(new: &Results, base: &Results) -> GateReport {
    gate(new, &Baseline::from_results(base), &GateOptions::default())
}

fn failed(report: &GateReport) -> Vec<&str> {
    report.with_outcome(Outcome::Fail).map(|c| c.metric.as_str()).collect()
}

/// Failures after `change` was applied to the run of codex.
fn failures(change: impl Fn(&mut RunRecord)) -> Vec<(String, String)> {
    let mut new = results();
    change(codex(&mut new));
    let report = gated(&new, &results());
    assert_eq!(report.passed(), report.with_outcome(Outcome::Fail).count() == 0);
    report.with_outcome(Outcome::Fail).map(|c| (c.metric.clone(), c.sentence())).collect()
}

#[test]
fn each_gated_metric_turns_it_red_by_itself() {
    type Change = fn(&mut RunRecord);
    let changes: [(&str, Change); 7] = [
        ("saved_pct", |r| r.summary.saved_pct = r.summary.saved_pct.map(|x| x - 0.6)),
        ("cost_usd", |r| r.summary.cost_usd *= 1.011),
        ("recall_pct", |r| r.summary.recall_pct = r.summary.recall_pct.map(|x| x - 0.6)),
        ("recall_at_risk_pct", |r| {
            r.summary.recall_at_risk_pct = r.summary.recall_at_risk_pct.map(|x| x - 0.6)
        }),
        ("prefix_stability", |r| {
            r.summary.prefix_stability = r.summary.prefix_stability.map(|x| x - 0.006)
        }),
        ("integrity_failures", |r| r.summary.integrity_failures = 1),
        ("status", |r| r.status = Status::Livelock),
    ];
    let tried = changes.map(|(metric, _)| metric);
    for (metric, _) in metrics::sorted_columns(|m| &m.gated) {
        assert!(tried.contains(&metric.column), "{} is not tried", metric.column);
    }
    for (metric, change) in changes {
        let found = failures(change);
        assert_eq!(found.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(), [metric], "{found:?}");
        assert!(found[0].1.starts_with("login-bug × codex: "), "{}", found[0].1);
    }
}

#[test]
fn within_the_tolerance_is_fine() {
    let small = |r: &mut RunRecord| {
        r.summary.saved_pct = r.summary.saved_pct.map(|x| x - 0.5);
        r.summary.cost_usd *= 1.01;
        r.summary.recall_pct = r.summary.recall_pct.map(|x| x - 0.5);
        r.summary.prefix_stability = r.summary.prefix_stability.map(|x| x - 0.005);
    };
    assert_eq!(failures(small), vec![]);
}

#[test]
fn reasons_can_be_read() {
    let found = failures(|r| {
        r.summary.recall_pct = Some(r.summary.recall_pct.unwrap() - 7.1);
    });
    assert_eq!(found[0].1, "login-bug × codex: recall 45.7 % → 38.6 % (allowed −0.5 points)");
}

#[test]
fn numbers_that_vanish_fail() {
    assert_eq!(failures(|r| r.summary.recall_pct = None)[0].0, "recall_pct");
    assert_eq!(failures(|r| r.summary.recall_pct = Some(f64::NAN))[0].0, "recall_pct");
}

#[test]
fn a_figure_that_the_baseline_lacks_fails_with_its_session() {
    for (metric, _) in metrics::sorted_columns(|m| &m.gated) {
        let column = metric.column;
        if column == "recall_at_risk_pct" {
            continue;
        }
        let removed = checks_of(|b| b.figures.retain(|name, _| name != column), |_| {});
        let null = checks_of(|b| *b.figures.get_mut(column).unwrap() = None, |_| {});
        assert_eq!(removed, null);
        let (outcome, text) = &removed[0];
        assert_eq!((removed.len(), *outcome), (1, Outcome::Fail));
        assert!(text.starts_with("login-bug × codex: ") && text.contains(" n/a → "), "{text}");
        assert!(text.ends_with("(not in the baseline, so it cannot be checked)"), "{text}");
    }
}

#[test]
fn facts_at_risk_where_none_were_must_all_be_there() {
    let after = |recall: f64| {
        checks_of(
            |b| *b.figures.get_mut("recall_at_risk_pct").unwrap() = None,
            |r| r.summary.recall_at_risk_pct = Some(recall),
        )
    };
    assert!(after(100.0).iter().all(|(outcome, _)| *outcome != Outcome::Fail));
    assert_eq!(after(80.0)[0].0, Outcome::Fail);
}

#[test]
fn a_double_row_and_an_empty_baseline_fail() {
    let mut double = results();
    double.runs.push(double.runs[0].clone());
    assert!(!gated(&double, &results()).passed());
    let limits = GateOptions::parse(&["cost_usd=1000"], &[]).unwrap();
    for options in [GateOptions::default(), GateOptions::exact(), limits] {
        let report = gate(&results(), &Baseline::default(), &options);
        assert_eq!(report.faults, ["the baseline is empty, so nothing was compared"]);
    }
}

#[test]
fn a_new_row_that_breaks_rules_fails() {
    let report = gated(&testing::results(), &results());
    assert_eq!(failed(&report), ["integrity_failures"]);
}

#[test]
fn better_rows_are_told() {
    let mut new = results();
    codex(&mut new).summary.cost_usd *= 0.5;
    let report = gated(&new, &results());
    assert!(report.passed() && report.verdict().contains("store a new baseline"));
    codex(&mut new).summary.saved_pct = Some(0.0);
    let report = gated(&new, &results());
    assert!(!report.passed() && !report.verdict().contains("baseline,"));
}

#[test]
fn a_death_at_an_earlier_step_fails() {
    let mut new = results();
    let none = testing::labelled(&mut new, "none").next().unwrap();
    none.summary.steps_completed -= 1;
    none.summary.cost_usd *= 0.9;
    let report = gated(&new, &results());
    assert_eq!(failed(&report), ["status"]);
    let improved = report.with_outcome(Outcome::Improved).count();
    assert_eq!(improved, 0, "a shorter life is not a cheaper one");
}

/// Checks other than passes for a row with a changed baseline.
fn checks_of(
    base: impl Fn(&mut BaselineRow),
    new: impl Fn(&mut RunRecord),
) -> Vec<(Outcome, String)> {
    let mut baseline = Baseline::from_results(&results());
    base(baseline.rows.iter_mut().find(|r| r.strategy == "codex").unwrap());
    let mut changed = results();
    new(codex(&mut changed));
    let report = gate(&changed, &baseline, &GateOptions::default());
    let passes = |c: &&Check| c.outcome != Outcome::Pass;
    report.checks.iter().filter(passes).map(|c| (c.outcome, c.sentence())).collect()
}

#[test]
fn a_session_that_has_grown_or_shrunk_is_another_one_whatever_it_costs() {
    let said = |b: u64, n: u64| {
        format!(
            "login-bug × codex: another session than in the baseline ({b} → {n} recorded steps), \
             so its figures are not compared"
        )
    };
    for n in [24, 150] {
        let longer = |r: &mut RunRecord| {
            (r.summary.steps_completed, r.summary.steps_total) = (n, n);
            r.summary.cost_usd *= 75.0;
        };
        assert_eq!(checks_of(|_| {}, longer), [(Outcome::Fail, said(120, n))]);
    }
    // The baseline has no session length. A row that completed it cannot take more steps.
    let longer = |r: &mut RunRecord| r.summary.steps_completed = 150;
    assert_eq!(checks_of(|b| b.steps_total = None, longer), [(Outcome::Fail, said(120, 150))]);
}

#[test]
fn a_session_of_the_same_length_with_other_facts_is_another_one() {
    let said = "login-bug × codex: another session than in the baseline (same length, other texts or \
                facts), so its figures are not compared";
    let edited = |r: &mut RunRecord| r.scenario.content = "5".into();
    assert_eq!(checks_of(|_| {}, edited), [(Outcome::Fail, said.into())]);
    assert_eq!(checks_of(|b| b.content = "5".into(), edited), []);
}

#[test]
fn another_program_under_an_old_name_is_another_row() {
    let said = |b: &str, n: &str| {
        format!(
            "login-bug × codex: another program than in the baseline (`{b}` → `{n}`), so its \
             figures are not compared"
        )
    };
    let version = |r: &mut RunRecord| r.strategy.version = "0.170".into();
    assert_eq!(
        checks_of(|b| b.program = "codex 0.169".into(), version),
        [(Outcome::Fail, said("codex 0.169", "codex 0.170"))]
    );
    let command = |r: &mut RunRecord| {
        (r.strategy.version, r.strategy.command) = ("2".into(), Some("exec:python3 old.py".into()));
    };
    assert_eq!(
        checks_of(|b| b.program = "exec:python3 mine.py".into(), command),
        [(Outcome::Fail, said("exec:python3 mine.py", "exec:python3 old.py"))]
    );
    // A program may tell another version of itself: that is what the gate checks.
    assert_eq!(checks_of(|b| b.program = "exec:python3 old.py".into(), command), []);
}

#[test]
fn who_gets_further_in_the_same_session_is_better() {
    let died = |b: &mut BaselineRow| (b.status, b.steps_completed) = (Status::Overflow, 24);
    let further = "login-bug × codex: status overflow → completed, steps 24 → 120; its other \
                   figures are not compared";
    assert_eq!(checks_of(died, |_| {}), [(Outcome::Improved, further.to_string())]);
    let old = |b: &mut BaselineRow| (died(b), b.steps_total = None).1;
    assert_eq!(checks_of(old, |_| {}), [(Outcome::Improved, further.to_string())]);
    // More steps in a longer session are not an improvement.
    let longer = |r: &mut RunRecord| (r.summary.steps_completed, r.summary.steps_total) = (60, 200);
    let found = checks_of(died, |r| (r.status = Status::Overflow, longer(r)).1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == Outcome::Fail && found[0].1.contains("(120 → 200 recorded steps)"));
    // A run that was not begun has no session length to compare.
    let none = |b: &mut BaselineRow| {
        (b.status, b.steps_completed, b.steps_total) = (Status::Error, 0, None);
    };
    assert!(checks_of(none, |_| {}).iter().all(|(outcome, _)| *outcome == Outcome::Improved));
}

#[test]
fn absolute_limits_hold_for_products_only_and_add_to_the_tolerance() {
    let baseline = Baseline::from_results(&results());
    let run = |new: &Results, max: &[&str], min: &[&str]| {
        gate(new, &baseline, &GateOptions::parse(max, min).unwrap())
    };
    assert!(!run(&results(), &[], &["recall_pct=60"]).to_text().contains("keep-nothing: "));
    let mut worse = results();
    codex(&mut worse).summary.cost_usd *= 1.5;
    assert!(!run(&worse, &[], &[]).passed());
    assert!(!run(&worse, &["cost_usd=100"], &[]).passed());
    assert!(run(&results(), &["cost_usd=100"], &[]).passed());
    let nothing = run(&results(), &["trigger_error_tokens=5"], &[]);
    assert!(!nothing.passed() && nothing.to_text().contains("checked nothing"));
}
