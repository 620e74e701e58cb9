//! Anthropic Messages: where the blocks of a request stand.
//!
//! System and developer text is `system` before the first user or assistant block and user text
//! after it; tool results come first in their user message; a breakpoint on thinking, which takes
//! none, moves to the block before it.

use ctxbench_core::block::Role;
use ctxbench_core::request::Request;

use crate::wire::plan::{Show, Slot};

pub(super) fn lay_out(slots: &mut [Slot], request: &Request) {
    let is_system = |s: &Slot| {
        s.show == Show::Text
            && matches!(s.role, Role::Instructions | Role::System | Role::Developer)
    };
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
        a.is_assistant() == b.is_assistant()
            && (!request.keep_messages || results || owner(a) == owner(b))
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
        let takes =
            |s: &&mut Slot| s.block <= at && !matches!(s.show, Show::Reasoning | Show::Trigger);
        if let Some(s) = slots.iter_mut().rev().find(takes) {
            s.cache = Some(request.ttl);
        }
    }
}
