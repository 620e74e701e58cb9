//! `ctxbench advise`: its advice on recordings, and recordings without advice.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::{CommandFolder, Run, data, database, jsonl};

/// A session of Claude Code in a window of 60,000 tokens: it compacts at 60,000 − 20,000 − 13,000
/// tokens, which the prompt of reply 44 reaches. Prompts grow by 500 per reply, from 5,000 on, and
/// after the compaction from 8,000 on.
fn session(n: usize) -> String {
    session_of(None, n, 44, 60 + n)
}

/// The same of a version of the program, with as many replies, compacted before one of them.
fn session_of(version: Option<&str>, n: usize, compacted_before: usize, replies: usize) -> String {
    let id = format!("s{n:02}");
    let mut lines = vec![
        json!({"type": "session", "version": 1, "id": id, "model": "claude-sonnet-4-6",
            "started": format!("2026-03-{:02}T10:00:00.000Z", n + 1),
            "source": {"format": "claude-code", "version": version}, "prefix_tokens": 4_950}),
        json!({"type": "user", "id": "u", "text": "Move the harbour service to port 8443."}),
    ];
    for i in 0..replies {
        let prompt = match i {
            _ if i < compacted_before => 5_000 + 500 * i,
            _ => 8_000 + 500 * (i - compacted_before),
        };
        if i == compacted_before {
            lines.push(json!({"type": "recorded_compaction", "trigger": "auto",
                "pre_tokens": 5_000 + 500 * compacted_before, "summary": "The harbour service moves to port 8443.",
                "usage": {"input": 10, "cache_read": 4_500 + 500 * compacted_before, "cache_write": 2_000, "output": 600}}));
        }
        let read = match i {
            0 => 0,
            _ if i == compacted_before => 4_950,
            _ => prompt - 510,
        };
        let call = format!("c{i}");
        lines.push(
            json!({"type": "assistant", "id": format!("a{i}"), "text": format!("Step {n}.{i}."),
            "calls": [{"id": call, "name": "Bash", "arguments": "{\"command\":\"make\"}"}],
            "usage": {"input": 10, "cache_read": read, "cache_write": prompt - read - 10, "output": 80}}),
        );
        lines.push(
            json!({"type": "tool", "call_id": call, "output": format!("built part {n}.{i}")}),
        );
    }
    lines.push(json!({"type": "assistant", "id": "end", "text": "It listens on port 8443.",
        "usage": {"input": 10, "cache_read": 20_000.min(500 * compacted_before), "output": 40}}));
    lines.push(json!({"type": "fact", "id": "port", "kind": "value", "tokens": ["8443"],
        "arises": "u", "needs": ["end"]}));
    jsonl(&lines)
}

fn sessions(n: usize) -> CommandFolder {
    let here = CommandFolder::new();
    (0..n).for_each(|i| here.write(&format!("mine/s{i:02}.jsonl"), session(i)));
    here
}

fn advice(here: &CommandFolder, options: &str) -> Value {
    here.run(&format!("advise mine --window 60k --json {options}")).ok().json()
}

