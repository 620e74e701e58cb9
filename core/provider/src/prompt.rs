//! Decoded prompts: the model server's view of a request.

use std::sync::{Arc, OnceLock};

use ctxbench_core::block::{Block, BlockKind, CallRef, Draft, Media, Role};
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::context_editing::{ItemKind, PromptItem};
use ctxbench_core::model::Counting;
use ctxbench_core::request::{ServerEdit, Thread, Tools};
use ctxbench_core::tokens::{self, Size};
use ctxbench_core::usage::Ttl;

use crate::cache::{Prefix, chain, prefixes};
use crate::wire::slot::Slot;

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Text(Arc<str>),
    Reasoning {
        /// Readable thinking.
        text: Arc<str>,
        /// The provider's opaque payload.
        encrypted: Option<Arc<str>>,
    },
    Call {
        id: Arc<str>,
        name: Arc<str>,
        /// Exact argument text.
        arguments: Arc<str>,
    },
    /// A tool result.
    Output {
        id: Arc<str>,
        text: Arc<str>,
        /// Whether the tool failed; `false` on wires without this flag.
        is_error: bool,
        image: Option<Box<Media>>,
    },
    /// An image or document, without a name; the media type is empty if the wire has an address only.
    Image(Media),
    /// A compaction made by the provider.
    Compaction {
        /// Readable summary; empty when only the opaque form exists.
        text: Arc<str>,
        /// The provider's opaque payload.
        opaque: Option<Arc<str>>,
    },
    /// A request for a compaction, with instructions if the wire allows them.
    CompactionTrigger(Arc<str>),
}

/// An item of a prompt, from one block of the request.
#[derive(Clone, Debug)]
pub struct Item {
    pub role: Role,
    /// Shared by the prompts of a conversation.
    pub content: Arc<Content>,
    /// Wire message: 0 is outside the messages (Anthropic's `system`, `instructions`), then 1, 2, … in
    /// order.
    pub message: usize,
    /// A prompt-cache breakpoint after the item.
    pub cache: Option<Ttl>,
    /// Hash of role and content.
    pub hash: u64,
    /// The engine's block, with more information than the wire; `None` for requests of other programs.
    pub shows: Option<Arc<Block>>,
    size: OnceLock<Size>,
}

impl PartialEq for Item {
    fn eq(&self, o: &Self) -> bool {
        (self.role, self.message, self.cache, self.hash) == (o.role, o.message, o.cache, o.hash)
            && self.content == o.content
    }
}

impl Item {
    /// Creates an item and hashes its content.
    pub fn new(role: Role, content: Content, message: usize, cache: Option<Ttl>) -> Self {
        let (hash, size) = (content.hash(role), OnceLock::new());
        Item { hash, role, content: content.into(), message, cache, shows: None, size }
    }

    /// Creates the item of a block, with the hash and size of its content.
    pub(crate) fn of_block(
        block: &Arc<Block>,
        (hash, size): (u64, Size),
        content: Content,
        slot: &Slot,
    ) -> Self {
        let Slot { role, message, cache, .. } = *slot;
        let (content, shows, size) = (content.into(), Some(block.clone()), size.into());
        Item { hash, role, content, message, cache, shows, size }
    }

    /// Returns a copy with other content.
    pub fn with(&self, content: Content) -> Self {
        Item {
            shows: self.shows.clone(),
            ..Item::new(self.role, content, self.message, self.cache)
        }
    }

    /// Returns the billed tokens, equal to those of the block.
    pub fn tokens(&self, by: &Counting) -> u64 {
        by.block(*self.size.get_or_init(|| self.content.size()))
    }

    /// Returns text, thinking, arguments or tool output; empty for images.
    pub fn text(&self) -> &str {
        match &*self.content {
            Content::Text(t) | Content::CompactionTrigger(t) => t,
            Content::Reasoning { text, .. }
            | Content::Output { text, .. }
            | Content::Compaction { text, .. } => text,
            Content::Call { arguments, .. } => arguments,
            Content::Image { .. } => "",
        }
    }

