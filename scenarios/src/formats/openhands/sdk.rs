//! Events of the OpenHands SDK, and the folder of a conversation.

use std::path::Path;

use super::events::{self, EventReader, usages};
use crate::formats::prelude::*;

/// Name of the file with the state of a conversation. Next to it is the folder of its events.
pub(super) const STATE: &str = "base_state.json";
pub(super) const EVENTS: &str = "events";

/// Reads the conversation in a folder. Its events are in the order of their names.
pub(super) fn folder(folder: &Path) -> Result<Recording, InputError> {
    let mut out = Recording::default();
    let state = folder.join(STATE);
    let source = Source::at(&state);
    let state = Document::from_source(&source)?.value()?;
    let files = listed(&folder.join(EVENTS)).into_iter();
    let files = files.filter(|p| p.extension().is_some_and(|e| e == "json"));
    let mut events = Vec::new();
    for (number, path) in (1..).zip(files) {
        let source = Source::at(&path);
        let text = source.text()?;
        match escapes::from_str(text) {
            Ok(object) => events.push(RecordedLine { number, object }),
            Err(e) => {
                let (what, line) = (format!("not an event ({e})"), e.line().max(1));
                out.warnings.push(format!("{}:{line}: {what}; left out", source.name()));
                out.broken.push(number);
            }
        }
    }
    let text = |path: &str| state.pointer(path).and_then(Value::as_str).map(str::to_string);
    out.title = text("/title");
    let model = text("/agent/llm/model");
    let counted = state.get("stats").map(usages).unwrap_or_default();
    out.steps = events::steps(events, counted, model);
    Ok(out)
}

impl EventReader {
    pub(super) fn sdk_event(&mut self, kind: &str, o: &Map<String, Value>) -> Vec<StepKind> {
        let result = |pieces: Vec<MessagePart>, is_error: bool| {
            let call_id = string(o, "tool_call_id").unwrap_or_default();
            vec![StepKind::result(call_id, pieces, is_error)]
        };
        match kind {
            "SystemPromptEvent" => system(o),
            "MessageEvent" => vec![self.message(o)],
            "ActionEvent" => {
                let mut pieces = thoughts(o);
                pieces.extend(content(o.get("thought")));
                pieces.push(call(o));
                vec![self.sdk_reply(o, pieces)]
            }
            "ObservationEvent" => {
                let observation = object_in(o, "observation");
                let mut pieces = content_pieces(observation);
                pieces.extend(content(o.get("extended_content")));
                result(pieces, flag(observation, "is_error") || flag(observation, "error"))
            }
            "AgentErrorEvent" => result(content(o.get("error")), true),
            "UserRejectObservation" => result(content(o.get("rejection_reason")), true),
            "CondensationRequest" => {
                // The program requests the others when the context is full.
                self.asked = str_of(o, "reason").is_none_or(|r| r == "manual");
                vec![]
            }
            "Condensation" => self.condensation(o),
            // States, tokens and pauses, which are not sent to the model.
            kind if kind.ends_with("Event") || kind == "CondensationSummaryEvent" => vec![],
            kind => vec![StepKind::Unknown(format!("event {kind:?}"))],
        }
    }

    fn message(&mut self, o: &Map<String, Value>) -> StepKind {
        let message = object_in(o, "llm_message");
        let pieces = content_pieces(message);
        if str_of(o, "source") == Some("agent") && str_of(message, "role") != Some("user") {
            let mut all = thoughts(message);
            all.extend(pieces);
            return self.sdk_reply(o, all);
        }
        let mut what = StepKind::question(string(o, "id"), pieces);
        if let StepKind::Input(input) = &mut what {
            // Placed before the question, so that the message ends with the question.
            input.pieces.splice(0..0, added(content(o.get("extended_content"))));
        }
        what
    }

    fn sdk_reply(&mut self, o: &Map<String, Value>, pieces: Vec<MessagePart>) -> StepKind {
        let response = string(o, "llm_response_id").filter(|id| !id.is_empty());
        let response = response.unwrap_or_else(|| format!("reply {}", self.steps.len()));
        StepKind::Reply(self.part_of_reply(response, pieces))
    }
}

fn system(o: &Map<String, Value>) -> Vec<StepKind> {
    let texts = ["system_prompt", "dynamic_context"].map(|k| text_of(&content(o.get(k))));
    let texts = texts.into_iter().filter(|t| !t.is_empty()).map(StepKind::System);
    texts.chain(definitions(o.get("tools"))).collect()
}

/// Returns the content of a message or a result; images are lists of addresses here.
fn content_pieces(o: &Map<String, Value>) -> Vec<MessagePart> {
    let list = match o.get("content") {
        Some(Value::Array(list)) => list.as_slice(),
        // Tools of older versions store texts under their own names.
        other => {
            let text = other.or_else(|| o.get("output")).or_else(|| o.get("message"));
            return content(text);
        }
    };
    let piece = |block: &Value| match block.get("image_urls").and_then(Value::as_array) {
        Some(urls) => urls.iter().filter_map(Value::as_str).map(MessagePart::image).collect(),
        None => content(Some(block)),
    };
    list.iter().flat_map(piece).collect()
}

/// Returns the reasoning of the model: signed blocks, an item of the Responses API, or a text.
fn thoughts(o: &Map<String, Value>) -> Vec<MessagePart> {
    let signed = content(o.get("thinking_blocks"));
    if !signed.is_empty() {
        return signed;
    }
    let item = object_in(o, "responses_reasoning_item");
    let of_item = text_of(&content(item.get("summary")));
    let encrypted = str_of(item, "encrypted_content");
    let text = str_of(o, "reasoning_content").unwrap_or(&of_item);
    if text.is_empty() && encrypted.is_none() {
        return Vec::new();
    }
    vec![MessagePart::reasoning(text, encrypted)]
}

fn call(o: &Map<String, Value>) -> MessagePart {
    let written = object_in(o, "tool_call");
    // Older versions store the call in the form of the API.
    let all = [written, object_in(written, "function")];
    let arguments = all.iter().filter_map(|w| w.get("arguments")).find(|a| a.is_string());
    let arguments = arguments.or(o.get("action"));
    let name = str_of(o, "tool_name").or(str_of(written, "name")).unwrap_or("tool");
    let id = str_of(o, "tool_call_id").or(str_of(written, "id")).unwrap_or_default();
    MessagePart::call(id, name, arguments)
}
