//! Fake agents with all kinds of behaviour, driven from outside. Each gives a row with a clear
//! message, and no process or file remains.

use std::collections::BTreeSet;
use std::net::TcpStream;

use crate::common::{CommandFolder, Output, data, is_ignored};
use serde_json::{Value, json};

/// Two turns, with a call in the first.
pub(crate) const SMALL: &str = include_str!("../data/small.jsonl");

/// Describes an agent with this behaviour; `more` is inserted before its tables.
pub(crate) fn describe(here: &CommandFolder, how: &str, deliver: &str, more: &str) -> String {
    let name = format!("fake-{how}-{deliver}");
    let folder = here.path(&format!("{name}.left"));
    std::fs::create_dir(&folder).unwrap();
    let script = data("drive/agent.py").display().to_string();
    let command = json!(["{program}", script, how, "{url}", deliver, folder.display().to_string()]);
    let toml = include_str!("../data/fake-agent.toml")
        .replace("NAME", &name)
        .replace("DELIVER", deliver)
        .replace("COMMAND", &command.to_string())
        .replace("# more", more);
    here.write(&format!("{name}.toml"), toml);
    format!("--agent ./{name}.toml")
}

/// Describes a valid agent with a Python program that prints its version.
fn asked_for_its_version(here: &CommandFolder, program: &str) -> String {
    let agent = describe(here, "good", "acp", "strategy = \"codex\"");
    let file = agent.replace("--agent ", "");
    here.write(&file, here.read(&file).replace("print('0.169.0')", program));
    agent
}

/// Runs a drive in this folder, which also contains the scratch folders.
pub(crate) fn drive(here: &CommandFolder, line: &str, code: i32) -> Output {
    let out = driven(here, line, "");
    assert_eq!(out.code, Some(code), "{line}: {}", out.stderr);
    out
}

/// Runs a drive after commands of a shell. It leaves nothing, whatever its exit code is.
fn driven(here: &CommandFolder, line: &str, before: &str) -> Output {
    let tmp = here.path("tmp");
    std::fs::create_dir_all(&tmp).unwrap();
    let run = here.run(&format!("drive {line}")).after(before);
    let out = run.env("TMPDIR", &tmp.display().to_string()).output();
    nothing_stays(here);
    out
}

/// Drives an agent through the small session, and returns its row, too.
fn drive_small(
    (how, deliver, more): (&str, &str, &str),
    options: &str,
    code: i32,
) -> (CommandFolder, Output, Value) {
    let here = CommandFolder::with("small.jsonl", SMALL);
    let agent = describe(&here, how, deliver, more);
    let out = drive(&here, &format!("small.jsonl {agent} {options}"), code);
    let row = row(&here, &format!("fake-{how}-{deliver}"));
    (here, out, row)
}

/// Returns whether a line of `/proc/PID/stat` is of a process that is gone, a zombie, or killed and
/// about to be removed by the kernel (`PF_EXITING`), which may take some time on a busy machine.
fn has_ended(state: &str) -> bool {
    const PF_EXITING: u64 = 0x4;
    let Some((_, fields)) = state.rsplit_once(") ") else { return true };
    let flags: Option<u64> = fields.split(' ').nth(6).and_then(|f| f.parse().ok());
    fields.starts_with('Z') || flags.is_some_and(|f| f & PF_EXITING != 0)
}

#[test]
fn killed_process_has_ended_and_running_process_has_not() {
    let stat = |state: &str, flags: u64| format!("7 (a) b) {state} 1 7 7 0 -1 {flags} 292 0");
    assert!(has_ended("") && has_ended(&stat("Z", 0)) && has_ended(&stat("R", 4_195_404)));
    assert!(!has_ended(&stat("R", 4_195_400)) && !has_ended(&stat("S", 0)));
}

/// Checks that no process, port or folder of an agent remains.
pub(crate) fn nothing_stays(here: &CommandFolder) {
    assert_eq!(here.files("tmp").keys().collect::<Vec<_>>(), Vec::<&String>::new());
    for entry in std::fs::read_dir(here.path("")).unwrap().flatten() {
        if !entry.file_name().to_string_lossy().ends_with(".left") {
            continue;
        }
        let lines =
            |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        for pid in lines("pids").lines() {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(has_ended(&state), "process {pid} is left: {state}");
        }
        for url in lines("url").lines() {
            let address = url.trim_start_matches("http://");
            assert!(TcpStream::connect(address).is_err(), "{url} is still served");
        }
    }
}

