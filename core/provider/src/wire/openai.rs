//! What OpenAI's two wires share: usage, errors, the end of a reply. Cached tokens are part of the
//! prompt tokens here.

use ctxbench_core::content::Part;
use ctxbench_core::model::{Model, Provider, find};
use ctxbench_core::request::{ErrorKind, ModelError, Reply, StopReason, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::errors::Detail;
use super::json::sane;

/// Names of the usage fields, which differ between the two wires.
pub(super) struct Names {
    pub(super) prompt: &'static str,
    pub(super) details: &'static str,
    pub(super) output: &'static str,
    pub(super) output_details: &'static str,
}

/// Cached tokens are part of the prompt tokens. DeepSeek tells hits and misses beside them; writes
/// are told where they are charged.
pub(super) fn usage(o: &mut Vec<u8>, u: &Usage, n: &Names, model: &str) {
    use std::io::Write;
    let Names { prompt, details, output, output_details } = n;
    let (input, cached, out, reasoning, total) =
        (u.prompt(), u.cache_read, u.output, u.reasoning, u.total());
    let written = u.cache_write + u.cache_write_1h;
    let model = find(model).ok();
    let writes = if written > 0 || model.is_some_and(|m| m.cache.write_fee) {
        format!(",\"cache_write_tokens\":{written}")
    } else {
        String::new()
    };
    let told = if model.is_some_and(|m| m.provider == Provider::Deepseek) {
        format!(
            "\"prompt_cache_hit_tokens\":{cached},\"prompt_cache_miss_tokens\":{}",
            input - cached
        )
    } else {
        format!("\"{details}\":{{\"cached_tokens\":{cached}{writes}}}")
    };
    write!(
        o,
        ",\"usage\":{{\"{prompt}\":{input},{told},\"{output}\":{out},\"{output_details}\":{{\"reasoning_tokens\":{reasoning}}},\"total_tokens\":{total}}}"
    )
    .expect("writing to memory does not fail");
}

/// What is told: everything billed, since these wires have one place for usage.
pub(super) fn told(reply: &Reply) -> Usage {
    if reply.billed.prompt() + reply.billed.output > reply.usage.prompt() + reply.usage.output {
        reply.billed
    } else {
        reply.usage
    }
}

#[derive(Deserialize, Default)]
pub(super) struct Tokens {
    #[serde(alias = "prompt_tokens", default)]
    input_tokens: u64,
    #[serde(alias = "prompt_tokens_details")]
    input_tokens_details: Option<Details>,
    #[serde(alias = "completion_tokens", default)]
    output_tokens: u64,
    #[serde(alias = "completion_tokens_details")]
    output_tokens_details: Option<Details>,
    total_tokens: Option<u64>,
    /// DeepSeek.
    prompt_cache_hit_tokens: Option<u64>,
    /// DeepSeek; with the hits it makes the prompt.
    prompt_cache_miss_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}

impl Tokens {
    fn usage(&self) -> Usage {
        let input = |f: fn(&Details) -> Option<u64>| {
            sane(self.input_tokens_details.as_ref().and_then(f).unwrap_or(0))
        };
        let hit = self.prompt_cache_hit_tokens.map(sane);
        let (cache_read, cache_write) =
            (hit.unwrap_or_else(|| input(|d| d.cached_tokens)), input(|d| d.cache_write_tokens));
        let halves = hit.unwrap_or(0) + sane(self.prompt_cache_miss_tokens.unwrap_or(0));
        let (prompt, output) = (sane(self.input_tokens).max(halves), sane(self.output_tokens));
        Usage {
            input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
            output,
            reasoning: sane(
                self.output_tokens_details.as_ref().and_then(|d| d.reasoning_tokens).unwrap_or(0),
            ),
            cache_read,
            cache_write,
            cache_write_1h: 0,
            reported_total: self.total_tokens.map(sane).filter(|t| *t != prompt + output),
        }
    }
}

pub(super) fn done(parts: &[Part]) -> StopReason {
    let calls = parts.iter().any(|p| matches!(p, Part::Call(_)));
    if calls { StopReason::ToolUse } else { StopReason::EndTurn }
}

pub(super) fn reply(parts: Vec<Part>, usage: Option<Tokens>, stop: StopReason) -> Reply {
    let usage = usage.unwrap_or_default().usage();
    Reply { parts, usage, billed: usage, stop, ..Reply::default() }
}

/// Code of a kind of error where the error itself names none.
pub(super) fn error_code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Overflow => "context_length_exceeded",
        ErrorKind::RateLimited => "rate_limit_exceeded",
        ErrorKind::Server | ErrorKind::Stream => "server_error",
        ErrorKind::Invalid | ErrorKind::Ended => "invalid_request_error",
    }
}

