//! Files that contain conversations.

use serde_json::value::RawValue;

use super::super::json;
use super::reader::is_message;
use super::{MessageApi, is_answer, starts_with_message};
use crate::formats::prelude::*;
use ctxbench_provider::wire::{self, event_data};

/// Members with a list of messages.
const LISTS: &[&str] = &["messages", "input", "history", "conversation", "conversations", "items"];

/// Members that wrap a request.
const REQUESTS: &[&str] = &["request", "body", "data", "kwargs", "inputs"];

/// Maximum number of members around a conversation.
const DEEPEST: usize = 3;

pub(super) fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let head = source.head()?;
    let is_array = head.text.trim_start().starts_with('[') && !of_messages(&head.text);
    if is_array || head.is_document() {
        let document = Document::from_source(source)?;
        if !is_array {
            return sink(read_document(&document, None));
        }
        for (n, one) in (1..).zip(document.items(Some(document.raw()?))) {
            sink(read_document(&one, Some(format!("{}-{n}", source.stem()))))?;
        }
        return Ok(());
    }
    if head.objects().next().is_some_and(is_message) {
        return one_message_per_line(source, sink);
    }
    lines::rows(source, &mut |document, id| sink(read_document(document, id)))
}

/// Returns whether the array at the beginning of a text is a single conversation.
fn of_messages(text: &str) -> bool {
    match json::beginning(text) {
        Value::Array(list) => list.is_empty() || starts_with_message(&list),
        _ => false,
    }
}

fn one_message_per_line(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let mut reader = MessageReader::default();
    for line in of_lines(source, &mut reader.out)? {
        reader.item(line.number, &line.object);
    }
    sink(Ok(reader.out))
}

/// Reads a document as one conversation. `id` is used if the document has none.
fn read_document(document: &Document<'_>, id: Option<String>) -> Result<Recording, InputError> {
    let mut reader = conversation(document)?;
    let own = reader.out.id.take().filter(|_| id.is_some());
    Ok(Recording { id: own.or(id), ..reader.out })
}

pub(super) fn conversation(document: &Document<'_>) -> Result<MessageReader, InputError> {
    let mut reader = MessageReader::default();
    if document.text.trim_start().starts_with('[') {
        reader.items(document, Some(document.raw()?));
    } else {
        object(document, &mut reader, 0)?;
    }
    Ok(reader)
}

fn object(
    document: &Document<'_>,
    reader: &mut MessageReader,
    depth: usize,
) -> Result<(), InputError> {
    let members = document.members()?;
    let text = |key: &str| members.text(key);
    let ids = ["id", "conversation_id", "session_id", "thread_id", "instance_id", "custom_id"];
    reader.out.id = reader.out.id.take().or_else(|| ids.iter().find_map(|k| text(k)));
    reader.out.title = reader.out.title.take().or_else(|| text("title"));
    reader.model = text("model").or(reader.model.take());
    let line = document.line;
    for key in ["system", "instructions", "system_prompt"] {
        let words = text_of(&content(Some(&members.value(key))));
        if !words.is_empty() {
            reader.push(line, None, StepKind::System(words));
        }
    }
    let tools = ["tools", "functions"].iter().find(|k| members.raw(k).is_some());
    if let Some(tools) = tools.and_then(|k| definitions(Some(&members.value(k)))) {
        reader.push(line, None, tools);
    }
    if depth < DEEPEST {
        let inner = REQUESTS.iter().filter_map(|k| members.raw(k));
        for raw in inner.filter(|raw| starts(raw, '{')) {
            object(&document.part(raw), reader, depth + 1)?;
        }
    }
    for key in LISTS {
        match members.raw(key) {
            Some(raw) if starts(raw, '[') => reader.items(document, Some(raw)),
            Some(_) if *key == "input" => {
                if let Some(words) = text("input") {
                    reader.add_text(line, &words);
                    let of_api = ["model", "output"].iter().any(|k| members.raw(k).is_some());
                    reader.api = reader.api.max(of_api.then_some(MessageApi::Responses));
                }
            }
            _ => continue,
        }
        break;
    }
    answer(document, reader, &members);
    if depth < DEEPEST {
        for raw in ["response", "completion"].iter().filter_map(|k| members.raw(k)) {
            match (starts(raw, '{'), text("response")) {
                (true, _) => object(&document.part(raw), reader, depth + 1)?,
                (false, Some(stream)) if is_stream(&stream) => match assembled(&stream) {
                    Some(text) => {
                        object(&Document { text: &text, ..*document }, reader, depth + 1)?;
                    }
                    None => {
                        let torn = "a stored stream that breaks off".to_string();
                        reader.out.leave_out(document.file, line, torn);
                    }
                },
                (false, Some(words)) => {
                    let said = json!({"role": "assistant", "content": words});
                    said.as_object().into_iter().for_each(|m| reader.item(line, m));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Returns whether a text is a stream of events, as a server sends it.
fn is_stream(text: &str) -> bool {
    ["event:", "data:"].iter().any(|name| text.trim_start().starts_with(name))
}

/// Returns the answer that a stream of any wire tells.
fn assembled(stream: &str) -> Option<String> {
    let events = event_data(&format!("{stream}\n\n"));
    let bytes = wire::ALL.iter().find_map(|wire| (wire.assemble)(&events))?;
    String::from_utf8(bytes).ok()
}

/// Adds the answer of the model with its counters.
fn answer(document: &Document<'_>, reader: &mut MessageReader, members: &Members<'_>) {
    let message = if let Value::Array(mut choices) = members.value("choices") {
        choices.first_mut().and_then(|c| c.get_mut("message")).map(Value::take)
    } else if let list @ Value::Array(_) = members.value("output") {
        Some(json!({"object": "response", "output": list}))
    } else if members.text("role").is_some_and(|r| r == "assistant") {
        document.value().ok()
    } else {
        None
    };
    let Some(Value::Object(mut message)) = message else { return };
    for key in ["usage", "model", "id", "service_tier"] {
        if !message.contains_key(key) && members.raw(key).is_some() {
            message.insert(key.into(), members.value(key));
        }
    }
    if reader.api.is_some() && is_answer(&message) {
        reader.api = Some(MessageApi::Anthropic);
    }
    reader.item(document.line, &message);
}

fn starts(raw: &RawValue, with: char) -> bool {
    raw.get().trim_start().starts_with(with)
}
