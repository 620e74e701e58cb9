//! Limits and breakpoints of requests that OpenCode and its descriptions send.

use std::sync::Arc;

use ctxbench_core::block::{Block, Role};
use ctxbench_core::engine::Engine;
use ctxbench_core::model::Provider;

use super::rules::ModelLimits;

/// Returns the limits of the session's model.
pub(crate) fn limits(s: &Engine) -> ModelLimits {
    ModelLimits { context: s.model.window, output: s.model.max_output, input: s.model.input_limit }
}

/// Returns the breakpoints, which only Anthropic needs: the first two system messages and the last
/// two other messages (docs/sources/opencode.md §6).
pub(crate) fn breakpoints(s: &Engine, blocks: &[Arc<Block>]) -> Vec<usize> {
    if s.model.provider != Provider::Anthropic {
        return Vec::new();
    }
    let systems: Vec<usize> =
        (0..blocks.len()).filter(|&i| blocks[i].role == Role::System).take(2).collect();
    let ends = |i: usize| {
        i + 1 == blocks.len() || {
            let (a, b) = (&blocks[i], &blocks[i + 1]);
            !(a.message == b.message || (a.role == Role::Tool && b.role == Role::Tool))
        }
    };
    let mut last: Vec<usize> = (0..blocks.len())
        .rev()
        .filter(|&i| blocks[i].role != Role::System && ends(i))
        .take(2)
        .collect();
    last.reverse();
    systems.into_iter().chain(last).collect()
}