pub(super) fn error_body(status: u16, code: &str, message: &str) -> Value {
    let kind = if status == 429 || status >= 500 { code } else { "invalid_request_error" };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

pub(super) fn code_of(detail: Detail) -> Option<String> {
    detail.code.or(detail.kind)
}

pub(super) fn overflow(message: String) -> ModelError {
    ModelError {
        kind: ErrorKind::Overflow,
        status: 400,
        code: Some("context_length_exceeded".into()),
        message,
    }
}

pub(super) fn unknown_model(name: &str) -> (&'static str, String) {
    ("model_not_found", format!("The model `{name}` does not exist here."))
}

pub(super) fn unpaired(call: bool, id: &str) -> String {
    if call {
        return format!("No tool output was found for the function call {id}.");
    }
    format!("No tool call was found for the function call output {id}.")
}

pub(super) fn model(m: &Model) -> Value {
    let owner = format!("{:?}", m.provider).to_lowercase();
    json!({"id": m.name, "object": "model", "created": 0, "owned_by": owner})
}

pub(super) fn model_list(all: Vec<Value>) -> Value {
    json!({"object": "list", "data": all})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{decode_reply, encode_reply};
    use ctxbench_core::model::Wire;

    fn read(usage: &str) -> Usage {
        let body = format!(
            "{{\"choices\":[{{\"message\":{{\"role\":\"assistant\",\"content\":\"ok\"}}}}],\"usage\":{usage}}}"
        );
        decode_reply(Wire::OpenaiChat, body.as_bytes()).unwrap().usage
    }

    #[test]
    fn each_provider_has_its_own_usage_fields() {
        // OpenAI from gpt-5.6: 100 read and 20 written of 150.
        let u = read(
            r#"{"prompt_tokens":150,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":20}}"#,
        );
        assert_eq!((u.input, u.cache_read, u.cache_write, u.output), (30, 100, 20, 9));
        // DeepSeek: hits and misses add up to the prompt, also where the prompt is not told.
        for prompt in [r#""prompt_tokens":150,"#, ""] {
            let u = read(&format!(
                "{{{prompt}\"completion_tokens\":9,\"prompt_cache_hit_tokens\":128,\"prompt_cache_miss_tokens\":22}}"
            ));
            assert_eq!((u.input, u.cache_read, u.prompt()), (22, 128, 150), "{prompt}");
        }
    }

    #[test]
    fn usage_survives_the_wire_of_every_provider() {
        for (model, cache_write) in [
            ("gpt-5.5", 0),
            ("gpt-5.6-sol", 40),
            ("gemini-2.5-pro", 0),
            ("deepseek-chat", 0),
            ("grok-4.7", 0),
        ] {
            let usage =
                Usage { input: 7, output: 3, cache_read: 1_280, cache_write, ..Usage::default() };
            let reply = Reply {
                parts: vec![Part::Text("ok".into())],
                usage,
                billed: usage,
                ..Reply::default()
            };
            for wire in [Wire::OpenaiChat, Wire::OpenaiResponses] {
                let bytes = encode_reply(wire, &reply, model);
                assert_eq!(decode_reply(wire, &bytes).unwrap().usage, usage, "{wire:?} {model}");
            }
        }
    }
}
