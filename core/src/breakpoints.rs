//! Default prompt-cache breakpoints, for products without a rule for the provider.

use std::sync::Arc;

use crate::block::{Block, Role, is_system};
use crate::usage::Ttl;

/// The default lifetime of cache entries: five minutes, as for an API key
/// (docs/sources/claude-code.md §1.5).
pub const DEFAULT_TTL: Ttl = Ttl::FiveMinutes;

/// Returns the default positions of prompt-cache breakpoints, for products without a rule for the
/// provider: the end of the system part and of the last two messages.
pub fn default_breakpoints(blocks: &[Arc<Block>]) -> Vec<usize> {
    let system_end = blocks.iter().take_while(|b| is_system(b)).count();
    let ends_message =
        |&i: &usize| blocks.get(i + 1).is_none_or(|next| wire_side(&blocks[i]) != wire_side(next));
    let messages: Vec<usize> =
        (system_end..blocks.len()).rev().filter(ends_message).take(2).collect();
    system_end.checked_sub(1).into_iter().chain(messages.into_iter().rev()).collect()
}

/// Returns the default positions and one more, before the first block that the next clearing of old
/// results changes. Clearing changes the prompt from there on, more positions back than a cache read
/// checks; the extra breakpoint keeps the part before it in the cache.
pub fn frontier_breakpoints(blocks: &[Arc<Block>], next_change: Option<usize>) -> Vec<usize> {
    let mut out = default_breakpoints(blocks);
    if let Some(before) = next_change.and_then(|i| i.checked_sub(1)) {
        out.push(before);
        out.sort_unstable();
        out.dedup();
    }
    out
}

/// Returns whether a block is the model's. Neighbours with the same answer become one message on most
/// wires.
fn wire_side(b: &Block) -> bool {
    b.role == Role::Assistant
}
