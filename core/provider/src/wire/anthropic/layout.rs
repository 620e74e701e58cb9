//! Anthropic Messages: layout of the blocks of a request.
//!
//! System and developer text is `system` before the first user or assistant block and user text
//! after it; tool results come first in their user message; a breakpoint on thinking, which takes
//! none, moves to the block before it.

use ctxbench_core::request::Request;

use crate::wire::plan::{Show, Slot, turns};

pub(super) fn lay_out(slots: &mut [Slot], request: &Request) {
    mark(slots, request);
    turns(slots, request);
}

fn mark(slots: &mut [Slot], request: &Request) {
    for &at in &request.breakpoints {
        let takes =
            |s: &&mut Slot| s.block <= at && !matches!(s.show, Show::Reasoning | Show::Trigger);
        if let Some(s) = slots.iter_mut().rev().find(takes) {
            s.cache = Some(request.ttl);
        }
    }
}
