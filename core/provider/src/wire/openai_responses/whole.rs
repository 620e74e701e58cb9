//! Returns the reply in the last event of OpenAI Responses.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

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