pub(crate) fn row(here: &CommandFolder, name: &str) -> Value {
    let of = |r: &Value| r["strategy"]["name"].as_str().is_some_and(|n| n.ends_with(name));
    here.runs("ctxbench-out").into_iter().find(of).unwrap_or_else(|| panic!("no row of {name}"))
}

/// Drives a failing agent and a valid one, and returns the failing one's message.
fn goes_wrong(how: &str, deliver: &str, options: &str) -> String {
    let here = CommandFolder::with("small.jsonl", SMALL);
    let (bad, good) = (describe(&here, how, deliver, ""), describe(&here, "good", "acp", ""));
    let out = driven(&here, &format!("small.jsonl {bad} {good} {options}"), "");
    let good = row(&here, "fake-good-acp");
    assert_eq!((&good["status"], &good["error"]), (&json!("completed"), &Value::Null));
    let bad = row(&here, &format!("fake-{how}-{deliver}"));
    assert_ne!(bad["status"], "completed", "{bad}");
    let code = i32::from(bad["status"] == "error");
    assert_eq!(out.code, Some(code), "{}", out.stderr);
    bad["error"].as_str().unwrap().to_string()
}

#[test]
#[ignore = "needs python3"]
fn drive_good_agent_completes_over_every_protocol() {
    let mut rows = BTreeSet::new();
    for deliver in ["acp", "exec", "rpc", "lines"] {
        let (_, _, row) = drive_small(("good", deliver, ""), "", 0);
        assert_eq!(row["status"], "completed", "{row}");
        assert_eq!(row["requests"].as_array().unwrap().len(), 3);
        rows.insert(row["summary"]["input_tokens"].as_u64().unwrap());
    }
    assert_eq!(rows.len(), 1, "both deliveries send the same: {rows:?}");
}

#[test]
#[ignore = "needs python3"]
fn drive_through_a_proxy_measures_what_the_proxy_sends() {
    let long = format!("{}const port = 48731;", "// a comment ".repeat(200));
    let session = SMALL.replace("const port = 48731;", &long)
        + r#"{"type":"fact","id":"port","kind":"value","tokens":["48731"],"arises":"a1","needs":["a3"]}"#;
    let here = CommandFolder::with("small.jsonl", session.replace("The port is 48731.", "Seen."));
    let agent = describe(&here, "good", "rpc", "");
    let script = data("drive/proxy.py").display().to_string();
    let driven = |more: &str, code: i32| {
        let proxy = format!("short=exec:python3 {script} {{port}} {{upstream}}{more}");
        let run = here.run(&format!("drive small.jsonl {agent}")).arg("--proxy").arg(&proxy);
        let tmp = here.path("tmp");
        std::fs::create_dir_all(&tmp).unwrap();
        let out = run.env("TMPDIR", &tmp.display().to_string()).fails_with(code);
        nothing_stays(&here);
        out
    };
    driven("", 0).stderr_contains(&[" through short runs small"]);
    let [plain, short] =
        ["fake-good-rpc", "fake-good-rpc+short"].map(|name| row(&here, name)["summary"].clone());
    let input = |row: &Value| row["input_tokens"].as_u64().unwrap();
    // The result is in two of the three requests.
    assert!(input(&plain) > input(&short) + 2 * 500, "{plain} {short}");
    assert_eq!((&plain["requests"], &short["requests"]), (&json!(3), &json!(3)));
    // The need comes so early that it only counts where the fact is missing.
    assert_eq!((&plain["recall_pct"], &short["recall_pct"]), (&Value::Null, &json!(0.0)));
    driven(" crash", 1);
    let failed = row(&here, "fake-good-rpc+short")["error"].to_string();
    for part in ["the proxy short ended with exit status: 1", "the cellar is flooded"] {
        assert!(failed.contains(part), "{failed}");
    }
    let wrong = "with {port} and {upstream} in the command";
    here.fails(&format!("drive small.jsonl {agent} --proxy short=exec:cat"), 2, &[wrong]);
}

