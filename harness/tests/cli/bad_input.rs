//! Invalid input: exit code, message, and no output written.

use crate::common::{CLAUDE_CODE, CommandFolder, Row, jsonl};
use serde_json::{Value, json};

fn header() -> Value {
    json!({"type": "session", "version": 1, "id": "small"})
}

fn user(id: &str, text: &str) -> Value {
    json!({"type": "user", "id": id, "text": text})
}

fn reply(id: &str, text: &str) -> Value {
    json!({"type": "assistant", "id": id, "text": text})
}

fn call(id: &str, call: &str) -> Value {
    json!({"type": "assistant", "id": id, "text": "a \
        look", "calls": [{"id": call, "name": "read", "arguments": "{\"path\":\"a.ts\"}"}]})
}

fn result(call: &str, output: &str) -> Value {
    json!({"type": "tool", "call_id": call, "output": output})
}

fn good() -> String {
    jsonl(&[
        header(),
        user("u1", "read it"),
        call("a1", "c1"),
        result("c1", "const a = 1;"),
        reply("a2", "read"),
    ])
}

const TWO: &str = "--strategy reference --strategy codex --transport direct --out out";

#[test]
fn extreme_sessions_and_settings_complete() {
    // A context above the threshold in which the only result is empty.
    let asked = user("u1", &"word and more ".repeat(2_600));
    let session = [header(), asked, call("a1", "c1"), result("c1", ""), reply("a2", "done")];
    let here = CommandFolder::with("empty.jsonl", jsonl(&session));
    for line in [
        "run empty.jsonl --strategy claude-code@described-002 --window 12k",
        "run rewind-plain --strategy observation-masking:keep=4294967295",
    ] {
        here.run(&format!("{line} --transport direct --out out")).ok();
    }
}

#[test]
fn binary_files_are_refused() {
    let here = CommandFolder::new();
    // A fixed generator (x·5 + 3 modulo 256 yields every byte) after the magic number of an ELF
    // file.
    let mut garbage = vec![0x7f, b'E', b'L', b'F'];
    let mut x: u8 = 7;
    for _ in 0..4_000 {
        x = x.wrapping_mul(5).wrapping_add(3);
        garbage.push(x);
    }
    for name in ["garbage", "garbage.jsonl", "garbage.json", "garbage.toml"] {
        here.write(name, &garbage);
        here.refuses(&format!("run ./{name} --out out"), &[name, "expected"]);
    }
    here.refuses("import garbage.jsonl", &["garbage.jsonl"]);
}

#[test]
fn recording_with_torn_last_line_is_read_up_to_it() {
    let here = CommandFolder::new();
    let torn = format!("{CLAUDE_CODE}{{\"type\":\"user\",\"uuid\":\"9\",\"mess");
    here.write("claude.jsonl", torn);
    let out = here.run(&format!("run claude.jsonl {TWO}")).ok();
    out.stderr_contains(&["claude.jsonl:9", "breaks off"]);
    let rows = here.csv("out/summary.csv");
    assert!(rows.iter().all(|r| r["status"] == "completed"), "{rows:?}");
}

#[test]
fn doubled_lines_of_a_recording_are_taken_once() {
    let here = CommandFolder::with("once/claude.jsonl", CLAUDE_CODE);
    let doubled: String = CLAUDE_CODE.lines().map(|line| format!("{line}\n{line}\n")).collect();
    here.write("twice/claude.jsonl", doubled);
    let read = |folder: &str| here.run(&format!("import {folder}/claude.jsonl --to openai")).ok();
    let once = read("once");
    assert_eq!(read("twice").stdout, once.stdout);
}

#[test]
fn session_of_one_user_message_completes_with_every_strategy() {
    let here = CommandFolder::with("one.jsonl", jsonl(&[header(), user("u1", "hello")]));
    here.run("run one.jsonl --calibrate off --out out").ok();
    let rows = here.csv("out/summary.csv");
    let is_done = |r: &Row| r["status"] == "completed" && r["steps_completed"] == "0";
    assert!(rows.len() >= 11 && rows.iter().all(is_done), "{rows:?}");
    // "hello" is one token in o200k, and a block costs 4 more.
    assert_eq!(here.row("out", "reference")["peak_context_tokens"], "5");
}

#[test]
fn tool_result_of_ten_megabytes_has_a_row_per_strategy() {
    let line = "  at login (/srv/shop/src/auth.ts:41:17) expected 200, received 401\n";
    let output = line.repeat((10 << 20) / line.len() + 1);
    let lines = [
        header(),
        user("u1", "read it"),
        call("a1", "c1"),
        result("c1", &output),
        reply("a2", "read"),
        user("u2", "thanks"),
    ];
    let here = CommandFolder::with("big.jsonl", jsonl(&lines));
    here.run("run big.jsonl --out out --transport direct").ok();
    let rows = here.csv("out/summary.csv");
    assert!(rows.len() >= 11 && rows.iter().all(|r| r["status"] != "error"), "{rows:?}");
    // More than one token per ten bytes, which are more than a million tokens: no problem for the
    // reference, but five windows for `none`.
    let status = ["reference", "none"].map(|s| here.row("out", s)["status"].clone());
    assert_eq!(status, ["completed", "overflow"]);
}

