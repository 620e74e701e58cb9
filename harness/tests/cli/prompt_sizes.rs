//! Sizes of prompts, facts over several parts and rules of other providers, a variant for each kind,
//! on sessions whose figures can be worked out by hand.

use ctxbench_core::tokens::o200k;
use serde_json::{Value, json};

use crate::common::{CommandFolder, jsonl};

const DIRECT: &str = "--transport direct --out out";

/// Returns one column of a row of `summary.csv`.
fn cell(here: &CommandFolder, strategy: &str, column: &str) -> f64 {
    let row = here.row("out", strategy);
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {strategy}: {}", row[column]))
}

/// Claude's models up to 4.6 count 1.17 · o200k + 34 per block, those since Opus 4.7 1.61 · o200k +
/// 38, and OpenAI's o200k + 4.
#[test]
fn generations_of_claude_count_the_same_text_differently() {
    let text = "The harbour opens its gates at seven and closes them at nine. ".repeat(300);
    let o200k = o200k(&text) as f64;
    for (model, expected) in [
        ("claude-opus-4-6", 1.17 * o200k + 34.0),
        ("claude-haiku-4-5", 1.17 * o200k + 34.0),
        ("claude-opus-4-7", 1.61 * o200k + 38.0),
        ("gpt-5.5", o200k + 4.0),
    ] {
        let here = CommandFolder::new();
        here.write(
            "s.jsonl",
            jsonl(&[
                json!({"type": "session", "version": 1, "id": "s"}),
                json!({"type": "user", "id": "u", "text": text}),
                json!({"type": "assistant", "id": "a", "text": "Noted."}),
            ]),
        );
        here.run(&format!("run s.jsonl --model {model} --strategy reference {DIRECT}")).ok();
        let tokens = cell(&here, "reference", "input_tokens");
        assert!((tokens - expected).abs() <= 1.0, "{model}: {tokens} instead of {expected}");
    }
}

/// Ten results of about 3,000 tokens in o200k, of which the counters say twice as many. Growth that
/// is proportional to the results goes when they are cleared; hidden text would stay.
#[test]
fn tokens_in_proportion_to_a_result_are_cleared_with_it() {
    const HEAD: u64 = 10_000;
    let result = |n: u64| -> String {
        (0..400).map(|line| format!("entry {n} of line {line} is {}\n", line * n)).collect()
    };
    let grown = |n: u64| 2 * (o200k(&result(n)) + 40);
    let mut lines = vec![
        json!({"type": "session", "version": 1, "id": "s", "model": "claude-opus-4-7",
            "prefix_tokens": HEAD - 50}),
        json!({"type": "user", "id": "u", "text": "Read the ten files."}),
    ];
    let mut prompts = vec![HEAD];
    for n in 0..10 {
        let prompt = prompts[n as usize];
        lines.push(json!({"type": "assistant", "id": format!("a{n}"),
            "calls": [{"id": format!("c{n}"), "name": "read", "arguments": "{}"}],
            "usage": {"input": prompt, "output": 30}}));
        lines.push(json!({"type": "tool", "call_id": format!("c{n}"), "output": result(n)}));
        prompts.push(prompt + grown(n));
    }
    lines.push(json!({"type": "assistant", "id": "end", "text": "Done.",
        "usage": {"input": prompts[10], "output": 5}}));
    let here = CommandFolder::new();
    here.write("s.jsonl", jsonl(&lines));
    let strategies = "--strategy reference --strategy observation-masking:keep=2 --no-rereads";
    here.run(&format!("run s.jsonl --window 1000000 {strategies} {DIRECT}")).ok();

    let all: u64 = prompts.iter().sum();
    let reference = cell(&here, "reference", "input_tokens");
    assert!((reference / all as f64 - 1.0).abs() < 0.02, "{reference} instead of {all}");
    // Request n shows n results, of which the newest two stay. A stub of a result is under 60.
    let cleared: u64 =
        (3..=10).map(|n: u64| (0..n - 2).map(|of| grown(of) - 60).sum::<u64>()).sum();
    let expected = 100.0 * cleared as f64 / all as f64;
    let saved = cell(&here, "observation-masking:keep=2", "saved_pct");
    assert!((saved - expected).abs() < 0.05 * expected, "{saved} instead of {expected}");
}

