//! What people get wrong: a clear message, the right exit code, and nothing written.

use crate::common;

use common::{Folder, Output, jsonl};
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

/// A small session that is as it should be.
fn good() -> String {
    jsonl(&[
        header(),
        user("u1", "read it"),
        call("a1", "c1"),
        result("c1", "const a = 1;"),
        reply("a2", "read"),
    ])
}

/// The command ends with code 2, says these words, prints no results and leaves the folder as it
/// was.
#[track_caller]
fn refuses(here: &Folder, line: &str, words: &[&str]) -> Output {
    let before = here.files("");
    let out = here.run(line).fails_with(2);
    out.says(words);
    assert_eq!(out.stdout, "", "`{line}` printed results");
    assert!(before == here.files(""), "`{line}` wrote something: {:?}", here.files("").keys());
    out
}

/// Runs a session of these bytes with two strategies and gives back what was said.
#[track_caller]
fn accepts(here: &Folder, file: &str, content: &str) -> Output {
    here.write(file, content);
    let out = here
        .run(&format!(
            "run {file} --strategy reference --strategy codex --transport direct --out out"
        ))
        .ok();
    assert!(
        here.csv("out/summary.csv").iter().all(|r| r["status"] == "completed"),
        "{}",
        here.read("out/summary.csv")
    );
    out
}

#[test]
fn a_name_that_does_not_exist_is_answered_with_the_nearest() {
    let here = Folder::new();
    refuses(&here, "run login-bug --strategy codx", &["codx", "did you mean codex?"]);
    refuses(
        &here,
        "run login-bug --strategy codex:auto_compact_limt=9",
        &["auto_compact_limt", "did you mean auto_compact_limit"],
    );
    refuses(&here, "run login-bug --strategy codex@9.9", &["9.9", "0.169"]);
    refuses(&here, "run login-bgu", &["login-bgu", "did you mean login-bug"]);
    refuses(
        &here,
        "run login-bug --model claude-sonet-4-6",
        &["claude-sonet-4-6", "claude-sonnet-4-6"],
    );
    refuses(&here, "run login-bug --summarizer ideel", &["ideel", "ideal"]);
    refuses(
        &here,
        "run login-bug --transport carrier-pigeon",
        &["carrier-pigeon", "http", "direct"],
    );
    refuses(&here, "show codx", &["did you mean codex?"]);
    refuses(&here, "compact login-bug --strategy codx", &["did you mean codex?"]);
    refuses(&here, "rnu login-bug", &["unrecognized subcommand 'rnu'", "'run'"]);
}

#[test]
fn unknown_name_is_answered_without_a_long_list() {
    let here = Folder::new();
    for (line, said) in [
        (
            "run nonsuch",
            "error: no file, folder or built-in scenario is called \"nonsuch\"; `ctxbench list \
             scenarios` shows what is built in",
        ),
        (
            "run login-bug --strategy codx",
            "error: there is no strategy `codx`; did you mean codex?",
        ),
        ("run codex", "error: \"codex\" is a strategy and no session; give it as --strategy codex"),
        ("run gpt-5.5", "error: \"gpt-5.5\" is a model and no session; give it as --model gpt-5.5"),
    ] {
        assert_eq!(here.run(line).fails_with(2).stderr.trim_end(), said, "{line}");
    }
    let out = here.run("run login-bug --model foo").fails_with(2);
    out.says(&["there is no model `foo`; `ctxbench list models` shows all", "--models FILE"]);
    assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
}

#[test]
fn a_setting_of_the_wrong_kind_is_refused() {
    let here = Folder::new();
    refuses(
        &here,
        "run login-bug --strategy codex:auto_compact_limit=many",
        &["auto_compact_limit", "many"],
    );
    refuses(&here, "run login-bug --strategy codex:auto_compact_limit", &["auto_compact_limit"]);
    refuses(
        &here,
        "run login-bug --strategy codex:auto_compact_limit=0",
        &["`auto_compact_limit` of `codex` takes a number of tokens above 0", "not `0`"],
    );
    refuses(
        &here,
        "run login-bug --strategy codex:auto_compact_limit=0.0000001%",
        &["0.01% to 100% of the window", "not `0.0000001%`"],
    );
    refuses(
        &here,
        "run login-bug --strategy claude-code:threshold_percent=500",
        &["`threshold_percent` of `claude-code` takes a whole number from 0 to 100, not `500`"],
    );
    refuses(&here, "run login-bug --strategy opencode:prune=perhaps", &["prune", "perhaps"]);
}

