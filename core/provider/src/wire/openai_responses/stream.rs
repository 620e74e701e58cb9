//! OpenAI Responses: events for the start of the response, each item, and the completed response; and the
//! reply in the last event.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::wire::stream::{StreamEvent, event, pieces, text, with};

/// Collects events and numbers them.
#[derive(Default)]
struct Out(Vec<StreamEvent>);

impl Out {
    fn push(&mut self, kind: &'static str, mut data: Value) {
        data["sequence_number"] = self.0.len().into();
        self.0.push(event(kind, data));
    }
}

pub(super) fn events(whole: &[u8]) -> serde_json::Result<Vec<StreamEvent>> {
    let whole: Value = serde_json::from_slice(whole)?;
    let mut out = Out::default();
    let mut begun = with(&with(&whole, "status", "in_progress".into()), "output", json!([]));
    begun["usage"] = Value::Null;
    begun["incomplete_details"] = Value::Null;
    out.push("response.created", json!({"response": begun}));
    out.push("response.in_progress", json!({"response": begun}));
    for (index, item) in whole["output"].as_array().into_iter().flatten().enumerate() {
        self::item(&mut out, index, item);
    }
    let end =
        if whole["status"] == "incomplete" { "response.incomplete" } else { "response.completed" };
    out.push(end, json!({"response": whole}));
    Ok(out.0)
}

/// Events of a part of a message: begin, piece, text, end.
const CONTENT: [&str; 4] = [
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
];

/// Events of a part of a reasoning's summary.
const SUMMARY: [&str; 4] = [
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
];

fn item(out: &mut Out, index: usize, item: &Value) {
    let at = |more: Value| {
        let mut data = json!({"output_index": index, "item_id": item["id"]});
        if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
            data.extend(more);
        }
        data
    };
    let added = |out: &mut Out, empty: Value| {
        out.push("response.output_item.added", json!({"output_index": index, "item": empty}))
    };
    let begun = with(item, "status", "in_progress".into());
    match text(item, "type") {
        kind @ ("message" | "reasoning") => {
            let is_text = kind == "message";
            let (list, index, names) = if is_text {
                ("content", "content_index", &CONTENT)
            } else {
                ("summary", "summary_index", &SUMMARY)
            };
            let shown = if is_text { &begun } else { item };
            added(out, with(shown, list, json!([])));
            for (i, part) in item[list].as_array().into_iter().flatten().enumerate() {
                let mut send = |name, key: &str, value: Value| {
                    let mut data = at(json!({key: value, index: i}));
                    if is_text && key != "part" {
                        data["logprobs"] = json!([]);
                    }
                    out.push(name, data);
                };
                send(names[0], "part", with(part, "text", "".into()));
                pieces(text(part, "text"))
                    .iter()
                    .for_each(|p| send(names[1], "delta", (*p).into()));
                send(names[2], "text", part["text"].clone());
                send(names[3], "part", part.clone());
            }
        }
        "function_call" => {
            added(out, with(&begun, "arguments", "".into()));
            for p in pieces(text(item, "arguments")) {
                out.push("response.function_call_arguments.delta", at(json!({"delta": p})));
            }
            let done = json!({"name": item["name"], "arguments": item["arguments"]});
            out.push("response.function_call_arguments.done", at(done));
        }
        _ => added(out, item.clone()),
    }
    out.push("response.output_item.done", json!({"output_index": index, "item": item}));
}

#[derive(Deserialize)]
struct ResponseEvent<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(default)]
    output_index: u64,
}

pub(super) fn assemble(events: &[String]) -> Option<Vec<u8>> {
    let mut items: BTreeMap<u64, &RawValue> = BTreeMap::new();
    let mut end = None;
    for event in events {
        let Ok(event) = serde_json::from_str::<ResponseEvent<'_>>(event) else { continue };
        match &*event.kind {
            "response.output_item.done" => {
                items.extend(event.item.map(|item| (event.output_index, item)));
            }
            "response.completed" | "response.incomplete" => end = event.response,
            _ => {}
        }
    }
    let end = end?.get();
    let mut whole: BTreeMap<&str, Box<RawValue>> = serde_json::from_str(end).ok()?;
    // Some servers omit items from the last event.
    let told = whole.get("output").is_some_and(|o| !matches!(o.get(), "[]" | "null"));
    if told || items.is_empty() {
        return Some(end.as_bytes().to_vec());
    }
    let items: Vec<&RawValue> = items.into_values().collect();
    whole.insert("output", to_raw_value(&items).ok()?);
    serde_json::to_vec(&whole).ok()
}