#[test]
fn advice_on_twelve_sessions_equals_figures_of_run() {
    let here = sessions(12);
    let all = advice(&here, "");
    let one = &all["advice"][0];
    assert_eq!((&one["product"], &one["sessions"]), (&json!("claude-code"), &json!(12)));
    assert_eq!((&one["left_out"], &one["now"]["compactions"]), (&json!([]), &json!(12)));
    let decision = one["decision"].to_string();
    assert!(!decision.contains("too_few") && !decision.contains("nothing"), "{decision}");
    let of = |value: &str| {
        let all = one["changes"].as_array().unwrap();
        all.iter().find(|c| c["label"] == format!("claude-code:{value}")).expect("it was tried")
    };
    // 50 % of the effective 40,000 is below the threshold, 80 % is above it.
    assert_eq!(of("threshold_percent=50")["differs"], 12);
    assert_eq!(of("threshold_percent=80")["differs"], 0);
    assert_eq!(of("auto_compact_window=100000")["differs"], 0);
    let half = of("threshold_percent=50");
    assert_eq!(half["settings"][0]["line"], "export CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=50");
    assert_ne!(half["figures"][0]["verdict"], "difference_only");

    here.run(
        "run mine --window 60k --transport direct --strategy claude-code \
         --strategy claude-code:threshold_percent=50",
    )
    .ok();
    let mut sums: BTreeMap<String, (f64, f64, f64)> = BTreeMap::new();
    for row in here.csv("ctxbench-out/summary.csv") {
        let sum = sums.entry(row["strategy"].clone()).or_default();
        sum.0 += row["cost_usd"].parse::<f64>().unwrap();
        // Recorded rows have no waiting times.
        sum.1 += row["blocked_ms"].parse::<f64>().unwrap_or(0.0);
        sum.2 += row["compactions"].parse::<f64>().unwrap();
    }
    let rows = [("claude-code", &one["now"]), (half["label"].as_str().unwrap(), &half["then"])];
    for (label, told) in rows {
        let (cost, waited, compactions) = sums[label];
        let is = |what: &str, sum: f64| (told[what].as_f64().unwrap() - sum).abs() < 1e-4;
        assert!(is("cost_usd", cost) && is("waited_ms", waited), "{label}: {told}");
        assert!(is("compactions", compactions), "{label}: {told}");
        assert_eq!(told["recall"]["events"], 12, "{label}: {told}");
    }
    let recorded = one["recorded"]["cost_usd"].as_f64().unwrap();
    assert!((recorded - sums["as-recorded"].0).abs() < 1e-4, "{recorded}");

    let text = here.run("advise mine --window 60k").ok().stdout;
    let words = |t: &str| t.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&text).starts_with(one["sentence"].as_str().unwrap()), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    assert!(text.lines().count() <= 40, "{text}");
    let row = text.lines().find(|l| l.contains("threshold_percent=80")).unwrap();
    assert!(row.contains(" ±0 "), "{row}");
    // What the recordings show of the present settings: 27,000 tokens, of 40,000 − 13,000.
    let effect = "Today's settings took effect: the recordings compacted at 27k tokens";
    assert!(one["effect"].as_str().unwrap().starts_with(effect), "{}", one["effect"]);
    // The cheaper model of the provider writes the summaries, at the same compactions.
    let cheaper = of_label(one, "claude-code with summaries by claude-haiku-4-5");
    assert_eq!((&cheaper["differs"], &cheaper["settings"][0]["line"]), (&json!(12), &json!("")));
    assert_eq!(cheaper["then"]["compactions"], one["now"]["compactions"]);
    assert!(cheaper["then"]["waited_ms"].as_u64() < one["now"]["waited_ms"].as_u64(), "{cheaper}");
    assert_eq!(text, here.run("advise mine --window 60k --jobs 1").ok().stdout);
}

fn of_label<'a>(advice: &'a Value, label: &str) -> &'a Value {
    let mut all = advice["changes"].as_array().unwrap().iter();
    all.find(|c| c["label"] == label).unwrap_or_else(|| panic!("no {label} in {advice}"))
}

/// Up to 2.1.20 the program kept 32,000 tokens for a reply: two sessions compacted at 60,000 − 32,000 −
/// 13,000 tokens, which the prompt of reply 20 reaches.
#[test]
fn each_recording_is_replayed_with_the_version_that_it_names() {
    let here = sessions(1);
    here.write("mine/s01.jsonl", session_of(Some("2.1.7"), 1, 20, 28));
    here.write("mine/s02.jsonl", session_of(Some("2.1.20"), 2, 20, 28));
    let all = advice(&here, "");
    let one = &all["advice"][0];
    assert_eq!((&one["product"], &one["left_out"]), (&json!("claude-code"), &json!([])));
    assert_eq!((&one["sessions"], &one["now"]["compactions"]), (&json!(3), &json!(3)));
    assert_eq!(of_label(one, "claude-code:threshold_percent=50")["differs"], 3);
    let effect =
        "Today's settings took effect: the recordings (2.1.20, 2.1.7) compacted at 15k to 27k";
    assert!(one["effect"].as_str().unwrap().starts_with(effect), "{}", one["effect"]);
    // A version that the user names is that of all.
    let chosen = advice(&here, "--product claude-code@2.0");
    assert_eq!(chosen["advice"][0]["left_out"].as_array().unwrap().len(), 1);
}

