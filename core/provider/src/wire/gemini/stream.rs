//! Gemini's stream: each chunk is a reply with a piece of text or thought, or a whole call. A signature
//! is on the last piece of its part; the last chunk has finish reason and usage.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::part::{GeminiPart, Parts};
use super::reply::Candidate;
use crate::wire::json;
use crate::wire::stream::StreamEvent;

/// A chunk or a whole reply. Usage, model and id are copied unchanged.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Vec<Candidate<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    model_version: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    response_id: Option<&'a RawValue>,
    #[serde(skip_serializing)]
    error: Option<IgnoredAny>,
}

pub(super) fn events(whole: &[u8]) -> serde_json::Result<Vec<StreamEvent>> {
    let Chunk { candidates, usage_metadata, model_version, response_id, .. } =
        serde_json::from_slice(whole)?;
    let (mut said, mut finish) = (Vec::new(), None);
    for candidate in candidates {
        finish = candidate.finish_reason;
        let parts = candidate.content.map_or(Vec::new(), |c| c.parts.0);
        said.extend(parts.into_iter().flat_map(GeminiPart::cut).map(|part| vec![part]));
    }
    // An empty reply also has a last chunk.
    if said.is_empty() {
        said.push(Vec::new());
    }
    let last = said.len() - 1;
    let event = |(i, parts)| {
        let finish = finish.clone().filter(|_| i == last);
        let chunk = Chunk {
            candidates: vec![Candidate::new(Parts(parts), finish)],
            usage_metadata: usage_metadata.filter(|_| i == last),
            model_version,
            response_id,
            error: None,
        };
        Ok(StreamEvent { name: None, data: serde_json::to_string(&chunk)? })
    };
    said.into_iter().enumerate().map(event).collect()
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
            let said = candidate.content.map_or(Vec::new(), |c| c.parts.0);
            said.into_iter().for_each(|part| part.add_to(&mut parts));
        }
    }
    whole.candidates.push(Candidate::new(Parts(parts), Some(finish?)));
    Some(json::bytes(&whole))
}