/// Each fact has its two literals, or its words, in different parts of one message.
#[test]
fn the_reference_keeps_facts_over_several_parts() {
    let text = |t: &str| json!({"type": "text", "text": t});
    let image =
        json!({"type": "image", "media_type": "image/png", "url": "a.png", "name": "a.png"});
    let of_user = json!([text("The harbour is Nordhafen-17."), image, text("Its port is 8443.")]);
    let of_agent = json!([text("I move Westkai-29 first."),
        {"type": "call", "id": "c1", "name": "read", "arguments": "{\"path\":\"quay-5521.toml\"}"}]);
    let of_tool = json!([text("owner = \"Suderland\""), text("licence = \"KX-90412\"")]);
    let mut lines = vec![
        json!({"type": "session", "version": 1, "id": "s"}),
        json!({"type": "user", "id": "u1", "parts": of_user}),
        json!({"type": "assistant", "id": "a1", "parts": of_agent}),
        json!({"type": "tool", "call_id": "c1", "parts": of_tool}),
    ];
    for n in 2..10 {
        lines.push(json!({"type": "assistant", "id": format!("a{n}"),
            "calls": [{"id": format!("c{n}"), "name": "bash", "arguments": "{\"command\":\"make\"}"}]}));
        lines.push(json!({"type": "tool", "call_id": format!("c{n}"), "output": "ok"}));
    }
    lines.push(json!({"type": "user", "id": "u2", "text": "Write all of that down."}));
    lines.push(json!({"type": "assistant", "id": "end", "text": "Done."}));
    for (id, arises, tokens) in [
        ("user", "u1", ["Nordhafen-17", "8443"]),
        ("agent", "a1", ["Westkai-29", "quay-5521.toml"]),
        ("tool", "c1", ["Suderland", "KX-90412"]),
    ] {
        lines.push(json!({"type": "fact", "id": id, "kind": "value", "tokens": tokens,
            "arises": arises, "needs": ["u2"]}));
    }
    let here = CommandFolder::new();
    here.write("s.jsonl", jsonl(&lines));
    for transport in ["direct", "http"] {
        here.run(&format!("run s.jsonl --strategy reference --transport {transport} --out out"))
            .ok();
        assert_eq!(here.csv("out/facts.csv").len(), 3);
        assert_eq!(cell(&here, "reference", "recall_pct"), 100.0, "{transport}");
    }
}

/// Gemini CLI sends no thoughts again. Its own provider does not ask for them, and the rules of
/// another one do not apply to it; a product that talks to that provider breaks them.
#[test]
fn thoughts_that_gemini_cli_never_sends_again_break_no_rule() {
    for model in ["gemini-2.5-pro", "claude-sonnet-4-6", "gpt-5.5"] {
        let mut lines: Vec<Value> = vec![
            json!({"type": "session", "version": 1, "id": "s", "model": model}),
            json!({"type": "user", "id": "u", "text": "Read the files."}),
        ];
        for n in 0..4 {
            let thought =
                json!({"type": "reasoning", "text": "I read it.", "encrypted": "QUFBQQ=="});
            let call = json!({"type": "call", "id": format!("c{n}"), "name": "read_file",
                "arguments": format!("{{\"n\":{n}}}")});
            lines.push(
                json!({"type": "assistant", "id": format!("a{n}"), "parts": [thought, call]}),
            );
            lines.push(json!({"type": "tool", "call_id": format!("c{n}"), "output": "text"}));
        }
        lines.push(json!({"type": "assistant", "id": "end", "text": "Done."}));
        let here = CommandFolder::new();
        here.write("s.jsonl", jsonl(&lines));
        here.run(&format!("run s.jsonl --strategy gemini-cli {DIRECT}")).ok();
        assert_eq!(cell(&here, "gemini-cli", "integrity_failures"), 0.0, "{model}");
    }
}
