//! How the blocks of a request are laid out on a wire: what each becomes, who speaks, in which message it stands.
//!
//! Rules for what a wire cannot carry:
//! - Anthropic: system and developer text is `system` before the first user or assistant block and user text after it; tool results
//!   come first in their user message; a breakpoint on thinking, which takes none, moves to the block before it.
//! - Responses: only an opening block of role `Instructions` becomes `instructions`, a later one is a developer message.
//! - Chat: `Instructions` is a system message; a provider's compaction is user text.
//! - OpenAI: no breakpoints, no error flag on tool results, of the server edits only the compaction threshold.
//! - Everywhere: images stand in user messages.

use crate::block::{Block, BlockKind, Media, MessageId, Role};
use crate::request::{Request, ServerEdit, Ttl};

use super::models::{Wire, find};

/// What one block becomes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    Text,
    Image,
    Reasoning,
    Call,
    Output,
    Compaction,
    Trigger,
}

/// One place on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Index of the block it shows.
    pub(crate) block: usize,
    pub(crate) show: Show,
    pub(crate) role: Role,
    /// 0 = beside the messages.
    pub(crate) message: usize,
    pub(crate) cache: Option<Ttl>,
}

impl Slot {
    /// Whether the assistant speaks.
    pub(crate) fn is_assistant(&self) -> bool {
        self.role == Role::Assistant
    }
}

/// `max_tokens` as sent: Anthropic demands one, so the model's largest reply stands in.
pub(crate) fn max_tokens(wire: Wire, request: &Request) -> Option<u64> {
    const UNKNOWN_MODEL: u64 = 32_000;
    match wire {
        Wire::AnthropicMessages => request.max_tokens.or_else(|| Some(find(&request.model).map_or(UNKNOWN_MODEL, |m| m.max_output))),
        _ => request.max_tokens,
    }
}

/// The edit as far as the wire can ask for it.
pub(crate) fn carried_edit(wire: Wire, edit: &ServerEdit) -> Option<ServerEdit> {
    match (wire, edit) {
        (Wire::AnthropicMessages, e) => Some(e.clone()),
        (Wire::OpenaiResponses, ServerEdit::Compact { trigger, .. }) => {
            Some(ServerEdit::Compact { trigger: *trigger, instructions: None, pause: false })
        }
        _ => None,
    }
}

/// Media type of the one kind of document that wires tell apart from images.
pub(crate) const PDF: &str = "application/pdf";

/// A data URL as media type and base64 text.
pub(crate) fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// What a wire tells about a file: PDF or not, the media type of a data URL, the address.
pub(crate) fn carried_media(media: &Media) -> Media {
    let media_type = match data_url(&media.url) {
        _ if media.media_type == PDF => PDF,
        Some((t, _)) => t,
        None => "",
    };
    Media { media_type: media_type.into(), url: media.url.clone(), name: None }
}

/// Lays out a request.
pub(crate) fn plan(wire: Wire, request: &Request) -> Vec<Slot> {
    let mut slots = Vec::with_capacity(request.blocks.len());
    for (i, b) in request.blocks.iter().enumerate() {
        let show = show(wire, b, i + 1 == request.blocks.len());
        let slot = |show| Slot { block: i, show, role: role(b, show), message: 0, cache: None };
        if show == Show::Image && !b.text.is_empty() {
            slots.push(slot(Show::Text));
        }
        slots.push(slot(show));
    }
    match wire {
        Wire::AnthropicMessages => anthropic(&mut slots, request),
        Wire::OpenaiResponses => responses(&mut slots, request),
        Wire::OpenaiChat => chat(&mut slots, request),
    }
    slots
}

fn show(wire: Wire, b: &Block, last: bool) -> Show {
    match b.kind {
        BlockKind::Call if b.call.is_some() => Show::Call,
        BlockKind::Output if b.call.is_some() => Show::Output,
        BlockKind::Reasoning => Show::Reasoning,
        BlockKind::Compaction if wire == Wire::AnthropicMessages => Show::Compaction,
        BlockKind::Compaction if wire == Wire::OpenaiResponses && b.opaque.is_some() => Show::Compaction,
        BlockKind::CompactionTrigger if wire == Wire::AnthropicMessages && last => Show::Trigger,
        BlockKind::CompactionTrigger if wire == Wire::OpenaiResponses && b.text.is_empty() => Show::Trigger,
        _ if b.media.is_some() => Show::Image,
        _ => Show::Text,
    }
}

