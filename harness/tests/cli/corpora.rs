//! Many sessions: folders, compressed files and archives, filters, and unreadable files.

use crate::common::{self, CommandFolder, REPLAY, gzip, json_lines, jsonl};
use serde_json::{Value, json};

fn data(path: &str) -> Vec<u8> {
    std::fs::read(common::data(path)).unwrap()
}

const PI: &str = "recordings/pi/pi-mono-large-session.jsonl";
const TRAJ: &str = "recordings/mini-swe-agent/github_issue.traj.json";

/// Returns a session of a given day with a given number of one-token texts.
fn session(id: &str, day: &str, words: usize) -> String {
    jsonl(&[
        json!({"type": "session", "version": 1, "id": id, "started": format!("{day}T10:00:00Z")}),
        json!({"type": "user", "id": "u1", "text": "word ".repeat(words)}),
        json!({"type": "assistant", "id": "a1", "text": "read"}),
    ])
}

/// A scenario with one question and its answer.
const PORT: &str = "id = \"port\"\n[[step]]\ntype = \"user\"\ntext = \"Which port?\"\n\
                    [[step]]\ntype = \"assistant\"\ntext = \"8080\"\n";

#[test]
fn archives_of_tar_are_not_read() {
    let here = CommandFolder::with("x.tar.gz", gzip(&[0; 1024]));
    for line in [&format!("run x.tar.gz {REPLAY}"), "import x.tar.gz", "validate x.tar.gz"] {
        here.fails(line, 2, &["x.tar.gz"]);
    }
}

/// Creates a folder tree as a user might have it.
fn tree(here: &CommandFolder, at: &str) {
    let put = |name: &str, bytes: &[u8]| here.write(&format!("{at}/{name}"), bytes);
    put("2025/pi.jsonl.gz", &gzip(&data(PI)));
    put("2025/torn.jsonl.gz", &gzip(&data(PI))[..2_000]);
    put("2026/chats.jsonl.zst", &data("packed/openai-chat.jsonl.zst"));
    put("2026/run.traj.json", &data(TRAJ));
    put("package.json", b"{\"name\":\"x\"}");
    put("notes.md", b"# not a session");
    put("Cargo.toml", b"[package]\nname = \"x\"\n");
    put("2026/port.toml", PORT.as_bytes());
    put(".cache/pi.jsonl", &data(PI));
    put("whole.zip", &data("packed/tree.zip"));
    let (one, two) = (session("one", "2026-01-01", 5), session("two", "2026-02-02", 900));
    // The second of the three sessions has a line that is not JSON, and one that is no entry.
    let broken = session("broken", "2026-03-03", 1) + "oops\n{\"type\":\"user\"}\n";
    put("three.jsonl", (one + &broken + &two).as_bytes());
}

fn listed(here: &CommandFolder, line: &str) -> Vec<Value> {
    json_lines(&here.run(&format!("list sessions --json {line}")).ok().stdout)
}

fn names(rows: &[Value]) -> Vec<String> {
    let text = |r: &Value, key: &str| r[key].as_str().map(str::to_string);
    rows.iter().filter_map(|r| Some(format!("{} {}", text(r, "path")?, text(r, "id")?))).collect()
}

