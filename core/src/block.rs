//! Blocks: the immutable pieces of a request.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::model::counting::Counting;
use crate::tokens::{self, Size};

/// The kind of a block, as named in traces and recorded cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    #[default]
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
    /// A summary of earlier messages.
    Summary,
    /// The instruction to summarise.
    SummaryPrompt,
    /// The message that marks a compaction.
    Marker,
    /// A synthetic message that asks the model to continue.
    Continue,
    /// A user message repeated after an overflow.
    ReplayedUser,
    /// An opaque compaction made by the provider.
    Compaction,
    /// The item that asks the provider for a compaction.
    CompactionTrigger,
    /// A constant reply on behalf of the model, such as one that acknowledges a summary.
    Ack,
    /// Instructions repeated at the end of the prompt.
    Reminder,
    /// Text that the recording lacks; only its size is known.
    Unrecorded,
}

/// The author of a block, as the product names it. The encoder maps it to the roles of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A separate field next to the messages.
    Instructions,
    System,
    Developer,
    /// The user, or text sent on behalf of the user.
    #[default]
    User,
    Assistant,
    Tool,
}

/// The relation of a block to its recorded message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockForm {
    /// Unchanged.
    #[default]
    Verbatim,
    /// Content replaced by a placeholder.
    Cleared,
    /// Part of the content cut out.
    Truncated,
    /// Made by the strategy.
    Synthetic,
}

/// Identifies a call, in the call and in its result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallRef {
    pub id: Arc<str>,
    pub name: Arc<str>,
}

/// An image or document by reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct MessageId(pub u32);

/// A part of a history message that a block contains or summarises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    pub message: MessageId,
    /// Index of the part in it.
    pub part: u32,
}

/// The parts of the history that a block contains or summarises, in order, each once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origins(Arc<[Origin]>);

impl Origins {
    pub fn iter(&self) -> impl Iterator<Item = &Origin> {
        self.0.iter()
    }

    /// Returns whether the block corresponds to no part of the history.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<Origin>> for Origins {
    fn from(all: Vec<Origin>) -> Origins {
        Origins(all.into())
    }
}

impl<'a> FromIterator<&'a Origins> for Origins {
    /// Merges origins. Summaries of summaries would multiply those that stay in the context.
    fn from_iter<I: IntoIterator<Item = &'a Origins>>(all: I) -> Origins {
        let all = all.into_iter().flat_map(|origins| origins.iter().copied());
        let mut all: Vec<Origin> = all.collect();
        // Faster here than an unstable sort: the origins consist of a few sorted runs.
        all.sort();
        all.dedup();
        Origins::from(all)
    }
}

impl FromIterator<Origin> for Origins {
    fn from_iter<I: IntoIterator<Item = Origin>>(all: I) -> Origins {
        Origins(all.into_iter().collect())
    }
}

/// A range of a block's text with content of another kind, such as a tool result in a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// Byte range in the block's text.
    pub range: Range<usize>,
    pub kind: BlockKind,
    /// Call id and tool name of calls and outputs.
    pub call: Option<Arc<CallRef>>,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// A block before it is frozen; [`crate::Strategy::admit`] may change one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    pub kind: BlockKind,
    pub role: Role,
    /// Text; for a call its arguments.
    pub text: Arc<str>,
    /// Byte offsets at which a further content part of the same message begins.
    pub splits: Vec<usize>,
    /// Quotes in the text, oldest first. Not sent to the provider.
    pub quotes: Vec<Quote>,
    /// Call id and tool name of calls and outputs.
    pub call: Option<Arc<CallRef>>,
    /// Encrypted reasoning or an opaque compaction.
    pub opaque: Option<Arc<str>>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Image or document.
    pub media: Option<Arc<Media>>,
    pub form: BlockForm,
    /// The provider message is written as a list of content blocks even if one string would do.
    pub as_list: bool,
}

impl Draft {
    /// Creates a plain text block.
    pub fn text(kind: BlockKind, role: Role, text: impl Into<Arc<str>>) -> Self {
        Draft { kind, role, text: text.into(), ..Draft::default() }
    }

