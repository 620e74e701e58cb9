//! What changes the price of a call and is not in its counters: service tiers, searches, tools
//! of the provider. Sums can be worked out by hand; prices are USD per million tokens.

use serde_json::{Value, json};

use crate::billing_variants::{self, exchanges, listed};
use crate::common::{CommandFolder, jsonl};

#[track_caller]
fn assert_bill(name: &str, text: String, usd: f64) {
    billing_variants::assert_bill(&[(name, text)], 1, usd);
}

/// Returns a file of a request and its response.
fn stored(model: &str, mut response: Value) -> String {
    response["model"] = model.into();
    let asked = json!([{"role": "user", "content": "Which port?"}]);
    let list = if response["object"] == "response" { "input" } else { "messages" };
    json!({"request": {"model": model, list: asked}, "response": response}).to_string()
}

/// 10,000 tokens of input, and 100 of output.
fn chat(tier: &str) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion", "service_tier": tier,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "8443"}}],
        "usage": {"prompt_tokens": 10_000, "completion_tokens": 100}})
}

/// The same, with two searches and a page that was opened.
fn responses(tier: &str) -> Value {
    let call = |action: Value| json!({"type": "web_search_call", "id": "w", "status": "completed", "action": action});
    json!({"id": "resp_1", "object": "response", "status": "completed", "service_tier": tier,
        "output": [
            call(json!({"type": "search", "query": "a"})), call(json!({"type": "search", "query": "b"})),
            call(json!({"type": "open_page", "url": "https://a.b"})),
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "8443"}]}],
        "usage": {"input_tokens": 10_000, "output_tokens": 100}})
}

#[test]
fn service_tiers_and_searches_stand_beside_the_counters() {
    for (model, tier, usd) in [
        ("gpt-5.4", "default", 0.0265),
        ("gpt-5.4", "flex", 0.0265 / 2.0),
        ("gpt-5.4", "priority", 0.0265 * 2.0),
        ("gpt-4o-2024-11-20", "priority", 0.026 * 1.7),
        ("gpt-4.1-2025-04-14", "priority", 0.0208 * 1.75),
    ] {
        assert_bill("a.json", stored(model, chat(tier)), usd);
    }
    assert_bill("a.json", stored("gpt-5.4", responses("auto")), 0.0265 + 0.02);
    assert_bill("a.json", stored("gpt-5.4", responses("flex")), 0.0265 / 2.0 + 0.02);
}

#[test]
fn recorded_exchanges_have_the_terms_of_their_responses() {
    let exchange = |wire: &str, path: &str, model: &str, reply: String| {
        let body = json!({"model": model, "max_tokens": 4_096, "input": [], "messages": [{"role": "user", "content": "Which port?"}]});
        jsonl(&exchanges(wire, path, &[(body, reply)]))
    };
    let text = exchange("openai-chat", "/v1/chat/completions", "gpt-5.4", chat("flex").to_string());
    assert_bill("a.jsonl", text, 0.0265 / 2.0);
    let done = json!({"type": "response.completed", "response": responses("priority")});
    let stream = format!("event: response.completed\ndata: {done}\n\n");
    let text = exchange("openai-responses", "/v1/responses", "gpt-5.4", stream);
    assert_bill("a.jsonl", text, 0.0265 * 2.0 + 0.02);
    // Opus 4.6 in a batch with three searches: 5 and 25.
    let usage = json!({"input_tokens": 10_000, "output_tokens": 100, "service_tier": "batch",
        "server_tool_use": {"web_search_requests": 3}});
    let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
        "stop_reason": "end_turn", "content": [{"type": "text", "text": "8443"}], "usage": usage});
    let model = "claude-opus-4-6";
    let text = exchange("anthropic-messages", "/v1/messages", model, reply.to_string());
    assert_bill("a.jsonl", text, 0.0525 / 2.0 + 0.03);
}

