//! Disks without room: what was there stays whole, what is said names the file and what to do, and
//! the same command is not refused for what it left.
#![cfg(unix)]

use std::process::{Command, Stdio};

use serde_json::json;

use crate::common::{Folder, jsonl};

const TWO: &str = "--strategy reference --strategy codex --transport direct --out out";

/// The command where no file may grow beyond some blocks of 512 bytes.
fn without_room(here: &Folder, blocks: u32, line: &str) -> (Option<i32>, String) {
    let ours = here.run(line).command();
    let mut limited = Command::new("sh");
    limited.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""));
    limited.arg(ours.get_program()).args(ours.get_args());
    limited.current_dir(here.path("")).stdin(Stdio::null());
    let out = limited.output().unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn without_room_what_was_there_stays_whole() {
    let here = Folder::new();
    here.run(&format!("run login-bug {TWO}")).ok();
    here.run("gate out --baseline base.json --store").ok();
    here.run("report out --format html -o page").ok();
    let before = here.files("");
    for line in [
        "gate out --baseline base.json --store",
        "report out --format html -o page",
        "report out --format json -o page",
    ] {
        let (code, said) = without_room(&here, 1, line);
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(said.contains("could not write it") && said.contains("has space"), "{said}");
        assert!(before == here.files(""), "`{line}` changed {:?}", here.files("").keys());
    }
}

#[test]
fn a_trace_without_room_costs_no_results() {
    let here = Folder::new();
    let out = here.run(&format!("run login-bug --trace /dev/full {TWO}")).fails_with(2);
    let words = ["--trace", "/dev/full: could not write it", "; the results are in out"];
    out.says(&words).prints(&["codex"]);
    assert_eq!(here.csv("out/summary.csv").len(), 2);
    assert!(!here.path("out.partial").exists());
}

#[test]
fn rows_that_were_finished_without_room_for_results_are_found_by_the_next_run() {
    let here = Folder::new();
    let line = format!("run login-bug --strategy reference {TWO} --jobs 1").replacen(
        "--strategy reference ",
        "",
        1,
    );
    here.run(&line).ok();
    let whole = here.json("out/results.json")["runs"].clone();
    let largest = std::fs::metadata(here.path("out/results.json")).unwrap().len();
    std::fs::remove_dir_all(here.path("out")).unwrap();

    // Room for each row, and none for all of them indented.
    let (code, said) = without_room(&here, (largest / 512) as u32, &line);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("out.partial, where the next run into this folder finds them"), "{said}");
    assert!(!here.path("out").exists());

    let other = "run login-bug-tight --strategy reference --transport direct --out out";
    here.run(other).ok().says(&[
        "note: an earlier run into out did not end",
        "the 2 rows that it finished are in out.interrupted",
    ]);
    assert_eq!(here.json("out.interrupted/results.json")["runs"], whole);
    here.run("compare out.interrupted out.interrupted").ok();
    assert!(!here.path("out.partial").exists());
    let again = here.run(other).ok();
    assert!(!again.stderr.contains("earlier run"), "{}", again.stderr);
}

/// A recording of Codex with an answer so long that it goes to the disk by itself.
fn rollout() -> String {
    let item = |role: &str, kind: &str, text: &str| {
        json!({"type": "response_item", "timestamp": "2026-01-01T00:00:01Z", "payload": {
            "type": "message", "role": role, "content": [{"type": kind, "text": text}]}})
    };
    jsonl(&[
        json!({"type": "session_meta", "timestamp": "2026-01-01T00:00:00Z", "payload": {
            "id": "x", "cwd": "/w", "originator": "codex_cli_rs", "cli_version": "0.1.0",
            "timestamp": "2026-01-01T00:00:00Z"}}),
        item("user", "input_text", "hello"),
        item("assistant", "output_text", &"word ".repeat(20_000)),
    ])
}

#[test]
fn an_import_without_room_names_its_file_and_leaves_what_was_there() {
    let here = Folder::new();
    here.write("rollout.jsonl", rollout());
    here.write("s.jsonl", "what was there");
    let line = "import rollout.jsonl -o s.jsonl";
    let before = here.files("");
    let (code, said) = without_room(&here, 1, line);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("s.jsonl: could not write it") && said.contains("has space"), "{said}");
    assert!(before == here.files(""), "{:?}", here.files("").keys());
}

#[test]
fn a_recording_that_cannot_begin_is_not_in_the_way_of_the_next() {
    let here = Folder::new();
    let line = "record --out r.jsonl -- true";
    let (code, said) = without_room(&here, 0, line);
    assert_eq!(code, Some(2), "{said}");
    let want = "check that its folder exists, may be written to and has space";
    assert!(said.contains("--out: r.jsonl") && said.contains(want), "{said}");
    assert!(!here.path("r.jsonl").exists());
    here.run(line).ok();
}

#[test]
fn pages_of_the_manual_are_whole_or_not_there() {
    let here = Folder::new();
    let (code, said) = without_room(&here, 1, "man -o new");
    assert!(code == Some(2) && said.contains("has space"), "{said}");
    here.run("man -o man").ok();
    let all = here.files("man");
    assert!(all.contains_key("ctxbench.1") && all.contains_key("ctxbench-sessions-list.1"));
    for (name, page) in here.files("new") {
        assert!(all[&name] == page, "{name} is half");
    }
    let (code, said) = without_room(&here, 1, "man -o man");
    assert!(code == Some(2) && said.contains("could not write it"), "{said}");
    assert!(here.files("man") == all);
}
