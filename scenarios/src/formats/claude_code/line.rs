//! Parts of a line that the reader needs. Content is converted as soon as the line is read, so that memory
//! holds each text once.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::formats::lines::LineObject;
use crate::formats::prelude::*;

pub(super) type Line = RecordedLine<TranscriptLine>;

/// A line of a transcript. Members of another type than expected count as missing.
#[serde_with::apply(
    Option<String> => #[serde(deserialize_with = "member")],
    bool => #[serde(deserialize_with = "member")],
    Option<Box<Message>> => #[serde(deserialize_with = "member")],
)]
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TranscriptLine {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) subtype: Option<String>,
    pub(super) uuid: Option<String>,
    pub(super) parent_uuid: Option<String>,
    pub(super) timestamp: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) agent_id: Option<String>,
    pub(super) version: Option<String>,
    #[serde(rename = "toolUseID")]
    pub(super) tool_use_id: Option<String>,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Value,
    pub(super) is_sidechain: bool,
    pub(super) is_meta: bool,
    pub(super) is_compact_summary: bool,
    pub(super) is_visible_in_transcript_only: bool,
    pub(super) is_api_error_message: bool,
    pub(super) compact_metadata: Value,
    pub(super) attachment: Value,
    pub(super) message: Option<Box<Message>>,
}

/// Message of a line.
#[serde_with::apply(Option<String> => #[serde(deserialize_with = "member")])]
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Value,
    pub(super) content: Content,
}

/// Content of a message.
#[derive(Default)]
pub(super) struct Content {
    pub(super) pieces: Vec<MessagePart>,
    /// Hash of the content as it is written.
    hash: u64,
    /// Block of a compaction by the provider.
    pub(super) compaction: Option<Map<String, Value>>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Content, D::Error> {
        let written = Value::deserialize(from)?;
        Ok(Content {
            pieces: content(Some(&written)),
            hash: hash_of(&written),
            compaction: messages::compaction_in(Some(&written)).cloned(),
        })
    }
}

/// Reads a member; one of another type, or a list, is as if it were missing.
fn member<'de, T: DeserializeOwned + Default, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    let value = Some(Value::deserialize(from)?).filter(|value| !value.is_array());
    Ok(value.and_then(|value| T::deserialize(value).ok()).unwrap_or_default())
}

impl TranscriptLine {
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or_default()
    }

    pub(super) fn is_message(&self) -> bool {
        matches!(self.kind(), "user" | "assistant")
    }

    pub(super) fn pieces(&self) -> &[MessagePart] {
        self.message.as_ref().map_or(&[], |message| &message.content.pieces)
    }

    pub(super) fn message_id(&self) -> Option<&str> {
        self.message.as_ref()?.id.as_deref()
    }

    /// Returns hashes of what identifies a message apart from its id, its content with its reply or its
    /// time: names that copies of it have, and its own names. Copies may lack the request of a reply.
    pub(super) fn fingerprints(&self) -> Option<[[u64; 2]; 2]> {
        let content = self.message.as_ref()?.content.hash;
        let (id, time) = (self.message_id().unwrap_or_default(), self.timestamp.as_deref());
        let bare = hash_of((id, time.unwrap_or_default(), content));
        let named = hash_of((bare, "with a request"));
        match self.request_id.as_deref().filter(|_| !id.is_empty()) {
            Some(request) => {
                let whole = hash_of((id, request, content));
                Some([[whole, bare], [whole, named]])
            }
            None => time.map(|_| [[bare, named], [bare, bare]]),
        }
    }
}

impl From<Map<String, Value>> for TranscriptLine {
    fn from(mut object: Map<String, Value>) -> Self {
        if !object.get("message").is_some_and(Value::is_object) {
            object.remove("message");
        }
        serde_json::from_value(object.into()).unwrap_or_default()
    }
}

impl LineObject for TranscriptLine {
    fn timestamp(&self) -> Option<&str> {
        self.timestamp.as_deref()
    }

    fn is_named(&self) -> bool {
        self.uuid.is_some()
    }
}