#[test]
fn a_mixed_tree_is_listed_with_a_row_for_each_session() {
    let here = CommandFolder::new();
    tree(&here, "all");
    let rows = listed(&here, "all");
    assert_eq!(
        names(&rows),
        [
            "all/2025/pi.jsonl.gz pi",
            "all/2026/chats.jsonl.zst port",
            "all/2026/chats.jsonl.zst sum",
            "all/2026/port.toml port",
            "all/2026/run.traj.json run",
            "all/three.jsonl one",
            "all/three.jsonl two",
            "all/whole.zip/claude-code/spotter-8463c716/subagents/agent-a7be2f0.jsonl \
             agent-a7be2f0",
            "all/whole.zip/messages/anthropic-messages.json anthropic-messages",
            "all/whole.zip/messages/openai-chat.jsonl port",
            "all/whole.zip/messages/openai-chat.jsonl sum",
            "all/whole.zip/messages/openai-responses.json openai-responses",
            "all/whole.zip/mini-swe-agent/github_issue.traj.json github_issue",
        ]
    );
    let errors: Vec<&str> = rows.iter().filter_map(|r| r["error"].as_str()).collect();
    let [torn, three] = errors[..] else { panic!("{errors:?}") };
    let breaks_off = "torn.jsonl.gz:1: it cannot be read (the gzip data in it breaks off)";
    assert!(torn.contains(breaks_off), "{torn}");
    assert!(three.contains("three.jsonl:8: an entry of type \"user\" does not fit"), "{three}");
    // The figures of the recordings are counted independently here.
    let of = |id: &str| rows.iter().find(|r| r["id"] == id).unwrap();
    let pi = json_lines(&String::from_utf8(data(PI)).unwrap());
    // A request that was interrupted before the first text gave no reply.
    let reply = |m: &&Value| m["role"] == "assistant" && m["content"] != json!([]);
    let replies: Vec<&Value> = pi.iter().map(|l| &l["message"]).filter(reply).collect();
    let prompt = |m: &Value| -> u64 {
        ["input", "cacheRead", "cacheWrite"].iter().filter_map(|k| m["usage"][k].as_u64()).sum()
    };
    let row = of("pi");
    assert_eq!(row["agent"], "pi");
    assert_eq!(row["steps"], replies.len());
    assert_eq!(row["peak"], replies.iter().map(|m| prompt(m)).max().unwrap());
    assert_eq!(
        [&row["peak_is_counted"], &row["model"]],
        [&json!(true), &json!("claude-sonnet-4-5")]
    );
    assert_eq!(&row["started"].as_str().unwrap()[..10], "2025-11-20");
    assert!(row["cost_usd"].as_f64().unwrap() > 0.0);
    let row = of("run");
    let trajectory: Value = serde_json::from_slice(&data(TRAJ)).unwrap();
    let messages = trajectory.as_array().unwrap();
    assert_eq!(row["steps"], messages.iter().filter(|m| m["role"] == "assistant").count());
    assert_eq!((&row["cost_usd"], &row["peak_is_counted"]), (&Value::Null, &json!(false)));
    let out = here.run("list sessions all").ok();
    let foreign = "package.json: not a format that ctxbench reads";
    out.stderr_contains(&["no session in 1 file", foreign]);
    out.prints(&["error: all/2025/torn.jsonl.gz", "13 sessions, ", "; 2 cannot be read"]);
    assert_eq!(out.stdout.lines().count(), 1 + 13 + 2 + 1, "{}", out.stdout);
}

#[test]
fn calls_of_a_model_without_a_name_have_no_price() {
    let here = CommandFolder::new();
    let usage = json!({"prompt_tokens": 1_000, "completion_tokens": 10});
    let chat = json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": "ok", "usage": usage}]);
    here.write("a.json", chat.to_string());
    let row = &listed(&here, "a.json")[0];
    assert_eq!((&row["counted_steps"], &row["cost_usd"]), (&json!(1), &json!(null)));
}

/// Aider stores counters for some replies only, and its models are often retired.
#[test]
fn what_was_counted_of_a_part_and_priced_as_another_model_is_told() {
    let here = CommandFolder::new();
    let chat = "# aider chat started at 2024-08-06 08:55:14\n\n> Model: claude-sonnet-4-4-20990620 \
                with diff edit format  \n\n#### hello\n\nHello!\n\n> Tokens: 5,000 sent, 3 received.  \n\n\
                #### and you\n\nFine.\n";
    here.write("a/.aider.chat.history.md", chat);
    let row = &listed(&here, "a")[0];
    assert_eq!((&row["steps"], &row["counted_steps"]), (&json!(2), &json!(1)));
    assert_eq!((&row["peak"], &row["peak_is_counted"]), (&json!(5000), &json!(true)));
    let priced = "claude-sonnet-4-4-20990620 is not in the table of models: its calls are priced as \
                  claude-sonnet-4-5";
    let least = "at least: replies without counters are not in the cost";
    assert_eq!(row["cost_notes"], json!([priced, least]));
    let out = here.run("list sessions a").ok();
    out.prints(&["≥5000"]).stderr_contains(&[&format!("note: {priced} (1 session)")]);
}

