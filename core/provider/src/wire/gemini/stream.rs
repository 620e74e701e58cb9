//! Gemini's stream: each chunk is a reply with a piece of text or thought, or a whole call. A signature
//! is on the last piece of its part; the last chunk has finish reason and usage.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::part::{TEXT, THOUGHT, close};
use crate::wire::json::{raw, string};
use crate::wire::stream::{StreamEvent, pieces};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StreamedReply<'a> {
    #[serde(borrow)]
    candidates: Vec<ChunkCandidate<'a>>,
    #[serde(borrow)]
    usage_metadata: &'a RawValue,
    model_version: Value,
    response_id: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChunkCandidate<'a> {
    #[serde(borrow)]
    content: ChunkContent<'a>,
    finish_reason: Value,
}

#[derive(Deserialize)]
struct ChunkContent<'a> {
    #[serde(borrow)]
    parts: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChunkPart {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    thought_signature: Option<String>,
}

pub(super) fn events(whole: &[u8]) -> serde_json::Result<Vec<StreamEvent>> {
    let whole: StreamedReply<'_> = serde_json::from_slice(whole)?;
    let mut said = Vec::new();
    let mut finish = json!("STOP");
    for candidate in whole.candidates {
        finish = candidate.finish_reason;
        for part in candidate.content.parts {
            cut(&mut said, part)?;
        }
    }
    // An empty reply also has a last chunk.
    if said.is_empty() {
        said.push(String::new());
    }
    let mut known = json!({"modelVersion": whole.model_version});
    if let Some(id) = whole.response_id {
        known["responseId"] = id;
    }
    let known = known.to_string();
    let known = &known[1..];
    let last = said.len() - 1;
    let chunk = |(i, part): (usize, String)| {
        let end = match i == last {
            true => (format!(",\"finishReason\":{finish}"), whole.usage_metadata.get()),
            false => (String::new(), ""),
        };
        let (finish, usage) = end;
        let usage =
            if usage.is_empty() { String::new() } else { format!("\"usageMetadata\":{usage},") };
        let data = format!(
            "{{\"candidates\":[{{\"content\":{{\"parts\":[{part}],\"role\":\"model\"}}{finish},\"index\":0}}],{usage}{known}"
        );
        StreamEvent { name: None, data }
    };
    Ok(said.into_iter().enumerate().map(chunk).collect())
}

/// Splits a text part into pieces; other parts are unchanged.
fn cut(said: &mut Vec<String>, part: &RawValue) -> serde_json::Result<()> {
    let ChunkPart { text, thought, thought_signature } = serde_json::from_str(part.get())?;
    let pieces = text.as_deref().map(pieces).unwrap_or_default();
    if pieces.len() < 2 {
        said.push(part.get().to_string());
        return Ok(());
    }
    let last = pieces.len() - 1;
    for (i, piece) in pieces.into_iter().enumerate() {
        let mut o = Vec::new();
        raw(&mut o, if thought { THOUGHT } else { TEXT });
        string(&mut o, piece);
        close(&mut o, thought_signature.as_deref().filter(|_| i == last));
        said.push(String::from_utf8_lossy(&o).into_owned());
    }
    Ok(())
}
