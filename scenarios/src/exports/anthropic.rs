//! Anthropic messages: model, system prompt, tools and messages as in a request, on one line. With
//! `max_tokens` it is a valid request if every call has its result.

use ctxbench_core::block::Media;
use ctxbench_core::content::Part;
use ctxbench_session::{Session, ToolEntry};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::conversation::{
    ExportConversation, ExportTurn, arguments, conversations, count_unanswered, front,
};
use super::{Export, ExportLosses};

pub(super) const EXPORT: Export = Export {
    title: "Anthropic messages",
    name: "anthropic",
    ending: "json",
    several: true,
    write: |session, lost| Ok(request(session, lost) + "\n"),
};

#[derive(Serialize)]
struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    messages: Vec<ExportMessage>,
}

#[derive(Serialize)]
struct ExportMessage {
    role: &'static str,
    content: Box<RawValue>,
}

/// A call, with its arguments as the model wrote them.
#[derive(Serialize)]
struct ToolUse<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'a str,
    name: &'a str,
    input: Box<RawValue>,
}

fn raw(value: &(impl Serialize + ?Sized)) -> Box<RawValue> {
    to_raw_value(value).expect("texts, numbers and lists can be written")
}

fn request(session: &Session, lost: &mut ExportLosses) -> String {
    let all = conversations(session, lost);
    all.iter().skip(1).for_each(|_| lost.add("conversations of subagents"));
    let ExportConversation { tools, turns, .. } = &all[0];
    let (system, turns) = front(turns);
    let system = match system.as_slice() {
        [] => None,
        [one] => Some((*one).into()),
        several => {
            let block = |text: &&str| json!({"type": "text", "text": text});
            Some(several.iter().map(block).collect::<Vec<_>>().into())
        }
    };
    let mut messages = Vec::new();
    for turn in turns {
        match turn {
            ExportTurn::Standing(text) => {
                lost.add("system texts amid the conversation, which are written as the user's");
                messages.push(ExportMessage { role: "user", content: raw(text) });
            }
            ExportTurn::User(user) => {
                lost.add_if(user.at.is_some(), "times");
                messages.push(message("user", &user.content(), lost));
            }
            ExportTurn::Reply(reply, results) => {
                count_unanswered(reply, results, lost);
                lost.add_if(reply.at.is_some(), "times");
                lost.add_if(reply.usage.is_some(), "counters");
                messages.push(message("assistant", &reply.content(), lost));
                let results: Vec<Value> = results.iter().map(|r| result(r, lost)).collect();
                if !results.is_empty() {
                    messages.push(ExportMessage { role: "user", content: raw(&results) });
                }
            }
        }
    }
    let tools = tools
        .iter()
        .map(|t| json!({"name": t.name, "description": t.description, "input_schema": t.schema}));
    let model = session.header.model.as_deref();
    let request = Request { model, system, tools: tools.collect(), messages };
    serde_json::to_string(&request).expect("texts, numbers and lists can be written")
}

fn message(role: &'static str, parts: &[Part], lost: &mut ExportLosses) -> ExportMessage {
    let content = match parts {
        [Part::Text(text)] => raw(&**text),
        parts => {
            let blocks: Vec<_> = parts.iter().filter_map(|p| block(role, p, lost)).collect();
            if blocks.is_empty() { raw("") } else { raw(&blocks) }
        }
    };
    ExportMessage { role, content }
}

fn block(role: &str, part: &Part, lost: &mut ExportLosses) -> Option<Box<RawValue>> {
    let value = match part {
        // The API does not accept empty texts.
        Part::Text(text) if text.is_empty() => return None,
        Part::Text(text) => json!({"type": "text", "text": &**text}),
        Part::Reasoning { text, encrypted } => {
            let signature = encrypted.as_deref().unwrap_or_default();
            json!({"type": "thinking", "thinking": &**text, "signature": signature})
        }
        Part::Call(call) => {
            let (id, name, input) = (&*call.id, &*call.name, arguments(call, lost));
            return Some(raw(&ToolUse { kind: "tool_use", id, name, input }));
        }
        Part::Image(media) if role == "user" => file(media, lost)?,
        _ => {
            lost.add("parts of other kinds");
            return None;
        }
    };
    Some(raw(&value))
}

fn result(result: &ToolEntry, lost: &mut ExportLosses) -> Value {
    lost.add_if(result.at.is_some(), "times");
    let parts = result.content();
    let content = match parts.as_slice() {
        [Part::Text(text)] => text.to_string().into(),
        parts => {
            let mut blocks = Vec::new();
            for part in parts {
                match part {
                    Part::Call(_) => lost.add("parts of other kinds"),
                    part => blocks.extend(block("user", part, lost)),
                }
            }
            json!(blocks)
        }
    };
    let mut out = json!({"type": "tool_result", "tool_use_id": result.call_id, "content": content});
    if result.is_error == Some(true) {
        out["is_error"] = true.into();
    }
    out
}

/// Returns an image or a PDF file as a block.
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
