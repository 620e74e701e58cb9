//! Clearing old tool results: the call remains, the content becomes a placeholder.

use std::collections::HashSet;
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

/// One step of the walk from the newest result backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneStep {
    /// A clearable result of this size.
    Result(u64),
    /// A result that is never cleared and not counted.
    Exempt,
    /// End of the walk.
    Stop,
}

/// Walks from the newest step (the first) backwards and returns the steps to clear. Returns none if
/// they are below the minimum.
pub fn prune_walk(steps: impl IntoIterator<Item = PruneStep>, rule: PruneRule) -> Vec<usize> {
    let (mut total, mut gone, mut out) = (0, 0, Vec::new());
    for (i, step) in steps.into_iter().enumerate() {
        match step {
            PruneStep::Stop => break,
            PruneStep::Exempt => {}
            PruneStep::Result(size) => {
                total += size;
                if total > rule.protect {
                    gone += size;
                    out.push(i);
                }
            }
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
    let chosen: HashSet<usize> = at.iter().copied().collect();
    blocks
        .iter()
        .enumerate()
        .map(|(i, b)| {
            if chosen.contains(&i) && b.kind == BlockKind::Output && b.form != BlockForm::Cleared {
                b.with_text(BlockForm::Cleared, placeholder.clone())
            } else {
                b.clone()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: PruneRule = PruneRule { protect: 40_000, minimum: 20_000, minimum_suffices: false };

    fn results(sizes: &[u64]) -> Vec<PruneStep> {
        sizes.iter().map(|&s| PruneStep::Result(s)).collect()
    }

    proptest! {
        #[test]
        fn cleared_tokens_always_exceed_the_minimum(sizes in prop::collection::vec(0u64..30_000, 0..20)) {
            let at = prune_walk(results(&sizes), RULE);
            let gone: u64 = at.iter().map(|&i| sizes[i]).sum();
            prop_assert!(at.is_empty() || gone > RULE.minimum);
            let kept: u64 = sizes.iter().sum::<u64>() - gone;
            prop_assert!(at.is_empty() || kept <= RULE.protect);
        }
    }
}
