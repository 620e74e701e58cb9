//! The main figures, recomputed from a trace by `tests/recompute/recompute.py`, a separate program
//! in another language, written from the description. Without Python 3.11 these tests print a note
//! and pass.

use std::path::{Path, PathBuf};
use std::process::Command;

use ctxbench_scenarios::autofacts;
use serde_json::{Value, json};

use crate::common::{CommandFolder, data, jsonl, recordings, repository};

/// Columns of `summary.csv` that the script compares.
const FIGURES: [&str; 7] = [
    "requests",
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "cost_usd",
    "prefix_stability",
];

/// Returns the path of the published vocabulary, which is part of our tokenizer package.
pub(crate) fn vocabulary() -> PathBuf {
    let told = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let told = String::from_utf8(told).unwrap();
    let host = told.lines().find_map(|l| l.strip_prefix("host: ")).expect("a host");
    let mut cargo = Command::new(env!("CARGO"));
    // Packages of other platforms may be missing on this machine.
    cargo.args(["metadata", "--format-version", "1", "--offline", "--filter-platform", host]);
    let out = cargo.current_dir(repository("")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let metadata: Value = serde_json::from_slice(&out.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|p| p["name"] == "tiktoken-rs").expect("a dependency");
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    manifest.with_file_name("assets").join("o200k_base.tiktoken")
}

fn run(here: &CommandFolder, line: &str) {
    here.run(&format!("run {line} --transport direct --trace run.trace --out out")).ok();
}

/// Returns what the script says about `run.trace` and the folder `out`. No figure may differ.
fn confirmed(here: &CommandFolder, more: &[&Path]) -> String {
    let (code, told) = recomputed(here, "out", more);
    assert_eq!(code, Some(0), "{told}");
    told
}

/// Runs the script on `run.trace` and a results folder. Returns exit code and output.
fn recomputed(here: &CommandFolder, out: &str, more: &[&Path]) -> (Option<i32>, String) {
    let mut script = Command::new("python3");
    script.arg(repository("tests/recompute/recompute.py"));
    script.arg(here.path("run.trace")).arg(here.path(out)).args(more);
    let done = script.output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(said).unwrap())
}

/// Returns the number of lines in the table with this name.
fn rows(told: &str, name: &str) -> usize {
    told.lines().filter(|l| l.trim_start().starts_with(&format!("{name} "))).count()
}

/// Bills of every sample, from the raw files and the price table.
#[test]
#[ignore = "needs python3 3.11 or later"]
fn recorded_dollars_of_every_sample() {
    let mut script = Command::new("python3");
    script.arg(repository("tests/recompute/bill.py")).arg(env!("CARGO_BIN_EXE_ctxbench"));
    for folder in ["recordings", "billing"] {
        let all = std::fs::read_dir(data(folder)).unwrap();
        let mut all: Vec<PathBuf> = all.map(|entry| entry.unwrap().path()).collect();
        all.sort();
        script.args(all);
    }
    let done = script.output().unwrap();
    let said = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.lines().filter(|l| !l.contains(": 0 calls")).count() > 20, "{said}");
}

#[test]
#[ignore = "needs python3 3.11 or later"]
fn every_strategy_on_a_scenario() {
    let here = CommandFolder::new();
    run(&here, "login-bug");
    let session = repository("scenarios/data/login-bug/scenario.toml");
    let vocabulary = vocabulary();
    let more = ["--session".as_ref(), &*session, "--vocabulary".as_ref(), &*vocabulary];
    let told = confirmed(&here, &more);
    assert!(!told.contains("undecided") && !told.contains("in part"), "{told}");
    let strategies = here.csv("out/summary.csv").len();
    assert!(strategies > 10, "{strategies}");
    for name in FIGURES.into_iter().chain(["texts counted again"]) {
        assert_eq!(rows(&told, name), strategies, "{name}:\n{told}");
    }
}

#[test]
#[ignore = "needs python3 3.11 or later"]
fn every_strategy_on_a_recording() {
    let here = CommandFolder::new();
    let recording = data("recordings/claude-code/spotter-8463c716.jsonl");
    run(&here, &recording.display().to_string());
    let told = confirmed(&here, &["--vocabulary".as_ref(), &*vocabulary()]);
    // One row consists of the recording's counters. In the other one the provider edits the
    // prompts.
    assert!(told.contains("in part or not at all: as-recorded, claude-code-api\n"), "{told}");
    let strategies = here.csv("out/summary.csv").len();
    assert_eq!(rows(&told, "cost_usd"), strategies - 1, "{told}");
    assert_eq!(rows(&told, "cache_read_tokens"), strategies - 2, "{told}");
}