fn role(b: &Block, show: Show) -> Role {
    match (show, b.role) {
        (Show::Reasoning | Show::Call | Show::Compaction, _) => Role::Assistant,
        (Show::Output, _) => Role::Tool,
        (Show::Image | Show::Trigger, _) | (Show::Text, Role::Tool) => Role::User,
        (Show::Text, r) => r,
    }
}

fn anthropic(slots: &mut [Slot], request: &Request) {
    let is_system = |s: &Slot| s.show == Show::Text && matches!(s.role, Role::Instructions | Role::System | Role::Developer);
    let head = slots.iter().take_while(|s| is_system(s)).count();
    mark(slots, request);
    let (system, rest) = slots.split_at_mut(head);
    for s in system {
        s.role = Role::System;
    }
    for s in rest.iter_mut().filter(|s| is_system(s)) {
        s.role = Role::User;
    }
    let mut message = 0;
    let owner = |s: &Slot| request.blocks[s.block].message;
    let together = |a: &Slot, b: &Slot| {
        let results = a.role == Role::Tool && b.role == Role::Tool;
        a.is_assistant() == b.is_assistant() && (!request.keep_messages || results || owner(a) == owner(b))
    };
    for group in rest.chunk_by_mut(|a, b| together(a, b)) {
        message += 1;
        if !group[0].is_assistant() {
            group.sort_by_key(|s| s.role != Role::Tool);
        }
        for s in group.iter_mut().filter(|s| s.show != Show::Trigger) {
            s.message = message;
        }
    }
}

fn mark(slots: &mut [Slot], request: &Request) {
    for &at in &request.breakpoints {
        let takes = |s: &&mut Slot| s.block <= at && !matches!(s.show, Show::Reasoning | Show::Trigger);
        if let Some(s) = slots.iter_mut().rev().find(takes) {
            s.cache = Some(request.ttl);
        }
    }
}

/// Text and images of one message stay together, unless two texts would meet: parts of a split text and separate texts look the same.
fn joins(before: &Slot, s: &Slot, message: impl Fn(&Slot) -> MessageId) -> bool {
    let plain = |s: &Slot| matches!(s.show, Show::Text | Show::Image);
    let both_text = before.show == Show::Text && s.show == Show::Text;
    plain(before) && plain(s) && !both_text && before.role == s.role && message(before) == message(s)
}

fn responses(slots: &mut [Slot], request: &Request) {
    let owner = |s: &Slot| request.blocks[s.block].message;
    let mut message = 0;
    for i in 0..slots.len() {
        if slots[i].role == Role::Instructions {
            if i == 0 {
                continue;
            }
            slots[i].role = Role::Developer;
        }
        if i == 0 || slots[i - 1].message == 0 || !joins(&slots[i - 1], &slots[i], owner) {
            message += 1;
        }
        slots[i].message = message;
    }
}

fn chat(slots: &mut [Slot], request: &Request) {
    let owner = |s: &Slot| request.blocks[s.block].message;
    // An assistant message shows thinking, then text, then calls, and one thinking only: any other order begins a new message.
    let rank = |s: &Slot| match s.show {
        Show::Reasoning => 0,
        Show::Call => 2,
        _ => 1,
    };
    let mut message = 0;
    for i in 0..slots.len() {
        if slots[i].role == Role::Instructions {
            slots[i].role = Role::System;
        }
        let same = i > 0 && {
            let (a, b) = (&slots[i - 1], &slots[i]);
            if a.is_assistant() && b.is_assistant() {
                owner(a) == owner(b) && rank(a) <= rank(b) && rank(b) > 0
            } else {
                joins(a, b, owner)
            }
        };
        message += usize::from(!same);
        slots[i].message = message;
    }
}
