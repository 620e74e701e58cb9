//! Conversion of a sample to a recording.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::Deserialize;

use super::bare;
use super::messages::{attached, chat};
use crate::formats::prelude::*;

/// Members of an event that are read. Other members may be as large as the whole conversation.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SampleEvent {
    event: Value,
    span_id: Value,
    timestamp: Value,
    completed: Value,
    output: Value,
    tools: Value,
    cache: Value,
    model: Value,
    tokens_before: Value,
    tokens_after: Value,
}

/// A compaction with the position of the reply that follows it.
struct SampleCompaction {
    what: RecordingCompaction,
    stamp: Option<String>,
    before: usize,
}

pub(super) fn read(document: &Document<'_>, model: Option<&str>) -> Result<Recording, InputError> {
    let members = document.members()?;
    let mut reader = MessageReader::default();
    reader.out.id = id(&members.value("id"), &members.value("epoch"));
    reader.model = model.map(str::to_string);
    let attachments = match members.value("attachments") {
        Value::Object(all) => all,
        _ => Map::new(),
    };
    let mut messages = document.objects(members.raw("messages"), &mut reader.out);
    for message in &mut messages {
        if let Value::Object(whole) =
            attached(std::mem::take(&mut message.object).into(), &attachments)
        {
            message.object = whole;
        }
    }
    let events = Events::new(&document.items(members.raw("events")), &messages);
    if messages.is_empty() {
        push_input(&members.value("input"), document.line, &mut reader);
    }
    let started = members.value("started_at");
    let started = started.as_str().and_then(time::normal).or(events.started.clone());
    if let Some(tools) = definitions(events.tools.as_ref()) {
        reader.push(document.line, None, tools);
    }
    let mut compactions = VecDeque::from(events.compactions);
    let mut first = true;
    for (at, RecordedLine { number: line, object }) in messages.iter().enumerate() {
        let (line, role) = (*line, str_of(object, "role"));
        let is_summary = flag(object_in(object, "metadata"), "summary");
        let due = |c: &SampleCompaction| c.before == at || is_summary;
        while let Some(SampleCompaction { what, stamp, .. }) = compactions.pop_front_if(|c| due(c))
        {
            reader.push(line, stamp, StepKind::Compaction(what));
            if is_summary {
                break;
            }
        }
        let mut message = chat(object);
        if is_summary {
            reader.push(line, None, StepKind::Summary(content(message.get("content"))));
            continue;
        }
        if role == Some("user") && std::mem::take(&mut first) {
            message.extend(started.clone().map(|s| ("timestamp".to_string(), s.into())));
        }
        if role == Some("assistant") {
            let call = str_of(object, "id").and_then(|id| events.calls.get(id));
            let model = string(object, "model").or_else(|| call.and_then(SampleEvent::model));
            message.extend(model.map(|m| ("model".to_string(), m.into())));
            let stamp = call.and_then(SampleEvent::stamp);
            message.extend(stamp.map(|s| ("timestamp".to_string(), s.into())));
            reader.counters = call.and_then(|e| e.counters().ok());
        }
        reader.item(line, &message);
    }
    for SampleCompaction { what, stamp, .. } in compactions {
        reader.push(document.line, stamp, StepKind::Compaction(what));
    }
    if events.others > 0 {
        let n = events.others;
        reader.out.left_out.push(format!(
            "{}: calls of the model that are no replies of the sample's conversation (of scorers, of \
             other agents, attempts that were given up), left out: {n}",
            document.file
        ));
    }
    Ok(reader.out)
}