    /// Returns the kind of block that content and role suggest.
    pub fn block_kind(&self) -> BlockKind {
        match &*self.content {
            Content::Text(_) => match self.role {
                Role::Instructions | Role::System => BlockKind::Base,
                Role::Developer => BlockKind::Context,
                Role::Assistant => BlockKind::Assistant,
                Role::User | Role::Tool => BlockKind::User,
            },
            Content::Reasoning { .. } => BlockKind::Reasoning,
            Content::Call { .. } => BlockKind::Call,
            Content::Output { .. } => BlockKind::Output,
            Content::Image { .. } => BlockKind::Image,
            Content::Compaction { .. } => BlockKind::Compaction,
            Content::CompactionTrigger(_) => BlockKind::CompactionTrigger,
        }
    }

    /// Returns the draft of a block with this content, without an image of a tool.
    pub fn draft(&self) -> Draft {
        let draft = Draft::text(self.block_kind(), self.role, self.text());
        let call = |id: &Arc<str>, name: Arc<str>| Some(Arc::new(CallRef { id: id.clone(), name }));
        match &*self.content {
            Content::Text(_) | Content::CompactionTrigger(_) => draft,
            Content::Reasoning { encrypted: opaque, .. } | Content::Compaction { opaque, .. } => {
                Draft { opaque: opaque.clone(), ..draft }
            }
            Content::Call { id, name, .. } => Draft { call: call(id, name.clone()), ..draft },
            Content::Output { id, is_error, .. } => {
                Draft { call: call(id, "".into()), is_error: *is_error, ..draft }
            }
            Content::Image(m) => Draft { media: Some(Arc::new(m.clone())), ..draft },
        }
    }
}

impl PromptItem for Item {
    fn kind(&self, _head: bool) -> ItemKind<'_> {
        match &*self.content {
            _ if self.role == Role::System && self.message == 0 => ItemKind::System,
            Content::Call { id, name, .. } => ItemKind::Call(id, name),
            Content::Output { id, .. } => ItemKind::Result(id),
            Content::Reasoning { .. } => ItemKind::Thinking,
            Content::Compaction { text, opaque } if !text.is_empty() || opaque.is_some() => {
                ItemKind::Compaction
            }
            Content::Compaction { .. } | Content::CompactionTrigger(_) => ItemKind::Other,
            _ if self.role == Role::Assistant => ItemKind::Other,
            Content::Text(_) | Content::Image { .. } => ItemKind::User,
        }
    }
    fn tokens(&self, by: &Counting) -> u64 {
        Item::tokens(self, by)
    }
    fn cleared(&self, text: &str) -> Self {
        let content = match Content::clone(&self.content) {
            Content::Output { id, is_error, .. } => {
                Content::Output { id, text: text.into(), is_error, image: None }
            }
            Content::Call { id, name, .. } => Content::Call { id, name, arguments: text.into() },
            other => other,
        };
        self.with(content)
    }
    /// Replaces the text and keeps the original hash, so that the prefix is still read from the
    /// cache.
    fn deleted(&self, text: &str) -> Self {
        Item { hash: self.hash, ..self.cleared(text) }
    }
}

impl Content {
    pub(crate) fn size(&self) -> Size {
        match self {
            Content::Text(t) | Content::CompactionTrigger(t) => Size::text(t),
            Content::Reasoning { text, encrypted: o } | Content::Compaction { text, opaque: o } => {
                Size::with_opaque(text, o.as_deref())
            }
            Content::Call { name, arguments, .. } => Size::call(name, arguments),
            Content::Output { text, image, .. } => {
                Size { images: u64::from(image.is_some()), ..Size::text(text) }
            }
            Content::Image { .. } => Size { images: 1, ..Size::default() },
        }
    }