/// Facts found in a recording, some of them without a literal. `keep-nothing` is excluded, because
/// it separates replies by their encrypted reasoning, while a trace only has texts.
#[test]
#[ignore = "needs python3 3.11 or later"]
fn needs_of_a_recording() {
    let here = CommandFolder::new();
    let mut session = recordings::session("codemie-rollout");
    autofacts::add(&mut session);
    assert!(session.facts.len() > 15);
    here.write("rollout.jsonl", session.to_jsonl().unwrap());
    let strategies =
        ["reference", "codex", "openoxide", "anthropic-sdk", "observation-masking", "aider"];
    let named: String = strategies.iter().map(|s| format!(" --strategy {s}")).collect();
    run(&here, &format!("rollout.jsonl{named}"));
    let session = here.path("rollout.jsonl");
    let told = confirmed(&here, &["--session".as_ref(), &*session]);
    assert!(told.contains("in part or not at all: as-recorded\n"), "{told}");
    assert_eq!(rows(&told, "recall"), strategies.len(), "{told}");
    let facts = here.csv("out/facts.csv");
    assert!(facts.iter().any(|r| r["found"] == "absent"), "no strategy forgets anything");
}

/// With 19 calls in one reply a lookback of 20 still reaches the breakpoint, with 20 calls it does
/// not. One pause ends before the short lifetime does, the other one after.
#[test]
#[ignore = "needs python3 3.11 or later"]
fn a_session_at_the_edges_of_the_prompt_cache() {
    let mut lines = vec![
        json!({"type": "session", "version": 1, "id": "edges"}),
        json!({"type": "system", "text": "A rule of the house. ".repeat(400)}),
    ];
    for (turn, (calls, idle)) in [(19, 0), (20, 299_000), (1, 301_000), (19, 0)].iter().enumerate()
    {
        let id = |call: usize| format!("c{turn}-{call}");
        let call = |c| json!({"id": id(c), "name": "read", "arguments": format!("{{\"n\":{c}}}")});
        let calls = 0..*calls;
        lines.push(json!({"type": "user", "id": format!("u{turn}"), "text": "Look further."}));
        let made: Vec<Value> = calls.clone().map(call).collect();
        lines.push(json!({"type": "assistant", "id": format!("a{turn}"), "calls": made}));
        for c in calls {
            let output = format!("Part {c} of {turn} is fine.");
            lines.push(json!({"type": "tool", "call_id": id(c), "output": output}));
        }
        lines.push(json!({"type": "assistant", "id": format!("b{turn}"), "text": "All fine."}));
        if *idle > 0 {
            lines.push(json!({"type": "idle", "ms": idle}));
        }
    }
    let here = CommandFolder::with("edges.jsonl", jsonl(&lines));
    run(&here, "edges.jsonl");
    let told = confirmed(&here, &[]);
    assert_eq!(rows(&told, "cache_read_tokens"), here.csv("out/summary.csv").len(), "{told}");
}

#[test]
#[ignore = "needs python3 3.11 or later"]
fn changed_figure_is_found() {
    let here = CommandFolder::new();
    run(&here, "login-bug --strategy codex --strategy reference");
    let session = repository("scenarios/data/login-bug/scenario.toml");
    let more = ["--session".as_ref(), &*session];
    let summary = here.read("out/summary.csv");
    here.write("changed/summary.csv", &summary);
    let facts = here.read("out/facts.csv");
    here.write("changed/facts.csv", &facts);
    let found = |wrong: &str| {
        let (code, told) = recomputed(&here, "changed", &more);
        assert_eq!(code, Some(1), "{wrong}:\n{told}");
        let found: Vec<&str> = told.lines().filter(|l| l.contains("DIFFERS")).collect();
        assert!(found.len() == 1 && found[0].contains(wrong), "{wrong}: {found:?}");
    };
    assert_eq!(recomputed(&here, "changed", &more).0, Some(0));
    for name in FIGURES {
        here.write("changed/summary.csv", changed(&summary, name));
        found(name);
    }
    here.write("changed/summary.csv", &summary);
    here.write("changed/facts.csv", facts.replacen(",verbatim,", ",absent,", 1));
    found("recall");
}

/// Increments a figure in the first row of a summary by 0.00001 if it has decimals, or else by 1.
fn changed(summary: &str, name: &str) -> String {
    let mut lines: Vec<String> = summary.lines().map(str::to_string).collect();
    let at = lines[0].split(',').position(|c| c == name).expect("a column of summary.csv");
    let mut cells: Vec<String> = lines[1].split(',').map(str::to_string).collect();
    let value: f64 = cells[at].parse().unwrap();
    let more = if cells[at].contains('.') { 0.00001 } else { 1.0 };
    cells[at] = (value + more).to_string();
    lines[1] = cells.join(",");
    lines.join("\n")
}
