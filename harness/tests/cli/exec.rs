//! External programs as strategies: their rows, and error messages for their mistakes.

use crate::common::{CommandFolder, Output, data, repository};
use serde_json::Value;

/// Returns a test program with the given behaviour.
fn program(how: &str) -> String {
    format!("exec:python3 {} {how}", data("exec/program.py").display())
}

/// Returns an example of the Python kit.
fn example(name: &str, settings: &str) -> String {
    let script = repository("python/examples").join(format!("{name}.py"));
    format!("exec{settings}:python3 {}", script.display())
}

fn run(here: &CommandFolder, sessions: &str, strategies: &[String]) -> Output {
    run_with_code(here, sessions, strategies, 0)
}

fn run_with_code(here: &CommandFolder, sessions: &str, strategies: &[String], code: i32) -> Output {
    let begun = here.run(&format!("run {sessions} --transport direct --jobs 2"));
    let kit = repository("python").display().to_string();
    let whole = strategies.iter().fold(begun, |run, s| run.arg("--strategy").arg(s));
    whole.env("PYTHONPATH", &kit).fails_with(code)
}

/// Returns a row without the fields that identify its strategy.
fn measured(rows: &[Value], session: &str, name: &str) -> Value {
    let of = |r: &&Value| r["scenario"]["id"] == session && r["strategy"]["name"] == name;
    let mut row = rows.iter().find(of).unwrap_or_else(|| panic!("{session} × {name}")).clone();
    let fields = row.as_object_mut().expect("an object");
    fields.remove("strategy");
    row
}

#[test]
#[ignore = "nightly: slow, and needs python3"]
fn strategy_in_python_gives_same_records_on_all_scenarios() {
    let here = CommandFolder::new();
    let pairs =
        [("sliding-window", "sliding_window"), ("observation-masking", "observation_masking")];
    let strategies: Vec<String> = pairs
        .iter()
        .flat_map(|(ours, file)| [ours.to_string(), format!("py-{ours}={}", example(file, ""))])
        .collect();
    run(&here, "all", &strategies);
    let rows = here.runs("ctxbench-out");
    assert!(rows.len() >= 4 * 50, "{} rows", rows.len());
    for row in rows.iter().filter(|r| r["strategy"]["program"].is_null()) {
        let session = row["scenario"]["id"].as_str().expect("an id");
        let ours = row["strategy"]["name"].as_str().expect("a name");
        let (a, b) =
            (measured(&rows, session, ours), measured(&rows, session, &format!("py-{ours}")));
        for (field, value) in a.as_object().expect("an object") {
            assert_eq!(*value, b[field], "{session} × {ours}: {field}");
        }
    }
}

#[test]
#[ignore = "needs python3"]
fn generational_in_python_makes_the_same_requests() {
    let here = CommandFolder::new();
    let sample = data("recordings/pi/pi-mono-large-session.jsonl");
    let limits = "young=2,journal=2000,rent=1";
    let ours = format!("generational:{limits}");
    let theirs = format!("py={}", example("generational", &format!("{{{limits}}}")));
    // Without a factor, a program can compute the sizes of lines from those of messages.
    let sample = format!("{} --calibrate off", sample.display());
    run(&here, &sample, &[ours, theirs, "reference".into()]);
    let rows = here.runs("ctxbench-out");
    let of = |name| measured(&rows, "pi-mono-large-session", name);
    let (ours, theirs) = (of("generational"), of("py"));
    for field in ["requests", "facts", "integrity", "status"] {
        assert_eq!(ours[field], theirs[field], "{field}");
    }
    assert_eq!(ours["compactions"].as_array().unwrap().len(), 2);
}

#[test]
#[ignore = "needs python3"]
fn program_row_has_settings_version_and_trust() {
    let here = CommandFolder::new();
    let kept = format!("mine={}", example("keep_last", "{keep=[4,8]}"));
    run(&here, "login-bug", &[kept, "codex".into()]).prints(&["mine 4 ", "mine 8 "]);
    let [four, eight, codex] =
        ["mine:keep=4", "mine:keep=8", "codex"].map(|label| here.row("ctxbench-out", label));
    assert_eq!((&*four["trust"], &*codex["trust"]), ("real", "model"));
    // A smaller setting shows fewer messages.
    let [four, eight] = [four, eight].map(|r| r["peak_context_tokens"].parse::<u64>().unwrap());
    assert!(four < eight, "{four} {eight}");
    here.run("compare ctxbench-out ctxbench-out").ok();
}

#[test]
#[ignore = "needs python3"]
fn exception_of_a_strategy_is_printed_once() {
    let mine = "mine=exec:python3 mine.py".to_string();
    for (body, error) in
        [("messages[:many]", "NameError"), ("ctx.count_tokens(['m999'])", "ProtocolError")]
    {
        let program = format!(
            "from ctxbench import strategy\n\n@strategy\ndef mine(messages, ctx):\n    \
             return {body}\n\nmine.run()\n",
        );
        let here = CommandFolder::with("mine.py", &program);
        let out = run_with_code(&here, "login-bug", &[mine.clone(), "reference".into()], 1);
        let all = format!("{}{}", out.stdout, out.stderr);
        assert_eq!(all.matches(error).count(), 1, "{all}");
        out.prints(&["(mine.py:5 in mine)"]);
        out.stderr_contains(&["1 of 2 rows ended with an error: login-bug × mine"]);
    }
    let here = CommandFolder::new();
    let nameless = "exec:python3 mine.py --at=all".to_string();
    run_with_code(&here, "login-bug", &[nameless], 2)
        .stderr_contains(&["the name is missing; write NAME=exec:COMMAND"]);
}

