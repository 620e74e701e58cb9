//! Clearing old tool results: call kept, content replaced by a placeholder.

use std::collections::HashSet;
use std::sync::Arc;

use crate::block::{Block, BlockKind, Form};

/// When and how far old results are cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneRule {
    /// Newest results with this many tokens in all stay; the one that crosses the line goes.
    pub protect: u64,
    /// Nothing is cleared unless more than this many tokens go.
    pub minimum: u64,
    /// Also clear when exactly `minimum` tokens go.
    pub minimum_suffices: bool,
}

/// One thing met on the walk from the newest result back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneStep {
    /// A result of this size that may go.
    Result(u64),
    /// A result that always stays and is not counted.
    Exempt,
    /// The walk ends here.
    Stop,
}

/// Walks from the newest step (the first) back and says which may go. Empty when it is not worth
/// it.
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

/// A view with the results of these calls replaced by a placeholder. `calls` are positions in
/// `blocks`.
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
            if chosen.contains(&i) && b.kind == BlockKind::Output && b.form != Form::Cleared {
                b.altered(Form::Cleared, placeholder.clone())
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

    #[test]
    fn observed_walk() {
        // docs/sources/opencode.md §1: six reads of 13,677 tokens: the newest two stay, the oldest
        // four go.
        assert_eq!(prune_walk(results(&[13_677; 6]), RULE), [2, 3, 4, 5]);
        // Exactly the minimum is not enough.
        assert!(prune_walk(results(&[40_000, 20_000]), RULE).is_empty());
        assert_eq!(
            prune_walk(results(&[40_000, 20_000]), PruneRule { minimum_suffices: true, ..RULE }),
            [1]
        );
    }

    #[test]
    fn stops_and_exempts() {
        let steps = [
            PruneStep::Result(40_001),
            PruneStep::Exempt,
            PruneStep::Stop,
            PruneStep::Result(90_000),
        ];
        assert_eq!(prune_walk(steps, RULE), [0]);
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
