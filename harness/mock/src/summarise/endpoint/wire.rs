//! Summary request in the format of a real server, and its answer.
//!
//! The conversation is sent as text with two roles. Tool calls, results and images become lines of
//! the text. A server would refuse calls without their definitions, results without their calls and
//! reasoning without its signature, and a summary needs none of these.

use ctxbench_core::{BlockKind, Role, StopReason};
use ctxbench_provider::{Item, Prompt};
use serde::Serialize;
use serde_json::{Value, json};

use super::address::EndpointDialect;
use crate::summarise::ASK;
use ctxbench_util::hash::sha256;

/// Output limit for requests without one, tokens (our choice): above any measured summary
/// (`extractive::MAX_TOKENS`), and accepted by every provider.
const DEFAULT_MAX_TOKENS: u64 = 8_192;

/// Version of the Messages API in requests.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Inserted before a conversation that begins with the model, which servers refuse.
const BEGIN: &str = "(The beginning of the conversation is not shown.)";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct EndpointMessage {
    role: &'static str,
    content: String,
}

/// Fields that determine the answer, in the order of the hashed text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Question {
    pub(super) max_tokens: u64,
    messages: Vec<EndpointMessage>,
    pub(super) model: String,
}

#[derive(Debug, PartialEq)]
pub(super) struct ServerReply {
    pub(super) text: String,
    pub(super) stop: String,
    pub(super) usage: Value,
}

impl Question {
    /// Returns the question of a prompt; `model` replaces the prompt's.
    pub(super) fn new(prompt: &Prompt, model: Option<&str>) -> Question {
        let mut messages: Vec<EndpointMessage> = Vec::new();
        for item in &prompt.items {
            let text = words(item);
            if text.trim().is_empty() {
                continue;
            }
            let talk = messages.iter().any(|m| m.role != "system");
            let role = match item.role {
                Role::Assistant => "assistant",
                Role::Instructions | Role::System | Role::Developer if !talk => "system",
                _ => "user",
            };
            match messages.last_mut() {
                Some(m) if m.role == role => m.content.push_str(&format!("\n\n{text}")),
                _ => messages.push(EndpointMessage { role, content: text }),
            }
        }
        let first = messages.iter().position(|m| m.role != "system").unwrap_or(messages.len());
        if messages.get(first).is_some_and(|m| m.role == "assistant") {
            messages.insert(first, EndpointMessage { role: "user", content: BEGIN.into() });
        }
        if messages.last().is_none_or(|m| m.role != "user") {
            messages.push(EndpointMessage { role: "user", content: ASK.into() });
        }
        let model = model.unwrap_or(&prompt.model).to_string();
        Question { max_tokens: prompt.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS), messages, model }
    }

    /// Returns the SHA-256 of `{"max_tokens":…,"messages":[{"role":…,"content":…},…],"model":…}` in
    /// hexadecimal.
    pub(super) fn hash(&self) -> String {
        let text = serde_json::to_string(self).expect("strings and numbers always serialise");
        sha256(&text)
    }

    pub(super) fn body(&self, dialect: EndpointDialect, host: &str) -> Vec<u8> {
        let body = match dialect {
            EndpointDialect::Anthropic => {
                let system =
                    self.messages.iter().find(|m| m.role == "system").map(|m| m.content.as_str());
                let talk: Vec<&EndpointMessage> =
                    self.messages.iter().filter(|m| m.role != "system").collect();
                let mut body =
                    json!({ "model": self.model, "max_tokens": self.max_tokens, "messages": talk });
                if let Some(s) = system {
                    body["system"] = s.into();
                }
                body
            }
            EndpointDialect::OpenAi => {
                // OpenAI's newer models refuse the older name, and other servers do not support the
                // newer one.
                let limit =
                    if host == "api.openai.com" { "max_completion_tokens" } else { "max_tokens" };
                json!({ "model": self.model, limit: self.max_tokens, "messages": self.messages })
            }
        };
        body.to_string().into_bytes()
    }
}

fn words(item: &Item) -> String {
    let text = item.text();
    match item.kind {
        BlockKind::Call => {
            let name = item.call.as_ref().map_or("", |c| &c.name);
            format!("[call of {name}] {text}")
        }
        BlockKind::Output => {
            let mark = if item.is_error { "[error of the tool]" } else { "[result of the tool]" };
            format!("{mark}\n{text}{}", if item.media.is_some() { "\n[an image]" } else { "" })
        }
        BlockKind::Image => "[an image]".to_string(),
        BlockKind::CompactionTrigger if text.trim().is_empty() => ASK.to_string(),
        BlockKind::Reasoning => String::new(),
        _ => text.to_string(),
    }
}

/// Returns the headers except the content type; one of them contains the key.
pub(super) fn headers(dialect: EndpointDialect, key: Option<&str>) -> Vec<(&'static str, String)> {
    match dialect {
        EndpointDialect::Anthropic => {
            let version = ("anthropic-version", ANTHROPIC_VERSION.to_string());
            std::iter::once(version).chain(key.map(|k| ("x-api-key", k.to_string()))).collect()
        }
        EndpointDialect::OpenAi => {
            key.map(|k| ("authorization", format!("Bearer {k}"))).into_iter().collect()
        }
    }
}

pub(super) fn read(dialect: EndpointDialect, body: &str) -> Result<ServerReply, String> {
    let v: Value = serde_json::from_str(body)
        .map_err(|e| format!("the answer of the endpoint is not JSON: {e}"))?;
    let (text, stop) = match dialect {
        EndpointDialect::Anthropic => {
            let parts = v["content"].as_array().ok_or(
                "the answer of the endpoint has no `content` list; is it an Anthropic address?",
            )?;
            let text: String = parts
                .iter()
                .filter(|p| p["type"] == "text")
                .filter_map(|p| p["text"].as_str())
                .collect();
            (text, &v["stop_reason"])
        }
        EndpointDialect::OpenAi => {
            let choice = v["choices"]
                .get(0)
                .ok_or("the answer of the endpoint has no `choices`; is it an OpenAI address?")?;
            (
                choice["message"]["content"].as_str().unwrap_or("").to_string(),
                &choice["finish_reason"],
            )
        }
    };
    Ok(ServerReply {
        text,
        stop: stop.as_str().unwrap_or("unknown").to_string(),
        usage: v["usage"].clone(),
    })
}

/// Returns the stop reason, from the values of both wires.
pub(super) fn stop(word: &str) -> StopReason {
    match word {
        "max_tokens" | "length" => StopReason::MaxTokens,
        "refusal" | "content_filter" => StopReason::Refusal,
        "stop_sequence" => StopReason::StopSequence,
        _ => StopReason::EndTurn,
    }
}
