//! `--seeds N..M`: rows that depend on a seed are repeated, all others run once, and a session
//! remains one session.

use crate::common;
use crate::determinism::assert_same;

use common::{CommandFolder, Row};
use serde_json::Value;

const RUN: &str = "run login-bug-tight --transport direct --strategy codex --strategy \
    sliding-window --strategy reference";

fn rows(here: &CommandFolder, out: &str) -> Vec<Row> {
    here.csv(&format!("{out}/summary.csv"))
}

/// Returns the rows of codex under a summariser, by seed.
fn codex<'a>(rows: &'a [Row], summariser: &str) -> Vec<&'a Row> {
    rows.iter().filter(|r| r["strategy"] == "codex" && r["summariser"] == summariser).collect()
}

#[test]
fn what_is_seeded_is_repeated_and_each_repetition_is_the_run_with_that_seed() {
    let here = CommandFolder::new();
    let both = format!("{RUN} --summarizer lossy --summarizer extractive");
    let several = format!("{both} --seeds 0..3 --out several --jobs 2 --details");
    let run = here.run(&several).ok();
    let all = rows(&here, "several");
    let seeds: Vec<(&str, &str, &str)> = all
        .iter()
        .map(|r| (r["strategy"].as_str(), r["summariser"].as_str(), r["seed"].as_str()))
        .collect();
    let want = [
        ("codex", "extractive", "n/a"),
        ("codex", "lossy", "0"),
        ("codex", "lossy", "1"),
        ("codex", "lossy", "2"),
        ("codex", "lossy", "3"),
        ("reference", "n/a", "n/a"),
        ("sliding-window", "n/a", "n/a"),
    ];
    assert_eq!(seeds, want);
    for file in ["requests.csv", "compactions.csv", "facts.csv"] {
        let mut rows = here.csv(&format!("several/{file}"));
        rows.retain(|r| r["summariser"] == "lossy");
        let is_seeded = rows.iter().all(|r| r["seed"] != "n/a");
        assert!(is_seeded && rows.iter().any(|r| r["seed"] == "3"), "{file}");
    }
    for (k, row) in codex(&all, "lossy").into_iter().enumerate() {
        here.run(&format!("{both} --seeds {k} --out one")).ok();
        let mut same = row.clone();
        same.remove("seed");
        assert_eq!(codex(&rows(&here, "one"), "lossy"), [&same], "seed {k}");
    }
    // The table has one row for all seeds, with their range. The seeds give different results.
    let kept: Vec<f64> =
        codex(&all, "lossy").iter().map(|r| r["recall_pct"].parse().unwrap()).collect();
    let low = kept.iter().copied().fold(f64::MAX, f64::min);
    let high = kept.iter().copied().fold(f64::MIN, f64::max);
    assert!(low < high, "four seeds lost the same facts: {kept:?}");
    let lossy = run.stdout.split("── login-bug-tight, summaries: lossy").nth(1).unwrap();
    let lossy = lossy.split("\n──").next().unwrap().split("\n\n").next().unwrap();
    assert_eq!(lossy.lines().filter(|l| l.starts_with("codex ")).count(), 1, "{lossy}");
    let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in ["mean of 4 seeds", &format!("recall % {low:.1}–{high:.1}")] {
        assert!(words.contains(told), "{words}");
    }
}

#[test]
fn seeds_of_a_session_are_averaged_and_not_counted_as_sessions() {
    let here = CommandFolder::new();
    here.run(&format!("{RUN} login-bug --summarizer lossy --seeds 7..11")).ok();
    let all = rows(&here, "ctxbench-out");
    let seeded = codex(&all, "lossy");
    let tight = seeded.iter().find(|r| r["scenario"] == "login-bug-tight").unwrap();
    assert_eq!(tight["seed"], "7");
    // Scripted sessions are not averaged, over seeds or not.
    assert_eq!(here.json("ctxbench-out/results.json")["differences"], Value::Null);
    // Later reports are consistent: formats that identify a row by its name have one row.
    here.run("report ctxbench-out --details").ok().prints(&["mean of 5 seeds"]);
    here.run("gate ctxbench-out --baseline base.json --store").ok();
    // Two scenarios with three strategies.
    assert_eq!(here.json("base.json")["rows"].as_array().unwrap().len(), 6);
    here.run("gate ctxbench-out --baseline base.json").ok();
}

#[test]
fn one_seed_is_what_was_there_before_and_what_is_not_seeded_is_run_once() {
    let here = CommandFolder::new();
    here.run(&format!("{RUN} --summarizer lossy --out plain")).ok();
    here.run(&format!("{RUN} --summarizer lossy --seeds 1 --out one")).ok();
    assert_same(&here, "plain", "one");
    assert!(rows(&here, "plain").iter().all(|r| !r.contains_key("seed")));
    here.run(&format!("{RUN} --out default")).ok();
    here.run(&format!("{RUN} --seeds 0..2 --out unseeded")).ok();
    assert_eq!(here.read("default/summary.csv"), here.read("unseeded/summary.csv"));
}
