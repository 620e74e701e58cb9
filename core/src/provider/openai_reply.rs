//! OpenAI: replies of Responses and Chat Completions. Cached tokens are part of the prompt tokens here.

use std::borrow::Cow;

use serde::Deserialize;

use super::json::{self, field, list, number, opt, or_empty, raw, sane, string};
use super::models::{Provider, find};
use super::openai_chat::Message;
use super::openai_responses::{Entry, contents, joined};
use super::prompt::{Content, Item, Prompt};
use super::wire::WireError;
use crate::block::Role;
use crate::request::{Reply, ReplyPart, StopReason, Usage};

/// Names of the usage fields, which differ between the two wires.
struct Names {
    prompt: &'static str,
    details: &'static str,
    output: &'static str,
    output_details: &'static str,
}

const RESPONSES: Names =
    Names { prompt: "input_tokens", details: "input_tokens_details", output: "output_tokens", output_details: "output_tokens_details" };
const CHAT: Names = Names {
    prompt: "prompt_tokens",
    details: "prompt_tokens_details",
    output: "completion_tokens",
    output_details: "completion_tokens_details",
};

/// Cached tokens are part of the prompt tokens. DeepSeek tells hits and misses beside them; writes are told where they are charged.
fn usage(o: &mut Vec<u8>, u: &Usage, n: &Names, model: &str) {
    use std::io::Write;
    let Names { prompt, details, output, output_details } = n;
    let (input, cached, out, reasoning, total) = (u.prompt(), u.cache_read, u.output, u.reasoning, u.total());
    let written = u.cache_write + u.cache_write_1h;
    let model = find(model).ok();
    let writes =
        if written > 0 || model.is_some_and(|m| m.cache.write_fee) { format!(",\"cache_write_tokens\":{written}") } else { String::new() };
    let told = if model.is_some_and(|m| m.provider == Provider::Deepseek) {
        format!("\"prompt_cache_hit_tokens\":{cached},\"prompt_cache_miss_tokens\":{}", input - cached)
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
fn told(reply: &Reply) -> Usage {
    if reply.billed.prompt() + reply.billed.output > reply.usage.prompt() + reply.usage.output { reply.billed } else { reply.usage }
}

/// Writes a Responses reply.
pub(crate) fn encode_responses(reply: &Reply, model: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let o = &mut out;
    let reason = match reply.stop {
        StopReason::MaxTokens | StopReason::WindowExceeded => Some("max_output_tokens"),
        StopReason::Refusal => Some("content_filter"),
        _ => None,
    };
    field(o, "{\"id\":", reply.id.as_deref().unwrap_or("resp_ctxbench"));
    raw(o, ",\"object\":\"response\",\"created_at\":0,\"model\":");
    string(o, model);
    match reason {
        Some(r) => {
            field(o, ",\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":", r);
            o.push(b'}');
        }
        None => raw(o, ",\"status\":\"completed\",\"incomplete_details\":null"),
    }
    raw(o, ",\"error\":null,\"output\":[");
    list(o, reply.parts.iter().enumerate(), |o, (i, p)| {
        raw(o, "{\"id\":\"item_");
        number(o, i as u64);
        raw(o, "\",");
        match p {
            ReplyPart::Text(t) => {
                raw(o, "\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":[");
                field(o, "{\"type\":\"output_text\",\"annotations\":[],\"text\":", t);
                raw(o, "}]");
            }
            ReplyPart::Reasoning { text, encrypted } => {
                raw(o, "\"type\":\"reasoning\",\"summary\":[");
                if !text.is_empty() {
                    field(o, "{\"type\":\"summary_text\",\"text\":", text);
                    o.push(b'}');
                }
                o.push(b']');
                if let Some(e) = encrypted {
                    field(o, ",\"encrypted_content\":", e);
                }
            }
            ReplyPart::Call { id, name, arguments } => {
                field(o, "\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":", id);
                field(o, ",\"name\":", name);
                field(o, ",\"arguments\":", arguments);
            }
            ReplyPart::Compaction(s) => field(o, "\"type\":\"compaction\",\"encrypted_content\":", s.as_deref().unwrap_or("")),
        }
        o.push(b'}');
    });
    o.push(b']');
    usage(o, &told(reply), &RESPONSES, model);
    o.push(b'}');
    out
}

/// Writes the answer of `/responses/compact`: the user's messages of the prompt, then the compaction that the reply holds. Compactions of
/// the prompt are part of the new one.
pub(crate) fn encode_compacted(prompt: &Prompt, reply: &Reply, model: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let o = &mut out;
    field(o, "{\"id\":", reply.id.as_deref().unwrap_or("resp_ctxbench"));
    raw(o, ",\"object\":\"response.compaction\",\"created_at\":0,\"output\":[");
    let kept: Vec<&Item> =
        prompt.items.iter().filter(|i| i.role == Role::User && matches!(i.content, Content::Text(_) | Content::Image { .. })).collect();
    for group in kept.chunk_by(|a, b| a.message == b.message) {
        raw(o, "{\"id\":\"msg_");
        number(o, group[0].message as u64);
        raw(o, "\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"user\",\"content\":[");
        list(o, group, |o, item| match &item.content {
            Content::Image { url, .. } => {
                field(o, "{\"type\":\"input_image\",\"detail\":\"auto\",\"image_url\":", url);
                o.push(b'}');
            }
            _ => {
                field(o, "{\"type\":\"input_text\",\"text\":", item.text());
                o.push(b'}');
            }
        });
        raw(o, "]},");
    }
    let summary = reply.compaction().map_or("", |s| s);
    field(o, "{\"id\":\"cmp_0\",\"type\":\"compaction\",\"encrypted_content\":", summary);
    raw(o, "}]");
    usage(o, &told(reply), &RESPONSES, model);
    o.push(b'}');
    out
}

/// Writes a Chat reply: thinking, all texts as one with blank lines between, calls.
pub(crate) fn encode_chat(reply: &Reply, model: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let o = &mut out;
    let finish = match reply.stop {
        StopReason::MaxTokens | StopReason::WindowExceeded => "length",
        StopReason::Refusal => "content_filter",
        StopReason::ToolUse => "tool_calls",
        _ if reply.has_calls() => "tool_calls",
        _ => "stop",
    };
    field(o, "{\"id\":", reply.id.as_deref().unwrap_or("chatcmpl_ctxbench"));
    raw(o, ",\"object\":\"chat.completion\",\"created\":0,\"model\":");
    string(o, model);
    field(o, ",\"choices\":[{\"index\":0,\"finish_reason\":", finish);
    raw(o, ",\"message\":{\"role\":\"assistant\",\"content\":");
    match reply.text() {
        Some(t) => string(o, &t),
        None => raw(o, "null"),
    }
    let thinking = reply.parts.iter().find_map(|p| match p {
        ReplyPart::Reasoning { text, encrypted } => Some((text, encrypted)),
        _ => None,
    });
    if let Some((text, encrypted)) = thinking {
        field(o, ",\"reasoning_content\":", text);
        if let Some(e) = encrypted {
            field(o, ",\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",\"data\":", e);
            raw(o, "}]");
        }
    }
    if reply.has_calls() {
        let calls = reply.parts.iter().filter_map(|p| match p {
            ReplyPart::Call { id, name, arguments } => Some((id, name, arguments)),
            _ => None,
        });
        raw(o, ",\"tool_calls\":[");
        list(o, calls, |o, (id, name, arguments)| {
            field(o, "{\"type\":\"function\",\"id\":", id);
            field(o, ",\"function\":{\"name\":", name);
            field(o, ",\"arguments\":", arguments);
            raw(o, "}}");
        });
        o.push(b']');
    }
    raw(o, "}}]");
    usage(o, &told(reply), &CHAT, model);
    o.push(b'}');
    out
}

#[derive(Deserialize, Default)]
struct Tokens {
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
        let input = |f: fn(&Details) -> Option<u64>| sane(self.input_tokens_details.as_ref().and_then(f).unwrap_or(0));
        let hit = self.prompt_cache_hit_tokens.map(sane);
        let (cache_read, cache_write) = (hit.unwrap_or_else(|| input(|d| d.cached_tokens)), input(|d| d.cache_write_tokens));
        let halves = hit.unwrap_or(0) + sane(self.prompt_cache_miss_tokens.unwrap_or(0));
        let (prompt, output) = (sane(self.input_tokens).max(halves), sane(self.output_tokens));
        Usage {
            input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
            output,
            reasoning: sane(self.output_tokens_details.as_ref().and_then(|d| d.reasoning_tokens).unwrap_or(0)),
            cache_read,
            cache_write,
            cache_write_1h: 0,
            reported_total: self.total_tokens.map(sane).filter(|t| *t != prompt + output),
        }
    }
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    output: Vec<Entry<'a>>,
    #[serde(borrow)]
    incomplete_details: Option<Incomplete<'a>>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
}

/// Reads a Responses reply.
pub(crate) fn decode_responses(bytes: &[u8]) -> Result<Reply, WireError> {
    let body: Response<'_> = json::parse(bytes)?;
    let missing = |field| WireError::Missing { field, in_what: "reply item" };
    let mut parts = Vec::with_capacity(body.output.len());
    for e in body.output {
        parts.push(match &*e.kind {
            "message" => {
                parts.extend(contents(e.content)?.into_iter().filter_map(text_part));
                continue;
            }
            "reasoning" => ReplyPart::Reasoning { text: joined(e.summary), encrypted: opt(e.encrypted_content) },
            "function_call" => ReplyPart::Call {
                id: e.call_id.ok_or(missing("call_id"))?.0,
                name: e.name.ok_or(missing("name"))?.0,
                arguments: or_empty(e.arguments),
            },
            "compaction" => ReplyPart::Compaction(opt(e.encrypted_content)),
            other => {
                let known = "message, reasoning, function_call, compaction";
                return Err(WireError::Unsupported { what: "reply item", value: other.into(), known });
            }
        });
    }
    let reason = body.incomplete_details.and_then(|d| d.reason);
    let only_compaction = !parts.is_empty() && parts.iter().all(|p| matches!(p, ReplyPart::Compaction(_)));
    let stop = match reason.as_deref() {
        Some("content_filter") => StopReason::Refusal,
        Some(_) => StopReason::MaxTokens,
        None if only_compaction => StopReason::Compaction,
        None => done(&parts),
    };
    Ok(reply(parts, body.usage, stop))
}

fn text_part(c: Content) -> Option<ReplyPart> {
    match c {
        Content::Text(t) => Some(ReplyPart::Text(t)),
        _ => None,
    }
}

fn done(parts: &[ReplyPart]) -> StopReason {
    let calls = parts.iter().any(|p| matches!(p, ReplyPart::Call { .. }));
    if calls { StopReason::ToolUse } else { StopReason::EndTurn }
}

fn reply(parts: Vec<ReplyPart>, usage: Option<Tokens>, stop: StopReason) -> Reply {
    let usage = usage.unwrap_or_default().usage();
    Reply { parts, usage, billed: usage, stop, ..Reply::default() }
}

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Message<'a>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

/// Reads a Chat reply.
pub(crate) fn decode_chat(bytes: &[u8]) -> Result<Reply, WireError> {
    let body: Completion<'_> = json::parse(bytes)?;
    let choice = body.choices.into_iter().next().ok_or(WireError::Missing { field: "choices[0]", in_what: "reply" })?;
    let parts: Vec<ReplyPart> = choice.message.contents(Role::Assistant)?.into_iter().filter_map(chat_part).collect();
    let stop = match choice.finish_reason.as_deref() {
        Some("length") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::Refusal,
        _ => done(&parts),
    };
    Ok(reply(parts, body.usage, stop))
}

fn chat_part(c: Content) -> Option<ReplyPart> {
    match c {
        Content::Text(t) => Some(ReplyPart::Text(t)),
        Content::Reasoning { text, encrypted } => Some(ReplyPart::Reasoning { text, encrypted }),
        Content::Call { id, name, arguments } => Some(ReplyPart::Call { id, name, arguments }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(usage: &str) -> Usage {
        let body = format!("{{\"choices\":[{{\"message\":{{\"role\":\"assistant\",\"content\":\"ok\"}}}}],\"usage\":{usage}}}");
        decode_chat(body.as_bytes()).unwrap().usage
    }

    #[test]
    fn each_provider_has_its_own_usage_fields() {
        // OpenAI from gpt-5.6: 100 read and 20 written of 150.
        let u =
            read(r#"{"prompt_tokens":150,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":20}}"#);
        assert_eq!((u.input, u.cache_read, u.cache_write, u.output), (30, 100, 20, 9));
        // DeepSeek: hits and misses add up to the prompt, also where the prompt is not told.
        for prompt in [r#""prompt_tokens":150,"#, ""] {
            let u = read(&format!("{{{prompt}\"completion_tokens\":9,\"prompt_cache_hit_tokens\":128,\"prompt_cache_miss_tokens\":22}}"));
            assert_eq!((u.input, u.cache_read, u.prompt()), (22, 128, 150), "{prompt}");
        }
    }

    #[test]
    fn usage_survives_the_wire_of_every_provider() {
        for (model, cache_write) in [("gpt-5.5", 0), ("gpt-5.6-sol", 40), ("gemini-2.5-pro", 0), ("deepseek-chat", 0), ("grok-4.7", 0)] {
            let usage = Usage { input: 7, output: 3, cache_read: 1_280, cache_write, ..Usage::default() };
            let reply = Reply { parts: vec![ReplyPart::Text("ok".into())], usage, billed: usage, ..Reply::default() };
            assert_eq!(decode_chat(&encode_chat(&reply, model)).unwrap().usage, usage, "{model}");
            assert_eq!(decode_responses(&encode_responses(&reply, model)).unwrap().usage, usage, "{model}");
        }
    }
}
