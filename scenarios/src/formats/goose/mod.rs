//! Sessions of Goose: its database (`sessions/sessions.db`), the output of `goose session export
//! --format json`, and `sessions/*.jsonl` of older versions. Only the database has counters.
//!
//! Rules, where the format leaves a choice:
//! - The ledger has a row for each call, and no link to the messages. A reply begins before its row,
//!   and a message with calls is stored after their tools ended, one for each call in some versions.
//!   So a message with calls belongs to the newest row by then, and another to the next row. Of rows in
//!   one second, the first that is free counts. Rows without a reply are calls all the same.
//! - The input of a row includes the tokens read and written, unless it is less than these.
//! - A user message for the agent alone, with a reply for the agent alone after it, is the summary of
//!   a compaction; the reply is no call. Other messages for the agent alone repeat or replace earlier
//!   ones. They are left out, like those for nobody but the user.

use super::blocks::{self, Block, Shape, typed};
use super::database::{self, Database, Stored, has_tables, json_in};
use super::source::DATABASE;
use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "Goose",
    name: "goose",
    untold: "system prompt and tools, the reply of a call if two fall in one second, the call of a \
             subagent, and in exports and older versions counters",
    sniff: |head| {
        has_tables(head, &["sessions", "messages"]) && head.text.contains("content_json")
            || head.objects().chain(head.value().as_object()).any(is_of_goose)
    },
    read,
    parts: no_parts,
};

const CALL: Block = Block::Call(
    &["/id"],
    &["/toolCall/value/name"],
    &["/toolCall/value/arguments", "/toolCall/error"],
);

const SHAPE: Shape = Shape {
    kind: typed,
    blocks: &[
        ("text", Block::Text(&["/text"])),
        ("thinking", Block::Thought(&["/thinking"], &["/signature"])),
        ("redactedThinking", Block::Thought(&[], &["/data"])),
        ("toolRequest", CALL),
        ("frontendToolRequest", CALL),
        (
            "toolResponse",
            Block::Result(
                &["/id"],
                &["/toolResult/value/content", "/toolResult/value", "/toolResult/error"],
                &["/toolResult/value/isError", "/toolResult/error"],
            ),
        ),
        ("image", Block::Image(&["/data"], &["/mimeType"])),
        ("resource", Block::Text(&["/resource/text"])),
        ("systemNotification", Block::Shown),
        ("toolConfirmationRequest", Block::Shown),
        ("actionRequired", Block::Shown),
    ],
};

/// Returns whether an object is a session, or a message of one.
fn is_of_goose(o: &Map<String, Value>) -> bool {
    let has = |keys: &[&str]| keys.iter().all(|key| o.contains_key(*key));
    let is_session = || ["message_count", "conversation"].iter().any(|key| has(&[key]));
    has(&["role", "created", "content"]) || has(&["working_dir"]) && is_session()
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let head = source.head()?;
    if head.text.starts_with(DATABASE) {
        return read_database(source, sink);
    }
    let mut out = Recording::default();
    let (info, messages) = if head.value().get("conversation").is_some() {
        let document = Document::from_source(source)?;
        let info = document.value()?.as_object().cloned().unwrap_or_default();
        let conversation = document.members()?.raw("conversation");
        (info, document.objects(conversation, &mut out))
    } else {
        let lines = of_lines(source, &mut out)?;
        let is_message = |line: &RecordedLine| line.object.contains_key("role");
        let (messages, others): (Vec<_>, Vec<_>) = lines.into_iter().partition(is_message);
        (others.into_iter().next().map(|line| line.object).unwrap_or_default(), messages)
    };
    sink(Ok(recording(&info, messages, Vec::new(), out)))
}

fn read_database(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let db = Database::open(source, FORMAT.title)?;
    let ids = ["id", "parent_session_id"];
    let columns = "name, description, model_config_json, accumulated_cost";
    let sessions = db.sessions("sessions", ids, columns, "ORDER BY created_at, id")?;
    let read = |session: &Stored| {
        let (rest, id) = ("WHERE session_id = ?1 ORDER BY id", Some(&*session.id));
        let columns = "id, created_timestamp, model, input_tokens, output_tokens, cache_read_tokens, \
                       cache_write_tokens, cost, is_compaction";
        // Older versions have no ledger.
        let ledger = db.rows("usage_ledger", columns, rest, id).unwrap_or_default();
        let ledger = ledger.into_iter().map(|row| Call::new(&session.id, &row)).collect();
        let columns = "message_id, role, content_json, created_timestamp, metadata_json";
        let messages = db.rows("messages", columns, rest, id)?;
        let messages = (1..).zip(messages).map(|(number, row)| {
            let object = json!({
                "id": row.get("message_id"), "role": row.get("role"),
                "created": row.get("created_timestamp"), "content": json_in(&row, "content_json"),
                "metadata": json_in(&row, "metadata_json"),
            });
            RecordedLine { number, object: object.as_object().cloned().unwrap_or_default() }
        });
        Ok(recording(&session.row, messages.collect(), ledger, Recording::default()))
    };
    database::read_sessions(&sessions, &read, sink)
}

/// Row of the ledger.
struct Call {
    /// Seconds since 1970.
    at: i64,
    is_compaction: bool,
    is_taken: bool,
    reply: RecordingReply,
}

