//! Bills of recordings that repeat, hide or damage calls, a variant for each kind, with sums that can
//! be worked out by hand. Prices are USD per million tokens.

use serde_json::{Value, json};

use crate::common::{CommandFolder, REPLAY, data, json_lines, jsonl};

/// Sonnet 4.6: 3 for input, 15 for output, so 10,000 and 1,000 tokens cost 0.045.
pub const SONNET: &str = "claude-sonnet-4-6";
pub const CALL_USD: f64 = 0.045;

/// Returns a question and a reply of a Claude Code transcript.
fn turn(n: u64, model: &str, usage: &Value) -> [Value; 2] {
    let line = |id: u64, kind: &str, message: Value| {
        json!({"type": kind, "uuid": id.to_string(), "parentUuid": (id > 1).then(|| (id - 1).to_string()),
            "sessionId": "s", "version": "2.1.200", "isSidechain": false, "cwd": "/w",
            "timestamp": format!("2026-10-02T09:{:02}:{:02}.000Z", id / 60, id % 60),
            "message": message, "requestId": format!("req_{id}")})
    };
    let reply = json!({"id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": model,
        "content": [{"type": "text", "text": format!("Answer {n}.")}], "usage": usage});
    let ask = json!({"role": "user", "content": format!("Question {n}?")});
    [line(2 * n - 1, "user", ask), line(2 * n, "assistant", reply)]
}

pub fn plain() -> Value {
    json!({"input_tokens": 10_000, "output_tokens": 1_000})
}

/// Returns a question and a reply as chat messages.
pub fn talk(model: &str, usage: Value) -> String {
    let messages = json!([
        {"role": "user", "content": "Which port?"},
        {"role": "assistant", "content": "8443.", "usage": usage},
    ]);
    json!({"model": model, "messages": messages}).to_string()
}

pub fn turns(from: u64, to: u64) -> Vec<Value> {
    (from..=to).flat_map(|n| turn(n, SONNET, &plain())).collect()
}

/// Returns the rows of `list sessions .` and what it prints about them.
pub fn listed(here: &CommandFolder, path: &str) -> (Vec<Value>, String) {
    let out = here.run(&format!("list sessions {path} --json")).ok();
    let mut rows = json_lines(&out.stdout);
    rows.retain(|r| r.get("steps").is_some());
    (rows, out.stderr)
}

#[track_caller]
pub fn assert_bill(files: &[(&str, String)], sessions: usize, usd: f64) -> (Vec<Value>, String) {
    let here = CommandFolder::new();
    files.iter().for_each(|(name, text)| here.write(&format!("in/{name}"), text));
    let (rows, told) = listed(&here, "in");
    let sum: f64 = rows.iter().filter_map(|r| r["cost_usd"].as_f64()).sum();
    assert_eq!(rows.len(), sessions, "{rows:?} {told}");
    assert!((sum - usd).abs() < 1e-9, "{sum} instead of {usd}: {rows:?}");
    (rows, told)
}

fn recording(name: &str) -> String {
    std::fs::read_to_string(data(name)).unwrap()
}

#[test]
fn a_resumed_copy_adds_its_own_calls_only() {
    let copy = turns(1, 3);
    assert_bill(&[("a.jsonl", jsonl(&turns(1, 2))), ("b.jsonl", jsonl(&copy))], 2, 3.0 * CALL_USD);
    // A backup of the same file.
    assert_bill(&[("a.jsonl", jsonl(&copy)), ("old/a.jsonl", jsonl(&copy))], 2, 3.0 * CALL_USD);
}

#[test]
fn forks_of_codex_and_opencode_repeat_calls() {
    let codex = ["codex-thread.jsonl", "codex-thread-fork.jsonl"];
    let files = codex.map(|name| (name, recording(&format!("billing/{name}"))));
    // GPT-5.4: 0.3075 of the thread, and the fork's third call.
    assert_bill(&files, 2, 0.350_25);

    let exports = [
        ("a.json", include_str!("../data/opencode-session.json").to_string()),
        ("b.json", include_str!("../data/opencode-fork.json").to_string()),
    ];
    assert_bill(&exports, 2, 3.0 * CALL_USD);
}