#[test]
#[ignore = "needs python3"]
fn faulty_program_is_an_error_row_only() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("crash", "", &["`context`", "exit status: 3", "the disk is on fire"]),
        ("hang", "exec.timeout=1s", &["did not answer within 1 s (exec.timeout)"]),
        ("garbage", "", &["not JSON-RPC", "Loading the model: 100 %", "standard error"]),
        ("flood", "", &["more than 67108864 bytes"]),
        ("endless-calls", "", &["more than 10000 calls for one answer"]),
        ("wrong-id", "", &["message `m9999` is not in the current state"]),
        ("twice", "", &["is in the list twice"]),
        ("orphan", "", &["is shown without the result that it has"]),
        ("forget-all", "", &["`keep` is empty"]),
        ("bad-message", "", &["unknown variant `wizard`", "abracadabra"]),
        ("neither", "", &["unknown field `shown`"]),
        (
            "wrong-tools",
            "",
            &[
                "it is the text \"all\"; expected true, false or a list of {\"name\", \
                 \"description\", \"input_schema\"}, at ",
                "\"tools\": \"all\"}",
                "it is an object; expected true, false or a list",
                "missing field `input_schema`",
                "unknown field `type`, expected one of `name`, `description`, `input_schema`",
            ],
        ),
        ("late", "", &["at `turn_end`", "unknown field `keep`", "`after_turn`"]),
        ("error", "", &["no idea (code -32603)"]),
        ("other-answers", "exec.twice=true", &["a second run went otherwise", "exec.twice"]),
        ("no-dialect", "", &["`initialize`", "unknown dialect `klingon`", "openai-chat"]),
    ];
    let here = CommandFolder::new();
    let mut strategies: Vec<String> = cases
        .iter()
        .map(|(how, limit, _)| {
            let program = program(how);
            let settings = if limit.is_empty() { String::new() } else { format!("{{{limit}}}") };
            format!("{how}={}", program.replacen("exec", &format!("exec{settings}"), 1))
        })
        .collect();
    strategies.push(format!("nowhere=exec:{}", "no-such-program --at all"));
    strategies.push("none".into());
    run_with_code(&here, "login-bug", &strategies, 1);
    assert_eq!(here.row("ctxbench-out", "none")["status"], "completed");
    let all = here.runs("ctxbench-out");
    let error = |label: &str| -> String {
        let row = all.iter().find(|r| r["strategy"]["name"] == label).expect(label);
        row["error"].as_str().unwrap_or_default().to_string()
    };
    for (how, _, words) in cases {
        assert_eq!(here.row("ctxbench-out", how)["status"], "error", "{how}");
        for word in *words {
            assert!(error(how).contains(word), "{how}: {}", error(how));
        }
    }
    assert!(error("nowhere").contains("cannot start `no-such-program`"), "{}", error("nowhere"));
}

#[test]
#[ignore = "needs python3"]
fn unusual_program_is_measured() {
    let here = CommandFolder::new();
    let of = |how: &str| format!("{how}={}", program(how));
    run(&here, "login-bug", &[of("loud"), of("asks"), of("same-words"), "none".into()]);
    let rows = here.runs("ctxbench-out");
    let same = rows.iter().find(|r| r["strategy"]["name"] == "same-words").expect("a row");
    assert_eq!(same["error"], Value::Null);
    // Neither output on stderr nor refused calls change the figures.
    for name in ["loud", "asks"] {
        let (a, b) = (measured(&rows, "login-bug", "none"), measured(&rows, "login-bug", name));
        assert_eq!((&a["requests"], &a["facts"]), (&b["requests"], &b["facts"]), "{name}");
    }
}

#[test]
#[ignore = "needs python3"]
fn program_may_wait_for_a_refusal() {
    let here = CommandFolder::new();
    let strategy = format!("waits={}", program("waits-for-refusal"));
    run(&here, "login-bug-marathon", &[strategy, "codex".into()]);
    let row = here.row("ctxbench-out", "waits");
    assert_eq!((&*row["status"], &*row["integrity_failures"]), ("completed", "0"));
    let refused: u64 = row["provider_overflows"].parse().unwrap();
    assert!(refused > 0);
    let details = here.run("report ctxbench-out --details").ok();
    details.prints(&[&format!("prompt refused as too long {refused}×")]);
}