#[test]
fn long_runs_of_one_character_are_counted() {
    let here = CommandFolder::new();
    for (name, letter) in [("blanks.jsonl", " "), ("letters.jsonl", "x")] {
        let lines = [
            header(),
            user("u1", "read it"),
            call("a1", "c1"),
            result("c1", &letter.repeat(1 << 20)),
            reply("a2", "read"),
        ];
        here.write(name, jsonl(&lines));
        here.run(&format!("run {name} {TWO}")).ok();
        let rows = here.csv("out/summary.csv");
        assert!(rows.iter().all(|r| r["status"] != "error"), "{name}: {rows:?}");
    }
}

#[test]
fn bad_input_leaves_earlier_results_unchanged() {
    let here = CommandFolder::with("good.jsonl", good());
    let run = "run good.jsonl --strategy reference --transport direct";
    here.run(&format!("{run} --out out --trace trace.jsonl")).ok();
    here.write("bad.jsonl", "{\"type\":\"session\",\"version\":1,\"id\":\"bad\"}\n{]\n{}\n");
    here.refuses("run bad.jsonl --out out --trace trace.jsonl", &["bad.jsonl:3"]);
    here.refuses("run good.jsonl --strategy codx --out out --trace trace.jsonl", &["codx"]);
    here.refuses("import bad.jsonl -o good.jsonl --force", &["bad.jsonl"]);
    here.write("rollout.jsonl", "{\"type\":\"session_meta\",\"payload\":{\"id\":\"x\"}}\n");
    here.refuses("import rollout.jsonl -o ./rollout.jsonl", &["rollout.jsonl itself"]);
}

#[test]
fn empty_or_repeated_standard_input_is_refused() {
    let here = CommandFolder::new();
    for line in ["run - --out out", "import -", "compact - --strategy codex"] {
        here.refuses(line, &["cannot read standard input: nothing came through"]);
        let out = here.run(line).piped("no session at all\n").fails_with(2);
        out.stderr_contains(&["stdin: not a "]);
        assert_eq!((out.stderr.lines().count(), out.stdout.as_str()), (1, ""), "{}", out.stderr);
    }
    let out = here.run("import - -").piped(CLAUDE_CODE).fails_with(2);
    out.stderr_contains(&["can be read only once", "1 of 2 could not be imported"]);
    let broken = good().replace("\"a1\"", "");
    let out = here.run(&format!("run - {TWO}")).piped(&broken).ok();
    out.stderr_contains(&["stdin:3: not a JSON object", "left out"]);
    let misspelt = good().replace("\"assistant\"", "\"assistent\"");
    here.run("run - --out out").piped(&misspelt).fails_with(2).stderr_contains(&["stdin:3"]);
}

#[test]
fn folder_without_sessions_says_what_it_has_instead() {
    let here = CommandFolder::with("notes/todo.md", "later\n");
    std::fs::create_dir(here.path("empty")).unwrap();
    here.run(&format!("run login-bug {TWO}")).ok();
    let expected = "expected session files (.jsonl, .json, .toml), databases of agents";
    for command in ["run", "advise", "import"] {
        here.refuses(&format!("{command} empty"), &["empty: the folder is empty", expected]);
        here.refuses(&format!("{command} notes"), &["notes: no session in it", expected]);
    }
    let results = ["out has the results of a run", "`ctxbench report out`", "ctxbench gate out"];
    here.refuses("run out --out other", &results);
    here.refuses("advise out", &results);
}

#[test]
fn options_name_the_value_that_they_expect() {
    let here = CommandFolder::new();
    let settings = "--settings: cannot read nosuch.toml: No such file";
    here.refuses("run login-bug --settings nosuch.toml", &[settings]);
    here.refuses("advise --settings nosuch.toml", &[settings]);
    for line in ["advise --last ten", "run login-bug --last 0", "run login-bug --sample 1.5"] {
        here.refuses(line, &["expected a whole number above 0, such as 10"]);
    }
}

/// Linux takes any bytes as a name.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf_8_is_named_with_what_to_do() {
    use std::os::unix::ffi::OsStrExt;
    let here = CommandFolder::new();
    let name = std::ffi::OsStr::from_bytes(b"a\xff.jsonl");
    std::fs::write(here.path("").join(name), good()).unwrap();
    for line in ["list sessions", "import"] {
        let out = here.run(line).command().arg(name).output().unwrap();
        let told = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2));
        let expected = "a\u{fffd}.jsonl: the name is not UTF-8; rename the file";
        assert!(told.contains(expected), "{line}: {told}");
    }
    here.run("list sessions .").ok().prints(&["a\u{fffd}.jsonl"]);
}
