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
//! - Lines `$rewindTo` take back a message and everything after it; their calls are paid all the
//!   same. `$set` may replace the messages. If replies are gone then, it is a compression, and a new
//!   message of the user in it is the summary. A `.json` chat lacks what was there before one.
//! - Notes of the program to the user (`info`, `warning`, `error`) are left out.

use std::collections::HashSet;

use crate::formats::prelude::*;
use ctxbench_formats::gemini_cli::{self, Chat};

pub(super) const FORMAT: Format = Format {
    title: "Gemini CLI",
    name: "gemini-cli",
    untold: "system prompt, tools and context of the program, requests for compressions and, in \
             `.json` chats, what was there before one, the messages of subagents, and counters of \
             requests that were joined into one message",
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
    let mut reader = ChatReader::default();
    if whole || head.objects().next().is_none() {
        for message in document(&Document::from_source(source)?, &mut out)? {
            reader.message(message, View::Both);
        }
    } else {
        reader.changes(of_lines(source, &mut out)?, &mut out);
    }
    sink(Ok(Recording { steps: reader.steps, ..out }))
}

fn document(document: &Document<'_>, out: &mut Recording) -> Result<Vec<RecordedLine>, InputError> {
    let members = document.members()?;
    out.title = members.text("summary");
    out.of_subagent = members.text("kind").is_some_and(|k| k == "subagent");
    Ok(document.objects(members.raw("messages"), out))
}

#[derive(Default)]
struct ChatReader {
    told: HashSet<String>,
    count: usize,
    steps: Vec<RecordingStep>,
}

impl ChatReader {
    fn changes(&mut self, lines: Vec<RecordedLine>, out: &mut Recording) {
        let chat = Chat::from_lines(lines);
        out.title = string(&chat.properties, "summary");
        out.of_subagent = str_of(&chat.properties, "kind") == Some("subagent");
        let (starts, mut states): (Vec<usize>, Vec<_>) = chat.replaced.into_iter().unzip();
        states.push(chat.messages);
        let is_reply = |m: &&RecordedLine| str_of(&m.object, "type") == Some("gemini");
        let mut replies = HashSet::new();
        for (start, state) in std::iter::once(0).chain(starts).zip(states) {
            let ids: HashSet<_> = state.iter().map(|m| string(&m.object, "id")).collect();
            let is_compressed = replies.iter().any(|id| !ids.contains(id));
            replies = state.iter().filter(is_reply).map(|m| string(&m.object, "id")).collect();
            if is_compressed {
                self.compression(start, state.first());
            }
            for message in state {
                // The replacement itself repeats the messages that stay.
                match message.number == start {
                    true => self.replacement(message, is_compressed),
                    false => self.message(message, View::Both),
                }
            }
        }
        chat.taken_back.into_iter().for_each(|m| self.message(m, View::Calls));
        self.steps.sort_by_key(|step| step.line);
    }

    fn compression(&mut self, line: usize, first: Option<&RecordedLine>) {
        let counted =
            |s: &RecordingStep| s.what.any_reply()?.counters.as_ref().ok().map(Counters::context);
        let pre_tokens = self.steps.iter().rev().find_map(counted);
        let what = RecordingCompaction { pre_tokens, ..RecordingCompaction::default() };
        let stamp = first.and_then(|m| string(&m.object, "timestamp"));
        self.steps.push(RecordingStep::new(line, stamp, StepKind::Compaction(what)));
    }

    /// Adds a message of a replacement, unless it is known or the program's own.
    fn replacement(&mut self, message: RecordedLine, is_compressed: bool) {
        let RecordedLine { number: line, object: o } = &message;
        let pieces = content(o.get("content"));
        if !is_compressed && !pieces.is_empty() {
            return self.message(message, View::Both);
        }
        if is_compressed && str_of(o, "type") == Some("user") && self.is_new(o) {
            let step = RecordingStep::new(*line, string(o, "timestamp"), StepKind::Summary(pieces));
            self.steps.push(step);
        }
    }

    fn is_new(&mut self, o: &Map<String, Value>) -> bool {
        string(o, "id").is_none_or(|id| self.told.insert(id))
    }

    fn message(&mut self, message: RecordedLine, view: View) {
        let RecordedLine { number: line, object: o } = message;
        if !self.is_new(&o) {
            return;
        }
        self.count += 1;
        let n = self.count;
        let stamp = string(&o, "timestamp");
        let id = string(&o, "id");
        let what = match str_of(&o, "type") {
            Some("user") => StepKind::question(id, content(o.get("content"))),
            Some("gemini") => StepKind::Reply(reply(n, id, &o)),
            Some("info" | "error" | "warning") => return,
            kind => {
                StepKind::Unknown(format!("message of the type {:?}", kind.unwrap_or_default()))
            }
        };
        let step = RecordingStep { view, ..RecordingStep::new(line, stamp, what) };
        self.steps.push(step.clone());
        for (i, call) in objects(&o, "toolCalls").enumerate() {
            let Some(pieces) = result(call) else { continue };
            let stamp = string(call, "timestamp").or(step.stamp.clone());
            let is_error = matches!(str_of(call, "status"), Some("error" | "cancelled"));
            let what = StepKind::result(call_id(call, n, i), pieces, is_error);
            self.steps.push(RecordingStep { stamp, what, ..step.clone() });
        }
    }
}

fn reply(n: usize, id: Option<String>, o: &Map<String, Value>) -> RecordingReply {
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
    let time = str_of(o, "timestamp").unwrap_or_default();
    let call = id.as_ref().map(|id| format!("{id} {time}"));
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