#[test]
#[ignore = "needs python3"]
fn drive_message_that_looks_like_an_option_is_no_option() {
    let evil = "--settings={url}";
    let session = SMALL.replace("read the file, please", evil);
    let driven = |place: Option<[&str; 2]>| {
        let here = CommandFolder::with("small.jsonl", &session);
        let agent = describe(&here, "good", "exec", "");
        let file = agent.replace("--agent ", "");
        if let Some([before, place]) = place {
            // `describe` ends the command with this folder.
            let end = "fake-good-exec.left\"]";
            let more = format!("fake-good-exec.left\",\"{before}\",\"{place}\"]");
            here.write(&file, here.read(&file).replace(end, &more));
        }
        drive(&here, &format!("small.jsonl {agent}"), 0);
        assert_eq!(row(&here, "fake-good-exec")["status"], "completed");
        let argv = here.read("fake-good-exec.left/argv");
        serde_json::from_str::<Value>(argv.lines().next().unwrap()).unwrap()
    };
    assert_eq!(driven(None), json!([]));
    assert_eq!(driven(Some(["--", "{text}"])), json!(["--", evil]));
    assert_eq!(driven(Some(["-x", "--text={text}"])), json!(["-x", format!("--text={evil}")]));
}

#[test]
#[ignore = "needs python3"]
fn drive_without_window_gives_the_agent_that_of_its_own_list_of_models() {
    for (options, window) in [
        ("", 272_000),
        ("--window 400k", 272_000),
        ("--window 30k", 30_000),
        ("--model gpt-6.1-terra", 500_000),
    ] {
        let more = "strategy = \"codex\"\nenv = { TOLD_WINDOW = \"{window}\" }";
        let (here, _, row) = drive_small(("good", "acp", more), options, 0);
        let told = here.read("fake-good-acp.left/window");
        assert_eq!((told.trim(), &row["window"]), (&*window.to_string(), &json!(window)));
        let ours = here.runs("ctxbench-out").into_iter().find(|r| r["strategy"]["name"] == "codex");
        assert_eq!(ours.unwrap()["window"], window, "{options}");
    }
}

#[test]
#[ignore = "needs python3"]
fn drive_shows_the_last_words_on_standard_output() {
    let (_, _, row) = drive_small(("fails-aloud", "exec", ""), "", 1);
    let error = row["error"].as_str().unwrap_or_default();
    assert!(
        error.contains("exit code 4; standard output:\nsession id: fake-7\nthe account is empty"),
        "{error}"
    );
}

#[test]
#[ignore = "needs python3"]
fn drive_counts_the_cases_that_could_not_be_written() {
    let here = CommandFolder::new();
    let agent = describe(&here, "good", "acp", "strategy = \"codex\"");
    let case = "cases/codex/0.169.0/login-bug-fake-good-acp.json";
    std::fs::create_dir_all(here.path(case)).unwrap();
    let out = drive(&here, &format!("login-bug middle-cut-fact {agent} --record cases"), 1);
    let written = here.files("cases/codex/0.169.0");
    // The folder in place of the case, and the other case.
    assert_eq!(written.len(), 2, "{:?}", written.keys());
    out.stderr_contains(&["of 2 recorded cases differ"]);
}

#[test]
#[ignore = "needs python3"]
fn drive_repeat_prints_the_spread_and_has_one_row() {
    let (here, out, row) = drive_small(("good", "acp", ""), "--repeat 3", 0);
    assert_eq!(here.runs("ctxbench-out").len(), 1);
    let input = &row["summary"]["input_tokens"];
    out.prints(&["3 runs, 3 completed: $", &format!("{input} to {input} input tokens")]);
    let runs = here.json("ctxbench-out/drive.json")[0]["further_runs"].clone();
    assert_eq!(runs.as_array().unwrap().len(), 2, "{runs}");
    assert_eq!((&runs[0]["completed"], &runs[0]["input_tokens"]), (&json!(true), input));
}

#[test]
#[ignore = "needs python3"]
fn drive_undescribed_side_request_is_noted() {
    let told = |how: &str, more: &str| {
        let (_, _, row) = drive_small((how, "acp", more), "", 0);
        row["note"].as_str().unwrap_or_default().to_string()
    };
    let note = told("aside", "");
    let want = "2 requests of its work end with an unknown text (“The secret prompt of the \
                fake agent: name it.”); if they are side requests";
    assert!(note.contains(want), "{note}");
    assert!(!told("good", "").contains("unknown text"));
    let known = "[[side]]\npurpose = \"work\"\nlast = \"The secret prompt\"\n";
    assert!(!told("aside", known).contains("unknown text"));
}

