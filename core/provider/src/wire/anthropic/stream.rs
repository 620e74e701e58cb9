//! Anthropic's events: `message_start`, per block start, deltas and stop, `message_delta` with stop
//! reason and usage, `message_stop`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::wire::stream::{StreamEvent, event, pieces, text, with};

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
