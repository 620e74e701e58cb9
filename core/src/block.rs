//! Blocks: the immutable pieces of what a request shows.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::model::Counting;
use crate::tokens::{self, Size};

/// What a block is, in the vocabulary of traces and recorded cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// Base instructions / system prompt.
    Base,
    /// Constant context: memory files, environment, permissions.
    Context,
    /// Overview of the code base.
    RepoMap,
    /// A file in the chat or restored after a compaction.
    File,
    /// A user message.
    User,
    /// Text of a model reply.
    Assistant,
    /// Thinking of a model reply.
    Reasoning,
    /// A tool call.
    Call,
    /// A tool result.
    Output,
    /// An image or document.
    Image,
    /// A summary that stands for earlier history.
    Summary,
    /// The instruction to summarise.
    SummaryPrompt,
    /// The message that stands for a compaction.
    Marker,
    /// A synthetic message that asks the model to go on.
    Continue,
    /// A user message repeated after an overflow.
    ReplayedUser,
    /// An opaque compaction made by the provider.
    Compaction,
    /// The item that asks the provider for a compaction.
    CompactionTrigger,
    /// A constant reply in the model's place, such as one that acknowledges a summary.
    Ack,
    /// Instructions repeated at the end of the prompt.
    Reminder,
    /// Text of the recorded program that the recording lacks: known by its size only.
    Unrecorded,
}

/// Who speaks, as the product says it; the encoder maps it to what the wire knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A field of its own beside the messages.
    Instructions,
    /// System message.
    System,
    /// Developer message.
    Developer,
    /// The user, or what is sent in the user's place.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// How a block relates to what was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// As it was said.
    #[default]
    Verbatim,
    /// Content replaced by a placeholder.
    Cleared,
    /// Part of the content cut out.
    Truncated,
    /// Never said; made by the strategy.
    Synthetic,
}

/// Pairs calls and results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallRef {
    /// Call id.
    pub id: Arc<str>,
    /// Tool name.
    pub name: Arc<str>,
}

/// An image or document by reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct Media {
    /// Such as `image/png`.
    pub media_type: String,
    /// Address or data URL.
    pub url: String,
    /// File name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Number of a message in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageId(pub u32);

/// A part of a history message that a block shows or stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The message.
    pub message: MessageId,
    /// Index of the part in it.
    pub part: u32,
}

/// The parts of the history that a block stands for, in order. A summary stands for what the one
/// before it stood for and more, so lists that were made once are shared.
#[derive(Clone, Debug)]
pub struct Origins(Listed);

impl Default for Origins {
    fn default() -> Origins {
        vec![].into()
    }
}

#[derive(Clone, Debug)]
enum Listed {
    One(Origin),
    Lists(Box<[Arc<[Origin]>]>),
}

impl Origins {
    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = &Origin> {
        let (one, lists) = match &self.0 {
            Listed::One(origin) => (Some(origin), &[][..]),
            Listed::Lists(lists) => (None, &**lists),
        };
        one.into_iter().chain(lists.iter().flat_map(|l| l.iter()))
    }

    /// Whether the block stands for nothing that was said.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Listed::Lists(lists) if lists.is_empty())
    }
}

impl From<Vec<Origin>> for Origins {
    fn from(all: Vec<Origin>) -> Origins {
        Origins(match all[..] {
            [] => Listed::Lists(Box::default()),
            [one] => Listed::One(one),
            _ => Listed::Lists([all.into()].into()),
        })
    }
}

/// What several stand for together.
impl<'a> FromIterator<&'a Origins> for Origins {
    fn from_iter<I: IntoIterator<Item = &'a Origins>>(all: I) -> Origins {
        let (mut lists, mut single) = (Vec::new(), Vec::new());
        for origins in all {
            match &origins.0 {
                Listed::One(origin) => single.push(*origin),
                Listed::Lists(more) if more.is_empty() => {}
                Listed::Lists(more) => {
                    lists.extend((!single.is_empty()).then(|| single.drain(..).collect()));
                    lists.extend(more.iter().cloned());
                }
            }
        }
        if lists.is_empty() {
            return single.into();
        }
        lists.extend((!single.is_empty()).then(|| single.into()));
        Origins(Listed::Lists(lists.into()))
    }
}

impl FromIterator<Origin> for Origins {
    fn from_iter<I: IntoIterator<Item = Origin>>(all: I) -> Origins {
        Vec::from_iter(all).into()
    }
}

