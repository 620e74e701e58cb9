//! Requests of two APIs, OpenAI chat messages and Anthropic messages: model, system prompt, tools and
//! messages on one line. With `max_tokens` it is a valid request if every call has its result.

use ctxbench_core::block::Media;
use ctxbench_core::content::Part;
use ctxbench_session::{AssistantEntry, Session, ToolEntry};
use serde_json::{Map, Value, json};

use super::conversation::{
    ExportConversation, ExportTurn, arguments, as_function, content_of, conversations, in_places,
    texts_and_images,
};
use super::{Export, ExportLosses};

pub(super) const OPENAI: Export = Export {
    title: "OpenAI chat messages",
    name: "openai",
    ending: "json",
    several: true,
    write: |session, lost| Ok(request(session, lost, &CHAT)),
};

pub(super) const ANTHROPIC: Export = Export {
    title: "Anthropic messages",
    name: "anthropic",
    ending: "json",
    several: true,
    write: |session, lost| Ok(request(session, lost, &MESSAGES)),
};

struct Api {
    /// Whether the system prompt is outside the messages.
    system_apart: bool,
    tool: fn(&Value) -> Value,
    user: fn(&[Part], &mut ExportLosses) -> Value,
    reply: fn(&AssistantEntry, &mut ExportLosses) -> Value,
    /// Returns the messages with the results of a reply.
    results: fn(&[&ToolEntry], &mut ExportLosses) -> Vec<Value>,
}

fn request(session: &Session, lost: &mut ExportLosses, api: &Api) -> String {
    let all = conversations(session, lost);
    all.iter().skip(1).for_each(|_| lost.add("conversations of subagents"));
    let ExportConversation { tools, turns, .. } = &all[0];
    let (mut system, mut messages) = (Vec::new(), Vec::new());
    for turn in turns {
        match turn {
            ExportTurn::Standing(text) if api.system_apart && messages.is_empty() => {
                system.push(json!({"type": "text", "text": text}));
            }
            ExportTurn::Standing(text) => {
                let role = if api.system_apart { "user" } else { "system" };
                let what = "system texts amid the conversation, which are written as the user's";
                lost.add_if(api.system_apart, what);
                messages.push(json!({"role": role, "content": text}));
            }
            ExportTurn::User(user) => {
                lost.add_if(user.at.is_some(), "times");
                let content = (api.user)(&user.content(), lost);
                messages.push(json!({"role": "user", "content": content}));
            }
            ExportTurn::Reply(reply, results) => {
                let unanswered = results.len()..reply.all_calls().len();
                unanswered.for_each(|_| lost.add("calls without a result, which the API refuses"));
                lost.add_if(reply.at.is_some(), "times");
                lost.add_if(reply.usage.is_some(), "counters");
                messages.push((api.reply)(reply, lost));
                results.iter().for_each(|r| lost.add_if(r.at.is_some(), "times"));
                messages.extend((api.results)(results, lost));
            }
        }
    }
    let mut out = Map::from_iter([("messages".to_string(), messages.into())]);
    out.extend(session.header.model.as_ref().map(|m| ("model".into(), m.as_str().into())));
    out.extend((!system.is_empty()).then(|| ("system".into(), content_of(system))));
    let tools: Vec<Value> = tools.iter().map(api.tool).collect();
    out.extend((!tools.is_empty()).then(|| ("tools".into(), tools.into())));
    Value::from(out).to_string() + "\n"
}

const CHAT: Api = Api {
    system_apart: false,
    tool: as_function,
    user: |parts, lost| chat_content(parts, true, lost),
    reply: chat_reply,
    results: |results, lost| {
        let result = |result: &&ToolEntry| {
            lost.add_if(result.is_error == Some(true), "failures of tools");
            let content = chat_content(&result.content(), false, lost);
            json!({"role": "tool", "tool_call_id": result.call_id, "content": content})
        };
        results.iter().map(result).collect()
    },
};

fn chat_reply(reply: &AssistantEntry, lost: &mut ExportLosses) -> Value {
    let parts = reply.content();
    lost.add_if(!in_places(&parts), "places of parts within a reply");
    let mut calls = Vec::new();
    let mut rest = Vec::new();
    for part in parts {
        match part {
            Part::Reasoning { .. } => lost.add("reasoning"),
            Part::Call(call) => calls.push(json!({
                "id": &*call.id,
                "type": "function",
                "function": {"name": &*call.name, "arguments": &*call.arguments},
            })),
            other => rest.push(other),
        }
    }
    let mut message = json!({"role": "assistant", "content": chat_content(&rest, false, lost)});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

/// Only user messages may contain images.
fn chat_content(parts: &[Part], images: bool, lost: &mut ExportLosses) -> Value {
    texts_and_images(parts, lost, "files that are not images of the user", |media| {
        let is_image = images && media.media_type.starts_with("image/");
        is_image.then(|| json!({"type": "image_url", "image_url": {"url": media.url}}))
    })
}

const MESSAGES: Api = Api {
    system_apart: true,
    tool: Value::clone,
    user: |parts, lost| blocks("user", parts, lost),
    reply: |reply, lost| json!({"role": "assistant", "content": blocks("assistant", &reply.content(), lost)}),
    results: |results, lost| {
        let results: Vec<Value> = results.iter().map(|r| tool_result(r, lost)).collect();
        let message = (!results.is_empty()).then(|| json!({"role": "user", "content": results}));
        message.into_iter().collect()
    },
};

fn blocks(role: &str, parts: &[Part], lost: &mut ExportLosses) -> Value {
    content_of(parts.iter().filter_map(|part| block(role, part, lost)).collect())
}

fn block(role: &str, part: &Part, lost: &mut ExportLosses) -> Option<Value> {
    Some(match part {
        // The API does not accept empty texts.
        Part::Text(text) if text.is_empty() => return None,
        Part::Text(text) => json!({"type": "text", "text": &**text}),
        Part::Reasoning { text, encrypted } => {
            let signature = encrypted.as_deref().unwrap_or_default();
            json!({"type": "thinking", "thinking": &**text, "signature": signature})
        }
        Part::Call(call) if role == "assistant" => {
            let input = arguments(call, lost);
            json!({"type": "tool_use", "id": &*call.id, "name": &*call.name, "input": input})
        }
        Part::Image(media) if role == "user" => return file(media, lost),
        _ => {
            lost.add("parts of other kinds");
            return None;
        }
    })
}

fn tool_result(result: &ToolEntry, lost: &mut ExportLosses) -> Value {
    let content = blocks("user", &result.content(), lost);
    let mut out = json!({"type": "tool_result", "tool_use_id": result.call_id, "content": content});
    if result.is_error == Some(true) {
        out["is_error"] = true.into();
    }
    out
}

fn file(media: &Media, lost: &mut ExportLosses) -> Option<Value> {
    let kind = match &*media.media_type {
        "application/pdf" => "document",
        kind if kind.starts_with("image/") => "image",
        _ => {
            lost.add("files that are neither images nor PDF");
            return None;
        }
    };
    let source = match media.url.strip_prefix("data:") {
        None => json!({"type": "url", "url": media.url}),
        Some(inline) => match inline.split_once(";base64,") {
            Some((_, data)) => {
                json!({"type": "base64", "media_type": media.media_type, "data": data})
            }
            None => {
                lost.add("files with data that are not Base64");
                return None;
            }
        },
    };
    let mut out = json!({"type": kind, "source": source});
    match &media.name {
        Some(name) if kind == "document" => out["title"] = name.as_str().into(),
        other => lost.add_if(other.is_some(), "names of images"),
    }
    Some(out)
}