    /// Creates a block that the strategy made.
    pub fn synthetic(kind: BlockKind, role: Role, text: impl Into<Arc<str>>) -> Self {
        Draft { form: BlockForm::Synthetic, ..Draft::text(kind, role, text) }
    }

    /// Creates thinking with the provider's opaque payload.
    pub fn reasoning(text: impl Into<Arc<str>>, opaque: Option<Arc<str>>) -> Self {
        let opaque = opaque.filter(|o| !o.is_empty());
        Draft { opaque, ..Draft::text(BlockKind::Reasoning, Role::Assistant, text) }
    }

    pub fn call(id: Arc<str>, name: Arc<str>, arguments: Arc<str>) -> Self {
        let call = Some(Arc::new(CallRef { id, name }));
        Draft { call, ..Draft::text(BlockKind::Call, Role::Assistant, arguments) }
    }

    pub fn output(id: Arc<str>, name: Arc<str>, text: Arc<str>, is_error: bool) -> Self {
        let call = Some(Arc::new(CallRef { id, name }));
        Draft { call, is_error, ..Draft::text(BlockKind::Output, Role::Tool, text) }
    }

    pub fn image(media: Media) -> Self {
        let media = Some(Arc::new(media));
        Draft { media, ..Draft::text(BlockKind::Image, Role::User, "") }
    }

    /// Returns the size that a provider counts.
    pub fn size(&self) -> Size {
        let size = match &self.call {
            Some(c) if self.kind == BlockKind::Call => Size::call(&c.name, &self.text),
            _ => Size::with_opaque(&self.text, self.opaque.as_deref()),
        };
        let pixels = self.media.as_ref().and_then(|m| m.pixels());
        Size { images: u64::from(self.media.is_some()), pixels, ..size }
    }

    /// Returns whether it is a plain text of any author.
    pub fn is_text(&self) -> bool {
        use BlockKind::{Assistant, Base, Context, User};
        matches!(self.kind, Base | Context | Assistant | User)
    }

    /// Returns the call id of a call or output.
    pub fn call_id(&self) -> Option<&str> {
        self.call.as_ref().map(|c| &*c.id)
    }

    /// Returns the quotes with their text, oldest first.
    pub fn quoted(&self) -> impl Iterator<Item = (&Quote, &str)> {
        self.quotes.iter().filter_map(|q| Some((q, self.text.get(q.range.clone())?)))
    }

    /// Freezes the draft as a block that exists only in one request.
    pub fn ephemeral(self) -> Arc<Block> {
        self.build(MessageId(u32::MAX), vec![])
    }

    /// Freezes the draft as part of a message.
    pub fn build(self, message: MessageId, origin: impl Into<Origins>) -> Arc<Block> {
        Arc::new(Block {
            hash: self.content_hash(),
            draft: self,
            message,
            origin: origin.into(),
            size: OnceLock::new(),
            wire_form: OnceLock::new(),
            json: OnceLock::new(),
            arguments: OnceLock::new(),
        })
    }