#[test]
#[ignore = "needs python3"]
fn program_may_change_the_state_after_a_turn_and_bring_tools() {
    let here = CommandFolder::new();
    let of = |how: &str| format!("{how}={}", program(how));
    run(&here, "login-bug", &[of("own-tool"), of("after-turn")]);
    let rows = here.runs("ctxbench-out");
    assert_eq!(measured(&rows, "login-bug", "own-tool")["error"], Value::Null);
    let after = measured(&rows, "login-bug", "after-turn");
    assert_eq!((&after["error"], &after["status"]), (&Value::Null, &"completed".into()));
    assert_eq!(after["compactions"][0]["phase"], "post_turn");
    // The results of a reply arrive as one message and change nothing.
    run(&here, "parallel-batch-cut", &[of("joins"), "none".into()]);
    let rows = here.runs("ctxbench-out");
    let [none, joins] = ["none", "joins"].map(|name| measured(&rows, "parallel-batch-cut", name));
    assert_eq!((&none["requests"], &none["error"]), (&joins["requests"], &joins["error"]));
}

#[test]
#[ignore = "needs python3"]
#[cfg(target_os = "linux")]
fn program_leaves_no_process() {
    let here = CommandFolder::new();
    let mark = format!("left-by-{}", std::process::id());
    let is_left = || {
        std::fs::read_dir("/proc").expect("/proc").flatten().any(|p| {
            let line = std::fs::read(p.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&mark)
        })
    };
    let daemon = program(&format!("daemon {mark}")).replacen("exec", "exec{exec.timeout=1s}", 1);
    run_with_code(&here, "login-bug", &[format!("daemon={daemon}"), "none".into()], 1);
    assert!(!is_left(), "a process with {mark} is still there");
    // One that has left the group of the program cannot replace the results.
    let forger = program(&format!("forger {mark}"));
    run(&here, "login-bug", &[format!("forger={forger}"), "none".into()]);
    assert!(!is_left(), "a process with {mark} is still there");
    here.row("ctxbench-out", "forger");
}

#[test]
#[ignore = "needs python3"]
fn other_commands_run_programs_and_report_errors() {
    let here = CommandFolder::new();
    let compact = |strategy: &str| {
        let kit = repository("python").display().to_string();
        let run = here.run("compact login-bug --strategy").arg(strategy);
        run.env("PYTHONPATH", &kit).ok()
    };
    compact(&format!("mine={}", example("keep_last", "{keep=6}"))).prints(&["mine:keep=6", "drop"]);
    compact(&format!("mine={}", program("crash"))).prints(&["exit status: 3"]);
    here.run("show").arg("mine=exec{keep=3}:python3 mine.py").ok().prints(&["keep=", "mine.py"]);
}

#[test]
#[ignore = "needs python3"]
fn filter_changes_results_for_every_strategy() {
    let here = CommandFolder::new();
    let filter = |how: &str| {
        let script = data("exec/filter.py").display().to_string();
        format!("{how}=exec:python3 {script} {how}")
    };
    let run = |filters: &[&str], code: i32| {
        let begun = here.run("run login-bug-marathon --strategy codex --strategy reference");
        let whole = filters.iter().fold(begun, |run, how| run.arg("--filter").arg(&filter(how)));
        whole.fails_with(code)
    };
    run(&["same", "short"], 0).prints(&["never compacting+short"]);
    let rows = here.runs("ctxbench-out");
    assert_eq!(rows.len(), 6);
    for name in ["codex", "reference"] {
        let row = |label: &str| measured(&rows, "login-bug-marathon", label);
        let (plain, same) = (row(name), row(&format!("{name}+same")));
        assert_eq!((&plain["requests"], &plain["facts"]), (&same["requests"], &same["facts"]));
        let of = |label: &str| here.row("ctxbench-out", label);
        let (plain, short) = (of(name), of(&format!("{name}+short")));
        let number = |row: &std::collections::BTreeMap<String, String>, column: &str| {
            row[column].parse::<f64>().expect(column)
        };
        for column in ["cost_usd", "peak_context_tokens"] {
            assert!(number(&short, column) < number(&plain, column), "{name}: {column}");
        }
        // Codex compacts less often and may recall more.
        let loses = number(&short, "recall_pct") < number(&plain, "recall_pct");
        assert!(loses || name == "codex", "{name}");
        let version = |label: &str| {
            let row = rows.iter().find(|r| r["strategy"]["name"] == label).expect(label);
            row["strategy"]["version"].clone()
        };
        assert_eq!(version(name), version(&format!("{name}+short")));
    }
    // What the filter removed is at risk, although nothing else compacts in this row.
    let reference = here.row("ctxbench-out", "reference+short");
    assert!(reference["at_risk"].parse::<u32>().expect("a number") > 0, "{reference:?}");
    run(&["crash"], 1);
    let failed =
        here.runs("ctxbench-out").into_iter().find(|r| r["strategy"]["name"] == "codex+crash");
    let error = failed.expect("a row")["error"].to_string();
    assert!(error.contains("`admit`") && error.contains("the filter is blocked"), "{error}");
    let wrong = here.run("run login-bug --strategy codex --filter rtk").fails_with(2);
    wrong.stderr_contains(&["`rtk` is not a program; write NAME=exec:COMMAND"]);
}
