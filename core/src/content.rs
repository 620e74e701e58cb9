//! Message parts: one type for session files, the history, replies, tool results and incoming
//! messages.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::block::{BlockKind, Draft, Media, Role};
use crate::tokens::Size;

/// An ordered part of a message.
// Session files hold the variants that are not skipped.
#[derive(Clone, Debug, PartialEq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text(#[serde(with = "in_field")] Arc<str>),
    /// Thinking, readable or opaque.
    Reasoning {
        /// Readable thinking; empty when only the opaque form exists.
        #[serde(default)]
        text: Arc<str>,
        /// The provider's opaque payload.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted: Option<Arc<str>>,
    },
    /// A tool call among texts.
    Call(ToolCall),
    /// An image or another file shown to the model.
    Image(Media),
    /// The result of a call.
    #[serde(skip)]
    Result { id: Arc<str>, name: Arc<str>, output: Arc<str>, is_error: bool },
    /// A summary of earlier messages.
    #[serde(skip)]
    Summary(Arc<str>),
    /// Filler for text that the recording lacks, of the same size.
    #[serde(skip)]
    Unrecorded(Arc<str>),
    /// A compaction made by the provider, readable or opaque; `None` = it failed.
    #[serde(skip)]
    Compaction(Option<Arc<str>>),
}

/// A tool call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    /// Identifies the call in its result.
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// Exact argument text, normally JSON.
    pub arguments: Arc<str>,
}

impl ToolCall {
    pub fn new(
        id: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        arguments: impl Into<Arc<str>>,
    ) -> Self {
        ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
    }
}

/// Joins the plain texts among the parts.
pub fn joined_text(parts: &[Part], between: &str) -> String {
    parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join(between)
}

impl Part {
    /// Returns the text, thinking, arguments or output; empty if the part has none.
    pub fn text(&self) -> &str {
        match self {
            Part::Text(text)
            | Part::Summary(text)
            | Part::Unrecorded(text)
            | Part::Compaction(Some(text)) => text,
            Part::Reasoning { text, .. } | Part::Result { output: text, .. } => text,
            Part::Call(call) => &call.arguments,
            Part::Image(_) | Part::Compaction(None) => "",
        }
    }

    /// Returns the size that a provider counts.
    pub fn size(&self) -> Size {
        match self {
            Part::Reasoning { text, encrypted } => Size::with_opaque(text, encrypted.as_deref()),
            Part::Call(call) => Size::call(&call.name, &call.arguments),
            Part::Image(m) => Size { images: 1, pixels: m.pixels(), ..Size::default() },
            _ => Size::text(self.text()),
        }
    }

    /// Returns plain text; `None` for any other part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Part::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns plain text or thinking; `None` for any other part.
    pub fn as_prose(&self) -> Option<&Arc<str>> {
        match self {
            Part::Text(text) | Part::Reasoning { text, .. } => Some(text),
            _ => None,
        }
    }

    pub fn as_call(&self) -> Option<&ToolCall> {
        match self {
            Part::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Creates the block draft of the unchanged part; `None` for a summary, which only a strategy can
    /// place.
    pub fn draft(&self, role: Role) -> Option<Draft> {
        Some(match self {
            Part::Text(t) if role == Role::Assistant => {
                Draft::text(BlockKind::Assistant, role, t.clone())
            }
            Part::Text(t) => Draft::text(BlockKind::User, Role::User, t.clone()),
            Part::Reasoning { text, encrypted } => {
                Draft::reasoning(text.clone(), encrypted.clone())
            }
            Part::Call(c) => Draft::call(c.id.clone(), c.name.clone(), c.arguments.clone()),
            Part::Image(m) => Draft::image(m.clone()),
            Part::Result { id, name, output, is_error } => {
                Draft::output(id.clone(), name.clone(), output.clone(), *is_error)
            }
            Part::Unrecorded(t) => Draft::text(BlockKind::Unrecorded, Role::User, t.clone()),
            Part::Compaction(s) => {
                let text = s.clone().unwrap_or_default();
                Draft::synthetic(BlockKind::Compaction, Role::Assistant, text)
            }
            Part::Summary(_) => return None,
        })
    }
}

/// The part of a message that a block represents: a text, unless its kind says more.
impl From<&Draft> for Part {
    fn from(d: &Draft) -> Part {
        let (text, opaque) = (d.text.clone(), d.opaque.clone());
        let call = d.call.as_ref().map(|c| (c.id.clone(), c.name.clone()));
        match (d.kind, call) {
            (BlockKind::Summary, _) => Part::Summary(text),
            (BlockKind::Reasoning, _) => Part::Reasoning { text, encrypted: opaque },
            (BlockKind::Compaction, _) => {
                Part::Compaction(Some(text).filter(|t| !t.is_empty()).or(opaque))
            }
            (BlockKind::Call, Some((id, name))) => {
                Part::Call(ToolCall { id, name, arguments: text })
            }
            (BlockKind::Output, Some((id, name))) => {
                Part::Result { id, name, output: text, is_error: d.is_error }
            }
            _ => d.media.as_ref().map_or(Part::Text(text), |m| Part::Image((**m).clone())),
        }
    }
}

/// Serialises text as an object with one field, as a tagged variant requires.
mod in_field {
    use super::*;
    use serde::{Deserializer, Serializer};

    #[derive(Serialize, Deserialize)]
    pub(super) struct Text {
        text: Arc<str>,
    }

    pub(super) fn serialize<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
        Text { text: text.clone() }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        Text::deserialize(from).map(|t| t.text)
    }
}