/// Returns a rollout of Codex with a search of the web.
fn rollout(model: &str) -> String {
    let line = |kind: &str, payload: Value| json!({"timestamp": "2026-10-01T10:00:00.000Z", "type": kind, "payload": payload});
    let usage = json!({"input_tokens": 10_000, "cached_input_tokens": 0, "output_tokens": 100, "total_tokens": 10_100});
    let said = |role: &str, kind: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": "t"}]});
    let search = |kind: &str| json!({"type": "web_search_call", "status": "completed", "action": {"type": kind, "query": "x"}});
    jsonl(&[
        line(
            "session_meta",
            json!({"id": "x", "cli_version": "0.146.0", "model_provider": "openai"}),
        ),
        line("turn_context", json!({"model": model})),
        line("response_item", said("user", "input_text")),
        line("response_item", search("search")),
        line("response_item", search("find_in_page")),
        line("response_item", said("assistant", "output_text")),
        line(
            "event_msg",
            json!({"type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage}}),
        ),
    ])
}

#[test]
fn searches_of_codex_have_a_fee_and_uncounted_cache_writes_a_note() {
    let files = [("rollout-a.jsonl", rollout("gpt-5.4"))];
    let (rows, _) = billing_variants::assert_bill(&files, 1, 0.0365);
    assert_eq!(rows[0]["cost_notes"], json!([]));
    let here = CommandFolder::with("rollout-a.jsonl", rollout("gpt-5.6-sol"));
    let (rows, _) = listed(&here, "rollout-a.jsonl");
    let notes = rows[0]["cost_notes"].to_string();
    assert!(notes.contains("without the cache writes of gpt-5.6-sol"), "{notes}");
}

#[test]
fn written_tokens_of_newer_models_have_their_price() {
    // GPT-5.6 Sol: 4, written 5, and 20. Of 10,000 tokens, 9,000 are written.
    let usd = 0.004 + 0.045 + 0.002;
    let details = json!({"cached_tokens": 0, "cache_write_tokens": 9_000});
    let mut response = responses("default");
    response["output"].as_array_mut().unwrap().retain(|item| item["type"] == "message");
    response["usage"] =
        json!({"input_tokens": 10_000, "output_tokens": 100, "input_tokens_details": details});
    assert_bill("a.json", stored("gpt-5.6-sol", response), usd);
    let searches = 0.01;
    let plain = r#""cached_input_tokens":0"#;
    let rollout = rollout("gpt-5.6-sol");
    let written =
        rollout.replace(plain, r#""cached_input_tokens":0,"cache_write_input_tokens":9000"#);
    assert_ne!(rollout, written);
    assert_bill("rollout-a.jsonl", written, usd + searches);
}

#[test]
fn tokens_of_tools_at_gemini_are_input() {
    let chat = json!({"sessionId": "s", "projectHash": "p", "startTime": "2026-10-03T10:00:00.000Z", "messages": [
        {"id": "1", "timestamp": "2026-10-03T10:00:00.000Z", "type": "user", "content": "q"},
        {"id": "2", "timestamp": "2026-10-03T10:00:10.000Z", "type": "gemini", "content": "a", "model": "gemini-3.1-pro-preview",
            "tokens": {"input": 10_000, "output": 40, "cached": 0, "thoughts": 500, "tool": 700, "total": 11_240}}]});
    // 2 and 12: 10,700 and 540 tokens.
    assert_bill("session-a.json", chat.to_string(), 0.0214 + 0.006_48);
}

#[test]
fn the_peak_includes_a_prompt_that_the_provider_summarized() {
    let usage = json!({"input_tokens": 9_010, "output_tokens": 300, "iterations": [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {"type": "message", "input_tokens": 9_010, "output_tokens": 300}]});
    let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "8443"}], "usage": usage});
    let here = CommandFolder::with("a.json", stored("claude-opus-4-6", reply));
    here.run("run a.json --strategy reference --transport direct --out out").ok();
    assert_eq!(here.row("out", "as-recorded")["peak_context_tokens"], "180000");
}
