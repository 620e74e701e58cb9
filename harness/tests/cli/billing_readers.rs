//! Bills of recordings with damaged lines, costs of which only the program knows the price, and copies
//! in formats without ids of calls. Sums are worked out by hand, in USD.

use serde_json::{Value, json};

use crate::billing_variants::{CALL_USD, SONNET, assert_bill, exchanges, plain, talk, turns};
use crate::common::{CommandFolder, data, jsonl};

/// Returns two turns of pi without ids, as in its first format, each with a call of 10,000 and 1,000
/// tokens.
fn pi(session: &str, model: &str, usage: &Value) -> Vec<Value> {
    let time = |n: u64| format!("2026-10-02T09:00:0{n}.000Z");
    let mut lines =
        vec![json!({"type": "session", "id": session, "timestamp": time(0), "cwd": "/w"})];
    for n in [2, 4] {
        let ask = json!({"role": "user", "content": format!("Question {n}?")});
        let text = json!([{"type": "text", "text": format!("Answer {n}.")}]);
        let reply = json!({"role": "assistant", "content": text, "model": model, "usage": usage,
            "stopReason": "stop", "timestamp": 1_790_000_000_000_u64 + n});
        lines.push(json!({"type": "message", "timestamp": time(n - 1), "message": ask}));
        lines.push(json!({"type": "message", "timestamp": time(n), "message": reply}));
    }
    lines
}

fn tokens() -> Value {
    json!({"input": 10_000, "output": 1_000, "cacheRead": 0, "cacheWrite": 0})
}

/// Returns the lines with the first one cut in the middle.
fn torn(lines: &[Value]) -> String {
    let text = jsonl(lines);
    text[lines[0].to_string().len() / 2..].to_string()
}

/// Returns the lines without their ends.
fn joined(lines: &[Value]) -> String {
    lines.iter().map(Value::to_string).collect()
}

/// Returns two requests of one conversation, each of 10,000 and 1,000 tokens.
fn conversation() -> Vec<Value> {
    let (mut all, mut messages) = (Vec::new(), Vec::new());
    for n in 1..=2 {
        messages.push(json!({"role": "user", "content": format!("Question {n}?")}));
        let body = json!({"model": SONNET, "max_tokens": 9, "messages": messages});
        let content = json!([{"type": "text", "text": format!("Answer {n}.")}]);
        let reply = json!({"id": format!("msg_{n}"), "type": "message", "role": "assistant",
            "model": SONNET, "stop_reason": "end_turn", "content": content, "usage": plain()});
        all.push((body, reply.to_string()));
        messages.push(json!({"role": "assistant", "content": content}));
    }
    exchanges("anthropic-messages", "/v1/messages", &all)
}

#[test]
fn torn_and_joined_lines_lose_no_other_call() {
    for lines in [pi("s", SONNET, &tokens()), conversation()] {
        for text in [torn(&lines), joined(&lines), jsonl(&lines[..1]) + &joined(&lines[1..])] {
            let (rows, _) = assert_bill(&[("a.jsonl", text)], 1, 2.0 * CALL_USD);
            assert_eq!(rows[0]["steps"], 2);
        }
    }
    assert_bill(&[("a.jsonl", joined(&turns(1, 3)))], 1, 3.0 * CALL_USD);
}

#[test]
fn replies_far_beyond_the_window_are_not_believed() {
    // The second is -1 in 32 bits.
    for (output, all) in [(99_999_999, "100009999"), (u32::MAX, "4294977295")] {
        let mut lines = turns(1, 2);
        lines[3]["message"]["usage"]["output_tokens"] = output.into();
        assert_bill(&[("a.jsonl", jsonl(&lines))], 1, CALL_USD);
        let here = CommandFolder::with("a.jsonl", jsonl(&lines));
        let told = format!("a.jsonl:4: the counters tell of a prompt and a reply of {all} tokens");
        here.run("import a.jsonl -o b.jsonl").ok().stderr_contains(&[&told]);
    }
}

