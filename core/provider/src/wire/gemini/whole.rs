//! Assembles a reply from Gemini's chunks: pieces of text form one part, which a signature ends.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::part::{TEXT, THOUGHT, close};
use crate::wire::json::{raw, string};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Vec<WholeCandidate<'a>>,
    #[serde(borrow)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    model_version: Option<&'a RawValue>,
    #[serde(borrow)]
    response_id: Option<&'a RawValue>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WholeCandidate<'a> {
    #[serde(borrow)]
    content: Option<CandidateContent<'a>>,
    finish_reason: Option<Value>,
    #[serde(default)]
    index: u64,
}

#[derive(Deserialize)]
struct CandidateContent<'a> {
    #[serde(borrow, default)]
    parts: Vec<&'a RawValue>,
}

/// A part with text only.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TextPart {
    text: String,
    #[serde(default)]
    thought: bool,
    thought_signature: Option<String>,
}

pub(super) fn assemble(events: &[String]) -> Option<Vec<u8>> {
    let mut fields: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
    let mut parts: Vec<Box<RawValue>> = Vec::new();
    let mut open: Option<TextPart> = None;
    let mut finish = None;
    for chunk in events {
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(chunk) else { continue };
        if chunk.error.is_some() {
            return None;
        }
        let known = [
            ("usageMetadata", chunk.usage_metadata),
            ("modelVersion", chunk.model_version),
            ("responseId", chunk.response_id),
        ];
        fields.extend(known.into_iter().filter_map(|(key, raw)| Some((key, raw?.to_owned()))));
        // Agents request one candidate.
        for candidate in chunk.candidates.into_iter().filter(|c| c.index == 0) {
            finish = candidate.finish_reason.filter(|f| !f.is_null()).or(finish);
            for part in candidate.content.map_or(Vec::new(), |c| c.parts) {
                add(&mut parts, &mut open, part)?;
            }
        }
    }
    let finish = finish?;
    shut(&mut parts, open)?;
    let parts = to_raw_value(&parts).ok()?;
    let content = BTreeMap::from([("parts", parts), ("role", to_raw_value("model").ok()?)]);
    let candidate = BTreeMap::from([
        ("content", to_raw_value(&content).ok()?),
        ("finishReason", to_raw_value(&finish).ok()?),
        ("index", to_raw_value(&json!(0)).ok()?),
    ]);
    fields.insert("candidates", to_raw_value(&[candidate]).ok()?);
    serde_json::to_vec(&fields).ok()
}

fn add(parts: &mut Vec<Box<RawValue>>, open: &mut Option<TextPart>, part: &RawValue) -> Option<()> {
    let Ok(next) = serde_json::from_str::<TextPart>(part.get()) else {
        shut(parts, open.take())?;
        parts.push(part.to_owned());
        return Some(());
    };
    match open {
        Some(begun) if begun.thought == next.thought && begun.thought_signature.is_none() => {
            begun.text.push_str(&next.text);
            begun.thought_signature = next.thought_signature;
        }
        _ => {
            shut(parts, open.replace(next))?;
        }
    }
    Some(())
}

fn shut(parts: &mut Vec<Box<RawValue>>, open: Option<TextPart>) -> Option<()> {
    if let Some(TextPart { text, thought, thought_signature }) = open {
        let mut o = Vec::new();
        raw(&mut o, if thought { THOUGHT } else { TEXT });
        string(&mut o, &text);
        close(&mut o, thought_signature.as_deref());
        parts.push(RawValue::from_string(String::from_utf8(o).ok()?).ok()?);
    }
    Some(())
}
