//! Chats of Gemini CLI (docs/sources/gemini-cli.md §6): a message or a change of the messages on each
//! line, and parts in the form of Google's API.

use std::collections::HashMap;

use ctxbench_core::content::{Part, ToolCall};
use serde_json::{Map, Value, json};

use super::lines::ObjectLine;
use super::{argument_text, arguments, image, inline, object_of, reasoning, str_of, text_of};

/// Chat that results from the lines of a file.
#[derive(Clone, Debug, Default)]
pub struct Chat {
    pub messages: Vec<ObjectLine>,
    /// Properties of the session, the newest of each.
    pub properties: Map<String, Value>,
    /// Lines that replaced all messages, as a compression does, each with the messages before it.
    pub replaced: Vec<(usize, Vec<ObjectLine>)>,
    /// Messages that a rewind took back.
    pub taken_back: Vec<ObjectLine>,
    /// Position of each id, until a rewind or a replacement removes it.
    places: HashMap<String, usize>,
}

impl Chat {
    /// Follows the lines: `$rewindTo` removes a message and everything after it, and `$set` may
    /// replace the messages. A message that grows is written again completely.
    pub fn from_lines(lines: impl IntoIterator<Item = ObjectLine>) -> Chat {
        let mut out = Chat::default();
        lines.into_iter().for_each(|line| out.line(line));
        out
    }

    fn line(&mut self, line: ObjectLine) {
        let ObjectLine { number, mut object } = line;
        if let Some(id) = object.get("$rewindTo") {
            let from = id.as_str().and_then(|id| self.position(id));
            return self
                .taken_back
                .extend(self.messages.drain(from.unwrap_or(self.messages.len())..));
        }
        let set = match object.remove("$set") {
            Some(Value::Object(set)) => set,
            _ if object.contains_key("sessionId") => object,
            _ => return self.message(number, object),
        };
        for (key, value) in set {
            match value {
                Value::Array(list) if key == "messages" => {
                    let before = std::mem::take(&mut self.messages);
                    if !before.is_empty() {
                        self.replaced.push((number, before));
                    }
                    for message in list {
                        if let Value::Object(message) = message {
                            self.message(number, message);
                        }
                    }
                }
                value => drop(self.properties.insert(key, value)),
            }
        }
    }

    fn message(&mut self, number: usize, object: Map<String, Value>) {
        let id = str_of(&object, "id").map(str::to_string);
        match id.as_deref().and_then(|id| self.position(id)) {
            Some(known) => self.messages[known].object = object,
            None => {
                self.places.extend(id.map(|id| (id, self.messages.len())));
                self.messages.push(ObjectLine { number, object });
            }
        }
    }

    fn position(&self, id: &str) -> Option<usize> {
        let at = *self.places.get(id)?;
        self.messages.get(at).filter(|m| str_of(&m.object, "id") == Some(id)).map(|_| at)
    }
}

/// Converts a part of the API. Returns `None` for unknown parts.
pub fn part(p: &Map<String, Value>) -> Option<Part> {
    if let Some(call) = object_of(p, "functionCall") {
        let raw = p.get("raw").filter(|raw| raw.is_string());
        let (id, name) = (text_of(call, "id"), text_of(call, "name"));
        let arguments = argument_text(raw, call.get("args"));
        return Some(Part::Call(ToolCall::new(id, name, arguments)));
    }
    if let Some(result) = object_of(p, "functionResponse") {
        let response = result.get("response");
        let told = ["output", "error"].iter().find_map(|key| response?.get(*key));
        let output = match told.or(response) {
            Some(Value::String(text)) => text.as_str().into(),
            Some(other) => other.to_string().into(),
            None => "".into(),
        };
        let is_error = response.is_some_and(|r| r.get("error").is_some());
        let (id, name) = (text_of(result, "id").into(), text_of(result, "name").into());
        return Some(Part::Result { id, name, output, is_error });
    }
    let name = str_of(p, "name");
    if let Some(data) = object_of(p, "inlineData") {
        let media_type = str_of(data, "mimeType").unwrap_or("image/*");
        let url = format!("data:{media_type};base64,{}", text_of(data, "data"));
        return Some(image(media_type, url, name));
    }
    if let Some(file) = object_of(p, "fileData") {
        return Some(image(text_of(file, "mimeType"), text_of(file, "fileUri").into(), name));
    }
    let text = str_of(p, "text")?;
    let is = |key: &str| p.get(key).is_some_and(|v| *v == true);
    Some(match () {
        () if is("thought") => reasoning(text, str_of(p, "thoughtSignature")),
        () if is("snapshot") => Part::Summary(text.into()),
        () => Part::Text(text.into()),
    })
}

/// Converts a part to the API's form. What the API lacks is in the members `snapshot`, `raw` and
/// `name`.
pub fn block(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(t) => json!({"text": **t}),
        Part::Summary(t) => json!({"text": **t, "snapshot": true}),
        Part::Reasoning { text, encrypted } => json!({
            "text": **text, "thought": true, "thoughtSignature": encrypted.as_deref(),
        }),
        Part::Call(ToolCall { id, name, arguments: text }) => {
            let (args, raw) = arguments(text, json!({}));
            json!({"functionCall": {"id": **id, "name": **name, "args": args}, "raw": raw})
        }
        Part::Result { id, name, output, is_error } => {
            let key = if *is_error { "error" } else { "output" };
            json!({"functionResponse": {"id": **id, "name": **name, "response": {key: **output}}})
        }
        Part::Image(m) => match inline(&m.url) {
            Some(data) => json!({
                "inlineData": {"mimeType": m.media_type, "data": data}, "name": m.name,
            }),
            None => json!({
                "fileData": {"mimeType": m.media_type, "fileUri": m.url}, "name": m.name,
            }),
        },
        _ => return None,
    })
}
