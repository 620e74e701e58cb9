//! Chats of Cursor: the database `User/globalStorage/state.vscdb`, and the transcripts of its agent
//! (`~/.cursor/projects/FOLDER/agent-transcripts/ID/ID.jsonl`), which have less.
//!
//! Rules, where the format leaves a choice:
//! - A bubble is a text, a thought, or a call with its result; the chat lists them in order. A reply
//!   ends with a call, since the file does not say which calls were one request.
//! - The counters of a bubble lack the cached part, and newer versions store 0. They are not read.
//!   `usageData` of older versions has dollars for each model.
//! - A bubble of the kind 22 is a compaction. The chat has the text of the newest.
//! - Calls of transcripts have neither ids nor results; they are kept as text.

use std::collections::HashMap;

use super::blocks::{self, Block, Shape};
use super::database::{self, Database, Stored, has_tables, json_in};
use super::source::DATABASE;
use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "Cursor",
    name: "cursor",
    untold: "counters, which calls were one request, system prompt and tools; of transcripts also \
             results, times and models",
    sniff: |head| has_tables(head, &["cursorDiskKV"]) || head.objects().any(is_line),
    read,
    parts: no_parts,
};

const BUBBLE: Shape = Shape {
    kind: |bubble| Some(("", bubble)),
    blocks: &[
        ("", Block::Thought(&["/thinking/text", "/thinking"], &["/thinking/signature"])),
        ("", Block::Text(&["/text"])),
    ],
};

/// Call and result of a bubble.
const TOOL: Shape = Shape {
    kind: |bubble| Some(("", &bubble["toolFormerData"])),
    blocks: &[
        ("", Block::Call(&["/toolCallId"], &["/name"], &["/rawArgs", "/params"])),
        ("", Block::Result(&["/toolCallId"], &["/result", "/error"], &["/error"])),
    ],
};

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    match source.head()?.text.starts_with(DATABASE) {
        true => read_database(source, sink),
        false => lines::session(source, Vec::new(), sink, read_lines),
    }
}

fn read_database(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let db = Database::open(source, FORMAT.title)?;
    // The keys below a prefix, which ends with a colon. A semicolon follows a colon.
    let below = |prefix: &str| {
        let range = "WHERE key >= ?1 || ':' AND key < ?1 || ';' ORDER BY key";
        db.rows("cursorDiskKV", "key, value", range, Some(prefix))
    };
    let mut sessions: Vec<(Option<u64>, Stored)> = Vec::new();
    for row in below("composerData")? {
        let chat = json_in(&row, "value");
        let key = str_of(&row, "key").unwrap_or_default();
        let (_, id) = key.split_once(':').unwrap_or_default();
        let subagent = &chat["subagentInfo"];
        let stored = Stored {
            id: id.to_string(),
            parent: subagent["parentComposerId"].as_str().map(str::to_string),
            call: subagent["toolCallId"].as_str().map(str::to_string),
            ..Stored::default()
        };
        sessions.push((chat["createdAt"].as_u64(), stored));
    }
    sessions.sort_by_key(|(created, _)| *created);
    let sessions: Vec<Stored> = sessions.into_iter().map(|(_, stored)| stored).collect();
    let read = |session: &Stored| {
        let key = format!("composerData:{}", session.id);
        let rows = db.rows("cursorDiskKV", "value", "WHERE key = ?1", Some(&key))?;
        let chat = rows.first().map(|row| json_in(row, "value")).unwrap_or_default();
        let bubble = |row: Map<String, Value>| {
            let id = str_of(&row, "key")?.rsplit_once(':')?.1.to_string();
            Some((id, json_in(&row, "value")))
        };
        let bubbles = below(&format!("bubbleId:{}", session.id))?;
        Ok(chat_of(&session.id, &chat, &bubbles.into_iter().filter_map(bubble).collect()))
    };
    database::read_sessions(&sessions, &read, sink)
}