/// A shell's `**/*.jsonl` also names the files of subagents.
#[test]
fn files_of_subagents_that_are_named_too_count_once() {
    let here = CommandFolder::new();
    let main = data("recordings/claude-code/spotter-8463c716.jsonl");
    let agent = "recordings/claude-code/spotter-8463c716/subagents/agent-a7be2f0.jsonl";
    here.write("s/spotter-8463c716.jsonl", main);
    here.write("s/spotter-8463c716/subagents/agent-a7be2f0.jsonl", data(agent));
    let both = "s/spotter-8463c716/subagents/agent-a7be2f0.jsonl ./s/spotter-8463c716.jsonl";
    assert_eq!(names(&listed(&here, both)), ["./s/spotter-8463c716.jsonl spotter-8463c716"]);
    let imported = here.run(&format!("import {both} -o imported")).ok();
    imported.stderr_contains(&["1 session in imported"]);
    here.run(&format!("run {both} {REPLAY}")).ok();
    let rows = here.csv("out/summary.csv");
    assert_eq!(rows.iter().filter(|r| r["strategy"] == "reference").count(), 1);
}

#[cfg(unix)]
#[test]
fn a_path_that_is_a_pipe_is_read_once() {
    let here = CommandFolder::new();
    let made = std::process::Command::new("mkfifo").arg(here.path("pipe")).status().unwrap();
    assert!(made.success());
    let through = |bytes: Vec<u8>, line: &str| {
        let pipe = here.path("pipe");
        let writer = std::thread::spawn(move || std::fs::write(pipe, bytes));
        let out = here.run(line).ok().stdout;
        writer.join().unwrap().unwrap();
        out
    };
    let rows = through(data("packed/openai-chat.jsonl.zst"), "list sessions --json pipe");
    assert_eq!(names(&json_lines(&rows)), ["pipe port", "pipe sum"]);
    let rows = through(PORT.into(), "list sessions --json pipe");
    assert!(rows.contains("\"port\""), "{rows}");
    here.write("pi.jsonl", data(PI));
    let plain = here.run("import pi.jsonl").ok().stdout;
    let found = through(data(PI), "import pipe");
    assert_eq!(
        found.replace("\"pipe\"", "\"\""),
        plain.replace("\"pi.jsonl\"", "\"\"").replace("\"id\":\"pi\"", "\"id\":\"\"")
    );
}