#[test]
fn the_same_row_twice_is_refused() {
    let here = Folder::new();
    refuses(&here, "run login-bug --strategy codex --strategy codex", &["codex", "twice"]);
    refuses(&here, "run login-bug login-bug --strategy codex", &["login-bug"]);
    refuses(
        &here,
        "run login-bug --model claude-sonnet-4-6 --model claude-sonnet-4-6",
        &["claude-sonnet-4-6", "twice"],
    );
}

#[test]
fn numbers_out_of_range_are_refused() {
    let here = Folder::new();
    refuses(&here, "run login-bug --window 0", &["--window", "above 0"]);
    refuses(&here, "run login-bug --window -5", &["--window"]);
    refuses(&here, "run login-bug --sample -1", &["--sample"]);
    let drive = "drive login-bug --agent codex --timeout";
    refuses(&here, &format!("{drive} -5"), &["argument"]);
    for shard in ["3/2", "0/2", "1/0", "1", "a/b", "1/2/3"] {
        refuses(&here, &format!("run login-bug --shard {shard}"), &["--shard", shard, "1/3"]);
    }
    for jobs in ["0", "-1"] {
        refuses(
            &here,
            &format!("run login-bug --jobs {jobs}"),
            &["--jobs"],
        );
    }
    let validate = "validate login-bug --min";
    refuses(&here, &format!("{validate} abc"), &["--min", "a share in per cent, 0 to 100"]);
    refuses(&here, &format!("{validate} 101"), &["--min", "a share in per cent, 0 to 100"]);
}

#[test]
fn a_broken_line_of_a_session_is_named_by_file_and_line() {
    let here = Folder::new();
    let lines: Vec<String> = good().lines().map(str::to_string).collect();
    let with = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines[at] = line.to_string();
        lines.join("\n")
    };
    here.write("broken.jsonl", with(2, "{\"type\":\"assistant\" \"id\":\"a1\"}"));
    refuses(
        &here,
        "run broken.jsonl --out out",
        &["broken.jsonl:3", "expected one JSON object per line"],
    );
    refuses(&here, "compact broken.jsonl --strategy codex", &["broken.jsonl:3"]);
    here.write("unknown.jsonl", with(1, "{\"type\":\"usr\",\"id\":\"u1\",\"text\":\"x\"}"));
    refuses(
        &here,
        "run unknown.jsonl --out out",
        &["unknown.jsonl:2", "usr", "did you mean user?"],
    );
    here.write("untyped.jsonl", with(1, "{\"id\":\"u1\"}"));
    refuses(&here, "run untyped.jsonl --out out", &["untyped.jsonl:2", "type"]);
    here.write("later.jsonl", with(0, "{\"type\":\"session\",\"version\":9,\"id\":\"small\"}"));
    refuses(
        &here,
        "run later.jsonl --out out",
        &["later.jsonl:1", "version 9", "expected version 1"],
    );
    here.write(
        "wide.jsonl",
        with(0, "{\"type\":\"session\",\"version\":1,\"id\":\"small\",\"context_window\":\"big\"}"),
    );
    let field = [
        "wide.jsonl:1",
        "\"context_window\": it is the text \"big\"; expected a whole number from 0 on",
    ];
    refuses(&here, "run wide.jsonl --out out", &field);
    here.write(
        "late.jsonl",
        with(0, "{\"type\":\"session\",\"version\":1,\"id\":\"small\",\"started\":\"not a date\"}"),
    );
    let field = ["late.jsonl:1", "\"started\" is \"not a date\"", "2026-03-01T12:00:00Z"];
    refuses(&here, "run late.jsonl --out out", &field);
    here.write("twice.jsonl", with(4, "{\"type\":\"user\",\"id\":\"u1\",\"text\":\"again\"}"));
    refuses(&here, "run twice.jsonl --out out", &["twice.jsonl:5", "u1", "line 2"]);
}

