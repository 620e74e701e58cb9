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

/// Returns a recording of `ctxbench record` with these requests and their replies.
pub fn exchanges(wire: &str, path: &str, all: &[(Value, String)]) -> Vec<Value> {
    let head = json!({"type": "ctxbench_recording", "version": 1,
        "started": "2026-11-24T23:02:40.113Z", "program": "agent"});
    let exchange = |(n, (body, reply)): (usize, &(Value, String))| {
        let body = body.to_string();
        json!({"type": "exchange", "number": n + 1, "at_ms": n, "end_ms": n, "ended": "whole",
            "wire": wire, "path": path, "host": "localhost", "headers": {}, "reply_headers": {},
            "status": 200, "reply": reply, "body": {"bytes": body.len(), "text": body}})
    };
    std::iter::once(head).chain(all.iter().enumerate().map(exchange)).collect()
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
fn a_relay_that_gives_every_reply_the_same_id_has_several_calls() {
    let lines: Vec<Value> = (1..=3)
        .flat_map(|n| {
            let usage = json!({"input_tokens": 10_000 * n, "output_tokens": 1_000});
            let [ask, mut reply] = turn(n, SONNET, &usage);
            reply["message"]["id"] = "relay".into();
            reply.as_object_mut().unwrap().remove("requestId");
            [ask, reply]
        })
        .collect();
    // 60,000 tokens of input and 3,000 of output.
    assert_bill(&[("a.jsonl", jsonl(&lines))], 1, 0.18 + 0.045);
}

/// The counters of a reply's first line are those of its start; in the last case it is the last line.
#[test]
fn lines_of_a_stream_are_one_call() {
    let start = |output: u64| json!({"input_tokens": 10_000, "output_tokens": output});
    let placeholder = json!({"input_tokens": 3, "output_tokens": 1});
    for (counters, is_named) in [
        ([start(1), start(300), plain()], true),
        ([placeholder.clone(), start(300), plain()], true),
        ([placeholder, start(300), plain()], false),
        ([start(300), plain(), start(1)], false),
    ] {
        let [ask, reply] = turn(1, SONNET, &plain());
        let mut lines = vec![ask];
        for (n, usage) in counters.iter().enumerate() {
            let mut line = reply.clone();
            (line["uuid"], line["parentUuid"]) = (format!("{n}").into(), lines[n]["uuid"].clone());
            line["message"]["usage"] = usage.clone();
            line["message"]["content"][0]["text"] = format!("Part {n}.").into();
            if !is_named {
                line.as_object_mut().unwrap().remove("requestId");
            }
            lines.push(line);
        }
        lines[0]["uuid"] = "ask".into();
        lines[1]["parentUuid"] = "ask".into();
        let (rows, _) = assert_bill(&[("a.jsonl", jsonl(&lines))], 1, CALL_USD);
        assert_eq!(rows[0]["steps"], 1);
    }
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
fn copies_without_ids_of_calls_are_known_by_their_content() {
    let talk = talk(SONNET, plain());
    let files = [("a.json", talk.clone()), ("b.json", talk)];
    let (rows, _) = assert_bill(&files, 2, CALL_USD);
    assert_eq!(rows[1]["cost_usd"], 0.0);
}

#[test]
fn terms_of_a_call_change_its_price() {
    // Opus 4.6 in a batch, bound to a region: 5, 10 for an hour, and 25; × 0.5 × 1.1.
    let usage = json!({"input_tokens": 10_000, "cache_creation_input_tokens": 10_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 10_000},
        "output_tokens": 1_000, "service_tier": "batch", "inference_geo": "us"});
    let lines = turn(1, "claude-opus-4-6", &usage);
    assert_bill(&[("a.jsonl", jsonl(&lines))], 1, 0.175 * 0.55);
    let unknown =
        turn(1, SONNET, &json!({"input_tokens": 10_000, "output_tokens": 1_000, "speed": "fast"}));
    let (_, told) = assert_bill(&[("a.jsonl", jsonl(&unknown))], 1, CALL_USD);
    assert!(told.contains("list price, without speed"), "{told}");
}

#[test]
fn models_of_the_price_file_have_their_own_prices() {
    for (model, input, output) in [
        ("gpt-4o-mini", 0.15, 0.6),
        ("moonshot/kimi-k2.5", 0.6, 3.0),
        ("zai/glm-4.5-air", 0.2, 1.1),
    ] {
        let usage = json!({"prompt_tokens": 100_000, "completion_tokens": 10_000});
        assert_bill(&[("a.json", talk(model, usage))], 1, 0.1 * input + 0.01 * output);
    }
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
fn a_resume_to_before_a_compaction_gives_it_up_and_pays_it() {
    let mut lines = turns(1, 3);
    let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "c",
        "parentUuid": null, "logicalParentUuid": "4", "sessionId": "s", "version": "2.1.200",
        "timestamp": "2026-10-02T09:00:04.500Z", "content": "Conversation compacted",
        "compactMetadata": {"trigger": "auto", "preTokens": 10_000}});
    let summary = json!({"type": "user", "uuid": "d", "parentUuid": "c", "sessionId": "s",
        "isCompactSummary": true, "timestamp": "2026-10-02T09:00:04.600Z",
        "message": {"role": "user", "content": "Summary."}});
    let [_, mut after] = turn(9, SONNET, &plain());
    after["parentUuid"] = "d".into();
    lines.splice(4..4, [boundary, summary, after]);
    let (rows, _) = assert_bill(&[("a.jsonl", jsonl(&lines))], 1, 4.0 * CALL_USD);
    assert_eq!((&rows[0]["compactions"], &rows[0]["steps"]), (&json!(0), &json!(3)));
}