#[cfg(unix)]
#[test]
fn what_a_shell_hands_over_is_no_number() {
    let said = ["user", "assistant"].map(|role| json!({"role": role, "content": "hi"}));
    let here = CommandFolder::with("chat.jsonl", jsonl(&said));
    let program = common::binary().display().to_string();
    let line = format!("{program} run <(cat chat.jsonl) <(cat chat.jsonl) {REPLAY}");
    let mut shell = std::process::Command::new("bash");
    let done = shell.args(["-c", &line]).current_dir(here.path("")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(here.column("out", "scenario"), ["pipe", "pipe-2"]);
}

#[test]
fn everything_that_a_file_may_hold_may_come_through_standard_input() {
    let here = CommandFolder::new();
    let run = format!("run - {REPLAY}");
    here.run(&run).piped(PORT).ok();
    let out = here.run("list sessions --json -").piped(data("packed/tree.zip")).ok().stdout;
    assert!(out.contains("stdin/messages/openai-chat.jsonl"), "{out}");
    here.run("import --to atif -").piped(PORT).ok().prints(&["Which port?"]);
}

#[test]
fn what_of_an_archive_is_not_read_is_told() {
    let here = CommandFolder::with("deep.zip", data("packed/deep.zip"));
    let deep = |name: &str| format!("deep.zip/{name}:1: an archive in an archive is not read");
    let error = |row: &Value| row["error"].as_str().unwrap_or_default().to_string();
    let rows = listed(&here, "deep.zip");
    assert_eq!(names(&rows), ["deep.zip/b.jsonl two"]);
    assert!(error(&rows[1]).contains(&deep("in.zip")), "{rows:?}");
    assert!(
        error(&rows[1]).contains("unpack it first") && error(&rows[2]).contains(&deep("x.eval"))
    );
    let told = [&deep("in.zip")[..], &deep("x.eval")];
    here.fails("import deep.zip -o out.jsonl", 2, &told);
    here.fails("validate deep.zip", 2, &[&deep("in.zip")]);
}

#[test]
fn numbers_that_no_session_has_are_told_and_fill_no_memory() {
    let here = CommandFolder::with("c.jsonl", include_str!("../data/odd-counters.jsonl"));
    let wrong =
        "c.jsonl:2: cache_read_input_tokens is 2.5, which is not a number of tokens; taken as 0";
    for command in ["list sessions c.jsonl", "import c.jsonl -o s.jsonl"] {
        here.run(command).ok().stderr_contains(&[wrong]);
    }
    let left_out = "c.jsonl:4: the counters tell of a prompt and a reply of 1000000010 tokens, in a window \
                    of 1100000 and a session of 106; they cannot be right and are left out";
    here.run(&format!("run c.jsonl {REPLAY}")).ok().stderr_contains(&[wrong, left_out]);
}

#[test]
fn what_is_named_twice_counts_once_and_an_empty_archive_holds_nothing() {
    let here = CommandFolder::new();
    here.write("s/pi.jsonl", data(PI));
    assert_eq!(names(&listed(&here, "s ./s/pi.jsonl s/pi.jsonl")), ["s/pi.jsonl pi"]);
    // The end of a directory without entries.
    here.write("empty.zip", [b"PK\x05\x06".as_slice(), &[0; 18]].concat());
    for line in ["run empty.zip", "import empty.zip"] {
        here.fails(line, 2, &["empty.zip: no session in it; expected session files"]);
    }
}

#[test]
fn a_compressed_session_runs_as_the_session_does() {
    let here = CommandFolder::new();
    here.write("plain/pi.jsonl", data(PI));
    here.write("packed/pi.jsonl.gz", gzip(&data(PI)));
    let mut results = Vec::new();
    for name in ["plain/pi.jsonl", "packed/pi.jsonl.gz"] {
        here.run(&format!("run {name} {REPLAY}")).ok();
        results.push(here.read("out/summary.csv"));
    }
    assert_eq!(results[0], results[1]);
    here.run("import packed/pi.jsonl.gz -o s.jsonl").ok();
    here.run("import plain/pi.jsonl -o t.jsonl").ok();
    let named = here.read("s.jsonl").replace("pi.jsonl.gz", "pi.jsonl");
    assert_eq!(named, here.read("t.jsonl"));
}

#[test]
fn a_subagent_beside_a_compressed_session_belongs_to_it() {
    let here = CommandFolder::new();
    let root = "recordings/claude-code/spotter-8463c716";
    here.write("s/spotter.jsonl.gz", gzip(&data(&format!("{root}.jsonl"))));
    for agent in ["agent-a7be2f0", "agent-acompact-f46190"] {
        let bytes = data(&format!("{root}/subagents/{agent}.jsonl"));
        here.write(&format!("s/spotter/subagents/{agent}.jsonl.gz"), gzip(&bytes));
    }
    let rows = listed(&here, "s");
    assert_eq!(names(&rows), ["s/spotter.jsonl.gz spotter"], "{rows:?}");
    // Six steps of the session itself. Steps of its subagent only count in its tokens.
    assert_eq!((&rows[0]["steps"], &rows[0]["compactions"]), (&json!(6), &json!(1)));
}

#[test]
fn damaged_sessions_do_not_end_a_run_or_an_import() {
    let here = CommandFolder::new();
    tree(&here, "all");
    let out = here.run(&format!("run all {REPLAY}")).ok();
    let skipped = "note: all: 3 of 16 files are not sessions and are skipped";
    out.stderr_contains(&[skipped, "torn.jsonl.gz:1: "]);
    let rows = here.csv("out/summary.csv");
    let ran = rows.iter().filter(|r| r["strategy"] == "reference").count();
    assert_eq!(ran, 13, "{rows:?}");
    // A file named on the command line may be damaged, but it must exist.
    let out = here.run(&format!("run all/2025/torn.jsonl.gz all/2026/run.traj.json {REPLAY}")).ok();
    out.stderr_contains(&[
        "error: all/2025/torn.jsonl.gz:1: it cannot be read (the gzip data in it breaks off)",
        "; left out",
    ]);
    here.run(&format!("run all/2025/torn.jsonl.gz {REPLAY}")).fails_with(2);
    here.run(&format!("run gone.jsonl all/2026/run.traj.json {REPLAY}")).fails_with(2);
    let words = ["error: all/2025/torn.jsonl.gz:1: ", " could not be imported"];
    here.fails("import all -o s.jsonl", 2, &words);
    assert_eq!(listed(&here, "s.jsonl").len(), 13);
}

#[test]
fn sessions_are_chosen_alike_by_every_command() {
    let here = CommandFolder::new();
    for n in 0..9 {
        let day = format!("2026-0{}-01", n + 1);
        here.write(&format!("a/d{}/s{n}.jsonl", n % 2), session(&format!("s{n}"), &day, 10 * n));
        here.write(&format!("b/d{}/s{n}.jsonl", n % 2), session(&format!("s{n}"), &day, 10 * n));
    }
    here.write("a/undated.jsonl", session("undated", "", 100).replace("\"started\"", "\"x\""));
    let ids = |line: &str| -> Vec<String> {
        let rows = listed(&here, line);
        rows.iter().map(|r| r["id"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(ids("a --limit 3"), ["s0", "s2", "s4"]);
    assert_eq!(ids("a --min-tokens 85"), ["s8", "undated"]);
    assert_eq!(ids("a --since 2026-08-01"), ["s8", "s7"]);
    let out = here.run("list sessions a --since 2026-08-01 --min-tokens 85").ok();
    out.stderr_contains(&[
        "9 sessions left out: 1 with less than 85 tokens, 7 begun before 2026-08-01, 1 without a \
         date",
    ]);
    // The sample does not depend on the location of the folder, but on the seed.
    let drawn = ids("a/d0 a/d1 --sample 4 --seed 7");
    assert_eq!(drawn.len(), 4);
    assert_eq!(drawn, ids("b/d0 b/d1 --sample 4 --seed 7"));
    assert!((1..9).any(|seed| ids(&format!("a/d0 a/d1 --sample 4 --seed {seed}")) != drawn));
    here.run("import b/d0 b/d1 --sample 4 --seed 7 -o s.jsonl").ok();
    assert_eq!(ids("s.jsonl"), drawn);
    let drawing = here.run(&format!("run b/d0 b/d1 --sample 4 --seeds 7 {REPLAY}")).ok();
    drawing.stderr_contains(&["5 not drawn"]);
    let mut ran = here.column("out", "scenario");
    ran.dedup();
    let mut sorted = drawn.clone();
    sorted.sort();
    assert_eq!(ran, sorted);
    // No session is left.
    let told = "no session is left to run: 10 sessions left out: 9 begun before 2030-01-01";
    here.fails(&format!("run a --since 2030-01-01 {REPLAY}"), 2, &[told]);
}
