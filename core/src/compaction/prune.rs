//! Clearing old tool results: the call remains, the content becomes a placeholder.

use std::sync::Arc;

use crate::block::{Block, BlockForm, BlockKind};

/// Thresholds for clearing old results, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneRule {
    /// Tokens of the newest results to keep. A result that crosses this limit is cleared.
    pub protect: u64,
    /// Nothing is cleared unless this would clear more than this many tokens.
    pub minimum: u64,
    /// Whether clearing exactly `minimum` tokens is enough.
    pub minimum_suffices: bool,
}

/// Walks from the newest result (the first) backwards by size and returns the results to clear; none
/// if they are below the minimum. A result of size `None` is never cleared and not counted.
pub fn prune_walk(sizes: impl IntoIterator<Item = Option<u64>>, rule: PruneRule) -> Vec<usize> {
    let (mut total, mut gone, mut out) = (0, 0, Vec::new());
    for (i, size) in sizes.into_iter().enumerate() {
        let Some(size) = size else { continue };
        total += size;
        if total > rule.protect {
            gone += size;
            out.push(i);
        }
    }
    let worth = gone > rule.minimum || (rule.minimum_suffices && gone == rule.minimum);
    if worth && !out.is_empty() { out } else { Vec::new() }
}

/// Returns a view with the results at positions `at` replaced by a placeholder.
pub fn clear_outputs(
    blocks: &[Arc<Block>],
    at: &[usize],
    placeholder: &Arc<str>,
) -> Vec<Arc<Block>> {
    let mut view = blocks.to_vec();
    for &i in at {
        if view[i].kind == BlockKind::Output && view[i].form != BlockForm::Cleared {
            view[i] = view[i].with_text(BlockForm::Cleared, placeholder.clone());
        }
    }
    view
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: PruneRule = PruneRule { protect: 40_000, minimum: 20_000, minimum_suffices: false };

    proptest! {
        #[test]
        fn cleared_tokens_always_exceed_the_minimum(sizes in prop::collection::vec(0u64..30_000, 0..20)) {
            let at = prune_walk(sizes.iter().copied().map(Some), RULE);
            let gone: u64 = at.iter().map(|&i| sizes[i]).sum();
            prop_assert!(at.is_empty() || gone > RULE.minimum);
            let kept: u64 = sizes.iter().sum::<u64>() - gone;
            prop_assert!(at.is_empty() || kept <= RULE.protect);
        }
    }
}
