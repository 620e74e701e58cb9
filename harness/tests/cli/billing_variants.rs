//! Steps that the tests of bills share, and recordings of other versions, models and programs.

use serde_json::{Value, json};

use crate::common::{CLAUDE_CODE, CommandFolder, REPLAY, data, json_lines, jsonl};

/// Sonnet 4.6, USD per million tokens: 3 for input, 15 for output, so 10,000 and 1,000 tokens cost 0.045.
pub const SONNET: &str = "claude-sonnet-4-6";
pub const CALL_USD: f64 = 0.045;

/// Checks the number of sessions in the files and their sum. Returns the rows of `list sessions`, and its
/// messages.
#[track_caller]
pub fn assert_bill(files: &[(&str, String)], sessions: usize, usd: f64) -> (Vec<Value>, String) {
    let here = CommandFolder::new();
    files.iter().for_each(|(name, text)| here.write(&format!("in/{name}"), text));
    let out = here.run("list sessions in --json").ok();
    let (mut rows, told) = (json_lines(&out.stdout), out.stderr);
    rows.retain(|r| r.get("steps").is_some());
    let sum: f64 = rows.iter().filter_map(|r| r["cost_usd"].as_f64()).sum();
    assert_eq!(rows.len(), sessions, "{rows:?} {told}");
    assert!((sum - usd).abs() < 1e-9, "{sum} instead of {usd}: {rows:?}");
    (rows, told)
}

#[test]
fn a_recording_of_another_version_is_named() {
    let versioned = "\"version\":\"2.0.76\",\"isSidechain\"";
    let here = CommandFolder::with("a.jsonl", CLAUDE_CODE.replace("\"isSidechain\"", versioned));
    let out = here.run(&format!("run a.jsonl {REPLAY}")).ok();
    out.stderr_contains(&["a was recorded by claude-code 2.0.76: claude-code@2.0 follows that"]);
    let codex = data("recordings/codex/codemie-rollout-019e1625.jsonl");
    here.write("b.jsonl", std::fs::read(codex).unwrap());
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