#[test]
fn prompts_that_fall_show_a_compaction_without_a_marker() {
    let lines = |prompts: &[u64]| {
        let turn = |(prompt, n): (&u64, u64)| {
            turn(n, SONNET, &json!({"input_tokens": prompt, "output_tokens": 0}))
        };
        jsonl(&prompts.iter().zip(1..).flat_map(turn).collect::<Vec<Value>>())
    };
    // A small request between two large ones is none of the conversation.
    let here = CommandFolder::with("c.jsonl", lines(&[160_000, 300, 160_500]));
    assert_eq!(listed(&here, "c.jsonl").0[0]["compactions"], 0);
    let here = CommandFolder::with("a.jsonl", lines(&[100_000, 160_000, 30_000, 40_000]));
    let (rows, told) = listed(&here, "a.jsonl");
    assert_eq!(rows[0]["compactions"], 1);
    let unshown = "at least one compaction that the file does not show";
    let falls = "falls from 160000 to 30000 tokens";
    assert!(told.contains(unshown), "{told}");
    here.run("import a.jsonl -o b.jsonl").ok().stderr_contains(&[unshown, falls]);
}

#[test]
fn new_items_and_records_of_codex_keep_their_counters() {
    // 6,000 and 12,100 tokens at 2.5, and replies at 15.
    let items = recording("billing/codex-new-items.jsonl");
    let (_, told) = assert_bill(&[("a.jsonl", items)], 1, 0.061_75);
    assert!(!told.contains("damaged"), "{told}");
    let records = recording("billing/codex-usage-records.jsonl");
    let (rows, _) = assert_bill(&[("a.jsonl", records)], 1, 1.323);
    assert_eq!(rows[0]["compactions"], 1);
}

#[test]
fn a_recording_of_another_version_is_named() {
    let mut lines = turns(1, 2);
    lines.iter_mut().for_each(|l| l["version"] = "2.0.76".into());
    let here = CommandFolder::with("a.jsonl", jsonl(&lines));
    let out = here.run(&format!("run a.jsonl {REPLAY}")).ok();
    out.stderr_contains(&["a was recorded by claude-code 2.0.76: claude-code@2.0 follows that"]);
    here.write("b.jsonl", recording("recordings/codex/codemie-rollout-019e1625.jsonl"));
    let out = here.run(&format!("run b.jsonl {REPLAY}")).ok();
    out.stderr_contains(&["b was recorded by codex 0.1", "compactions can come at other points"]);
}

/// Two models of OpenAI, one of which drops the reasoning of earlier turns: 750 tokens, which have
/// 3,000 bytes in base64, and 4 of a block.
#[test]
fn reasoning_of_earlier_turns_is_dropped_by_older_models_of_openai() {
    let prompt_of_last = |model: &str| -> f64 {
        let parts = json!([{"type": "reasoning", "text": "", "encrypted": "A".repeat(4_000)},
            {"type": "text", "text": "One."}]);
        let session = jsonl(&[
            json!({"type": "session", "version": 1, "id": "s", "model": model}),
            json!({"type": "user", "id": "u1", "text": "First?"}),
            json!({"type": "assistant", "id": "a1", "parts": parts}),
            json!({"type": "user", "id": "u2", "text": "Second?"}),
            json!({"type": "assistant", "id": "a2", "text": "Two."}),
        ]);
        let here = CommandFolder::with("s.jsonl", session);
        here.run(&format!("run s.jsonl --model {model} {REPLAY}")).ok();
        here.csv("out/requests.csv")[1]["input_tokens"].parse().unwrap()
    };
    let difference = prompt_of_last("gpt-5.6-sol") - prompt_of_last("gpt-5.5");
    assert_eq!(difference, 754.0);
}

/// Files of programs that are known and not read, and files of nobody.
#[test]
fn files_of_other_programs_are_refused_by_name() {
    let here = CommandFolder::new();
    let other = json!({"sessionId": "c", "workspaceDirectory": "/w", "history": []});
    for (file, text, words) in [
        ("other.json", other.to_string(), "a recording of Continue, which ctxbench does not read"),
        ("any.json", json!({"hello": [1, 2]}).to_string(), "not a format that ctxbench reads"),
    ] {
        here.write(file, text);
        here.run(&format!("list sessions {file}")).fails_with(2).prints(&[words]);
    }
    let words = "other.json: a recording of Continue, which ctxbench does not read";
    here.run("import other.json").fails_with(2).stderr_contains(&[words]);
}
