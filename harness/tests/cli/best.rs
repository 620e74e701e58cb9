//! `ctxbench best` from outside: an answer with its reasons, for people and for machines.

use crate::common;

use common::Folder;

#[test]
fn scripted_sessions_rank_rows_and_decide_nothing() {
    let here = Folder::new();
    here.run(
        "run login-bug ten-compactions --strategy reference --strategy codex \
         --strategy sliding-window:high=[0.5,0.9] --transport direct",
    )
    .ok();
    let out = here.run("best ctxbench-out --max blocked_ms=600000").ok();
    out.prints(&[
        "Best by cost_usd with blocked_ms ≤ 600.0 s",
        "2 sessions, 0 recorded",
        "Undecided: 0 recordings in which one of these compacted; a choice takes 10.",
        "The price of being wrong: ",
        "meets all",
    ]);
    let json: serde_json::Value =
        serde_json::from_str(&here.run("best ctxbench-out --by needs_kept_pct --json").ok().stdout)
            .expect("JSON");
    assert_eq!(json[0]["verdict"]["is"], "undecided");
    assert_eq!(json[0]["halves"], 2_000);

    // The same means as the file of figures has.
    let rows = here.csv("ctxbench-out/summary.csv");
    for row in json[0]["rows"].as_array().expect("rows") {
        let label = row["strategy"].as_str().expect("a label");
        let own: Vec<f64> = rows
            .iter()
            .filter(|r| r["strategy"] == label)
            .map(|r| r["needs_kept_pct"].parse().expect("a number"))
            .collect();
        assert_eq!(own.len(), 2);
        let by = row["by"].as_f64().expect("a number");
        assert!((by - (own[0] + own[1]) / 2.0).abs() < 1e-4, "{label}: {by} {own:?}");
    }
}

#[test]
fn conditions_that_nobody_meets_fail_and_questions_without_sense_are_refused() {
    let here = Folder::new();
    here.run("run login-bug --strategy codex --strategy opencode --transport direct").ok();
    let out = here.run("best ctxbench-out --max cost_usd=0").fails_with(1);
    out.prints(&["No row meets that over all sessions.", "the least cost_usd"]);
    out.says(&["no row meets the conditions"]);
    for (arguments, words) in [
        ("ctxbench-out --by cost", "there is no metric `cost`; did you mean cost_"),
        ("ctxbench-out --by compactions", "neither more nor less of it is better"),
        ("ctxbench-out --min needs_kept_pct", "METRIC=NUMBER"),
        ("nowhere", "nowhere"),
    ] {
        let out = here.run(&format!("best {arguments}")).fails_with(2);
        assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
        out.says(&[words]);
    }
}

#[test]
fn a_narrow_terminal_has_six_columns_and_others_are_named() {
    let here = Folder::new();
    let run = "run login-bug --strategy reference --strategy codex --transport direct";
    let out = here.run(run).env("COLUMNS", "80").ok();
    assert!(out.stdout.lines().all(|l| l.chars().count() <= 80), "{}", out.stdout);
    assert!(!out.stdout.contains("prefix"), "{}", out.stdout.lines().next().unwrap_or(""));
    let out = here.run(&format!("{run} --columns input_tokens,needs_kept_pct")).ok();
    let head: Vec<&str> = out.stdout.lines().skip(1).take(2).collect();
    assert!(head[0].contains("input_") && head[1].contains("tokens"), "{head:?}");
    assert!(!head[0].contains("cost"), "{head:?}");
    here.run(&format!("{run} --columns input")).fails_with(2).says(&["did you mean input_tokens"]);
}