#[test]
#[ignore = "needs python3"]
fn drive_failing_agent_is_an_error_with_the_reason() {
    let endless = "it made 400 requests without continuing the session";
    let unasked = "it did not ask for 3 of the session's 3 replies";
    for (how, deliver, options, told) in [
        ("hangs", "acp", "--timeout 5", ["for 5 s", "larger --timeout"]),
        // Standard error is repeated without its colours.
        ("crashes", "acp", "", ["3", "it broke"]),
        ("crashes", "exec", "", ["3", "it broke"]),
        ("mute", "acp", "", ["it ended with exit status: 0", ""]),
        ("mute", "exec", "", [unasked, "it ended with exit code 0 without a request to its model"]),
        ("ignores-window", "acp", "--window 30k", [unasked, "context_length"]),
        ("endless", "acp", "", [endless, ""]),
        ("repeats", "acp", "", [endless, ""]),
        ("sums-up-for-ever", "acp", "", [endless, ""]),
        ("never-minds", "acp", "", [endless, ""]),
    ] {
        let error = goes_wrong(how, deliver, options);
        assert!(told.iter().all(|t| error.contains(t)), "{how}: {error}");
        assert!(!error.contains('\u{1b}'), "{how}: {error:?}");
    }
}

#[test]
#[ignore = "needs python3"]
fn drive_agent_without_requests_has_no_second_row() {
    // An agent with an unknown model name gets no answer either.
    for how in ["mute", "misnames"] {
        let (here, out, _) = drive_small((how, "exec", "strategy = \"codex\""), "", 1);
        out.stderr_contains(&["ended with an error: small × real-fake-"]);
        let rows = here.runs("ctxbench-out");
        let [row] = &rows[..] else { panic!("{how}: only our row is left") };
        assert_eq!(row["status"], "error", "{row}");
        let note = row["note"].as_str().unwrap_or_default();
        assert!(!note.contains("the provider counted") && !note.contains("never"), "{note}");
        out.lacks(&["no implementation"]);
    }
    // One that crashes is measured up to the crash.
    let (_, out, row) = drive_small(("crashes", "acp", ""), "", 1);
    assert_eq!((&row["status"], &row["summary"]["requests"]), (&json!("error"), &json!(2)));
    let note = row["note"].as_str().unwrap_or_default();
    assert!(!note.contains("never triggered"), "{note}");
    out.stderr_contains(&["ended with an error: small × real-fake-crashes-acp"]);
}

#[test]
#[ignore = "needs python3"]
fn drive_unused_fault_is_noted() {
    let faults = "--fault 9:500 --fault summary:1:500";
    let (here, out, row) = drive_small(("good", "acp", ""), faults, 0);
    let told = [
        "the fault `9:500` did not occur: the agent sent 3 requests",
        "the fault `summary:1:500` did not occur: the agent sent 0 requests for a summary",
    ];
    let text = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.iter().all(|line| text.contains(line)), "{text}");
    let note = row["note"].as_str().unwrap_or_default();
    assert!(told.iter().all(|line| note.contains(line)), "{note}");
    assert_eq!(here.json("ctxbench-out/drive.json")[0]["faults_that_never_struck"], json!(told));
}

#[test]
fn drive_model_of_other_provider_is_refused() {
    let here = CommandFolder::with("small.jsonl", SMALL);
    let agent = describe(&here, "good", "acp", "");
    let line = format!("drive small.jsonl {agent} --model claude-sonnet-4-6");
    here.refuses(&line, &["claude-sonnet-4-6", "openai", "supported models: gpt-5.5,"]);
}

#[test]
#[ignore = "needs python3"]
fn drive_agent_of_unknown_version_records_no_case() {
    for (program, told) in [
        ("pass", "the version command printed no version"),
        (
            "raise SystemExit('no such thing as 3.11.7')",
            "the version command ended with exit status: 1: no such thing as 3.11.7",
        ),
        (
            "import none",
            "the version command ended with exit status: 1: ModuleNotFoundError: No module \
             named 'none'",
        ),
        ("import signal; signal.pause()", "it did not print its version within 5 s"),
    ] {
        let here = CommandFolder::new();
        let agent = asked_for_its_version(&here, program);
        let out = drive(&here, &format!("login-bug {agent} --record cases --timeout 5"), 1);
        out.stderr_contains(&[
            &format!("note: Fake agent: {told}"),
            "of which version the case would be",
        ]);
        let row = row(&here, "fake-good-acp");
        assert!(row["note"].as_str().is_some_and(|n| n.contains(told)), "{row}");
        assert!(here.files("cases").is_empty());
    }
    // Placeholders are replaced in the arguments, too.
    let here = CommandFolder::with("small.jsonl", SMALL);
    let asked = "import os; print('0.1.7' if os.path.isfile('{here}/small.jsonl') else '{here}')";
    let agent = asked_for_its_version(&here, asked);
    drive(&here, &format!("small.jsonl {agent}"), 0);
    assert_eq!(row(&here, "fake-good-acp")["strategy"]["version"], "0.1.7");
}

