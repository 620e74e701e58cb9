//! Shared parts of OpenAI's two wires: content parts, usage, errors, stop reasons.

use ctxbench_core::Model;
use ctxbench_core::model::Provider;
use ctxbench_core::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::format::{ApiFormat, ReplyOptions, too_large};
use super::json::sane;

/// Names of the usage fields: prompt and its details, output and its details.
pub(super) type Names = [&'static str; 4];

/// Encodes the usage of a reply by a model under the names of a wire. Cached tokens are part of the prompt
/// tokens. DeepSeek reports hits and misses separately; writes are reported if they are charged.
pub(super) fn encoded_usage(u: Usage, names: Names, model: &Model) -> Value {
    let [prompt, prompt_details, output, output_details] = names;
    let mut usage = json!({
        prompt: u.prompt(), output: u.output, output_details: {"reasoning_tokens": u.reasoning},
        "total_tokens": u.total(),
    });
    if model.provider == Provider::Deepseek {
        usage["prompt_cache_hit_tokens"] = u.cache_read.into();
        usage["prompt_cache_miss_tokens"] = (u.prompt() - u.cache_read).into();
        return usage;
    }
    let mut details = json!({"cached_tokens": u.cache_read});
    let written = u.cache_write + u.cache_write_1h;
    if written > 0 || model.cache.write_fee {
        details["cache_write_tokens"] = written.into();
    }
    usage[prompt_details] = details;
    usage
}

/// Joins neighbouring texts, which are parts of one.
pub(super) fn joined(parts: Vec<Draft>) -> Vec<Draft> {
    let mut joined: Vec<Draft> = Vec::with_capacity(parts.len());
    for part in parts {
        match joined.last_mut() {
            Some(last) if last.media.is_none() && part.media.is_none() => {
                last.text = format!("{}{}", last.text, part.text).into();
            }
            _ => joined.push(part),
        }
    }
    joined
}

/// Builds a tool result from content parts.
pub(super) fn result(id: Arc<str>, parts: Vec<Draft>) -> Draft {
    let (mut text, mut media): (Arc<str>, _) = ("".into(), None);
    for part in parts {
        match part.media {
            Some(m) => media = Some(m),
            None if text.is_empty() => text = part.text,
            None => text = format!("{text}{}", part.text).into(),
        }
    }
    Draft { media, ..Draft::output(id, "".into(), text, false) }
}

/// Returns the billed usage: these wires have only one usage.
pub(super) fn reported_usage(reply: &Reply) -> Usage {
    if reply.billed.prompt() + reply.billed.output > reply.usage.prompt() + reply.usage.output {
        reply.billed
    } else {
        reply.usage
    }
}

#[derive(Deserialize, Default)]
pub(super) struct OpenAiUsage {
    #[serde(alias = "prompt_tokens", default)]
    input_tokens: u64,
    #[serde(alias = "prompt_tokens_details")]
    input_tokens_details: Option<Details>,
    #[serde(alias = "completion_tokens", default)]
    output_tokens: u64,
    #[serde(alias = "completion_tokens_details")]
    output_tokens_details: Option<Details>,
    total_tokens: Option<u64>,
    /// Cache hits, reported by DeepSeek.
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

impl OpenAiUsage {
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

pub(super) fn reply(parts: Vec<Part>, usage: Option<OpenAiUsage>, stop: StopReason) -> Reply {
    let usage = usage.unwrap_or_default().usage();
    Reply { parts, usage, billed: usage, stop, ..Reply::default() }
}

/// Decodes the reply options that both wires share.
pub(super) fn reply_options(body: &[u8]) -> Result<ReplyOptions, String> {
    #[derive(Deserialize)]
    struct OpenAiParams {
        stream: Option<bool>,
        stream_options: Option<StreamOptions>,
        background: Option<bool>,
        n: Option<u64>,
    }
    #[derive(Deserialize)]
    struct StreamOptions {
        include_usage: Option<bool>,
    }
    let given: OpenAiParams = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    if given.background == Some(true) || given.n.is_some_and(|n| n != 1) {
        return Err(
            "this server supports neither `background` nor several choices; remove `background` and `n`"
                .to_string(),
        );
    }
    let usage = given.stream_options.and_then(|o| o.include_usage).unwrap_or(false);
    Ok(ReplyOptions { stream: given.stream == Some(true), thinking: false, usage })
}

pub(super) static OPENAI: ApiFormat = ApiFormat {
    name: "openai",
    address: "https://api.openai.com",
    // The SDKs read the first variable, LiteLLM and Aider the second.
    base_urls: &[("OPENAI_BASE_URL", "/v1"), ("OPENAI_API_BASE", "/v1")],
    request_id_header: "x-request-id",
    models_paths: &["/v1/models"],
    matches_client: |_, _| false,

    error_code: |kind| match kind {
        ErrorKind::Overflow => "context_length_exceeded",
        ErrorKind::RateLimited => "rate_limit_exceeded",
        ErrorKind::Server | ErrorKind::Stream => "server_error",
        ErrorKind::Invalid | ErrorKind::SessionEnd => "invalid_request_error",
    },
    status_codes: &[(413, "request_too_large")],
    error_body: |status, code, message| {
        let kind = if status == 429 || status >= 500 { code } else { "invalid_request_error" };
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
    },
    add_retry_delay: |_, _| {},
    too_large,
    code_of: |error| error["code"].as_str().or(error["type"].as_str()),
    unknown_model: |name| ("model_not_found", format!("The model `{name}` does not exist here.")),
    unpaired_message: |call, id| {
        if call {
            return format!("No tool output was found for the function call {id}.");
        }
        format!("No tool call was found for the function call output {id}.")
    },

    model: |m, _window| json!({"id": m.name, "object": "model", "created": 0, "owned_by": m.provider}),
    model_list: |all| json!({"object": "list", "data": all}),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::find;
    use ctxbench_core::model;

    #[test]
    fn decode_reads_usage_of_each_provider() {
        let deepseek =
            r#""completion_tokens":9,"prompt_cache_hit_tokens":128,"prompt_cache_miss_tokens":22"#;
        for (usage, input, read, written) in [
            (
                r#""prompt_tokens":150,"completion_tokens":9,"total_tokens":159,"prompt_tokens_details":{"cached_tokens":100}"#,
                50,
                100,
                0,
            ),
            // OpenAI from gpt-5.6: 100 read and 20 written of 150.
            (
                r#""prompt_tokens":150,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":20}"#,
                30,
                100,
                20,
            ),
            // Hits and misses add up to the prompt, even if the prompt size is not reported.
            (&format!("\"prompt_tokens\":150,{deepseek}"), 22, 128, 0),
            (deepseek, 22, 128, 0),
        ] {
            let body = format!(
                r#"{{"choices":[{{"message":{{"role":"assistant","content":"hi"}},"finish_reason":"length"}}],"usage":{{{usage}}}}}"#
            );
            let r = (find("openai-chat").unwrap().decode_reply)(body.as_bytes()).unwrap();
            let u = r.usage;
            assert_eq!((u.input, u.cache_read, u.cache_write), (input, read, written), "{usage}");
            assert_eq!((u.prompt(), u.output, u.total()), (150, 9, 159), "{usage}");
            assert_eq!((r.stop, r.parts), (StopReason::MaxTokens, vec![Part::Text("hi".into())]));
        }
    }

    #[test]
    fn usage_survives_the_wire_of_every_provider() {
        for (model, cache_write) in
            [("gpt-5.5", 0), ("gpt-5.6-sol", 40), ("deepseek-chat", 0), ("grok-4.7", 0)]
        {
            let usage =
                Usage { input: 7, output: 3, cache_read: 1_280, cache_write, ..Usage::default() };
            let reply = Reply { usage, billed: usage, ..Reply::default() };
            for wire in ["openai-chat", "openai-responses"].map(|w| find(w).unwrap()) {
                let bytes = (wire.encode_reply)(&reply, model::find(model).unwrap());
                assert_eq!((wire.decode_reply)(&bytes).unwrap().usage, usage, "{wire:?} {model}");
            }
        }
    }
}