fn id(id: &Value, epoch: &Value) -> Option<String> {
    let id = match id {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(match epoch.as_u64() {
        Some(epoch) => format!("{id}-epoch-{epoch}"),
        None => id,
    })
}

/// Adds the question of a sample without an answer.
fn push_input(input: &Value, line: usize, reader: &mut MessageReader) {
    match input {
        Value::String(text) => reader.add_text(line, text),
        Value::Array(list) => {
            list.iter().filter_map(Value::as_object).for_each(|m| reader.item(line, &chat(m)));
        }
        _ => {}
    }
}

/// Properties of messages, read from the events.
#[derive(Default)]
struct Events {
    /// Calls of the model, by the id of the reply.
    calls: HashMap<String, SampleEvent>,
    compactions: Vec<SampleCompaction>,
    tools: Option<Value>,
    /// Time of the first call.
    started: Option<String>,
    /// Number of calls without a message in the conversation.
    others: usize,
}

impl Events {
    fn new(raw: &[Document<'_>], messages: &[RecordedLine]) -> Events {
        let ids = (0..).zip(messages).filter_map(|(n, m)| Some((str_of(&m.object, "id")?, n)));
        let places: HashMap<&str, usize> = ids.collect();
        let mut out = Events::default();
        // The newest call that is not a reply, and compactions without their reply so far.
        let mut aside: Option<SampleEvent> = None;
        let mut waiting: Vec<SampleCompaction> = Vec::new();
        let mut known = HashSet::new();
        for event in raw.iter().filter_map(|r| escapes::from_str::<SampleEvent>(r.text).ok()) {
            match event.event.as_str() {
                Some("model") => {
                    let id = event.message().and_then(|m| string(m, "id"));
                    let place = id.as_deref().and_then(|id| places.get(id));
                    let Some(place) = place.filter(|p| known.insert(**p)) else {
                        out.others += usize::from(aside.replace(event).is_some());
                        continue;
                    };
                    out.others += usize::from(aside.take().is_some());
                    out.started = out.started.or_else(|| event.began());
                    out.tools = out.tools.or_else(|| Some(event.tools.clone()));
                    waiting.iter_mut().for_each(|c| c.before = *place);
                    out.compactions.append(&mut waiting);
                    out.calls.insert(id.unwrap_or_default(), event);
                }
                Some("compaction") => {
                    let wrote = aside.take_if(|c| c.span_id == event.span_id);
                    let what = RecordingCompaction {
                        pre_tokens: event.tokens_before.as_u64(),
                        post_tokens: event.tokens_after.as_u64(),
                        reply: wrote.map(|c| Box::new(c.reply())),
                        ..RecordingCompaction::default()
                    };
                    waiting.push(SampleCompaction {
                        what,
                        stamp: event.began(),
                        before: messages.len(),
                    });
                }
                _ => {}
            }
        }
        out.others += usize::from(aside.is_some());
        out.compactions.append(&mut waiting);
        out
    }
}

impl SampleEvent {
    fn message(&self) -> Option<&Map<String, Value>> {
        self.output.pointer("/choices/0/message")?.as_object()
    }

    fn model(&self) -> Option<String> {
        let named = self.output.get("model").and_then(Value::as_str).filter(|m| !m.is_empty());
        named.or(self.model.as_str()).map(|m| bare(m).to_string())
    }

    fn began(&self) -> Option<String> {
        self.timestamp.as_str().and_then(time::normal)
    }

    fn stamp(&self) -> Option<String> {
        self.completed.as_str().and_then(time::normal).or_else(|| self.began())
    }

    fn counters(&self) -> Result<Counters, String> {
        if self.cache == "read" {
            return Err("a reply out of inspect_ai's own cache".into());
        }
        let usage = self.output.get("usage").and_then(Value::as_object);
        let usage = usage.ok_or("a reply without counters")?;
        let names = [
            "input_tokens",
            "input_tokens_cache_read",
            "input_tokens_cache_write",
            "output_tokens",
        ];
        let counters = Counters::read(usage, names);
        let total = usage.get("total_tokens").and_then(tokens);
        let of_whole = total == counters.input.checked_add(counters.output);
        Ok(if of_whole { counters.of_whole_prompt() } else { counters })
    }

    /// Returns the reply without its position in the conversation.
    fn reply(&self) -> RecordingReply {
        let pieces = self.message().map(|m| content(chat(m).get("content"))).unwrap_or_default();
        let (model, counters) = (self.model(), self.counters());
        RecordingReply { model, counters, ..RecordingReply::new(None, pieces) }
    }
}
