//! OpenAI Responses: layout of blocks.
//!
//! Only an opening block of role `Instructions` becomes `instructions`, a later one is a developer
//! message. There are no breakpoints, no error flag on tool results, and of the provider's edits
//! only the compaction threshold.

use ctxbench_core::block::Role;
use ctxbench_core::request::Request;

use crate::wire::plan::{joins, number};
use crate::wire::slot::Slot;

pub(super) fn assign(slots: &mut [Slot], request: &Request) {
    let owner = |s: &Slot| request.blocks[s.block].message;
    let opening = slots.first().is_some_and(|s| s.role == Role::Instructions);
    let slots = &mut slots[usize::from(opening)..];
    for s in slots.iter_mut().filter(|s| s.role == Role::Instructions) {
        s.role = Role::Developer;
    }
    number(slots, |a, b| joins(a, b, owner));
}
