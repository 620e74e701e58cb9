//! Decoding of an exchange's request and reply by its wire.
//!
//! Real sessions contain more than a simulated provider must know. Parts that a wire does not model
//! are removed from the body and reported, and the rest is read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::formats::prelude::*;
use ctxbench_core::prelude::*;
use ctxbench_provider::wire::{Wire, event_data};
use ctxbench_provider::{Prompt, WireError};
use serde_json::value::{RawValue, to_raw_value};

/// Number of removed parts by kind.
pub(super) type Unknown = BTreeMap<String, usize>;

/// Maximum number of unknown kinds in one body.
const MAX_KINDS: usize = 40;

pub(super) fn prompt(wire: Wire, path: &str, body: &str, unknown: &mut Unknown) -> Option<Prompt> {
    read(body, unknown, |body| wire.decode(path, body.as_bytes()))
}

/// A reply with the members of its answer.
pub(super) type AnsweredReply = (Reply, Map<String, Value>);

/// Returns the complete reply of an answer, or `None` if the answer contains none.
pub(super) fn reply(wire: Wire, answer: &str, unknown: &mut Unknown) -> Option<AnsweredReply> {
    let mut whole = Cow::Borrowed(answer);
    if !answer.trim_start().starts_with(['{', '[']) {
        whole = String::from_utf8((wire.assemble)(&event_data(answer))?).ok()?.into();
    }
    let reply = read(&whole, unknown, |body| (wire.decode_reply)(body.as_bytes()))?;
    Some((reply, escapes::from_str(&whole).unwrap_or_default()))
}

fn read<T>(
    body: &str,
    unknown: &mut Unknown,
    decode: impl Fn(&str) -> Result<T, WireError>,
) -> Option<T> {
    let mut rest: Option<String> = None;
    for _ in 0..MAX_KINDS {
        match decode(rest.as_deref().unwrap_or(body)) {
            Ok(read) => return Some(read),
            Err(WireError::Unsupported { value, .. }) => {
                let mut n = 0;
                let raw = serde_json::from_str(rest.as_deref().unwrap_or(body)).ok()?;
                let less = without(raw, &value, &mut n)?.get().to_string();
                if n == 0 {
                    return None;
                }
                *unknown.entry(value).or_default() += n;
                rest = Some(less);
            }
            Err(_) => match escapes::replace_lone_surrogates(rest.as_deref().unwrap_or(body)) {
                Cow::Owned(mended) => rest = Some(mended),
                Cow::Borrowed(_) => return None,
            },
        }
    }
    None
}

/// Returns the value without the members of its lists with the `type` `kind`. Objects within
/// objects, such as the arguments of a call, keep their bytes.
fn without(raw: &RawValue, kind: &str, n: &mut usize) -> Option<Box<RawValue>> {
    match raw.get().as_bytes().first()? {
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
            let before = items.len();
            let kept = items.into_iter().filter(|i| type_of(i).as_deref() != Some(kind));
            let kept: Vec<Box<RawValue>> =
                kept.map(|i| without(i, kind, n)).collect::<Option<_>>()?;
            *n += before - kept.len();
            to_raw_value(&kept).ok()
        }
        b'{' => {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).ok()?;
            let mut fields = Vec::from_iter(fields);
            // The order in the text, since equal tools have equal bytes.
            fields.sort_by_key(|(_, value)| value.get().as_ptr());
            let mut out = String::from("{");
            for (i, (name, value)) in fields.into_iter().enumerate() {
                let list = value.get().starts_with('[');
                let value = if list { without(value, kind, n)? } else { value.to_owned() };
                out += if i > 0 { "," } else { "" };
                out += &serde_json::to_string(&name).ok()?;
                out.push(':');
                out += value.get();
            }
            RawValue::from_string(out + "}").ok()
        }
        _ => Some(raw.to_owned()),
    }
}

fn type_of(raw: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Typed {
        #[serde(rename = "type")]
        kind: String,
    }
    serde_json::from_str::<Typed>(raw.get()).ok().map(|t| t.kind)
}

/// Returns the provider's counters, or `None` if it sent none.
pub(super) fn counters(usage: &Usage) -> Option<Counters> {
    let write = usage.cache_write + usage.cache_write_1h;
    (usage.prompt() + usage.output > 0).then(|| Counters {
        input: usage.input,
        read: usage.cache_read,
        write,
        output: usage.output,
        write_1h: (write > 0).then_some(usage.cache_write_1h),
        ..Counters::default()
    })
}

/// Converts an item of a prompt, or returns `None` if it is empty.
pub(super) fn prompt_piece(content: &Draft) -> Option<MessagePart> {
    let text = || Part::Text(content.text.clone());
    Some(match content.kind {
        BlockKind::Base | BlockKind::Context => MessagePart::Added(text(), ContextPlace::System),
        BlockKind::Output => {
            let image = content.media.as_ref().map(|m| Part::Image((**m).clone()));
            let words = (!content.text.is_empty() || image.is_none()).then(text);
            let call_id = content.call_id().unwrap_or_default().to_string();
            let pieces = words.into_iter().chain(image).map(MessagePart::Said).collect();
            MessagePart::Result { call_id, pieces, is_error: content.is_error }
        }
        BlockKind::Compaction if content.text.is_empty() => MessagePart::Opaque,
        BlockKind::Compaction => MessagePart::Said(text()),
        BlockKind::CompactionTrigger => return None,
        _ => MessagePart::Said(content.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_provider::wire;

    #[test]
    fn what_a_wire_does_not_model_is_left_out_and_told() {
        let body = r#"{"model":"m","input":[
            {"type":"message","role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_audio","data":"x"}]},
            {"type":"web_search_call","id":"w","action":{"type":"search"}},
            {"type":"function_call","call_id":"c","name":"f","arguments":"{ \"type\":\"web_search_call\" }"},
            {"type":"function_call_output","call_id":"c","output":"o"}]}"#;
        let wire = wire::find("openai-responses").unwrap();
        let mut unknown = Unknown::new();
        let prompt = prompt(wire, "/v1/responses", body, &mut unknown).unwrap();
        let texts: Vec<&str> = prompt.items.iter().map(|i| i.text()).collect();
        assert_eq!(texts, ["look", "{ \"type\":\"web_search_call\" }", "o"]);
        let told: Vec<_> = unknown.into_iter().collect();
        assert_eq!(told, [("input_audio".to_string(), 1), ("web_search_call".to_string(), 1)]);
    }

    #[test]
    fn arguments_keep_their_bytes_beside_what_is_left_out() {
        let answer = r#"{"content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},
            {"type":"tool_use","id":"t","name":"n","input":{ "b" : [ {"type":"server_tool_use"} ], "a": 1.50 }}],
            "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2}}"#;
        let wire = wire::find("anthropic-messages").unwrap();
        let reply = reply(wire, answer, &mut Unknown::new()).unwrap();
        let [Part::Call(call)] = reply.0.parts.as_slice() else { panic!("{:?}", reply.0.parts) };
        assert_eq!(&*call.arguments, r#"{ "b" : [ {"type":"server_tool_use"} ], "a": 1.50 }"#);
    }

    #[test]
    fn what_is_no_body_of_the_wire_is_none() {
        let wire = wire::find("anthropic-messages").unwrap();
        for body in ["", "{}", "[]", "{\"model\":\"m\"", "data: {\"type\":\"error\"}\n\n"] {
            assert!(reply(wire, body, &mut Unknown::new()).is_none(), "{body}");
            assert!(prompt(wire, "", body, &mut Unknown::new()).is_none(), "{body}");
        }
    }
}