#[test]
fn a_torn_line_loses_itself_only() {
    let text = jsonl(&turns(1, 3));
    let mut lines: Vec<&str> = text.lines().collect();
    let torn = &lines[3][..lines[3].len() / 2];
    lines[3] = torn;
    let (rows, _) = assert_bill(&[("a.jsonl", lines.join("\n"))], 1, 2.0 * CALL_USD);
    assert_eq!(rows[0]["steps"], 2);
}

#[test]
fn counters_that_are_all_zero_are_no_counters() {
    let zero = json!({"input_tokens": 0, "output_tokens": 0});
    let lines: Vec<Value> = (1..=2).flat_map(|n| turn(n, "glm-4.7", &zero)).collect();
    let (rows, _) = assert_bill(&[("a.jsonl", jsonl(&lines))], 1, 0.0);
    assert_eq!((&rows[0]["cost_usd"], &rows[0]["counted_steps"]), (&Value::Null, &json!(0)));
}

#[test]
fn requests_inside_a_recorded_exchange_are_billed() {
    let usage = json!({"input_tokens": 10, "output_tokens": 300, "iterations": [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {"type": "message", "input_tokens": 9_010, "output_tokens": 300},
    ]});
    let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": SONNET,
        "stop_reason": "end_turn", "content": [{"type": "compaction", "content": "Port 8443."},
        {"type": "text", "text": "It is 8443."}], "usage": usage});
    let body = json!({"model": SONNET, "max_tokens": 4_096,
        "messages": [{"role": "user", "content": "Which port?"}]});
    let lines = exchanges("anthropic-messages", "/v1/messages", &[(body, reply.to_string())]);
    // 180,000 and 3,500 tokens, then 9,010 and 300.
    let usd = 0.54 + 0.0525 + 0.027_03 + 0.0045;
    let (rows, _) = assert_bill(&[("a.jsonl", jsonl(&lines))], 1, usd);
    assert_eq!(rows[0]["compactions"], 1);
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

/// Aider rounds counters from 1,000 tokens on and prints its own sum, which restarts with each chat.
#[test]
fn rounded_counters_cost_what_aider_computed() {
    let reply = |ask: &str, tokens: &str, cost: &str| {
        format!("#### {ask}\n\nIt is 8443.\n\n> Tokens: {tokens}. Cost: {cost} session.  \n\n")
    };
    let begin = |at: &str| {
        format!(
            "\n# aider chat started at 2026-10-02 {at}:00:00\n\n> Main model: {SONNET} with diff edit format  \n\n"
        )
    };
    let chat = [
        begin("09"),
        reply("Which port?", "2.3k sent, 110 received", "$0.0086 message, $0.0086"),
        reply("Which host?", "2.6k sent, 90 received", "$0.0092 message, $0.02"),
        // Exact counters: 900 and 100 tokens at 3 and 15.
        reply("And now?", "900 sent, 100 received", "$0.0042 message, $0.03"),
        begin("11"),
        reply("Again?", "1.0k sent, 10 received", "$0.0031 message, $0.0031"),
    ];
    let (rows, _) =
        assert_bill(&[(".aider.chat.history.md", chat.concat())], 2, 0.02 + 0.0042 + 0.0031);
    let told = "calls without exact counters cost what the program itself computed";
    assert!(rows[0]["cost_notes"].to_string().contains(told), "{rows:?}");
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