/// Returns a chat with its bubbles, which the oldest versions have inside it.
fn chat_of(id: &str, chat: &Value, bubbles: &HashMap<String, Value>) -> Recording {
    let list = |key: &str| chat[key].as_array().into_iter().flatten();
    let listed = list("fullConversationHeadersOnly");
    let listed = listed.filter_map(|header| bubbles.get(header["bubbleId"].as_str()?));
    let model = chat["modelConfig"]["modelName"].as_str();
    let mut out = Recording {
        title: chat["name"].as_str().map(str::to_string),
        context_window: tokens(&chat["contextTokenLimit"]),
        ..Recording::default()
    };
    let newest = &chat["latestConversationSummary"];
    // Name of the reply without a call so far.
    let mut open: Option<String> = None;
    for (n, bubble) in (1..).zip(listed.chain(list("conversation"))) {
        let stamp = bubble["createdAt"].as_str().and_then(time::normal);
        let own = bubble["bubbleId"].as_str().map(str::to_string);
        let mut push = |what| out.steps.push(RecordingStep::new(n, stamp.clone(), what));
        let is_newest = own.is_some() && newest["lastBubbleId"].as_str() == own.as_deref();
        let is_marked = bubble["capabilityType"] == 22;
        if is_marked || is_newest {
            let texts = ["/conversationSummary/summary", "/cachedConversationSummary/summary"];
            let told = texts.iter().find_map(|at| bubble.pointer(at)?.as_str());
            let latest = newest.pointer("/summary/summary").filter(|_| is_newest);
            let summary = told.or(latest.and_then(Value::as_str)).map(str::to_string);
            push(StepKind::Compaction(RecordingCompaction { summary, ..Default::default() }));
            open = None;
        }
        if is_marked {
            continue;
        }
        let is_result = |piece: &MessagePart| matches!(piece, MessagePart::Result { .. });
        let (results, pieces): (Vec<_>, Vec<_>) =
            [BUBBLE, TOOL].iter().flat_map(|shape| shape.parts(bubble)).partition(is_result);
        if bubble["type"] == 1 {
            open = None;
            push(StepKind::question(own, pieces));
        } else if !pieces.is_empty() {
            let is_call = |p: &MessagePart| matches!(p, MessagePart::Said(Part::Call(_)));
            let ends = pieces.iter().any(is_call);
            let told = bubble["modelInfo"]["modelName"].as_str().or(model);
            let model = told.filter(|name| *name != "default").map(str::to_string);
            let mut reply = blocks::message("assistant", n, own, model, pieces);
            if let StepKind::Reply(reply) = &mut reply {
                reply.response = open.take().or(reply.response.take());
                open = reply.response.clone().filter(|_| !ends);
            }
            push(reply);
            if !results.is_empty() {
                push(StepKind::input(results));
            }
        }
    }
    let last = out.steps.last().map_or(1, |step| step.line);
    for (model, spent) in chat["usageData"].as_object().into_iter().flatten() {
        if let Some(cents) = cost(spent.get("costInCents")) {
            let paid = RecordingStep::of_cost(last, Some(model.clone()), cents / 100.0);
            out.steps.push(paid.called(&format!("{id} {model}")));
        }
    }
    out
}

/// Returns whether an object is a line of a transcript.
fn is_line(o: &Map<String, Value>) -> bool {
    let is_message = str_of(o, "role").is_some() && object_in(o, "message").contains_key("content");
    let is_end = str_of(o, "type") == Some("turn_ended") && o.contains_key("status");
    is_message && !["type", "uuid", "session_id"].iter().any(|key| o.contains_key(*key)) || is_end
}

fn read_lines(lines: Vec<RecordedLine>, _file: &str, mut out: Recording) -> Recording {
    for RecordedLine { number, object } in lines {
        let blocks = list_of(object_in(&object, "message"), "content");
        let Some(role) = str_of(&object, "role") else { continue };
        let pieces = blocks.iter().flat_map(|block| match block["type"].as_str() {
            Some("tool_use") => {
                let name = block["name"].as_str().unwrap_or_default();
                let asked = Part::Text(format!("[{name}: {}]", block["input"]).into());
                vec![MessagePart::Unanswered { kind: "tool_use".into(), asked }]
            }
            _ if block["text"] == "[REDACTED]" => vec![MessagePart::Opaque],
            _ => content(Some(block)).into_iter().flat_map(typed_by_user).collect(),
        });
        let what = blocks::message(role, out.steps.len(), None, None, pieces.collect());
        out.steps.push(RecordingStep::new(number, None, what));
    }
    out
}

/// Separates what the user typed from what Cursor added around it.
fn typed_by_user(piece: MessagePart) -> Vec<MessagePart> {
    const QUERY: [&str; 2] = ["<user_query>", "</user_query>"];
    let MessagePart::Said(Part::Text(text)) = &piece else { return vec![piece] };
    let Some((before, rest)) = text.split_once(QUERY[0]) else { return vec![piece] };
    let (query, after) = rest.split_once(QUERY[1]).unwrap_or((rest, ""));
    let added = [before, after].map(str::trim).into_iter().filter(|text| !text.is_empty());
    let added = added.map(|text| MessagePart::text(text).added(ContextPlace::Message));
    added.chain([MessagePart::text(query.trim())]).collect()
}

#[cfg(test)]
mod tests;
