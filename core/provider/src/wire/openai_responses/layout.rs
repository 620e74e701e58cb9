//! OpenAI Responses: layout of blocks.
//!
//! Only an opening block of role `Instructions` becomes `instructions`, a later one is a developer
//! message. There are no breakpoints, no error flag on tool results, and of the provider's edits
//! only the compaction threshold.

use ctxbench_core::block::Role;
use ctxbench_core::request::Request;

use crate::wire::plan::joins;
use crate::wire::slot::Slot;

pub(super) fn assign(slots: &mut [Slot], request: &Request) {
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