impl Call {
    fn new(session: &str, row: &Map<String, Value>) -> Call {
        let names = ["input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"];
        let mut counters = Counters::read(row, names);
        if counters.input >= counters.read.saturating_add(counters.write) {
            counters = counters.of_whole_prompt();
        }
        counters.billing.told_usd = cost(row.get("cost"));
        let number = |name: &str| row.get(name).and_then(Value::as_i64).unwrap_or_default();
        let (id, at) = (number("id"), number("created_timestamp"));
        let name = format!("{session} {id} {at} {}", counters.output);
        let counters = Ok(counters.called(&*name));
        let reply = RecordingReply::new(name, vec![]);
        Call {
            at,
            is_compaction: number("is_compaction") != 0,
            is_taken: false,
            reply: RecordingReply { model: string(row, "model"), counters, ..reply },
        }
    }
}

/// Returns the call of a message of this second since 1970.
fn call_of(calls: &mut [Call], second: i64, has_calls: bool) -> Option<&mut Call> {
    let mut replies = calls.iter().filter(|call| !call.is_compaction);
    let at = match has_calls {
        true => replies.rfind(|call| call.at <= second)?.at,
        false => replies.find(|call| call.at >= second)?.at,
    };
    let is_of = |call: &Call| !call.is_compaction && call.at == at;
    let free = calls.iter().position(|call| is_of(call) && !call.is_taken);
    let found = free.or_else(|| calls.iter().rposition(is_of))?;
    calls.get_mut(found)
}

fn recording(
    info: &Map<String, Value>,
    messages: Vec<RecordedLine>,
    mut ledger: Vec<Call>,
    mut out: Recording,
) -> Recording {
    let config = info.get("model_config").cloned();
    let config = config.unwrap_or_else(|| json_in(info, "model_config_json"));
    let mut titles = ["name", "description"].iter().filter_map(|key| string(info, key));
    out.title = titles.find(|title| !title.is_empty());
    out.context_window = config.get("context_limit").and_then(tokens);
    let model = config["model_name"].as_str().map(str::to_string);
    let last = messages.last().map_or(1, |m| m.number);
    if ledger.is_empty()
        && let Some(usd) = cost(info.get("accumulated_cost"))
    {
        // Programs count their sessions from 1 each day.
        let first =
            messages.first().map(|m| (m.object.get("created"), hash_of(m.object.get("content"))));
        let id = format!("{} {first:?}", str_of(info, "id").unwrap_or_default());
        out.steps.push(RecordingStep::of_cost(last, model.clone(), usd).called(&id));
    }
    let is_hidden = |m: &RecordedLine| {
        object_in(&m.object, "metadata").get("userVisible") == Some(&json!(false))
    };
    let is_reply = |m: &RecordedLine| str_of(&m.object, "role") == Some("assistant");
    // Tokens of the newest call with a reply, and the newest thought.
    let (mut context, mut thought) = (None, None);
    let mut messages = messages.into_iter().enumerate().peekable();
    while let Some((n, m)) = messages.next() {
        let at = m.object.get("created").and_then(Value::as_f64);
        let mut pieces = SHAPE.parts(m.object.get("content").unwrap_or(&Value::Null));
        // Each part of a reply repeats the thought.
        pieces.retain(|piece| match piece {
            MessagePart::Said(part @ Part::Reasoning { .. }) => {
                thought.replace(part.clone()).as_ref() != Some(part)
            }
            _ => true,
        });
        let mut push = |what| {
            let stamp = at.and_then(time::of_epoch);
            out.steps.push(RecordingStep::new(m.number, stamp, what));
        };
        let is_answer = |(_, next): &(usize, RecordedLine)| is_reply(next) && is_hidden(next);
        if is_hidden(&m) && !is_reply(&m) && messages.next_if(is_answer).is_some() {
            let call = ledger.iter_mut().find(|call| call.is_compaction && !call.is_taken);
            let reply = call.map(|call| {
                call.is_taken = true;
                Box::new(call.reply.clone())
            });
            push(StepKind::Compaction(RecordingCompaction {
                pre_tokens: context,
                summary: Some(text_of(&pieces)),
                reply,
                ..RecordingCompaction::default()
            }));
            continue;
        }
        if pieces.is_empty() || is_hidden(&m) {
            continue;
        }
        let has_calls = pieces.iter().any(|p| matches!(p, MessagePart::Said(Part::Call(_))));
        let role = str_of(&m.object, "role").unwrap_or_default();
        let id = string(&m.object, "id");
        let mut what = blocks::message(role, n, id, model.clone(), pieces);
        if let StepKind::Reply(reply) = &mut what
            && let Some(call) = call_of(&mut ledger, at.unwrap_or_default() as i64, has_calls)
        {
            if !std::mem::replace(&mut call.is_taken, true) {
                reply.response.clone_from(&call.reply.response);
                reply.counters.clone_from(&call.reply.counters);
                reply.model = call.reply.model.clone().or(reply.model.take());
                context = call.reply.counters.as_ref().ok().map(Counters::context);
            } else if has_calls {
                // Another part of the same reply.
                reply.response.clone_from(&call.reply.response);
            }
        }
        push(what);
    }
    let unanswered = ledger.into_iter().filter(|call| !call.is_taken);
    out.steps.extend(
        unanswered
            .map(|call| RecordingStep::of_call(last, time::of_epoch(call.at as f64), call.reply)),
    );
    out
}

#[cfg(test)]
mod tests;
