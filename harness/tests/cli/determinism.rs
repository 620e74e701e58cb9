//! The same sessions give the same bytes, regardless of transport and number of threads.

use crate::common;

use std::collections::BTreeMap;

use common::CommandFolder;

/// Runs with results in `name` and the trace in `name.jsonl`.
fn run(here: &CommandFolder, name: &str, arguments: &str) {
    here.run(&format!("run {arguments} --out {name} --trace {name}.jsonl")).ok();
}

/// Returns the result files without the timings, which depend on the machine.
fn results(here: &CommandFolder, name: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = here.files(name);
    // Stored rows contain durations.
    files.retain(|file, _| !file.starts_with(".rows/"));
    assert!(files.remove("timings.json").is_some(), "no timings.json in {name}");
    files
}

/// Checks that both runs have the same files with the same bytes, and the same trace.
fn assert_same(here: &CommandFolder, a: &str, b: &str) {
    let (left, right) = (results(here, a), results(here, b));
    assert_eq!(
        left.keys().collect::<Vec<_>>(),
        right.keys().collect::<Vec<_>>(),
        "{a} and {b} have different files"
    );
    for (file, bytes) in &left {
        assert!(bytes == &right[file], "{file} differs between {a} and {b}");
    }
    let (left, right) = (here.read(&format!("{a}.jsonl")), here.read(&format!("{b}.jsonl")));
    assert!(left.lines().count() > 10, "the trace of {a} is too short to say anything");
    assert!(left == right, "the traces of {a} and {b} differ");
}

#[test]
fn results_are_equal_over_transports_and_threads() {
    let here = CommandFolder::new();
    let sessions = "login-bug login-bug-tight";
    for (name, how) in [
        ("http-1", "--transport http --jobs 1"),
        ("http-3", "--transport http --jobs 3"),
        ("direct-1", "--transport direct --jobs 1"),
        ("direct-3", "--transport direct --jobs 3"),
    ] {
        run(&here, name, &format!("{sessions} {how}"));
    }
    for other in ["http-3", "direct-1", "direct-3"] {
        assert_same(&here, "http-1", other);
    }
}

#[test]
fn results_are_equal_in_any_order_of_arguments() {
    let here = CommandFolder::new();
    run(
        &here,
        "a",
        "login-bug login-bug-tight --strategy codex --strategy reference --transport direct",
    );
    run(
        &here,
        "b",
        "login-bug-tight login-bug --strategy reference --strategy codex --transport direct",
    );
    assert_same(&here, "a", "b");
}

#[test]
#[ignore = "nightly: slow"]
fn long_session_is_equal_with_one_and_two_threads() {
    let here = CommandFolder::new();
    let line = "login-bug-marathon --strategy reference --strategy codex --strategy claude-code \
        --transport direct";
    run(&here, "one", &format!("{line} --jobs 1"));
    run(&here, "two", &format!("{line} --jobs 2"));
    assert_same(&here, "one", "two");
}

#[test]
fn many_scenarios_are_equal_with_one_and_four_threads() {
    let here = CommandFolder::new();
    let line = "login-bug-tight compact-focus mind-changed window-8k summary-fails --summarizer \
        extractive --summarizer lossy --transport direct";
    run(&here, "one", &format!("{line} --jobs 1"));
    run(&here, "four", &format!("{line} --jobs 4"));
    assert_same(&here, "one", "four");
    let rows = here.csv("one/summary.csv");
    let with = |s: &str| rows.iter().filter(|r| r["summariser"] == s).count();
    assert!(
        with("extractive") > 20 && with("extractive") == with("lossy") && with("n/a") > 20,
        "too little was run to say anything"
    );
}

#[test]
fn second_run_into_a_folder_writes_equal_files() {
    let here = CommandFolder::new();
    let line = "login-bug --strategy codex --strategy reference --transport direct";
    run(&here, "out", line);
    let first = results(&here, "out");
    run(&here, "out", line);
    assert_eq!(first, results(&here, "out"));
    assert!(here.files("").keys().all(|f| f.starts_with("out")), "other files were written");
}

#[test]
fn lossy_summaries_depend_on_the_seed_only() {
    let here = CommandFolder::new();
    for (name, seed) in [("a", 1), ("b", 1), ("c", 2)] {
        run(
            &here,
            name,
            &format!(
                "login-bug-tight --strategy codex --strategy reference --summarizer lossy \
                 --transport direct --seeds {seed}"
            ),
        );
    }
    assert_same(&here, "a", "b");
    assert!(here.read("a.jsonl") != here.read("c.jsonl"), "another seed lost the same facts");
}
