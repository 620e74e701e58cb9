//! Gemini CLI chats (`~/.gemini/tmp/<project>/chats/session-*.json`, in newer versions `.jsonl`
//! with changes as separate lines).
//!
//! Rules, where the format leaves a choice:
//! - A message of the model contains its thoughts, text and calls, and each call its result.
//!   Thoughts are titles and summaries of the thinking, and are not sent again.
//! - The program joins the replies between two results into one message if they came in one turn;
//!   its counters are those of the last one, with a prompt that contained the others.
//! - `input` contains the tokens read from the cache, and not those of tools at the provider (`tool`),
//!   which are billed as input. Thoughts are billed as output.
//! - Lines `$rewindTo` take back a message and everything after it; `$set` may replace the
//!   messages, as a compression does: the file then lacks the earlier ones.
//! - Notes of the program to the user (`info`, `warning`, `error`) are left out.

use crate::formats::prelude::*;
use ctxbench_formats::gemini_cli::{self, Chat};
use ctxbench_util::plural::pluralize;

pub(super) const FORMAT: Format = Format {
    title: "Gemini CLI",
    name: "gemini-cli",
    untold: "system prompt, tools and context of the program, what was there before a compression, \
             the messages of subagents, and counters of requests that were joined into one message",
    sniff,
    read,
    parts: no_parts,
};

fn sniff(head: &Head) -> bool {
    let is_head = |o: &Map<String, Value>| {
        o.contains_key("sessionId")
            && (o.contains_key("projectHash") || o.contains_key("startTime"))
            && !o.contains_key("parentUuid")
    };
    head.value().as_object().is_some_and(is_head)
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let head = source.head()?;
    let mut out = Recording::default();
    let whole = head.value().get("messages").is_some();
    let session = head.value().get("sessionId").and_then(Value::as_str).unwrap_or_default();
    let messages = if whole || head.objects().next().is_none() {
        let text = source.text()?;
        document(&Document::new(&text, source.name()), &mut out)?
    } else {
        changes(of_lines(source, &mut out)?, &mut out)
    };
    for (n, message) in (1..).zip(messages) {
        steps(n, message, session, &mut out.steps);
    }
    sink(Ok(out))
}

fn document(document: &Document<'_>, out: &mut Recording) -> Result<Vec<RecordedLine>, InputError> {
    let members = document.members()?;
    out.title = members.text("summary");
    out.of_subagent = members.text("kind").is_some_and(|k| k == "subagent");
    Ok(document.objects(members.raw("messages"), out))
}

/// Returns the messages that result from the lines of changes.
fn changes(lines: Vec<RecordedLine>, out: &mut Recording) -> Vec<RecordedLine> {
    let chat = Chat::from_lines(lines);
    out.title = string(&chat.properties, "summary");
    out.of_subagent = str_of(&chat.properties, "kind") == Some("subagent");
    out.left_out.extend(chat.replaced.iter().map(|(line, messages)| {
        let gone = pluralize(*messages, "message");
        format!("line {line} replaces {gone}, as a compression does; left out")
    }));
    chat.messages
}

fn steps(n: usize, message: RecordedLine, session: &str, out: &mut Vec<RecordingStep>) {
    let RecordedLine { number: line, object: o } = message;
    let stamp = string(&o, "timestamp");
    let id = string(&o, "id");
    let what = match str_of(&o, "type") {
        Some("user") => StepKind::question(id, content(o.get("content"))),
        Some("gemini") => StepKind::Reply(reply(n, id, session, &o)),
        Some("info" | "error" | "warning") => return,
        kind => StepKind::Unknown(format!("message of the type {:?}", kind.unwrap_or_default())),
    };
    out.push(RecordingStep::new(line, stamp.clone(), what));
    for (i, call) in objects(&o, "toolCalls").enumerate() {
        let Some(pieces) = result(call) else { continue };
        let stamp = string(call, "timestamp").or(stamp.clone());
        let is_error = matches!(str_of(call, "status"), Some("error" | "cancelled"));
        let what = StepKind::result(call_id(call, n, i), pieces, is_error);
        out.push(RecordingStep::new(line, stamp, what));
    }
}

fn reply(n: usize, id: Option<String>, session: &str, o: &Map<String, Value>) -> RecordingReply {
    let mut pieces = Vec::new();
    for thought in objects(o, "thoughts") {
        let words = ["subject", "description"].map(|k| str_of(thought, k));
        let words: Vec<&str> = words.into_iter().flatten().filter(|w| !w.is_empty()).collect();
        if !words.is_empty() {
            let text = words.join(": ").into();
            pieces.push(MessagePart::Shown(Part::Reasoning { text, encrypted: None }));
        }
    }
    pieces.extend(content(o.get("content")));
    pieces.extend(objects(o, "toolCalls").enumerate().map(|(i, call)| {
        let name = str_of(call, "name").unwrap_or_default();
        MessagePart::call(&call_id(call, n, i), name, call.get("args"))
    }));
    let call = id.as_ref().map(|id| format!("{session} {id}"));
    let counters = counters(o).map(|c| c.called(call.as_deref()));
    RecordingReply {
        id,
        model: string(o, "model"),
        counters: known(counters),
        ..RecordingReply::new(format!("message {n}"), pieces)
    }
}

fn call_id(call: &Map<String, Value>, message: usize, n: usize) -> String {
    string(call, "id").unwrap_or_else(|| format!("call-{message}-{n}"))
}

fn counters(o: &Map<String, Value>) -> Option<Counters> {
    let counted = object_of(o, "tokens")?;
    let all = Counters::read(counted, ["input", "cached", "write", "output"]);
    let all = all.and_output(counted, "thoughts").of_whole_prompt();
    let of_tools = counted.get("tool").and_then(tokens).unwrap_or_default();
    Some(Counters { input: all.input.saturating_add(of_tools), ..all })
}

/// Converts a list of parts, a part or a text.
pub(super) fn content(value: Option<&Value>) -> Vec<MessagePart> {
    match value {
        Some(Value::String(text)) if !text.trim().is_empty() => vec![MessagePart::text(text)],
        Some(Value::Array(list)) => list.iter().flat_map(|p| content(Some(p))).collect(),
        Some(Value::Object(part)) => piece(part).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn piece(part: &Map<String, Value>) -> Option<MessagePart> {
    match gemini_cli::part(part) {
        Some(Part::Text(text)) => Some(MessagePart::text(&text)),
        Some(thought @ Part::Reasoning { .. }) => Some(MessagePart::Shown(thought)),
        // `toolCalls` contains calls and results as well.
        Some(Part::Call(_) | Part::Result { .. }) => None,
        Some(part) => Some(MessagePart::Said(part)),
        None => Some(MessagePart::Opaque),
    }
}

/// Returns the result of a call, or `None` if the call did not return.
fn result(call: &Map<String, Value>) -> Option<Vec<MessagePart>> {
    let result = call.get("result").filter(|r| !r.is_null())?;
    let list = result.as_array().map_or(std::slice::from_ref(result), Vec::as_slice);
    let piece = |part: &Value| -> Vec<MessagePart> {
        let Some(Part::Result { output, .. }) = part.as_object().and_then(gemini_cli::part) else {
            return content(Some(part));
        };
        let text = (!output.is_empty()).then(|| MessagePart::text(&output));
        // Images and files that a tool returned.
        text.into_iter().chain(content(part["functionResponse"].get("parts"))).collect()
    };
    Some(list.iter().flat_map(piece).collect())
}

#[cfg(test)]
mod tests;
