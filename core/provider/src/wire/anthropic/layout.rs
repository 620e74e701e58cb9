//! Anthropic Messages: layout of blocks.
//!
//! System and developer text is `system` before the first user or assistant block and user text
//! after it. Tool results come first in their user message. A breakpoint on thinking, where it is not
//! allowed, moves to the block before it.

use ctxbench_core::request::Request;

use crate::wire::plan::turns;
use crate::wire::slot::{BlockForm, Slot};

pub(super) fn assign(slots: &mut [Slot], request: &Request) {
    mark(slots, request);
    turns(slots, request);
}

fn mark(slots: &mut [Slot], request: &Request) {
    for &at in &request.breakpoints {
        let takes = |s: &&mut Slot| {
            s.block <= at && !matches!(s.show, BlockForm::Reasoning | BlockForm::Trigger)
        };
        if let Some(s) = slots.iter_mut().rev().find(takes) {
            s.cache = Some(request.ttl);
        }
    }
}
