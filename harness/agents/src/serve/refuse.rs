//! Requests that a provider refuses although they are valid JSON of its wire, with its published
//! messages: empty texts and messages, a reply that the model cannot continue, a thinking budget
//! beyond the reply, and a tool that is offered twice.

use std::collections::HashSet;

use axum::http::HeaderMap;
use ctxbench_provider::{Prompt, Wire};
use serde_json::Value;

use super::echo::offered_tools;

/// Models that continue a message of their own, by the beginning of their names. All later ones
/// refuse it (<https://platform.claude.com/docs/en/about-claude/models/migration-guide>).
const CONTINUING: [&str; 3] = ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-5"];
/// Smallest budget for thinking, tokens.
const MIN_BUDGET: u64 = 1_024;

/// Returns why the provider refuses a request with this body and prompt.
pub(super) fn refused(
    wire: Wire,
    headers: &HeaderMap,
    body: &[u8],
    prompt: &Prompt,
) -> Option<String> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    match wire.name {
        "anthropic-messages" => repeated_tool(wire, prompt)
            .map(|_| "tools: Tool names must be unique.".into())
            .or_else(|| empty(&body))
            .or_else(|| continued(&body, &prompt.model))
            .or_else(|| thinking(&body["thinking"], prompt.max_tokens, headers)),
        "gemini" => repeated_tool(wire, prompt)
            .map(|n| format!("Duplicate function declaration found: {n}")),
        "openai-chat" => without_content(&body),
        _ => None,
    }
}

/// Returns the name of a tool that is offered twice.
fn repeated_tool(wire: Wire, prompt: &Prompt) -> Option<String> {
    let mut seen = HashSet::new();
    offered_tools(wire, prompt).into_iter().find(|name| !seen.insert(name.clone()))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Refuses empty texts, and empty messages except a last one of the model.
fn empty(body: &Value) -> Option<String> {
    let messages = list(&body["messages"]);
    let blank = |content: &Value| content == "" || content.as_array().is_some_and(Vec::is_empty);
    for (i, m) in messages.iter().enumerate() {
        let is_last_reply = i + 1 == messages.len() && m["role"] == "assistant";
        if blank(&m["content"]) && !is_last_reply {
            return Some(format!(
                "messages.{i}: all messages must have non-empty content except for the optional \
                 final assistant message"
            ));
        }
    }
    let parts = || messages.iter().flat_map(|m| list(&m["content"]));
    let results = parts().flat_map(|p| list(&p["content"]));
    let whole = messages.iter().filter_map(|m| m["content"].as_str()).filter(|t| !t.is_empty());
    blank_text("messages", whole.chain(texts(parts().chain(results))))
        .or_else(|| blank_text("system", texts(list(&body["system"]).iter())))
}

fn texts<'a>(parts: impl Iterator<Item = &'a Value>) -> impl Iterator<Item = &'a str> {
    parts.filter(|p| p["type"] == "text").filter_map(|p| p["text"].as_str())
}

/// Refuses an empty or blank text among those of a field.
fn blank_text<'a>(field: &str, mut texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let what = match texts.find(|t| t.trim().is_empty())? {
        "" => "be non-empty",
        _ => "contain non-whitespace text",
    };
    Some(format!("{field}: text content blocks must {what}"))
}

/// Refuses a text of the model as the last message where the model does not continue it. Thinking,
/// calls and compactions come back as they are.
fn continued(body: &Value, model: &str) -> Option<String> {
    let last = list(&body["messages"]).last().filter(|m| m["role"] == "assistant")?;
    let text = match &last["content"] {
        Value::String(text) => text,
        parts => list(parts).last().filter(|p| p["type"] == "text")?["text"].as_str()?,
    };
    if !CONTINUING.iter().any(|known| model.starts_with(known)) {
        return Some(
            "This model does not support assistant message prefill. The conversation must end with \
             a user message."
                .into(),
        );
    }
    text.ends_with(char::is_whitespace)
        .then(|| "messages: final assistant content cannot end with trailing whitespace".into())
}

fn thinking(given: &Value, max_tokens: Option<u64>, headers: &HeaderMap) -> Option<String> {
    let budget = given["budget_tokens"].as_u64().filter(|_| given["type"] == "enabled")?;
    if budget < MIN_BUDGET {
        let field = "thinking.enabled.budget_tokens";
        return Some(format!("{field}: Input should be greater than or equal to {MIN_BUDGET}"));
    }
    // Between calls a reply may think more than it may say.
    let is_interleaved = headers
        .get_all("anthropic-beta")
        .iter()
        .any(|v| String::from_utf8_lossy(v.as_bytes()).contains("interleaved-thinking"));
    (budget >= max_tokens? && !is_interleaved)
        .then(|| "`max_tokens` must be greater than `thinking.budget_tokens`.".into())
}

/// Refuses a message of Chat Completions with neither content nor calls.
fn without_content(body: &Value) -> Option<String> {
    let has_calls =
        |m: &Value| !list(&m["tool_calls"]).is_empty() || m["function_call"].is_object();
    let is_empty = |m: &&Value| m["content"].is_null() && m["refusal"].is_null() && !has_calls(m);
    list(&body["messages"])
        .iter()
        .find(is_empty)
        .map(|_| "Invalid value for 'content': expected a string, got null.".into())
}
