//! Gemini's stream: each chunk is a reply with a piece of text or thought, or a whole call. A signature
//! is on the last piece of its part; the last chunk has finish reason and usage.

use std::borrow::Cow;

use serde::de::{Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::wire::json;
use crate::wire::stream::{StreamEvent, pieces};

/// A chunk or a whole reply. Only texts are decoded.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Vec<ChunkCandidate<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    model_version: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    response_id: Option<&'a RawValue>,
    #[serde(skip_serializing)]
    error: Option<IgnoredAny>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct ChunkCandidate<'a> {
    #[serde(borrow)]
    content: Option<ChunkContent<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'a RawValue>,
    #[serde(default)]
    index: u64,
}

impl<'a> ChunkCandidate<'a> {
    fn new(parts: Vec<ChunkPart<'a>>, finish_reason: Option<&'a RawValue>) -> Self {
        let content = Some(ChunkContent { parts, role: "model" });
        ChunkCandidate { content, finish_reason, index: 0 }
    }
}

#[derive(Deserialize, Serialize)]
struct ChunkContent<'a> {
    #[serde(borrow, default)]
    parts: Vec<ChunkPart<'a>>,
    #[serde(skip_deserializing)]
    role: &'static str,
}

#[derive(Clone, Serialize)]
#[serde(untagged)]
enum ChunkPart<'a> {
    Text(TextPart<'a>),
    Other(&'a RawValue),
}

/// A part with text only.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TextPart<'a> {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    thought_signature: Option<Cow<'a, str>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for ChunkPart<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let part = <&RawValue>::deserialize(d)?;
        Ok(serde_json::from_str(part.get()).map_or(ChunkPart::Other(part), ChunkPart::Text))
    }
}

pub(super) fn events(whole: &[u8]) -> serde_json::Result<Vec<StreamEvent>> {
    let Chunk { candidates, usage_metadata, model_version, response_id, .. } =
        serde_json::from_slice(whole)?;
    let finish = candidates.last().and_then(|c| c.finish_reason);
    let parts = candidates.iter().filter_map(|c| c.content.as_ref()).flat_map(|c| &c.parts);
    let mut said: Vec<_> = parts.flat_map(cut).map(|part| vec![part]).collect();
    // An empty reply also has a last chunk.
    if said.is_empty() {
        said.push(Vec::new());
    }
    let last = said.len() - 1;
    let event = |(i, parts)| {
        let chunk = Chunk {
            candidates: vec![ChunkCandidate::new(parts, finish.filter(|_| i == last))],
            usage_metadata: usage_metadata.filter(|_| i == last),
            model_version,
            response_id,
            error: None,
        };
        Ok(StreamEvent { name: None, data: serde_json::to_string(&chunk)? })
    };
    said.into_iter().enumerate().map(event).collect()
}

/// Splits a text into pieces; other parts are unchanged.
fn cut<'a>(part: &'a ChunkPart<'a>) -> Vec<ChunkPart<'a>> {
    let ChunkPart::Text(whole) = part else { return vec![part.clone()] };
    let pieces = pieces(&whole.text);
    let Some(last) = pieces.len().checked_sub(1) else { return vec![part.clone()] };
    let piece = |(i, text): (usize, &'a str)| {
        let thought_signature = whole.thought_signature.clone().filter(|_| i == last);
        ChunkPart::Text(TextPart { text: text.into(), thought_signature, ..*whole })
    };
    pieces.into_iter().enumerate().map(piece).collect()
}

/// Assembles a reply: pieces of text form one part, which a signature ends.
pub(super) fn assemble(events: &[String]) -> Option<Vec<u8>> {
    let mut whole = Chunk::default();
    let (mut parts, mut finish) = (Vec::new(), None);
    for chunk in events {
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(chunk) else { continue };
        if chunk.error.is_some() {
            return None;
        }
        whole.usage_metadata = chunk.usage_metadata.or(whole.usage_metadata);
        whole.model_version = chunk.model_version.or(whole.model_version);
        whole.response_id = chunk.response_id.or(whole.response_id);
        // Agents request one candidate.
        for candidate in chunk.candidates.into_iter().filter(|c| c.index == 0) {
            finish = candidate.finish_reason.or(finish);
            let said = candidate.content.map_or(Vec::new(), |c| c.parts);
            said.into_iter().for_each(|part| add(&mut parts, part));
        }
    }
    whole.candidates.push(ChunkCandidate::new(parts, Some(finish?)));
    Some(json::bytes(&whole))
}

fn add<'a>(parts: &mut Vec<ChunkPart<'a>>, next: ChunkPart<'a>) {
    match (parts.last_mut(), next) {
        (Some(ChunkPart::Text(begun)), ChunkPart::Text(next))
            if begun.thought == next.thought && begun.thought_signature.is_none() =>
        {
            begun.text.to_mut().push_str(&next.text);
            begun.thought_signature = next.thought_signature;
        }
        (_, next) => parts.push(next),
    }
}