#[test]
fn a_broken_line_of_a_scenario_is_named_by_file_and_line() {
    let here = Folder::new();
    here.write("broken.toml", "id = \"x\"\n\n[[step]]\ntype = \"user\"\ntext = hello\n");
    refuses(&here, "run broken.toml --out out", &["broken.toml:5", "TOML"]);
    let quotes = "text: hello has no quotes; a text stands in them: \"hello\"";
    refuses(&here, "run broken.toml --out out", &[quotes]);
    here.write("unknown.toml", "id = \"x\"\n[[step]]\ntype = \"usr\"\ntext = \"hello\"\n");
    refuses(&here, "run unknown.toml --out out", &["unknown.toml:", "usr", "user"]);
    here.write(
        "key.toml",
        "id = \"x\"\nscael = 0.5\n[[step]]\ntype = \"user\"\ntext = \"hello\"\n",
    );
    refuses(&here, "run key.toml --out out", &["key.toml:2", "scael", "did you mean scale?"]);
    here.write("wide.toml", "id = \"x\"\nwindow = \"big\"\n");
    refuses(&here, "run wide.toml --out out", &["wide.toml:2", "did you mean context_window?"]);
    here.write("lost.toml", "id = \"x\"\n[[step]]\ntype = \"user\"\nfile = \"lost.txt\"\n");
    refuses(&here, "run lost.toml --out out", &["lost.toml:", "lost.txt"]);
    here.write("circle.toml", "id = \"x\"\nextends = \"circle.toml\"\n");
    let out = refuses(&here, "run circle.toml --out out", &["circle.toml:2", "break the circle"]);
    assert!(out.stderr.len() < 250, "{}", out.stderr);
    let expecting = |table: &str| {
        let step = "[[step]]\ntype = \"user\"\ntext = \"hello\"\n";
        here.write("expect.toml", format!("id = \"x\"\n{step}{table}\n"));
        "run expect.toml --out out"
    };
    for (table, said) in [
        (
            "[expect.codex]\ncost_usd = { mx = 1 }",
            "expect.toml:6: unknown key \"mx\"; expected a key of a range; known are min, max",
        ),
        (
            "[expect.codex]\ncost_us = 1",
            "expect.toml:6: [expect.codex]: no metric is called `cost_us`; did you mean cost_usd",
        ),
        (
            "[expect.codex]\nstatus = { min = 1 }",
            "expect.toml:6: [expect.codex]: `status` is expected to be at least 1, but holds a word",
        ),
        (
            "[expect.codex]\ncost_usd = \"cheap\"",
            "`cost_usd` is expected to be cheap, but holds a number (at least 0), \"n/a\"; correct",
        ),
        (
            "[expect.codex]\nretention_pct = { min = 101 }",
            "but holds a number (from 0 to 100), \"n/a\"; correct the value",
        ),
        (
            "[expect.codex]\nsteps_total = nan",
            "expect.toml:6: nan is not a number that can be measured; expected a finite number",
        ),
    ] {
        refuses(&here, expecting(table), &[said]);
    }
    let order = "[[step]]\ntype = \"assistant\"\ntext = \"42\"\n[[fact]]\nid = \"f\"\nkind = \"value\"\ntokens = [\"42\"]\narises = \"m2\"\nneeds = [\"m1\"]";
    refuses(
        &here,
        expecting(order),
        &[
            "expect.toml:8: fact \"f\" is needed in \"m1\" and arises in \"m2\"; expected needs that",
        ],
    );
}

#[test]
fn edges_of_sessions_and_settings_run() {
    let here = Folder::new();
    // A context above the threshold in which the only result is empty.
    let call = json!({"id": "c1", "name": "bash", "arguments": "{}"});
    let session = [
        header(),
        user("u1", &"word and more ".repeat(2_600)),
        json!({"type": "assistant", "id": "a1", "text": "a", "calls": [call]}),
        json!({"type": "tool", "call_id": "c1", "output": ""}),
        json!({"type": "assistant", "id": "a2", "text": "done"}),
    ];
    here.write("empty.jsonl", jsonl(&session));
    for line in [
        "run empty.jsonl --strategy claude-code@described-002 --window 12k",
        "run rewind-plain --strategy observation-masking:keep=18446744073709551615",
    ] {
        here.run(&format!("{line} --transport direct --out out")).ok();
    }
}