#[test]
#[ignore = "needs python3"]
fn drive_reports_agreement_and_ranks_neither_row() {
    let here = CommandFolder::new();
    let agent = describe(&here, "good", "acp", "strategy = \"codex\"");
    let out = drive(&here, &format!("login-bug ten-compactions {agent}"), 0);
    let want = "codex against real-fake-good-acp: input ";
    let text = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let title = "Our implementations beside the real programs";
    let (conclusion, _) = text.split_once(title).unwrap();
    assert!(conclusion.contains(want), "{conclusion}");
    // The figures are only in that table.
    assert!(!text.contains("largest prompt, tokens"), "{text}");
    assert!(here.read("ctxbench-out/drive.json").contains("\"largest prompt, tokens\""));
    for word in ["cheapest", "0 ◆"] {
        assert!(!conclusion.contains(word), "{word}: {conclusion}");
    }
    let (page, page_of) = (here.read("ctxbench-out/index.html"), "Our implementations beside");
    assert!(page.contains(want) && page.contains(page_of));
    let markdown = here.run("report ctxbench-out/results.json --format markdown").ok().stdout;
    assert!(markdown.contains("codex against real-fake-good-acp"), "{markdown}");
    let ours = markdown.lines().filter(|l| l.starts_with("| codex |"));
    assert!(ours.clone().count() >= 2 && ours.clone().all(|l| !l.contains("**")), "{markdown}");
}

#[test]
#[ignore = "needs python3"]
fn drive_knows_reminders_and_context_that_moves_behind_a_result() {
    // Both have 1,000 tokens. Our implementation shows the context once, and every reminder.
    let (here, ..) = drive_small(("reminds", "acp", "strategy = \"reference\""), "", 0);
    let drives = here.json("ctxbench-out/drive.json");
    let figures = drives[0]["beside"]["figures"].as_array().unwrap();
    let input = figures.iter().find(|f| f["what"] == "input, tokens").unwrap();
    let [real, ours] = ["real", "ours"].map(|side| input[side].as_f64().unwrap());
    assert!((ours / real - 1.0).abs() < 0.01, "{input}");
}

#[test]
#[ignore = "needs python3"]
fn drive_two_agents_with_one_implementation_give_two_rows() {
    let here = CommandFolder::new();
    let agents = ["good", "wraps"].map(|how| describe(&here, how, "acp", "strategy = \"codex\""));
    let out = drive(&here, &format!("login-bug ten-compactions {}", agents.join(" ")), 0);
    let labels = BTreeSet::from_iter(here.column("ctxbench-out", "strategy"));
    let ours = ["good", "wraps"].map(|how| format!("codex beside real-fake-{how}-acp"));
    let real = ["good", "wraps"].map(|how| format!("real-fake-{how}-acp"));
    assert_eq!(labels.into_iter().collect::<Vec<_>>(), [ours.clone(), real].concat());
    let results = "ctxbench-out/results.json";
    let markdown = here.run(&format!("report {results} --format markdown")).ok().stdout;
    for label in ours {
        assert!(markdown.contains(&format!("| {label} |")), "{label}: {markdown}");
        for page in ["index.html", "drive.json"] {
            assert!(here.read(&format!("ctxbench-out/{page}")).contains(&label), "{page}: {label}");
        }
        assert!(out.stdout.contains(label.split(' ').next_back().unwrap()));
    }
}

#[test]
#[ignore = "needs python3"]
fn drive_flooded_stdout_ends_with_bounded_memory() {
    for (how, told) in [
        ("floods", "more than 67108864 bytes without a request to its model"),
        ("floods-lines", "it printed \"flood flood"),
        ("chatters", "without a request to its model"),
    ] {
        let here = CommandFolder::with("small.jsonl", SMALL);
        let agent = describe(&here, how, "acp", "");
        // With this memory limit, keeping a gigabyte would end the program.
        let out = driven(&here, &format!("small.jsonl {agent}"), "ulimit -v 800000;");
        assert_eq!(out.code, Some(1), "{how}: {}", out.stderr);
        let error = row(&here, &format!("fake-{how}-acp"))["error"].clone();
        assert!(error.as_str().is_some_and(|e| e.contains(told)), "{how}: {error}");
    }
}