impl PartialEq for Origins {
    fn eq(&self, other: &Origins) -> bool {
        self.iter().eq(other.iter())
    }
}

/// A stretch of a block's text that says something of another kind than the block: a tool result in
/// a transcript, a call in the words of a model without tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// Where it stands, bytes.
    pub range: Range<usize>,
    /// What it is.
    pub kind: BlockKind,
    /// Call id and tool name of calls and outputs.
    pub call: Option<Arc<CallRef>>,
    /// The tool failed.
    pub is_error: bool,
}

/// A block before it is frozen; [`crate::Strategy::admit`] may change one.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Kind.
    pub kind: BlockKind,
    /// Role.
    pub role: Role,
    /// Text; for a call its arguments.
    pub text: Arc<str>,
    /// Byte offsets at which a further content part of the same message begins.
    pub splits: Vec<usize>,
    /// What the text quotes, oldest first. On no wire: what reads the bytes alone has to guess.
    pub quotes: Vec<Quote>,
    /// Call id and tool name of calls and outputs.
    pub call: Option<Arc<CallRef>>,
    /// Encrypted reasoning or an opaque compaction.
    pub opaque: Option<Arc<str>>,
    /// The tool failed.
    pub is_error: bool,
    /// Image or document.
    pub media: Option<Arc<Media>>,
    /// Relation to what was said.
    pub form: Form,
    /// The provider message is written as a list of content blocks even if one string would do.
    pub listed: bool,
}

impl Draft {
    /// A plain text block.
    pub fn text(kind: BlockKind, role: Role, text: impl Into<Arc<str>>) -> Self {
        Draft {
            kind,
            role,
            text: text.into(),
            splits: Vec::new(),
            quotes: Vec::new(),
            call: None,
            opaque: None,
            is_error: false,
            media: None,
            form: Form::Verbatim,
            listed: false,
        }
    }

    /// A block that was never said.
    pub fn synthetic(kind: BlockKind, role: Role, text: impl Into<Arc<str>>) -> Self {
        Draft { form: Form::Synthetic, ..Draft::text(kind, role, text) }
    }

    /// What the text quotes, oldest first.
    pub fn quoted(&self) -> impl Iterator<Item = (&Quote, &str)> {
        self.quotes.iter().filter_map(|q| Some((q, self.text.get(q.range.clone())?)))
    }

    /// Freezes the draft as part of a message.
    pub fn build(self, message: MessageId, origin: impl Into<Origins>) -> Arc<Block> {
        Arc::new(Block {
            hash: self.content_hash(),
            draft: self,
            message,
            origin: origin.into(),
            size: OnceLock::new(),
            json: OnceLock::new(),
            is_object: OnceLock::new(),
            encoded: OnceLock::new(),
        })
    }

    fn content_hash(&self) -> u64 {
        let mut key = vec![self.kind as u8, self.role as u8, u8::from(self.is_error)];
        let mut add = |tag: u8, text: &str| {
            key.push(tag);
            key.extend(tokens::content_hash(text.as_bytes()).to_le_bytes());
        };
        add(0, &self.text);
        if let Some(c) = &self.call {
            add(1, &c.id);
            add(2, &c.name);
        }
        if let Some(o) = &self.opaque {
            add(3, o);
        }
        if let Some(m) = &self.media {
            add(4, &m.url);
        }
        tokens::content_hash(&key)
    }
}

/// An immutable piece of what a request shows.
#[derive(Debug)]
pub struct Block {
    draft: Draft,
    /// The message it belongs to; blocks of one message stay together on the wire.
    pub message: MessageId,
    /// The history parts it shows or stands for.
    pub origin: Origins,
    /// Hash over everything the wire shows.
    pub hash: u64,
    size: OnceLock<Size>,
    json: OnceLock<String>,
    is_object: OnceLock<bool>,
    encoded: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl std::ops::Deref for Block {
    type Target = Draft;
    fn deref(&self) -> &Draft {
        &self.draft
    }
}

impl Block {
    /// What of it a provider counts. Looked at once.
    pub fn size(&self) -> Size {
        *self.size.get_or_init(|| {
            let words = match &self.call {
                Some(c) if self.kind == BlockKind::Call => Size::call(&c.name, &self.text),
                _ => Size::sealed(&self.text, self.opaque.as_deref()),
            };
            Size { images: u64::from(self.media.is_some()), ..words }
        })
    }

