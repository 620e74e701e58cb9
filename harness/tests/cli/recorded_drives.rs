//! Drives of fake agents that record cases: hostile sessions, texts of the agent, and equal bytes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::common::{CommandFolder, jsonl};
use crate::fake_agent::{describe, drive, row};

/// Text that belongs to the agent and must not appear in any case.
const OWN_WORDS: &str = "secret prompt";

/// A session with harmful ids, names and arguments.
fn hostile() -> String {
    let evil = [
        "$(touch hurt)",
        "`touch hurt`",
        "; touch hurt #",
        "\"; touch hurt; \"",
        "'; touch hurt; '",
        "../../../../etc/passwd",
        "a\nb\ntouch hurt\n",
        "nul\0byte",
        "\u{1b}]0;owned\u{7}\u{1b}[2J",
        "{url}",
        "{program}",
        "--help",
        "-",
        "",
        "CON",
        "a/b\\c",
    ];
    let mut lines =
        vec![json!({"type": "session", "version": 1, "id": "../../$(touch hurt)\u{1b}[2J"})];
    for (i, e) in evil.iter().enumerate() {
        let id = format!("{e}{i}");
        let call = json!({
            "id": id, "name": e, "arguments": json!({"command": e, "path": e, "cmd": e}).to_string()
        });
        lines.extend([
            json!({"type": "user", "id": format!("u{e}{i}"), "text": format!("say {e} {i}")}),
            json!({"type": "assistant", "id": format!("a{e}{i}"), "calls": [call]}),
            json!({"type": "tool", "call_id": id, "name": e, "output": format!("{e}\n")}),
            json!({"type": "assistant", "id": format!("b{e}{i}"), "text": format!("did {e}")}),
        ]);
    }
    jsonl(&lines)
}

#[test]
#[ignore = "needs python3"]
fn drive_hostile_session_reaches_no_path_command_or_terminal() {
    let here = CommandFolder::new();
    here.write("hostile.jsonl", hostile());
    let agent = describe(&here, "good", "acp", "strategy = \"codex\"");
    let before: BTreeSet<String> = here.files("").into_keys().collect();
    let out = drive(&here, &format!("hostile.jsonl {agent} --record cases"), 0);
    assert_eq!(row(&here, "fake-good-acp")["status"], "completed");
    // Exactly the planned commands ran in the shell.
    let ran = here.read("fake-good-acp.left/commands");
    for (i, command) in ran.lines().enumerate() {
        assert_eq!(command, format!("\"cat .ctxbench/{i:05}.txt\""));
    }
    assert_eq!(ran.lines().count(), 16);
    // Outputs came through as they were recorded, NUL and all.
    let cases: Vec<String> =
        here.files("cases").into_keys().filter(|f| f.ends_with(".json")).collect();
    let [case] = cases.as_slice() else { panic!("{cases:?}") };
    let name = case.strip_prefix("codex/0.169.0/session-");
    let name = name.and_then(|n| n.strip_suffix("-fake-good-acp.json"));
    let generated = name.is_some_and(|n| n.len() == 12 && n.chars().all(|c| c.is_ascii_hexdigit()));
    assert!(generated, "{case}");
    let text = here.read(&format!("cases/{case}"));
    assert!(text.contains("nul\\u0000byte"));
    // New files are the results, the case, and the notes of the agent.
    let known = ["ctxbench-out/", "cases/", "tmp/", "fake-good-acp.left/"];
    for file in here.files("").into_keys().filter(|f| !before.contains(f)) {
        assert!(known.iter().any(|k| file.starts_with(k)), "{file:?}");
        // Plots use the harmless characters of the session's name.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        assert!(file.chars().all(plain) && !file.contains(".."), "{file:?}");
    }
    for text in [&out.stdout, &out.stderr] {
        let control = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(control), "{text:?}");
    }
    let told = here.run("conform cases").ok().stdout;
    assert!(!told.contains('\u{1b}'), "{told:?}");
}

