//! The same sessions give the same bytes, regardless of transport, number of threads and order.

use std::collections::BTreeMap;

use crate::common::CommandFolder;

/// Runs with results in `name` and the trace in `name.jsonl`.
fn run(here: &CommandFolder, name: &str, arguments: &str) {
    here.run(&format!("run {arguments} --out {name} --trace {name}.jsonl")).ok();
}

/// Returns the files of a results folder without stored rows and times, which depend on the machine.
pub fn results(here: &CommandFolder, out: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = here.files(out);
    files.retain(|name, _| !name.starts_with(".rows/"));
    assert!(files.remove("timings.json").is_some(), "no timings.json in {out}");
    files
}

/// Checks that two results folders have the same files with the same bytes.
#[track_caller]
pub fn assert_same(here: &CommandFolder, a: &str, b: &str) {
    let (left, right) = (results(here, a), results(here, b));
    let [names, others] = [&left, &right].map(|files| files.keys().collect::<Vec<_>>());
    assert_eq!(names, others, "files of {a} and {b}");
    for (file, bytes) in &left {
        assert!(bytes == &right[file], "{file} differs between {a} and {b}");
    }
}

/// Checks that a run with each of these arguments gives the same results and the same trace.
fn assert_all_same(line: &str, variants: &[&str]) {
    let here = CommandFolder::new();
    for (n, variant) in variants.iter().enumerate() {
        run(&here, &format!("r{n}"), &format!("{line} {variant}"));
        let traces = [here.read("r0.jsonl"), here.read(&format!("r{n}.jsonl"))];
        assert!(traces[0].lines().count() > 10, "the trace of {line} is too short to say anything");
        assert!(traces[0] == traces[1], "{line}: the traces of {variants:?} differ");
        assert_same(&here, "r0", &format!("r{n}"));
    }
}

#[test]
fn results_are_equal_whatever_computes_them() {
    let both = "--strategy reference --strategy codex --transport direct";
    let doors = [
        "--transport http --jobs 1",
        "--transport http --jobs 3",
        "--transport direct --jobs 1",
        "--transport direct --jobs 3",
    ];
    assert_all_same("login-bug login-bug-tight", &doors);
    let orders = [
        format!("login-bug login-bug-tight {both}"),
        "login-bug-tight login-bug --strategy codex --strategy reference --transport direct".into(),
    ];
    assert_all_same("", &orders.each_ref().map(String::as_str));
    let many = "login-bug-tight compact-focus mind-changed window-8k summary-fails --summarizer \
        extractive --summarizer lossy --transport direct";
    assert_all_same(many, &["--jobs 1", "--jobs 4"]);
    // Lossy summaries depend on the seed only.
    let lossy = format!("login-bug-tight --summarizer lossy {both}");
    assert_all_same(&lossy, &["--seeds 1", "--seeds 1"]);
    let here = CommandFolder::new();
    for seed in ["1", "2"] {
        run(&here, seed, &format!("{lossy} --seeds {seed}"));
    }
    assert!(here.read("1.jsonl") != here.read("2.jsonl"), "another seed lost the same facts");
}

#[test]
#[ignore = "nightly: slow"]
fn long_session_is_equal_with_one_and_two_threads() {
    let line = "login-bug-marathon --strategy reference --strategy codex --strategy claude-code \
        --transport direct";
    assert_all_same(line, &["--jobs 1", "--jobs 2"]);
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