#[test]
fn recordings_that_hide_what_they_continue_are_not_used() {
    let here = sessions(2);
    let cut = session(1).replacen("\"format\":", "\"continues\":true,\"format\":", 1);
    here.write("mine/s01.jsonl", cut.replace("4950", "64950"));
    let out = here.run("advise mine --window 60k --details").ok();
    assert!(
        out.stdout.contains("1 session continuing a conversation that its file lacks (s01)"),
        "{}",
        out.stdout
    );
    assert!(out.stdout.contains("claude-code, 1 session,"), "{}", out.stdout);
    let out =
        here.run("run mine --transport direct --strategy claude-code --strategy reference").ok();
    let why = "note: s01: it continues a conversation that its file lacks, and 64950 tokens of its \
               first request are hidden: it is not compared with other sessions";
    out.stderr_contains(&[why]);
    let table = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains("not compared: 1 session continuing"), "{table}");
    assert!(table.contains("in 1 session"), "{table}");
}

/// The best value is tried with the best of another setting.
#[test]
fn combinations_of_two_settings_are_candidates() {
    let here = sessions(3);
    let mine = here.run("advise mine --window 60k --json --product claude-code").ok().json();
    let changes = mine["advice"][0]["changes"].as_array().unwrap().clone();
    let pairs: Vec<&Value> = changes.iter().filter(|c| c["extends"].is_string()).collect();
    for pair in &pairs {
        assert_eq!(pair["settings"].as_array().unwrap().len(), 2, "{pair}");
    }
}

#[test]
fn advice_on_few_sessions_is_undecided() {
    let here = sessions(5);
    let out = here.run("advise mine --window 60k --last 3").ok();
    let told = "Not enough for claude-code: 3 sessions, 10 needed.";
    assert!(out.stdout.starts_with(told), "{}", out.stdout);
    out.stderr_contains(&["2 sessions left out: 2 older"]);
    assert!(!out.stdout.contains("export"), "{}", out.stdout);
    let later = advice(&here, "--since 2026-03-05");
    assert_eq!(later["advice"][0]["sessions"], 1);
}

/// The user gives a setting that contradicts the recordings.
#[test]
fn sessions_with_other_compactions_are_excluded_by_name() {
    let here = sessions(2);
    let all = advice(&here, "--product claude-code:threshold_percent=50");
    let one = &all["advice"][0];
    assert_eq!((&one["decision"], &one["sessions"]), (&json!("no_session"), &json!(0)));
    assert_eq!(one["changes"], json!([]));
    let left = one["left_out"].as_array().unwrap();
    let ids: Vec<&str> = left.iter().map(|l| l["session"].as_str().unwrap()).collect();
    assert_eq!(ids, ["s00", "s01"]);
    let effect = one["effect"].as_str().unwrap();
    assert!(effect.starts_with("Today's settings did not take effect"), "{effect}");
    let why = left[0]["why"].as_str().unwrap();
    assert!(why.contains("within 10 replies (recorded before 44, ours before "), "{why}");
    let out = here.run("advise mine --window 60k --product claude-code:threshold_percent=50").ok();
    let first =
        "No advice for claude-code:threshold_percent=50: none of its 2 sessions can be used.";
    let words = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with(first), "{words}");
    out.prints(&["  s00: "]).lacks(&["export"]);
}

#[test]
fn unusable_sessions_are_listed_with_the_reason() {
    let here = sessions(1);
    let other = data("recordings/swe-agent/pydicom-1458-text.traj").display().to_string();
    let bare = session(3).replace("\"usage\":", "\"unused\":").replace("\"s03\"", "\"bare\"");
    here.write("mine/bare.jsonl", bare);
    here.write("mine/strange.jsonl", session(4).replace("claude-sonnet-4-6", "unknown-7"));
    let text = here.run(&format!("advise mine {other} --window 60k --details")).ok().stdout;
    let skipped = text.lines().find(|l| l.starts_with("Skipped: ")).unwrap();
    for part in [
        "1 session recorded by swe-agent, which has no documented settings here",
        "1 session without the provider's counters (bare)",
        "1 session of unknown-7, with unknown prices and window",
    ] {
        assert!(skipped.contains(part), "{skipped} has no {part}");
    }
    let codex = here.run("advise mine --product codex --details").ok().stdout;
    assert!(codex.starts_with("No advice for codex: no recording of it is here.\n"), "{codex}");
    let few = here.run("advise mine --product codex").ok().stdout;
    assert!(
        few.ends_with("3 sessions skipped. More: --details. For a design review: --out DIR.\n")
    );
    assert!(codex.contains("recorded by claude-code, which is not selected (bare, s00"), "{codex}");
}

