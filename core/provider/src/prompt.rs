//! Decoded prompts: the model server's view of a request.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use ctxbench_core::context_editing::{ItemKind, PromptItem};
use ctxbench_core::model::Counting;
use ctxbench_core::request::{ServerEdit, Thread, Tools};
use ctxbench_core::tokens::Size;
use ctxbench_core::usage::Ttl;
use ctxbench_core::{Block, BlockKind, Draft, Part, Role};

use crate::cache::{Prefix, add_prefixes};

/// An item of a prompt, from one block of the request.
#[derive(Clone, Debug)]
pub struct Item {
    /// What the wire carries of the block: an image without a name, no tool name in a result. Shared by
    /// the prompts of a conversation.
    pub content: Arc<Draft>,
    /// Wire message: 0 is outside the messages (Anthropic's `system`, `instructions`), then 1, 2, … in
    /// order.
    pub message: usize,
    /// A prompt-cache breakpoint after the item.
    pub cache: Option<Ttl>,
    /// Hash of the content.
    pub hash: u64,
    /// The engine's block, with more information than the wire; `None` for requests of other programs.
    pub shows: Option<Arc<Block>>,
    pub(crate) size: OnceLock<Size>,
}

impl Deref for Item {
    type Target = Draft;
    fn deref(&self) -> &Draft {
        &self.content
    }
}

impl PartialEq for Item {
    fn eq(&self, o: &Self) -> bool {
        (self.message, self.cache, self.hash) == (o.message, o.cache, o.hash)
            && self.content == o.content
    }
}

/// Creates a text; its role sets the kind.
pub fn plain(text: impl Into<Arc<str>>) -> Draft {
    Draft::text(BlockKind::User, Role::User, text)
}

/// Returns content in a role.
pub(crate) fn in_role(content: Draft, role: Role) -> Draft {
    let kind = match role {
        _ if content.kind != BlockKind::User => content.kind,
        Role::Instructions | Role::System => BlockKind::Base,
        Role::Developer => BlockKind::Context,
        Role::Assistant => BlockKind::Assistant,
        Role::User | Role::Tool => BlockKind::User,
    };
    Draft { kind, role, ..content }
}

/// Returns the part of a reply; `None` for content that only requests have.
pub(crate) fn reply_part(content: Draft) -> Option<Part> {
    use BlockKind::{CompactionTrigger, Image, Output};
    (!matches!(content.kind, Output | Image | CompactionTrigger)).then(|| Part::from(&content))
}

impl Item {
    pub fn new(role: Role, content: Draft, message: usize, cache: Option<Ttl>) -> Self {
        let content = in_role(content, role);
        let (hash, size) = (content.content_hash(), OnceLock::new());
        Item { hash, content: content.into(), message, cache, shows: None, size }
    }

    /// Returns the billed tokens, equal to those of the block.
    pub fn tokens(&self, by: &Counting) -> u64 {
        by.block(*self.size.get_or_init(|| self.content.size()))
    }

    /// Returns text, thinking, arguments or tool output; empty for images.
    pub fn text(&self) -> &str {
        &self.content.text
    }

    /// Returns the draft of a block with this content, without an image of a tool.
    pub fn draft(&self) -> Draft {
        let media = self.media.clone().filter(|_| self.kind == BlockKind::Image);
        Draft { media, ..Draft::clone(self) }
    }
}

impl PromptItem for Item {
    fn kind(&self, _head: bool) -> ItemKind<'_> {
        ItemKind::of(self, self.role == Role::System && self.message == 0)
    }
    fn tokens(&self, by: &Counting) -> u64 {
        Item::tokens(self, by)
    }
    fn cleared(&self, text: &str) -> Self {
        let content = Draft { text: text.into(), media: None, ..Draft::clone(self) };
        let shows = self.shows.clone();
        Item { shows, ..Item::new(self.role, content, self.message, self.cache) }
    }
    /// Replaces the text and keeps the original hash, so that the prefix is still read from the
    /// cache.
    fn deleted(&self, text: &str) -> Self {
        Item { hash: self.hash, ..self.cleared(text) }
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
        self.items.iter().any(|i| i.kind == BlockKind::CompactionTrigger)
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
        let mut all = Vec::new();
        add_prefixes(&mut all, &self.model, tools.chain(items));
        all
    }

    /// Returns the billed tokens of the tools and the items.
    pub fn tokens(&self, by: &Counting) -> u64 {
        self.tools_tokens(by) + self.items.iter().map(|i| i.tokens(by)).sum::<u64>()
    }
}