#[test]
fn what_holds_no_session_is_refused_and_says_what_was_expected() {
    let here = Folder::new();
    here.write("empty.jsonl", "");
    refuses(&here, "run empty.jsonl --out out", &["empty.jsonl", "the file is empty"]);
    here.write("blank.jsonl", "\n  \n\n");
    refuses(&here, "run blank.jsonl --out out", &["blank.jsonl", "the file is empty"]);
    here.write("header.jsonl", jsonl(&[header()]));
    refuses(&here, "run header.jsonl --out out", &["header.jsonl", "no messages"]);
    refuses(&here, "compact header.jsonl --strategy codex", &["header.jsonl", "no messages"]);
    here.write("empty.toml", "id = \"x\"\n");
    refuses(&here, "run empty.toml --out out", &["empty.toml", "no messages"]);
    here.write("other.jsonl", "{\"a\":1}\n{\"b\":2}\n");
    refuses(&here, "run other.jsonl --out out", &["other.jsonl:1", "expected"]);
    here.write("folder/readme.txt", "nothing to see");
    refuses(&here, "run folder --out out", &["folder", "expected"]);
    refuses(&here, "run nowhere.jsonl --out out", &["nowhere.jsonl"]);
    refuses(&here, "run no/where --out out", &["no/where"]);
    refuses(&here, "import empty.jsonl", &["empty.jsonl: the file is empty"]);
    refuses(&here, "import other.jsonl --format coddex", &["coddex", "codex"]);
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let here = Folder::new();
    // A fixed generator (x·5 + 3 modulo 256 runs through every byte) behind the head of an ELF
    // file.
    let mut garbage = vec![0x7f, b'E', b'L', b'F'];
    let mut x: u8 = 7;
    for _ in 0..4_000 {
        x = x.wrapping_mul(5).wrapping_add(3);
        garbage.push(x);
    }
    for name in ["garbage", "garbage.jsonl", "garbage.json", "garbage.toml"] {
        here.write(name, &garbage);
        refuses(&here, &format!("run ./{name} --out out"), &[name, "expected"]);
    }
    refuses(&here, "import garbage.jsonl", &["garbage.jsonl"]);
    let mut latin = good().into_bytes();
    let at = latin.windows(7).position(|w| w == b"read it").unwrap();
    latin[at] = 0xe9;
    here.write("latin.jsonl", latin);
    refuses(&here, "run latin.jsonl --out out", &["latin.jsonl:2", "UTF-8"]);
    here.write("latin.toml", b"id = \"caf\xe9\"\n");
    refuses(&here, "run latin.toml --out out", &["latin.toml", "UTF-8"]);
}

#[test]
fn a_recording_whose_last_line_breaks_off_is_used_as_far_as_it_is_whole() {
    let here = Folder::new();
    let whole =
        jsonl(&[header(), user("u1", "read it"), call("a1", "c1"), result("c1", "const a = 1;")]);
    let out =
        accepts(&here, "cut.jsonl", &format!("{whole}{{\"type\":\"assistant\",\"id\":\"a2\",\"te"));
    out.says(&["cut.jsonl:5", "breaks off"]);
    assert!(
        here.csv("out/summary.csv").iter().all(|r| r["steps_total"] == "1"),
        "{}",
        here.read("out/summary.csv")
    );
    let transcript = concat!(
        r#"{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"find it"}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"found"}]}}"#,
        "\n",
        r#"{"type":"user","uuid":"3","parentUuid":"2","sessionId":"s","mess"#
    );
    accepts(&here, "claude.jsonl", transcript).says(&["claude.jsonl:3", "breaks off"]);
}

#[test]
fn a_call_without_a_result_and_a_result_without_a_call_are_told_and_survived() {
    let here = Folder::new();
    let lines = [
        header(),
        user("u1", "read it"),
        call("a1", "c1"),
        user("u2", "never mind"),
        reply("a2", "as you wish"),
    ];
    accepts(&here, "call.jsonl", &jsonl(&lines)).says(&["call.jsonl:3", "c1", "no result"]);
    let lines =
        [header(), user("u1", "read it"), result("ghost", "boo"), reply("a1", "what was that?")];
    accepts(&here, "result.jsonl", &jsonl(&lines)).says(&["result.jsonl:3", "ghost", "left out"]);
}