/// A setting in the product's own file is the current one and is not tried again.
#[test]
fn settings_file_is_the_current_setting() {
    let here = sessions(1);
    let settings = r#"{"env": {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "60"}}"#;
    here.write(".claude/settings.json", settings);
    let all = advice(&here, "--settings .claude/settings.json");
    let one = &all["advice"][0];
    assert_eq!(one["product"], "claude-code:threshold_percent=60");
    let changes = one["changes"].as_array().unwrap().iter();
    let tried: Vec<String> = changes
        .map(|c| &c["settings"][0])
        .map(|c| format!("{} {}", c["setting"], c["value"]))
        .collect();
    let is_tried = |value: &str| tried.contains(&format!("\"threshold_percent\" \"{value}\""));
    assert!(is_tried("70") && !is_tried("60"), "{tried:?}");
}

/// Variables that the agents' folders depend on, without values.
const VARIABLES: [&str; 13] = [
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "XDG_DATA_HOME",
    "PI_CODING_AGENT_DIR",
    "GEMINI_CLI_HOME",
    "COPILOT_HOME",
    "XDG_CONFIG_HOME",
    "APPDATA",
    "LOCALAPPDATA",
    "QWEN_HOME",
    "KIMI_CODE_HOME",
    "AMP_DATA_DIR",
    "CLINE_SESSION_DATA_DIR",
];

fn at_home(here: &CommandFolder, line: &str) -> Run {
    let run = here.run(line).env("HOME", here.path("home").to_str().unwrap());
    VARIABLES.iter().fold(run, |run, name| run.env(name, ""))
}

#[test]
fn without_arguments_the_folders_of_the_agents_are_read() {
    let here = CommandFolder::new();
    let none = at_home(&here, "advise").fails_with(2);
    let opencode = here.path("home/.local/share/opencode/storage").display().to_string();
    none.stderr_contains(&["no sessions found", "Give a file or a folder", &opencode]);
    let gemini = here.path("home/.gemini/tmp").display().to_string();
    none.stderr_contains(&[&format!("\n  gemini-cli   {gemini}\n")]);

    (0..2).for_each(|n| here.write(&format!("home/.claude/projects/p/{n}.jsonl"), session(n)));
    let codex = |n: usize| {
        let all = session(n).replace("claude-code", "codex").replace("\"s0", "\"c0");
        all.replace("claude-sonnet-4-6", "gpt-5-codex").replace("built part", "made piece")
    };
    (0..3).for_each(|n| here.write(&format!("codex/sessions/2026/{n}.jsonl"), codex(n)));
    here.write("home/.gemini/tmp/notes.txt", "no session");
    let out = at_home(&here, "advise --window 60k").ok();
    let told = "Not enough for claude-code: 2 sessions, 10 needed.";
    assert!(out.stdout.starts_with(told), "{}", out.stdout);
    assert!(out.stdout.contains("\ntoday  ") && !out.stdout.contains("codex"), "{}", out.stdout);
    assert_eq!(out.stderr, "");

    // The product with most sessions is first, and each has its decision only.
    let place = here.path("codex").display().to_string();
    let both = at_home(&here, "advise --window 60k").env("CODEX_HOME", &place).ok().stdout;
    let [first, second] = ["No advice for codex: none of its 3", "Not enough for claude-code: 2"];
    assert!(both.starts_with(first) && both.contains(&format!("\n\n{second}")), "{both}");
    assert!(both.lines().count() <= 40 && !both.contains("\ntoday  "), "{both}");
    let full = at_home(&here, "advise --window 60k --details").env("CODEX_HOME", &place).ok();
    assert!(full.stdout.contains("\ntoday  ") && full.stdout.contains("Left out: 3 sessions"));
    let one = at_home(&here, "advise --product codex").env("CODEX_HOME", &place).ok();
    assert!(one.stdout.starts_with(first), "{}", one.stdout);
}

/// Copies a recording, and fills a database where it is SQL.
fn copy_recording(here: &CommandFolder, recording: &str, at: &str) {
    if !recording.ends_with(".sql") {
        return here.write(at, std::fs::read(data("recordings").join(recording)).unwrap());
    }
    let made = database(here, recording);
    here.write(at, std::fs::read(&made).unwrap());
    std::fs::remove_file(made).unwrap();
}

