//! OpenAI Chat Completions: streams of role, pieces of thinking, text and calls, finish reason, optional
//! usage, and `[DONE]`.

use serde_json::{Value, json};

use crate::wire::stream::{StreamEvent, pieces, text};

pub(super) fn events(whole: &[u8], usage: bool) -> serde_json::Result<Vec<StreamEvent>> {
    let whole: Value = serde_json::from_slice(whole)?;
    let choice = &whole["choices"][0];
    let message = &choice["message"];
    let chunk = |choices: Value, told: &Value| {
        let mut data = json!({
            "id": whole["id"], "object": "chat.completion.chunk", "created": whole["created"], "model": whole["model"], "choices": choices,
        });
        if usage {
            data["usage"] = told.clone();
        }
        StreamEvent { name: None, data: data.to_string() }
    };
    let delta = |d: Value, finish: &Value| {
        chunk(json!([{"index": 0, "delta": d, "finish_reason": finish}]), &Value::Null)
    };
    let going = |d: Value| delta(d, &Value::Null);

    let mut out = vec![going(
        json!({"role": "assistant", "content": if message["content"].is_null() { Value::Null } else { "".into() }}),
    )];
    out.extend(
        pieces(text(message, "reasoning_content"))
            .into_iter()
            .map(|p| going(json!({"reasoning_content": p}))),
    );
    if !message["reasoning_details"].is_null() {
        out.push(going(json!({"reasoning_details": message["reasoning_details"]})));
    }
    out.extend(pieces(text(message, "content")).into_iter().map(|p| going(json!({"content": p}))));
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let function = &call["function"];
        let begin = json!({"index": index, "id": call["id"], "type": "function", "function": {"name": function["name"], "arguments": ""}});
        out.push(going(json!({"tool_calls": [begin]})));
        let rest = pieces(text(function, "arguments"));
        out.extend(rest.into_iter().map(|p| {
            going(json!({"tool_calls": [{"index": index, "function": {"arguments": p}}]}))
        }));
    }
    out.push(delta(json!({}), &choice["finish_reason"]));
    if usage {
        out.push(chunk(json!([]), &whole["usage"]));
    }
    out.push(StreamEvent { name: None, data: "[DONE]".into() });
    Ok(out)
}