#[test]
fn a_session_of_one_user_message_works_with_every_strategy() {
    let here = Folder::new();
    here.write("one.jsonl", jsonl(&[header(), user("u1", "hello")]));
    here.run("run one.jsonl --calibrate off --out out").ok();
    let rows = here.csv("out/summary.csv");
    assert!(
        rows.len() >= 11
            && rows.iter().all(|r| r["status"] == "completed" && r["steps_total"] == "0")
    );
    // "hello" is one token in o200k, a block costs 4 more.
    assert!(rows.iter().any(|r| r["strategy"] == "reference" && r["peak_context_tokens"] == "5"));
}

#[test]
fn a_tool_result_of_ten_megabytes_gives_a_row_for_every_strategy() {
    let here = Folder::new();
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
    here.write("big.jsonl", jsonl(&lines));
    here.run("run big.jsonl --out out --transport direct").ok();
    let rows = here.csv("out/summary.csv");
    assert!(
        rows.len() >= 11 && rows.iter().all(|r| r["status"] != "error"),
        "{}",
        here.read("out/summary.csv")
    );
    let status =
        |strategy: &str| rows.iter().find(|r| r["strategy"] == strategy).unwrap()["status"].clone();
    // More than a token for every ten bytes is more than a million tokens: no limit for the
    // reference, five windows for `none`.
    assert_eq!((status("reference").as_str(), status("none").as_str()), ("completed", "overflow"));
}

#[test]
fn a_long_run_of_blanks_or_of_one_letter_is_counted_too() {
    let here = Folder::new();
    for (name, letter) in [("blanks.jsonl", " "), ("letters.jsonl", "x")] {
        let lines = [
            header(),
            user("u1", "read it"),
            call("a1", "c1"),
            result("c1", &letter.repeat(1 << 20)),
            reply("a2", "read"),
        ];
        here.write(name, jsonl(&lines));
        here.run(&format!(
            "run {name} --strategy reference --strategy codex --transport direct --out out"
        ))
        .ok();
        assert!(
            here.csv("out/summary.csv").iter().all(|r| r["status"] != "error"),
            "{name}: {}",
            here.read("out/summary.csv")
        );
    }
}

#[test]
fn a_foreign_folder_is_refused_before_the_run_and_stays_as_it_is() {
    let here = Folder::new();
    here.write("thesis/chapter1.tex", "years of work");
    refuses(&here, "run --out thesis", &["thesis", "was not made by ctxbench"]);
    here.write("file", "x");
    refuses(&here, "run login-bug --out file", &["file", "is not a folder"]);
    refuses(&here, "run login-bug --out file/below", &["file"]);
}

#[test]
fn a_trace_that_cannot_be_written_is_refused_before_the_run() {
    let here = Folder::new();
    let line = "run login-bug --strategy reference --transport direct --out out --trace \
        no/such/folder/trace.jsonl";
    refuses(&here, line, &["no/such/folder/trace.jsonl"]);
    // What other options take for standard output is no file of that name.
    for option in ["--trace", "--status", "--summarizer openai+http://localhost:9/v1#m --cassette"]
    {
        let line = format!("run login-bug --strategy reference --out out {option} -");
        let name = option.rsplit(' ').next().unwrap();
        refuses(&here, &line, &[name, "- is not taken for standard output here; name a file"]);
    }
}

#[test]
fn an_empty_file_is_called_empty() {
    let here = Folder::new();
    here.write("empty.json", "\n");
    for command in ["run", "validate", "report"] {
        refuses(&here, &format!("{command} empty.json"), &["empty.json", "the file is empty"]);
    }
    here.write("prose.json", "This is no result.");
    refuses(&here, "report prose.json", &["prose.json, line 1, column 1: this is no JSON"]);
    here.write("prose.json", "{}");
    refuses(&here, "report prose.json", &["`version` is missing; expected results as written"]);
}

