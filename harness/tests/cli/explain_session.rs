//! Questions about a session: `explain --contents`, `--next`, `--rules` and `--lost`.

use std::process::Command;

use serde_json::Value;

use crate::common::{CommandFolder, Output, data, repository};
use crate::recompute::vocabulary;

/// A recording with idle times, changes of the model and two compactions.
const RECORDING: &str = "validate/claude-code-known-misses.jsonl";

/// Checks that the output fits into a terminal.
#[track_caller]
fn assert_fits(out: &Output, most: usize) {
    let lines = out.stdout.lines().count();
    assert!(lines <= most, "{lines} lines:\n{}", out.stdout);
    let wide = out.stdout.lines().find(|l| l.chars().count() > 80);
    assert_eq!(wide, None, "{}", out.stdout);
}

fn folder() -> CommandFolder {
    CommandFolder::with("r.jsonl", std::fs::read_to_string(data(RECORDING)).unwrap())
}

#[test]
fn contents_add_up_to_the_counters_that_validate_prints() {
    let here = folder();
    let out = here.run("explain r.jsonl --contents --out made").ok();
    assert_fits(&out, 25);
    let told = here.run("explain r.jsonl --contents --json").ok().json();
    let lines = here.run("validate r.jsonl --json").ok().json();
    let prompt = |call: &Value| {
        ["input", "read", "write"].map(|kind| call[kind].as_u64().unwrap()).iter().sum::<u64>()
    };
    let calls = lines["files"][0]["lines"].as_array().unwrap();
    let largest = calls.iter().map(prompt).max().unwrap();
    assert_eq!(told["peak_tokens"], largest);
    let rows = here.csv("made/contents.csv");
    let of_sum = rows.iter().filter(|r| r["adds_up"] == "yes");
    let tokens: u64 = of_sum.map(|r| r["peak_tokens"].parse::<u64>().unwrap()).sum();
    assert_eq!(tokens, largest);
    assert!(rows.iter().any(|r| r["kind"] == "tool" && r["name"] == "Read"));
    assert!(rows.iter().any(|r| r["kind"] == "file" && r["name"] == "/w/a.rs"));
}

#[test]
fn contents_are_recomputed_from_the_raw_file() {
    let here = folder();
    here.write("contents.json", here.run("explain r.jsonl --contents --json").ok().stdout);
    let mut script = Command::new("python3");
    script.arg(repository("tests/recompute/contents.py"));
    script.arg(here.path("r.jsonl")).arg(here.path("contents.json")).arg(vocabulary());
    let Ok(done) = script.output() else { return eprintln!("skipped: no python3") };
    let told = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
    if told.contains("No module named 'tomllib'") {
        return eprintln!("skipped: python3 is older than 3.11");
    }
    assert!(done.status.success(), "{told}");
    assert!(told.contains("tool Read"), "{told}");
}

#[test]
fn next_compares_a_warm_and_a_cold_cache_at_a_point() {
    let here = folder();
    let line = "explain r.jsonl --next --strategy claude-code";
    let out = here.run(line).ok();
    assert_fits(&out, 25);
    out.prints(&["continue ", "new session, your handoff ", "Cheapest for one call: "]);
    let early = here.run(&format!("{line} --at step:1 --json")).ok().json();
    let row = &early["rows"][0];
    assert_eq!((&early["at"], &row["label"]), (&"step:1".into(), &"continue".into()));
    let usd = |of: &str| row[of]["call_usd"].as_f64().unwrap();
    assert!(usd("cold") > usd("warm"), "{row}");
}

#[test]
fn rules_have_a_row_for_the_recording_and_each_strategy() {
    let here = CommandFolder::new();
    let line = "explain login-bug --rules --strategy none";
    let out = here.run(line).ok();
    assert_fits(&out, 25);
    out.prints(&["none "]);
    let told = here.run(&format!("{line} --json")).ok().json();
    let requests = told["rows"][0]["requests"].as_array().unwrap();
    assert!(requests.len() >= 12 && !told["rules"].as_array().unwrap().is_empty(), "{told}");
    let states = requests.iter().flat_map(|r| r["states"].as_array().unwrap());
    assert!(states.into_iter().all(|s| s.is_null() || s == "kept"), "{told}");
}

#[test]
fn questions_need_a_session_and_one_at_a_time() {
    let here = folder();
    here.refuses("explain r.jsonl --contents --next", &["cannot be used with"]);
    here.refuses("explain r.jsonl --at step:1", &["required"]);
    here.refuses("explain r.jsonl --next --at step:99", &["step:99 is not in the session"]);
}

#[test]
fn lost_needs_of_a_session_are_those_of_its_row_in_a_run() {
    let here = CommandFolder::new();
    let session = data("dataset/spotter-8463c716.jsonl.gz");
    let session = session.display();
    here.run(&format!("run {session} --strategy reference --transport direct --out out")).ok();
    let of_run = here.run("explain out --strategy as-recorded --lost").ok().stdout;
    assert!(of_run.contains("needed by"), "{of_run}");
    assert_eq!(here.run(&format!("explain {session} --lost")).ok().stdout, of_run);
    here.run("explain login-bug --lost --strategy codex").ok().prints(&["login-bug × codex"]);
    here.refuses("explain login-bug --lost", &["login-bug: no recording", "add --strategy"]);
    here.refuses("explain nothing --lost", &["nothing: cannot be read", "expected a results.json"]);
}
