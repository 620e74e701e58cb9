//! The layout of a request's blocks on a wire: content type, role and message of each. Images are in
//! user messages on every wire.

use ctxbench_core::prelude::*;

use super::format::Wire;
use super::json::{OneOrMany, Text};
use super::slot::{BlockForm, Slot};

/// Returns a content part for each part of a split text.
pub(crate) fn texts<'a, P>(b: &'a Block, text: impl Fn(Text<'a>) -> P) -> Vec<P> {
    if b.splits.is_empty() {
        return vec![text(Text::Block(b))];
    }
    b.parts().map(|part| text(part.into())).collect()
}

/// Returns the content of a tool result: its text, or text and file as content parts.
pub(crate) fn output<'a, P>(
    b: &'a Block,
    text: impl Fn(Text<'a>) -> P,
    media: impl Fn(&'a Media) -> P,
) -> OneOrMany<'a, P> {
    if b.media.is_none() && b.splits.is_empty() {
        return OneOrMany::One(Text::Block(b));
    }
    let mut parts = texts(b, text);
    parts.extend(b.media.as_deref().map(media));
    OneOrMany::Many(parts)
}

/// Lays out a request.
pub(crate) fn plan(wire: Wire, request: &Request) -> Vec<Slot> {
    let mut slots = Vec::with_capacity(request.blocks.len());
    for (i, b) in request.blocks.iter().enumerate() {
        let show = block_form(wire, b, i + 1 == request.blocks.len());
        let slot = |show| Slot { block: i, show, role: role(b, show), message: 0, cache: None };
        if show == BlockForm::Image && !b.text.is_empty() {
            slots.push(slot(BlockForm::Text));
        }
        slots.push(slot(show));
    }
    (wire.assign)(&mut slots, request);
    slots
}

fn block_form(wire: Wire, b: &Block, last: bool) -> BlockForm {
    match b.kind {
        BlockKind::Call if b.call.is_some() => BlockForm::Call,
        BlockKind::Output if b.call.is_some() => BlockForm::Output,
        BlockKind::Reasoning => BlockForm::Reasoning,
        BlockKind::Compaction if (wire.rules.shows_compaction)(b) => BlockForm::Compaction,
        BlockKind::CompactionTrigger if (wire.rules.shows_trigger)(b, last) => BlockForm::Trigger,
        _ if b.media.is_some() => BlockForm::Image,
        _ => BlockForm::Text,
    }
}

fn role(b: &Block, show: BlockForm) -> Role {
    match (show, b.role) {
        (BlockForm::Reasoning | BlockForm::Call | BlockForm::Compaction, _) => Role::Assistant,
        (BlockForm::Output, _) => Role::Tool,
        (BlockForm::Image | BlockForm::Trigger, _) | (BlockForm::Text, Role::Tool) => Role::User,
        (BlockForm::Text, r) => r,
    }
}

/// Returns whether two neighbouring blocks share a message: text and images of one message do, but not
/// two texts, which would look like parts of one text.
pub(super) fn joins(before: &Slot, s: &Slot, message: impl Fn(&Slot) -> MessageId) -> bool {
    let plain = |s: &Slot| matches!(s.show, BlockForm::Text | BlockForm::Image);
    let both_text = before.show == BlockForm::Text && s.show == BlockForm::Text;
    plain(before)
        && plain(s)
        && !both_text
        && before.role == s.role
        && message(before) == message(s)
}

/// Numbers the messages of slots from 1 on; `same` tells whether a slot continues the one before.
pub(super) fn number(slots: &mut [Slot], same: impl Fn(&Slot, &Slot) -> bool) {
    for (message, group) in (1..).zip(slots.chunk_by_mut(|a, b| same(a, b))) {
        group.iter_mut().for_each(|s| s.message = message);
    }
}

/// Assigns messages of two alternating roles, as for Anthropic and Gemini. System and developer text
/// before the first user or assistant block is outside the messages, later text becomes the user's.
/// Neighbours of one role form one message, with tool results first.
pub(super) fn turns(slots: &mut [Slot], request: &Request) {
    let is_system = |s: &Slot| {
        s.show == BlockForm::Text
            && matches!(s.role, Role::Instructions | Role::System | Role::Developer)
    };
    let head = slots.iter().take_while(|s| is_system(s)).count();
    let (system, rest) = slots.split_at_mut(head);
    for s in system {
        s.role = Role::System;
    }
    for s in rest.iter_mut().filter(|s| is_system(s)) {
        s.role = Role::User;
    }
    let owner = |s: &Slot| request.blocks[s.block].message;
    let together = |a: &Slot, b: &Slot| {
        let results = a.role == Role::Tool && b.role == Role::Tool;
        a.is_assistant() == b.is_assistant()
            && (!request.keep_messages || results || owner(a) == owner(b))
    };
    for (message, group) in (1..).zip(rest.chunk_by_mut(|a, b| together(a, b))) {
        if !group[0].is_assistant() {
            group.sort_by_key(|s| s.role != Role::Tool);
        }
        for s in group.iter_mut().filter(|s| s.show != BlockForm::Trigger) {
            s.message = message;
        }
    }
}