#[test]
#[ignore = "needs python3"]
fn drive_recorded_case_replays_without_text_of_agent() {
    let here = CommandFolder::new();
    let agent = describe(&here, "wraps", "acp", "strategy = \"codex\"");
    let line = format!("login-bug {agent} --record");
    let out = drive(&here, &format!("{line} cases"), 0);
    let path = "cases/codex/0.169.0/login-bug-fake-wraps-acp.json";
    let text = here.read(path);
    let case = here.json(path);
    let requests = case["requests"].as_array().unwrap().len();
    out.stderr_contains(&[&format!("{requests} of {requests} requests are ours")]);
    let all = case["requests"].as_array().unwrap();
    let summaries = all.iter().filter(|r| r["purpose"] == "summary");
    assert_eq!(summaries.map(|r| &r["phase"]).collect::<Vec<_>>(), ["standalone_turn"]);
    let table = here.run("conform cases").ok().stdout;
    assert!(table.contains(&format!("{requests}/{requests}")), "{table}");
    for own in [OWN_WORDS, "Output of its own", "write a note for whoever", "what came before"] {
        assert!(!text.contains(own), "{own:?} is in the case");
    }
    // Texts of the session are there, and every item appears once.
    assert!(text.contains("xxxxx xx: xxxxxx\\nxxxxxx xx xxx xxx:\\n"), "outputs are not masked");
    let items = case["items"].as_array().unwrap();
    let distinct: BTreeSet<String> = items.iter().map(Value::to_string).collect();
    assert_eq!(distinct.len(), items.len());
    let length = |entry: &Value| match entry.as_array() {
        Some(run) => 1 + (run[1].as_u64().unwrap() - run[0].as_u64().unwrap()) as usize,
        None => 1,
    };
    let entries = all.iter().flat_map(|r| r["items"].as_array().unwrap());
    let shown: usize = entries.map(length).sum();
    assert!(shown > 3 * items.len(), "{shown} items shown, {} stored", items.len());
    // Another run marks its outputs differently. Otherwise, except for their tokens, it is equal.
    drive(&here, &format!("{line} again"), 0);
    let without_usage = |mut case: Value| {
        for e in case["events"].as_array_mut().unwrap() {
            e.as_object_mut().unwrap().remove("usage");
        }
        case
    };
    let again = here.json("again/codex/0.169.0/login-bug-fake-wraps-acp.json");
    assert_eq!(without_usage(again), without_usage(case));
}

#[test]
#[ignore = "needs python3"]
fn drive_recorded_difference_fails_the_check() {
    let here = CommandFolder::new();
    let agent = describe(&here, "forgets-nothing", "acp", "strategy = \"codex\"");
    let out = drive(&here, &format!("login-bug {agent} --record cases"), 1);
    out.stderr_contains(&["differ from our implementation", "ctxbench conform cases"]);
    assert!(here.path("ctxbench-out/results.json").exists(), "the rows are there all the same");
    let none = describe(&here, "good", "exec", "");
    let out = drive(&here, &format!("login-bug {none} --record none"), 0);
    out.stderr_contains(&["its description names no `strategy`, so no case of it can be recorded"]);
    assert!(here.files("none").is_empty());
}

#[test]
#[ignore = "needs python3"]
fn drive_twice_gives_same_bytes() {
    let here = CommandFolder::new();
    let agent = describe(&here, "good", "acp", "strategy = \"codex\"");
    let line = format!("login-bug {agent} --record");
    let first = drive(&here, &format!("{line} cases --out one"), 0);
    let second = drive(&here, &format!("{line} cases --out two"), 0);
    assert_eq!(first.stdout, second.stdout);
    let (one, two) = (here.files("one"), here.files("two"));
    assert!(one.len() > 5 && one.keys().eq(two.keys()));
    for (name, content) in &one {
        assert!(two[name] == *content, "{name} differs");
    }
}
