//! OpenAI chat messages: the model, the tools and the messages as in a request, on one line. It is
//! a valid request if every call has its result.

use ctxbench_core::content::Part;
use ctxbench_session::{AssistantEntry, Session, ToolEntry};
use serde_json::{Map, Value, json};

use super::conversation::{
    ExportConversation, ExportTurn, content_of, conversations, count_unanswered, in_places,
};
use super::{Export, ExportLosses};

pub(super) const EXPORT: Export = Export {
    title: "OpenAI chat messages",
    name: "openai",
    ending: "json",
    several: true,
    write: |session, lost| Ok(request(session, lost).to_string() + "\n"),
};

fn request(session: &Session, lost: &mut ExportLosses) -> Value {
    let all = conversations(session, lost);
    all.iter().skip(1).for_each(|_| lost.add("conversations of subagents"));
    let ExportConversation { tools, turns, .. } = &all[0];
    let mut out = Map::new();
    if let Some(model) = &session.header.model {
        out.insert("model".into(), model.as_str().into());
    }
    if !tools.is_empty() {
        let tools: Vec<Value> = tools.iter().map(|t| t.as_function()).collect();
        out.insert("tools".into(), tools.into());
    }
    let mut messages = Vec::new();
    for turn in turns {
        match turn {
            ExportTurn::Standing(text) => messages.push(json!({"role": "system", "content": text})),
            ExportTurn::User(user) => {
                lost.add_if(user.at.is_some(), "times");
                let content = content(&user.content(), true, lost);
                messages.push(json!({"role": "user", "content": content}));
            }
            ExportTurn::Reply(reply, results) => {
                count_unanswered(reply, results, lost);
                messages.push(reply_message(reply, lost));
                messages.extend(results.iter().map(|r| result(r, lost)));
            }
        }
    }
    out.insert("messages".into(), messages.into());
    out.into()
}

fn reply_message(reply: &AssistantEntry, lost: &mut ExportLosses) -> Value {
    lost.add_if(reply.at.is_some(), "times");
    lost.add_if(reply.usage.is_some(), "counters");
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
    let mut message = json!({"role": "assistant", "content": content(&rest, false, lost)});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

fn result(result: &ToolEntry, lost: &mut ExportLosses) -> Value {
    lost.add_if(result.at.is_some(), "times");
    lost.add_if(result.is_error == Some(true), "failures of tools");
    let content = content(&result.content(), false, lost);
    json!({"role": "tool", "tool_call_id": result.call_id, "content": content})
}

/// Returns a single text as a string, and any other content as a list. Only user messages may
/// contain images.
fn content(parts: &[Part], images: bool, lost: &mut ExportLosses) -> Value {
    let mut list = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => list.push(json!({"type": "text", "text": &**text})),
            Part::Image(media) if !images || !media.media_type.starts_with("image/") => {
                lost.add("files that are not images of the user");
            }
            Part::Image(media) => {
                list.push(json!({"type": "image_url", "image_url": {"url": media.url}}));
            }
            _ => lost.add("parts of other kinds"),
        }
    }
    content_of(list)
}