#[test]
#[ignore = "needs python3"]
fn drive_flooded_stderr_and_garbage_between_messages_are_skipped() {
    for how in ["floods-stderr", "garbage"] {
        let (_, _, row) = drive_small((how, "acp", ""), "", 0);
        assert_eq!(row["status"], "completed", "{how}");
    }
}

#[test]
#[ignore = "needs python3"]
fn drive_concurrent_side_requests_do_not_change_row() {
    let here = CommandFolder::with("small.jsonl", SMALL);
    let side = "[[side]]\npurpose = \"title\"\nlast = \"a name for\"";
    let (many, good) =
        (describe(&here, "at-once", "acp", side), describe(&here, "good", "acp", ""));
    drive(&here, &format!("small.jsonl {many} {good}"), 0);
    let [many, good] = ["at-once", "good"].map(|how| row(&here, &format!("fake-{how}-acp")));
    for name in ["status", "error", "requests", "summary"] {
        assert_eq!(many[name], good[name], "{name}");
    }
    // Once in each of the two turns.
    let drives = here.json("ctxbench-out/drive.json");
    let many = drives.as_array().unwrap().iter().find(|d| d["row"] == many["strategy"]["label"]);
    let aside = &many.unwrap()["side_requests"];
    assert_eq!((&aside[0]["purpose"], &aside[0]["requests"]), (&json!("title"), &json!(400)));
}

#[test]
#[ignore = "needs python3"]
fn drive_ended_by_signal_leaves_nothing() {
    for (signal, code) in [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)] {
        if is_ignored(signal) {
            continue;
        }
        let here = CommandFolder::with("small.jsonl", SMALL);
        let agent = describe(&here, signal, "acp", "");
        // The agent itself sends the signal, in the middle of a turn.
        let out = drive(&here, &format!("small.jsonl {agent}"), code);
        out.stderr_contains(&[
            "Interrupted. Results are written when every agent has finished; nothing was kept.",
        ]);
        let out = drive(&here, &format!("small.jsonl {agent} --record cases"), code);
        out.stderr_contains(&["cases of finished agents are in cases."]);
        assert!(!here.path("ctxbench-out").exists());
    }
    // A signal during the question for its version.
    let here = CommandFolder::with("small.jsonl", SMALL);
    let signals = "import os,signal; os.kill(os.getppid(), signal.SIGTERM); signal.pause()";
    let agent = asked_for_its_version(&here, signals);
    drive(&here, &format!("small.jsonl {agent}"), 143);
    assert!(!here.path("ctxbench-out").exists());
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "needs python3"]
fn killed_drive_ends_its_agent_and_leaves_nothing_to_the_next() {
    let here = CommandFolder::with("small.jsonl", SMALL);
    let agent = describe(&here, "SIGKILL", "acp", "");
    let tmp = here.path("tmp");
    std::fs::create_dir(&tmp).unwrap();
    let killed = here.run(&format!("drive small.jsonl {agent}"));
    let killed = killed.env("TMPDIR", &tmp.display().to_string()).output();
    assert_eq!(killed.code, None);
    let left = here.path("fake-SIGKILL-acp.left");
    std::fs::File::open(left.join("alive")).unwrap().lock().unwrap();
    if killed.stderr.contains("without a network") {
        assert!(!left.join("survived").exists());
    }
    let good = describe(&here, "good", "acp", "");
    drive(&here, &format!("small.jsonl {good}"), 0);
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "needs python3"]
fn agent_reaches_only_its_model() {
    let here = CommandFolder::with("small.jsonl", SMALL);
    let agent = describe(&here, "calls-out", "exec", "");
    let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port().to_string();
    let left = "fake-calls-out-exec.left";
    here.write(&format!("{left}/port"), port);
    let out = drive(&here, &format!("small.jsonl {agent}"), 0);
    assert_eq!(row(&here, "fake-calls-out-exec")["status"], "completed");
    let calls = here.read(&format!("{left}/calls"));
    if out.stderr.contains("runs small, without a network") {
        assert_eq!(calls, "Connection refused\nNetwork is unreachable\n");
        assert_eq!(here.read(&format!("{left}/interfaces")), "lo\n");
    } else {
        assert!(out.stderr.contains("and can reach the network"), "{}", out.stderr);
        assert_eq!(calls, "connected\n");
    }
}