    /// Tokens that a provider bills for it.
    pub fn tokens(&self, by: &Counting) -> u64 {
        by.block(self.size())
    }

    /// The text as a JSON string with its quotes. Escaped once.
    pub fn json_text(&self) -> &str {
        self.json
            .get_or_init(|| serde_json::to_string(&*self.text).expect("a string always serialises"))
    }

    /// Whether the text is a JSON object, with nothing around it. Looked at once.
    pub fn is_json_object(&self) -> bool {
        *self.is_object.get_or_init(|| is_json_object(&self.text))
    }

    /// What an encoder made of the block, made once and kept with it; `None` if the slot holds what
    /// another encoder made.
    pub fn encoded<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.encoded.get_or_init(|| Box::new(make())).downcast_ref()
    }

    /// Size of the text in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The content parts of the text: one, unless it was split.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        let mut bounds = vec![0];
        bounds.extend(self.splits.iter().copied());
        bounds.push(self.text.len());
        (1..bounds.len()).map(move |i| &self.text[bounds[i - 1]..bounds[i]])
    }

    /// A copy with other content, standing for the same parts.
    pub fn altered(&self, form: Form, text: impl Into<Arc<str>>) -> Arc<Block> {
        let draft = Draft {
            text: text.into(),
            form,
            splits: Vec::new(),
            quotes: Vec::new(),
            media: None,
            ..self.draft.clone()
        };
        draft.build(self.message, self.origin.clone())
    }

    /// A copy as another draft in the same place.
    pub fn redraft(&self, change: impl FnOnce(&mut Draft)) -> Arc<Block> {
        let mut draft = self.draft.clone();
        change(&mut draft);
        draft.build(self.message, self.origin.clone())
    }

    /// The call id of a call or output.
    pub fn call_id(&self) -> Option<&str> {
        self.call.as_ref().map(|c| &*c.id)
    }
}

/// Whether a text is a JSON object, with nothing around it.
pub fn is_json_object(text: &str) -> bool {
    let braces = text.starts_with('{') && text.ends_with('}');
    braces && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Tokens of a sequence of blocks.
pub fn total_tokens<'a>(by: &Counting, blocks: impl IntoIterator<Item = &'a Arc<Block>>) -> u64 {
    blocks.into_iter().map(|b| b.tokens(by)).sum()
}

/// Number of leading blocks that two sequences share.
pub fn common_prefix(a: &[Arc<Block>], b: &[Arc<Block>]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| Arc::ptr_eq(x, y) || x.hash == y.hash).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_the_splits() {
        let mut d = Draft::text(BlockKind::User, Role::User, "headmidtail");
        d.splits = vec![4, 7];
        let b = d.build(MessageId(0), vec![]);
        assert_eq!(b.parts().collect::<Vec<_>>(), ["head", "mid", "tail"]);
    }

    #[test]
    fn the_hash_sees_role_text_and_call() {
        let a = Draft::text(BlockKind::User, Role::User, "x");
        let mut c = a.clone();
        c.call = Some(Arc::new(CallRef { id: "1".into(), name: "n".into() }));
        let hashes = [
            a.content_hash(),
            Draft::text(BlockKind::User, Role::Tool, "x").content_hash(),
            c.content_hash(),
        ];
        assert!(hashes[0] != hashes[1] && hashes[0] != hashes[2] && hashes[1] != hashes[2]);
    }

    #[test]
    fn what_summaries_stand_for_is_in_order_and_made_once() {
        let origins = |parts: std::ops::Range<u32>| -> Origins {
            parts.map(|part| Origin { message: MessageId(part), part: 0 }).collect()
        };
        let said: Vec<Origins> = (0..3).map(|n| origins(n..n + 1)).collect();
        let first: Origins = said.iter().collect();
        assert_eq!(first, origins(0..3));
        let next: Origins = [&first, &Origins::default(), &origins(3..4)].into_iter().collect();
        assert_eq!(next, origins(0..4));
        assert!(std::ptr::eq(first.iter().next().unwrap(), next.iter().next().unwrap()));
        assert!(Origins::default().is_empty() && !next.is_empty());
    }

    #[test]
    fn tokens_are_those_of_the_counting_model() {
        let b = Draft::text(BlockKind::User, Role::User, "hello world").build(MessageId(0), vec![]);
        assert_eq!(b.tokens(&Counting::O200K), 2 + 4);
        assert_eq!(b.tokens(&Counting::CLAUDE), 2 + 34);
    }
}