#[test]
fn bad_input_leaves_the_results_of_an_earlier_run_alone() {
    let here = Folder::new();
    here.write("good.jsonl", good());
    here.run(
        "run good.jsonl --strategy reference --transport direct --out out --trace trace.jsonl",
    )
    .ok();
    here.write("bad.jsonl", "{\"type\":\"session\",\"version\":1,\"id\":\"bad\"}\n{]\n{}\n");
    refuses(&here, "run bad.jsonl --out out --trace trace.jsonl", &["bad.jsonl:2"]);
    refuses(&here, "run good.jsonl --strategy codx --out out --trace trace.jsonl", &["codx"]);
    refuses(&here, "import bad.jsonl -o good.jsonl", &["bad.jsonl"]);
    here.write("rollout.jsonl", "{\"type\":\"session_meta\",\"payload\":{\"id\":\"x\"}}\n");
    refuses(&here, "import rollout.jsonl -o ./rollout.jsonl", &["rollout.jsonl itself"]);
}

#[test]
fn results_of_another_version_or_none_at_all_are_refused() {
    let here = Folder::new();
    here.write("new.json", "{\"version\": 7, \"shape\": \"unknown\"}");
    for line in
        ["report new.json", "compare new.json new.json", "gate new.json --baseline new.json"]
    {
        refuses(&here, line, &["new.json", "version 7", "expected version 1", "newer ctxbench"]);
    }
    here.write("broken.json", "{\n  \"version\": 1,\n  \"runs\": nope\n}");
    refuses(&here, "report broken.json", &["broken.json, line 3"]);
    refuses(&here, "report nowhere", &["nowhere", "expected a results.json"]);
}

#[test]
fn a_scenario_cannot_show_files_outside_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("secret.txt"), "nobody should see this").unwrap();
    std::fs::create_dir(dir.path().join("inner")).unwrap();
    let toml = "id = \"x\"\n[[step]]\ntype = \"user\"\nfile = \"../secret.txt\"\n";
    std::fs::write(dir.path().join("inner/scenario.toml"), toml).unwrap();
    let error = ctxbench_scenarios::load(&dir.path().join("inner/scenario.toml").to_string_lossy())
        .unwrap_err()
        .to_string();
    assert!(error.contains("outside the scenario's folder"), "{error}");
}

#[test]
fn a_setting_that_names_a_model_needs_one_that_exists_at_the_same_provider() {
    let here = Folder::new();
    refuses(
        &here,
        "run login-bug --strategy opencode:model=claude-haiku-4-6",
        &["opencode", "claude-haiku-4-6", "claude-haiku-4-5"],
    );
    refuses(
        &here,
        "run login-bug --strategy aider:weak_model=gpt-5.4",
        &["gpt-5.4", "is not of the provider of claude-sonnet-4-6"],
    );
}

#[test]
fn standard_input_is_read_once_and_must_hold_something() {
    let here = Folder::new();
    for line in ["run - --out out", "import -", "compact - --strategy codex"] {
        refuses(&here, line, &["cannot read standard input: nothing came through"]);
        let out = here.run(line).piped("no session at all\n").fails_with(2);
        out.says(&["stdin: not a "]);
        assert_eq!((out.stderr.lines().count(), out.stdout.as_str()), (1, ""), "{}", out.stderr);
    }
    let out = here.run("import - -").piped(claude()).fails_with(2);
    out.says(&["can be read only once", "1 of 2 could not be imported"]);
    let broken = good().replace("\"a1\"", "");
    here.run("run - --out out").piped(&broken).fails_with(2).says(&["stdin:3"]);
}

/// A transcript of Claude Code.
fn claude() -> String {
    concat!(
        r#"{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"find it"}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"found"}]}}"#,
        "\n"
    )
    .to_string()
}

#[test]
fn of_several_recordings_the_good_are_written_and_each_bad_one_is_a_line() {
    let here = Folder::new();
    here.write("good.jsonl", claude());
    here.write("empty.jsonl", "");
    here.write("noise.txt", "noise\n");
    let line = "import good.jsonl empty.jsonl noise.txt nowhere.jsonl -o";
    let out = here.run(&format!("{line} all/")).fails_with(2);
    assert_eq!(out.stdout, "all/good.jsonl: 2 messages of good.jsonl\n");
    out.says(&[
        "error: empty.jsonl: the file is empty",
        "error: noise.txt: not a recording",
        "error: cannot read nowhere.jsonl: No such file",
        "1 session in all",
        "error: 3 of 4 could not be imported",
    ]);
    for name in ["empty.jsonl:", "noise.txt:", "nowhere.jsonl:"] {
        assert_eq!(out.stderr.matches(name).count(), 1, "{}", out.stderr);
    }
    assert!(here.path("all/good.jsonl").is_file());
    // As one file, too; and what is all bad leaves what is there.
    here.run(&format!("{line} one.jsonl")).fails_with(2);
    assert_eq!(here.read("one.jsonl"), here.read("all/good.jsonl"));
    refuses(&here, "import empty.jsonl noise.txt -o one.jsonl", &["2 of 2 could not be imported"]);
    refuses(&here, "import empty.jsonl -o fresh", &["empty.jsonl: the file is empty"]);
}