    /// Returns the hash of role, kind, text, call, opaque payload and media address.
    pub fn content_hash(&self) -> u64 {
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

/// An immutable piece of a request.
#[derive(Debug)]
pub struct Block {
    draft: Draft,
    /// The message it belongs to; blocks of one message stay together on the wire.
    pub message: MessageId,
    /// The parts of the history that it contains or summarises.
    pub origin: Origins,
    /// Content hash.
    pub hash: u64,
    size: OnceLock<Size>,
    wire_form: OnceLock<((u64, u64), (u64, Size))>,
    json: OnceLock<Box<RawValue>>,
    arguments: OnceLock<Box<RawValue>>,
}

impl std::ops::Deref for Block {
    type Target = Draft;
    fn deref(&self) -> &Draft {
        &self.draft
    }
}

impl Block {
    /// Returns the size that a provider counts. Computed once.
    pub fn size(&self) -> Size {
        *self.size.get_or_init(|| self.draft.size())
    }

    /// Returns the tokens that a provider bills for the block.
    pub fn tokens(&self, by: &Counting) -> u64 {
        by.block(self.size())
    }

    /// Returns hash and size of the block in a form, which `key` identifies. Those of the first form are
    /// computed once.
    pub fn wire_form(&self, key: (u64, u64), compute: impl Fn() -> (u64, Size)) -> (u64, Size) {
        let (first, form) = self.wire_form.get_or_init(|| (key, compute()));
        if *first == key { *form } else { compute() }
    }

    /// Returns the text as a JSON string with quotes. Computed once.
    pub fn json_text(&self) -> &RawValue {
        self.json.get_or_init(|| to_raw_value(&*self.text).expect("a string always serialises"))
    }

    /// Returns the arguments of a call as `encode` gives them. Computed once, because checking that a
    /// text is JSON takes longer than copying it.
    pub fn json_arguments(&self, encode: impl FnOnce(&str) -> Box<RawValue>) -> &RawValue {
        self.arguments.get_or_init(|| encode(&self.text))
    }

    /// Returns the size of the text in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the content parts of the text: one, unless it was split.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        let mut bounds = vec![0];
        bounds.extend(self.splits.iter().copied());
        bounds.push(self.text.len());
        (1..bounds.len()).map(move |i| &self.text[bounds[i - 1]..bounds[i]])
    }

    /// Returns a copy with another text and the same origin, without quotes and media.
    pub fn with_text(&self, form: BlockForm, text: impl Into<Arc<str>>) -> Arc<Block> {
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

    /// Returns a changed copy in the same message.
    pub fn map_draft(&self, change: impl FnOnce(&mut Draft)) -> Arc<Block> {
        let mut draft = self.draft.clone();
        change(&mut draft);
        draft.build(self.message, self.origin.clone())
    }
}

/// Returns the tokens of a sequence of blocks.
pub fn total_tokens<'a>(by: &Counting, blocks: impl IntoIterator<Item = &'a Arc<Block>>) -> u64 {
    blocks.into_iter().map(|b| b.tokens(by)).sum()
}

/// Returns the number of leading blocks that two sequences share.
pub fn common_prefix(a: &[Arc<Block>], b: &[Arc<Block>]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| Arc::ptr_eq(x, y) || x.hash == y.hash).count()
}

/// Returns whether a block belongs to the part before the conversation.
pub fn is_system(b: &Block) -> bool {
    b.kind == BlockKind::Base || (b.kind == BlockKind::Context && b.role != Role::User)
}

/// Returns whether a block survives every compaction.
pub fn is_fixed(b: &Block) -> bool {
    matches!(b.kind, BlockKind::Base | BlockKind::Context | BlockKind::RepoMap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_splits() {
        let mut d = Draft::text(BlockKind::User, Role::User, "headmidtail");
        d.splits = vec![4, 7];
        let b = d.build(MessageId(0), vec![]);
        assert_eq!(b.parts().collect::<Vec<_>>(), ["head", "mid", "tail"]);
    }

    #[test]
    fn content_hash_covers_role_text_and_call() {
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
    fn origins_of_summaries_are_ordered() {
        let origins = |parts: std::ops::Range<u32>| -> Origins {
            parts.map(|part| Origin { message: MessageId(part), part: 0 }).collect()
        };
        let (first, none) = (origins(0..3), Origins::default());
        let next: Origins = [&first, &none, &origins(3..4)].into_iter().collect();
        assert_eq!(next, origins(0..4));
        let again: Origins = [&origins(2..4), &next].into_iter().collect();
        assert_eq!(again, next, "a message that stays next to its summary has one origin");
        assert!(none.is_empty() && !next.is_empty());
    }

    #[test]
    fn tokens_follow_the_counting_model() {
        let b = Draft::text(BlockKind::User, Role::User, "hello world").build(MessageId(0), vec![]);
        assert_eq!(b.tokens(&Counting::O200K), 2 + 4);
        assert_eq!(b.tokens(&Counting::CLAUDE), 2 + 34);
    }
}
