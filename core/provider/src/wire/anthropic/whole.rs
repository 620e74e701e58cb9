//! Assembles a reply from Anthropic's events.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::wire::stream::{grow, text};

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