    /// Returns the part of a reply; `None` for content that only requests have.
    pub(crate) fn into_part(self) -> Option<Part> {
        match self {
            Content::Text(text) => Some(Part::Text(text)),
            Content::Reasoning { text, encrypted } => Some(Part::Reasoning { text, encrypted }),
            Content::Call { id, name, arguments } => {
                Some(Part::Call(ToolCall { id, name, arguments }))
            }
            Content::Compaction { text, opaque } => {
                Some(Part::Compaction(Some(text).filter(|t| !t.is_empty()).or(opaque)))
            }
            Content::Output { .. } | Content::Image { .. } | Content::CompactionTrigger(_) => None,
        }
    }

    /// Hashes the fields separately and then their hashes, so that field boundaries count.
    pub(crate) fn hash(&self, role: Role) -> u64 {
        let h = |s: &str| tokens::content_hash(s.as_bytes());
        let opt = |s: &Option<Arc<str>>| s.as_ref().map_or(0, |s| h(s));
        let (tag, a, b, c) = match self {
            Content::Text(t) => (0, h(t), 0, 0),
            Content::Reasoning { text, encrypted } => (1, h(text), opt(encrypted), 0),
            Content::Call { id, name, arguments } => (2, h(id), h(name), h(arguments)),
            Content::Output { id, text, is_error, image } => (
                3 + 16 * u64::from(*is_error),
                h(id),
                h(text),
                image.as_ref().map_or(0, |m| h(&m.url)),
            ),
            Content::Image(m) => (4, h(&m.media_type), h(&m.url), 0),
            Content::Compaction { text, opaque } => (5, h(text), opt(opaque), 0),
            Content::CompactionTrigger(t) => (6, h(t), 0, 0),
        };
        chain(&[tag + 256 * role as u64, a, b, c])
    }
}

/// A request as the server sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    pub model: Arc<str>,
    /// Maximum tokens of the reply.
    pub max_tokens: Option<u64>,
    pub tools: Option<Arc<Tools>>,
    /// A prompt-cache breakpoint after the tools.
    pub tools_cache: Option<Ttl>,
    /// Everything else in order.
    pub items: Vec<Item>,
    /// Requested context edits.
    pub server_edits: Vec<ServerEdit>,
    /// The conversation that the request belongs to, where the provider keeps it.
    pub thread: Option<Thread>,
}

impl Prompt {
    /// Returns whether the request is for a compaction only.
    pub fn asks_for_compaction(&self) -> bool {
        self.items.iter().any(|i| matches!(*i.content, Content::CompactionTrigger(_)))
    }

    pub fn new(model: impl Into<Arc<str>>, items: Vec<Item>) -> Self {
        Prompt { model: model.into(), items, ..Prompt::default() }
    }

    /// Sets the block that each item of a decoded request shows.
    pub fn recognise(&mut self, blocks: Vec<Arc<Block>>) {
        if blocks.len() == self.items.len() {
            self.items.iter_mut().zip(blocks).for_each(|(i, b)| i.shows = Some(b));
        }
    }

    /// Returns the billed tokens of the tool definitions.
    pub fn tools_tokens(&self, by: &Counting) -> u64 {
        self.tools.as_ref().map_or(0, |t| t.tokens(by))
    }

    /// Returns the prefixes of the tools and the items, in order.
    pub fn prefixes(&self, by: &Counting) -> Vec<Prefix> {
        let tools = self.tools.iter().map(|t| (t.hash(), t.tokens(by), self.tools_cache, None));
        let items = self.items.iter().map(|i| (i.hash, i.tokens(by), i.cache, Some(i.role)));
        prefixes(&self.model, tools.chain(items))
    }

    /// Returns the billed tokens of the tools and the items.
    pub fn tokens(&self, by: &Counting) -> u64 {
        self.tools_tokens(by) + self.items.iter().map(|i| i.tokens(by)).sum::<u64>()
    }
}
