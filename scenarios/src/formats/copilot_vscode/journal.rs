//! The journal of a chat: a line per change to its object.

use crate::formats::prelude::*;

pub(super) fn is_change(o: &Map<String, Value>) -> bool {
    let names_requests = list_of(o, "k").first().is_some_and(|key| key == "requests");
    o.get("kind").is_some_and(Value::is_number)
        && (names_requests || object_in(o, "v").contains_key("requests"))
}

/// Applies all changes. Returns the chat, and its requests with the lines on which they began.
pub(super) fn replayed(lines: Vec<RecordedLine>) -> (Value, Vec<RecordedLine>) {
    let (mut chat, mut begun) = (Value::Null, Vec::new());
    for RecordedLine { number, mut object } in lines {
        let value = object.remove("v").unwrap_or_default();
        apply(&mut chat, &object, value);
        let requests = chat["requests"].as_array().map_or(0, Vec::len);
        begun.resize(requests, number);
    }
    let requests = match chat.get_mut("requests").map(Value::take) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let line = |(number, request)| match request {
        Value::Object(object) => Some(RecordedLine { number, object }),
        _ => None,
    };
    (chat, begun.into_iter().zip(requests).filter_map(line).collect())
}

/// Applies a change: 0 replaces the whole, 1 sets a member, 2 appends to a list after cutting it to
/// `i`, 3 empties a member. Changes to what is not there are left out.
fn apply(chat: &mut Value, change: &Map<String, Value>, value: Value) {
    let kind = change.get("kind").and_then(Value::as_u64);
    let path = list_of(change, "k");
    match (kind, !path.is_empty()) {
        (Some(0), _) => *chat = value,
        (Some(1 | 3), true) => at(chat, path).into_iter().for_each(|place| *place = value.clone()),
        (Some(2), true) => {
            let Some(place) = at(chat, path) else { return };
            if place.is_null() {
                *place = json!([]);
            }
            if let (Value::Array(list), Value::Array(more)) = (place, value) {
                let kept = change.get("i").and_then(Value::as_u64);
                list.truncate(kept.map_or(usize::MAX, |n| n as usize));
                list.extend(more);
            }
        }
        _ => {}
    }
}

/// Returns the value at a path. Missing members are created, missing items are not.
fn at<'a>(value: &'a mut Value, path: &[Value]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, key| match key {
        Value::String(key) => {
            if value.is_null() {
                *value = json!({});
            }
            Some(value.as_object_mut()?.entry(key.clone()).or_insert(Value::Null))
        }
        key => value.as_array_mut()?.get_mut(usize::try_from(key.as_u64()?).ok()?),
    })
}