/// The model of each has no price here, or no name.
#[test]
fn costs_that_only_the_program_knows_are_taken() {
    let mut priced = tokens();
    priced["cost"] = json!({"input": 0.016, "output": 0.004, "total": 0.02});
    let by_pi = jsonl(&pi("s", "odd-model-7b", &priced));
    let message = |n: u64, role: &str, info: Value| {
        let mut message = json!({"info": {"id": format!("m{n}"), "role": role, "time": {"created": n}},
            "parts": [{"type": "text", "text": format!("Text {n}.")}]});
        message["info"].as_object_mut().unwrap().extend(info.as_object().unwrap().clone());
        message
    };
    let spent =
        json!({"cost": 0.25, "modelID": "big-pickle", "tokens": {"input": 10, "output": 100}});
    let messages = [message(1, "user", json!({})), message(2, "assistant", spent)];
    let by_opencode = json!({"info": {"id": "s", "projectID": "p"}, "messages": messages});
    let history = json!([{"role": "user", "content": "Fix it.", "agent": "main"},
        {"role": "assistant", "content": "Done.", "agent": "main"}]);
    let by_swe_agent = json!({"trajectory": [], "history": history,
        "info": {"model_stats": {"instance_cost": 1.25}}});
    for (name, text, usd) in [
        ("a.jsonl", by_pi, 0.04),
        ("a.json", by_opencode.to_string(), 0.25),
        ("a.traj", by_swe_agent.to_string(), 1.25),
        // OpenRouter tells the cost of each call.
        (
            "a.json",
            talk("odd-model-7b", json!({"prompt_tokens": 10, "completion_tokens": 9, "cost": 0.5})),
            0.5,
        ),
    ] {
        assert_bill(&[(name, text)], 1, usd);
    }
    let history = json!([{"role": "user", "content": "Find the port."}, {"role": "assistant", "content": "8443."}]);
    let request = |say: &str, tokens: u64, usd: f64| {
        let text = json!({"tokensIn": tokens, "tokensOut": 80, "cost": usd}).to_string();
        json!({"ts": 1_791_000_000_100_u64, "say": say, "text": text})
    };
    let ui = json!([
        request("api_req_started", 9_000, 0.0123),
        request("deleted_api_reqs", 3_000, 0.004)
    ]);
    let files = [
        ("1/api_conversation_history.json", history.to_string()),
        ("1/ui_messages.json", ui.to_string()),
    ];
    assert_bill(&files, 1, 0.0163);
}

#[test]
fn copies_under_another_session_are_billed_once() {
    let [a, b] = ["a", "b"].map(|id| pi(id, SONNET, &tokens()));
    let files = [("a.jsonl", jsonl(&a)), ("b.jsonl", jsonl(&b[..3]))];
    assert_bill(&files, 2, 2.0 * CALL_USD);
    let chat = |session: &str, turns: u64| {
        let turn = |n: u64| {
            let time = format!("2026-10-03T10:0{n}:00.000Z");
            let tokens = json!({"input": 10_000, "output": 1_000, "cached": 0});
            [
                json!({"id": format!("u{n}"), "timestamp": time, "type": "user", "content": "Next?"}),
                json!({"id": format!("g{n}"), "timestamp": time, "type": "gemini", "content": "Yes.",
                    "model": SONNET, "tokens": tokens}),
            ]
        };
        let messages: Vec<Value> = (1..=turns).flat_map(turn).collect();
        json!({"sessionId": session, "projectHash": "p", "messages": messages}).to_string()
    };
    let files = [("session-a.json", chat("a", 2)), ("session-b.json", chat("b", 3))];
    assert_bill(&files, 2, 3.0 * CALL_USD);
    // A copy of a task of Cline in a folder with another name: 20 of input, 9,200 written, 9,000 read
    // and 140 of output, of Opus 4.5 at 5, 6.25, 0.50 and 25.
    let task = |folder: &str| {
        ["api_conversation_history.json", "ui_messages.json"].map(|name| {
            let text = std::fs::read_to_string(data(&format!("recordings/cline/{name}"))).unwrap();
            (format!("{folder}/{name}"), text)
        })
    };
    let all = [task("1"), task("1-copy")].concat();
    let files: Vec<(&str, String)> = all.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
    let (rows, _) = assert_bill(&files, 2, 0.0656);
    assert_eq!(rows[1]["cost_usd"], 0.0);
}

#[test]
fn written_tokens_and_whole_prompts_are_billed_once() {
    let recorded =
        |name: &str| std::fs::read_to_string(data(&format!("recordings/{name}"))).unwrap();
    // GPT-5.6 Sol at 4, 0.4, 5 (written) and 20: 10,616 of input, 28,032 read, 13,000 written and
    // 280 of output, with the compaction.
    let codex = [("a.jsonl", recorded("codex/cache-writes.jsonl"))];
    assert_bill(&codex, 1, 0.042_464 + 0.011_212_8 + 0.065 + 0.005_6);
    // Sonnet 4.5 at 3, 0.3, 3.75 and 15: 51 of input, 14,000 read, 23,420 written and 130 of output.
    // What the program paid for the summary comes in addition.
    let roo = ["api_conversation_history.json", "ui_messages.json", "task_metadata.json"];
    let folder = "roo-code/0a0a0a0a-0000-4000-8000-000000000005";
    let roo = roo.map(|name| (name, recorded(&format!("{folder}/{name}"))));
    assert_bill(&roo, 1, 0.000_153 + 0.004_2 + 0.087_825 + 0.001_95 + 0.012_1);
}
