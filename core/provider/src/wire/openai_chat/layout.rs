//! OpenAI Chat Completions: layout of blocks.
//!
//! `Instructions` is a system message; a provider's compaction is user text. There are no
//! breakpoints, no error flag on tool results, and no edits by the provider.

use ctxbench_core::block::Role;
use ctxbench_core::request::Request;

use crate::wire::plan::{joins, number};
use crate::wire::slot::{BlockForm, Slot};

pub(super) fn assign(slots: &mut [Slot], request: &Request) {
    let owner = |s: &Slot| request.blocks[s.block].message;
    // An assistant message has at most one thinking, then text, then calls; any other order begins a
    // new message.
    let rank = |s: &Slot| match s.show {
        BlockForm::Reasoning => 0,
        BlockForm::Call => 2,
        _ => 1,
    };
    for s in slots.iter_mut().filter(|s| s.role == Role::Instructions) {
        s.role = Role::System;
    }
    number(slots, |a, b| match a.is_assistant() && b.is_assistant() {
        true => owner(a) == owner(b) && rank(a) <= rank(b) && rank(b) > 0,
        false => joins(a, b, owner),
    });
}
