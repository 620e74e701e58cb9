//! Anthropic's events: `message_start`, per block start, deltas and stop, `message_delta` with stop
//! reason and usage, `message_stop`; and the reply that they form.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::wire::stream::{StreamEvent, event, grow, pieces, text, with};

#[derive(Deserialize)]
struct StreamedReply<'a> {
    id: Value,
    model: Value,
    stop_reason: Value,
    stop_sequence: Value,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
    usage: Value,
    context_management: Option<Value>,
}

/// A call's arguments, unchanged.
#[derive(Deserialize)]
struct StreamedCall<'a> {
    #[serde(borrow)]
    input: &'a RawValue,
}

pub(super) fn events(whole: &[u8]) -> serde_json::Result<Vec<StreamEvent>> {
    let whole: StreamedReply<'_> = serde_json::from_slice(whole)?;
    // The end has iterations and output, the beginning has lifetimes of cache writes.
    let begin = without(&with(&whole.usage, "output_tokens", 0.into()), "iterations");
    let message = json!({
        "id": whole.id, "type": "message", "role": "assistant", "model": whole.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": begin,
    });
    let mut out =
        vec![event("message_start", json!({"message": message})), event("ping", json!({}))];
    for (index, raw) in whole.content.into_iter().enumerate() {
        block(&mut out, index, raw)?;
    }
    let mut end = json!({
        "delta": {"stop_reason": whole.stop_reason, "stop_sequence": whole.stop_sequence},
        "usage": without(&whole.usage, "cache_creation"),
    });
    if let Some(edits) = whole.context_management {
        end["context_management"] = edits;
    }
    out.push(event("message_delta", end));
    out.push(event("message_stop", json!({})));
    Ok(out)
}

fn without(of: &Value, key: &str) -> Value {
    let mut of = of.clone();
    if let Some(fields) = of.as_object_mut() {
        fields.remove(key);
    }
    of
}

fn block(out: &mut Vec<StreamEvent>, index: usize, raw: &RawValue) -> serde_json::Result<()> {
    let block: Value = serde_json::from_str(raw.get())?;
    let delta = |d: Value| event("content_block_delta", json!({"index": index, "delta": d}));
    let (empty, deltas): (Value, Vec<StreamEvent>) = match text(&block, "type") {
        "text" => {
            let said = pieces(text(&block, "text"))
                .into_iter()
                .map(|p| delta(json!({"type": "text_delta", "text": p})));
            (with(&block, "text", "".into()), said.collect())
        }
        "thinking" => {
            let thought = pieces(text(&block, "thinking"))
                .into_iter()
                .map(|p| delta(json!({"type": "thinking_delta", "thinking": p})));
            let signed = delta(json!({"type": "signature_delta", "signature": block["signature"]}));
            (
                with(&with(&block, "thinking", "".into()), "signature", "".into()),
                thought.chain([signed]).collect(),
            )
        }
        "tool_use" => {
            let call: StreamedCall<'_> = serde_json::from_str(raw.get())?;
            // The first piece is empty, like the provider's.
            let parts = std::iter::once("").chain(pieces(call.input.get()));
            let parts =
                parts.map(|p| delta(json!({"type": "input_json_delta", "partial_json": p})));
            (with(&block, "input", json!({})), parts.collect())
        }
        // A summary is one piece.
        "compaction" => {
            let whole = delta(json!({
                "type": "compaction_delta", "content": block["content"], "encrypted_content": block["encrypted_content"],
            }));
            (with(&block, "content", Value::Null), vec![whole])
        }
        _ => (block.clone(), Vec::new()),
    };
    out.push(event("content_block_start", json!({"index": index, "content_block": empty})));
    out.extend(deltas);
    out.push(event("content_block_stop", json!({"index": index})));
    Ok(())
}

/// An incomplete content block.
struct PartialBlock {
    fields: Map<String, Value>,
    /// A call's arguments, unchanged.
    input: String,
}

pub(super) fn assemble(events: &[String]) -> Option<Vec<u8>> {
    let mut message = Map::new();
    let mut blocks: BTreeMap<u64, PartialBlock> = BTreeMap::new();
    let mut ended = false;
    for event in events {
        let Ok(Value::Object(mut event)) = serde_json::from_str(event) else { continue };
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_string();
        let mut take = |key: &str| match event.remove(key) {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        match kind.as_str() {
            "message_start" => message = take("message"),
            "content_block_start" => {
                let fields = take("content_block");
                blocks.insert(index, PartialBlock { fields, input: String::new() });
            }
            "content_block_delta" => {
                if let Some(block) = blocks.get_mut(&index) {
                    block.add(take("delta"));
                }
            }
            "message_delta" => {
                ended = true;
                message.extend(take("delta"));
                let told = take("usage").into_iter().filter(|(_, v)| !v.is_null());
                if let Some(usage) =
                    message.entry("usage").or_insert_with(|| json!({})).as_object_mut()
                {
                    usage.extend(told);
                }
                let edits = take("context_management");
                if !edits.is_empty() {
                    message.insert("context_management".into(), edits.into());
                }
            }
            "error" => return None,
            _ => {}
        }
    }
    if !ended {
        return None;
    }
    let content = blocks.into_values().map(PartialBlock::raw).collect::<Option<Vec<_>>>()?;
    message.remove("content");
    let mut whole = raw_fields(message)?;
    whole.insert("content".into(), to_raw_value(&content).ok()?);
    serde_json::to_vec(&whole).ok()
}

impl PartialBlock {
    fn add(&mut self, delta: Map<String, Value>) {
        for (key, value) in delta {
            match key.as_str() {
                "type" => {}
                "partial_json" => self.input.push_str(value.as_str().unwrap_or_default()),
                // Each is an item of the list.
                "citation" => grow(&mut self.fields, "citations", json!([value])),
                _ => grow(&mut self.fields, &key, value),
            }
        }
    }

    fn raw(self) -> Option<BTreeMap<String, Box<RawValue>>> {
        let call = text(&Value::Object(self.fields.clone()), "type").ends_with("tool_use");
        let mut fields = raw_fields(self.fields)?;
        if call && !self.input.is_empty() {
            fields.insert("input".into(), RawValue::from_string(self.input).ok()?);
        }
        Some(fields)
    }
}

fn raw_fields(fields: Map<String, Value>) -> Option<BTreeMap<String, Box<RawValue>>> {
    fields.into_iter().map(|(k, v)| Some((k, to_raw_value(&v).ok()?))).collect()
}