#[test]
fn sessions_of_all_agents_are_found_on_every_system() {
    let here = CommandFolder::new();
    let none = at_home(&here, "list sessions").fails_with(2);
    none.stderr_contains(&[
        "no sessions found in the folders of claude-code, codex, ",
        "zed; give",
    ]);

    let apps = ["home/.config", "home/Library/Application Support", "home/AppData/Roaming"];
    let chats = "Code/User/workspaceStorage/0f/chatSessions";
    copy_recording(&here, "copilot-vscode/chat.json", &format!("{}/{chats}/a.json", apps[0]));
    copy_recording(&here, "copilot-vscode/chat.jsonl", &format!("{}/{chats}/b.jsonl", apps[1]));
    let cursor = "Cursor/User/globalStorage/state.vscdb";
    copy_recording(&here, "cursor/state.sql", &format!("{}/{cursor}", apps[2]));
    copy_recording(&here, "goose/port.sql", "home/.local/share/goose/sessions/sessions.db");
    copy_recording(&here, "goose/older.jsonl", "home/.local/share/goose/sessions/older.jsonl");
    copy_recording(&here, "zed/threads.sql", "home/AppData/Local/Zed/threads/threads.db");
    copy_recording(&here, "openclaw/session.jsonl", "home/.openclaw/agents/main/sessions/a.jsonl");
    let droid = "droid/0f0f0f0f-0000-4000-8000-00000000000b.jsonl";
    copy_recording(&here, droid, "home/.factory/sessions/p/a.jsonl");
    let tasks = "Code - Insiders/User/globalStorage/saoudrizwan.claude-dev/tasks/1";
    for file in ["api_conversation_history.json", "ui_messages.json"] {
        copy_recording(&here, &format!("cline/{file}"), &format!("{}/{tasks}/{file}", apps[0]));
    }
    here.write("home/.cline/data/tasks/notes.json", "{}");

    let listed = at_home(&here, "list sessions").ok();
    let agents = listed.stdout.lines().skip(1).filter_map(|l| l.split_whitespace().next());
    let agents: Vec<&str> = agents.take_while(|a| !a.starts_with(char::is_numeric)).collect();
    // The database of Goose, with three sessions, replaced its files.
    let want = "copilot-vscode copilot-vscode cursor cline openclaw goose goose goose droid zed";
    assert_eq!(agents.join(" "), want, "{}", listed.stdout);
    listed.stderr_contains(&["1 of cline, 2 of copilot-vscode, ", "ctxbench explain PATH --next"]);
    assert!(!listed.stderr.contains("no session in"), "{}", listed.stderr);

    let advice = at_home(&here, "advise").fails_with(2);
    let others = "folders of copilot-vscode, cursor, cline, openclaw, goose, droid, zed, whose";
    advice.stderr_contains(&["no sessions found to advise on", others, "`ctxbench list sessions`"]);
    at_home(&here, "advise --product claude-code").fails_with(2);

    let here = CommandFolder::with("home/.claude/projects/notes.txt", "no session");
    let none = at_home(&here, "list sessions").fails_with(2);
    none.stderr_contains(&["no sessions found in the folders of claude-code, codex, "]);
    assert_eq!(none.stdout, "");
}

#[test]
fn a_review_is_written_without_replacing_other_files() {
    let here = sessions(12);
    let line = "advise mine --window 60k --out review";
    let text = at_home(&here, line).ok().stdout;
    let sentence = text.lines().next().unwrap();
    let first = here.files("review");
    let md = here.read("review/advice.md");
    let words = md.replace('\\', "").replace('\n', " ");
    assert!(words.contains(sentence) && words.contains("newest of 2026-03-12"), "{md}");
    assert!(words.contains("Made by `ctxbench advise mine --window 60k --out review`."), "{md}");
    assert!(md.contains("](advice-claude-code.svg)"), "{md}");
    let page = here.read("review/advice.html");
    assert!(page.contains("<svg ") && page.contains("12 sessions"), "{page}");
    for fetched in ["<link rel=\"stylesheet", "<script", "src=", "@import", "url("] {
        assert!(!page.contains(fetched), "{fetched}");
    }
    assert!(here.read("review/advice-claude-code.svg").contains("threshold_percent (today: 100)"));
    at_home(&here, line).ok();
    assert!(first == here.files("review"), "other bytes");
    here.write("own/advice.md", "mine");
    let out = at_home(&here, "advise mine --window 60k --out own").fails_with(2);
    out.stderr_contains(&["own/advice.md", "was not made by ctxbench"]);
    assert_eq!(here.read("own/advice.md"), "mine");
}
