//! Items of the Responses API for tools that run at the provider, with call and result in one item.
//! Field names follow the types of OpenAI's own packages (`openai/types/responses`).

use crate::formats::prelude::*;

pub(super) const KINDS: &[&str] = &[
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
];

/// Returns the call and its result. An item without a result becomes a text with its question,
/// since every call needs a result.
pub(super) fn pieces(kind: &str, o: &Map<String, Value>, unnamed: &str) -> Vec<MessagePart> {
    let name = str_of(o, "name").unwrap_or(kind.trim_end_matches("_call"));
    let error = o.get("error").filter(|e| !e.is_null());
    let mut found: Vec<MessagePart> =
        RETURNED.iter().flat_map(|path| returned(within(o, path))).collect();
    found.extend(error.map(|e| MessagePart::text(&words(e))));
    if found.is_empty() && !is_empty_answer(o) {
        let asked = question(o).map(|a| if a.is_object() { asked_words(&a) } else { words(&a) });
        let line = format!("[{name}: {}]", asked.unwrap_or_default());
        return vec![MessagePart::Unanswered { kind: kind.into(), asked: Part::Text(line.into()) }];
    }
    let id = string(o, "id").or(string(o, "call_id")).filter(|id| !id.is_empty());
    let id = id.unwrap_or_else(|| unnamed.to_string());
    let is_error = error.is_some() || str_of(o, "status") == Some("failed");
    vec![
        MessagePart::call(&id, name, question(o).as_ref()),
        MessagePart::Result { call_id: id, pieces: found, is_error },
    ]
}

/// Members of an item with the result of its tool.
const RETURNED: &[&[&str]] = &[&["outputs"], &["results"], &["output"], &["action", "sources"]];

const QUESTION_MEMBERS: &[&str] = &["code", "queries"];

fn question(o: &Map<String, Value>) -> Option<Value> {
    if let Some(arguments) = o.get("arguments").filter(|a| !a.is_null()) {
        return Some(arguments.clone());
    }
    if let Some(action) = object_of(o, "action") {
        let mut action = action.clone();
        action.remove("sources");
        return Some(action.into());
    }
    let member = |k: &&str| Some((k.to_string(), o.get(*k).filter(|v| !v.is_null())?.clone()));
    let all: Map<String, Value> = QUESTION_MEMBERS.iter().filter_map(member).collect();
    (!all.is_empty()).then(|| all.into())
}

/// Returns the texts of a question without its kind.
fn asked_words(asked: &Value) -> String {
    let members = asked.as_object().into_iter().flatten().filter(|(key, _)| *key != "type");
    let mut out: Vec<String> = Vec::new();
    for text in members.flat_map(|(_, v)| match v {
        Value::Array(list) => list.iter().map(words).collect(),
        other => vec![words(other)],
    }) {
        // Newer items repeat a single query in a list.
        if !out.contains(&text) {
            out.push(text);
        }
    }
    out.join(", ")
}

fn is_empty_answer(o: &Map<String, Value>) -> bool {
    let is_empty = |v: &Value| v.as_array().is_some_and(Vec::is_empty) || v.as_str() == Some("");
    RETURNED.iter().filter_map(|path| within(o, path)).any(is_empty)
}

fn returned(value: Option<&Value>) -> Vec<MessagePart> {
    match value {
        Some(Value::Array(list)) => list.iter().flat_map(|one| returned(Some(one))).collect(),
        Some(Value::Object(o)) => vec![match (str_of(o, "logs"), str_of(o, "url")) {
            (Some(logs), _) => MessagePart::text(logs),
            (None, Some(url)) if str_of(o, "type") == Some("image") => MessagePart::image(url),
            _ => MessagePart::text(&Value::from(o.clone()).to_string()),
        }],
        Some(Value::String(text)) if !text.is_empty() => vec![MessagePart::text(text)],
        _ => Vec::new(),
    }
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// Returns the value at a path of member names.
pub(super) fn within<'a>(o: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (last, way) = path.split_last()?;
    let o = way.iter().try_fold(o, |at, key| at.get(*key)?.as_object())?;
    o.get(*last).filter(|v| !v.is_null())
}
