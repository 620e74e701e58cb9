//! OpenAI Chat Completions: streams of role, pieces of thinking, text and calls, finish reason, optional
//! usage, and `[DONE]`; and the reply that they form.

use serde_json::{Map, Value, json};

use crate::wire::stream::{StreamEvent, grow, pieces, text};

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

pub(super) fn assemble(events: &[String]) -> Option<Vec<u8>> {
    let mut whole = Map::new();
    let mut message = Map::new();
    let mut calls: Vec<Map<String, Value>> = Vec::new();
    let mut finish = Value::Null;
    message.insert("role".into(), "assistant".into());
    for chunk in events {
        let Ok(Value::Object(mut chunk)) = serde_json::from_str(chunk) else { continue };
        if chunk.contains_key("error") {
            return None;
        }
        let choices = chunk.remove("choices");
        for key in ["id", "created", "model", "usage", "service_tier", "system_fingerprint"] {
            if let Some(told) = chunk.remove(key).filter(|v| !v.is_null()) {
                whole.insert(key.into(), told);
            }
        }
        let Some(Value::Array(choices)) = choices else { continue };
        // Agents request one choice.
        let first = |c: &Value| c["index"].as_u64().unwrap_or(0) == 0;
        for mut choice in choices.into_iter().filter(first) {
            if !choice["finish_reason"].is_null() {
                finish = choice["finish_reason"].take();
            }
            let Value::Object(delta) = choice["delta"].take() else { continue };
            for (key, value) in delta {
                match key.as_str() {
                    "role" => {}
                    "tool_calls" => call_pieces(&mut calls, value),
                    _ => grow(&mut message, &key, value),
                }
            }
        }
    }
    if finish.is_null() {
        return None;
    }
    message.entry("content").or_insert(Value::Null);
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into_iter().collect());
    }
    whole.insert("object".into(), "chat.completion".into());
    let choice = json!({"index": 0, "finish_reason": finish, "message": message});
    whole.insert("choices".into(), json!([choice]));
    serde_json::to_vec(&whole).ok()
}

/// Maximum number of calls of one reply.
const MAX_CALLS: usize = 1_000;

/// Appends pieces of calls: name and id come once, arguments in pieces.
fn call_pieces(calls: &mut Vec<Map<String, Value>>, pieces: Value) {
    let Value::Array(pieces) = pieces else { return };
    for piece in pieces {
        let Value::Object(mut piece) = piece else { continue };
        let told = piece.remove("index").and_then(|i| usize::try_from(i.as_u64()?).ok());
        let at = told.unwrap_or(calls.len());
        if at >= MAX_CALLS {
            continue;
        }
        if at >= calls.len() {
            calls.resize_with(at + 1, Map::new);
        }
        let Some(call) = calls.get_mut(at) else { continue };
        let function = piece.remove("function");
        call.extend(piece.into_iter().filter(|(_, v)| !v.is_null()));
        let Some(Value::Object(mut function)) = function else { continue };
        let begun = call.entry("function").or_insert_with(|| json!({}));
        let Some(begun) = begun.as_object_mut() else { continue };
        if let Some(arguments) = function.remove("arguments") {
            grow(begun, "arguments", arguments);
        }
        begun.extend(function.into_iter().filter(|(_, v)| !v.is_null()));
        begun.entry("arguments").or_insert_with(|| "".into());
    }
}