#[test]
fn a_format_to_write_that_does_not_exist_tells_the_nearest() {
    let here = Folder::new();
    here.write("good.jsonl", claude());
    refuses(&here, "import good.jsonl --to antropic", &["antropic", "did you mean anthropic?"]);
    here.write("two.jsonl", good() + &good());
    let out = here.run("import two.jsonl --to atif -o two.json").fails_with(2);
    out.says(&["ATIF holds one session per file", "-o DIR/"]);
    assert!(!here.path("two.json").exists());
}

#[test]
fn what_is_wrong_is_said_once_and_in_a_line() {
    let here = Folder::new();
    here.write("noise.txt", "noise\n");
    here.write("empty/x.txt", "");
    here.run("run login-bug --strategy reference --transport direct --out out").ok();
    for (line, said) in [
        ("import nowhere", "no file, folder or built-in scenario is called \"nowhere\""),
        ("import ./nowhere", "cannot read ./nowhere: No such file"),
        ("import noise.txt", "noise.txt: not a recording"),
        ("import empty", "empty: not a known format"),
        ("run nowhere.jsonl", "cannot read nowhere.jsonl: No such file"),
        ("compact nowhere/x", "cannot read nowhere/x: No such file"),
        ("validate nowhere", "nowhere:1: it cannot be read (No such file"),
        ("validate noise.txt", "noise.txt:1: not a format whose counters are known"),
        ("serve --script nowhere.jsonl", "cannot read nowhere.jsonl: No such file"),
        ("report nowhere --format csv", "nowhere: cannot be read (No such file"),
        ("report nowhere", "nowhere: cannot be read (No such file"),
        ("compare out nowhere", "nowhere: cannot be read (No such file"),
        ("gate nowhere --baseline b.json", "nowhere: cannot be read (No such file"),
        ("gate out --baseline b.json", "there is no baseline b.json; make one with --store"),
        ("conform nowhere", "nowhere: could not read it (No such file"),
        ("explain out deny", "there is no fact `deny` in these results; did you mean deny-"),
        ("explain out xyz", "there is no fact `xyz` in these results; known are "),
        ("explain nowhere x", "nowhere: cannot be read (No such file"),
        ("man nosuch", "there is no command `nosuch`; `ctxbench help` lists them"),
        ("man rnu", "there is no command `rnu`; did you mean run?"),
        ("completions", "missing <bash|elvish|fish|powershell|zsh>"),
        ("run login-bug --columns foo", "docs/formats.md and the head of summary.csv name them"),
        ("show codx", "there is no strategy `codx`; did you mean codex?"),
        ("run login-bug --models nowhere.toml", "--models: cannot read nowhere.toml: No such file"),
        ("run login-bug --config nowhere.toml", "cannot read nowhere.toml: No such file"),
        ("run login-bug --summarizer nope", "--summarizer: unknown summariser 'nope'"),
    ] {
        let out = here.run(line).fails_with(2);
        let text = out.stderr.trim_end();
        assert!(text.lines().count() == 1 && text.len() < 240, "{line}: {text}");
        assert_eq!(text.matches(said).count(), 1, "{line}: {text}");
        for once in ["No such file", "noise.txt", "nowhere", "os error"] {
            assert!(text.matches(once).count() < 2, "{line}: {text}");
        }
    }
    // A failed check, too: its rows are the result, its verdict the error.
    here.run("gate out --baseline b.json --store").ok();
    let out = here.run("gate out --baseline b.json --max cost_usd=0").fails_with(1);
    assert_eq!(out.stderr.matches("gate failed").count(), 1, "{}", out.stderr);
    assert!(!out.stdout.contains("gate failed") && out.stdout.contains("FAIL"), "{}", out.stdout);
}
