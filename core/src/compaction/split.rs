//! Finding where a verbatim tail may start without separating calls from their results.

use std::collections::HashSet;
use std::sync::Arc;

use crate::block::{Block, BlockKind};

/// Positions at which a user message begins, from the given start.
pub fn turn_starts(blocks: &[Arc<Block>]) -> Vec<usize> {
    (0..blocks.len())
        .filter(|&i| {
            let user = |b: &Block| b.kind == BlockKind::User;
            user(&blocks[i])
                && (i == 0 || !user(&blocks[i - 1]) || blocks[i - 1].message != blocks[i].message)
        })
        .collect()
}

/// Whether a block is part of a model's reply.
pub fn made_by_model(b: &Block) -> bool {
    matches!(b.kind, BlockKind::Assistant | BlockKind::Reasoning | BlockKind::Call)
}

/// Positions at which a model's reply begins.
pub fn step_starts(blocks: &[Arc<Block>]) -> Vec<usize> {
    (0..blocks.len())
        .filter(|&i| {
            let begins = i == 0 || blocks[i - 1].message != blocks[i].message;
            begins && made_by_model(&blocks[i])
        })
        .collect()
}

/// Positions before which a cut separates nothing: the beginning of a message, unless it holds
/// results of calls further up.
pub fn group_starts(blocks: &[Arc<Block>]) -> Vec<usize> {
    (0..blocks.len())
        .filter(|&i| {
            let begins = i == 0 || blocks[i - 1].message != blocks[i].message;
            begins && blocks[i].kind != BlockKind::Output
        })
        .collect()
}

/// The earliest of `starts` whose suffix is at most `budget` tokens; `None` when none fits.
pub fn suffix_within(
    blocks: &[Arc<Block>],
    starts: &[usize],
    budget: u64,
    size: impl Fn(&Block) -> u64,
) -> Option<usize> {
    let mut total = 0;
    let mut end = blocks.len();
    let mut best = None;
    for &start in starts.iter().rev() {
        total += blocks[start..end].iter().map(|b| size(b)).sum::<u64>();
        if total > budget {
            break;
        }
        best = Some(start);
        end = start;
    }
    best
}

/// Calls whose result is not there.
pub fn unanswered(blocks: &[Arc<Block>]) -> Vec<Arc<Block>> {
    let results = blocks.iter().filter(|b| b.kind == BlockKind::Output);
    let answered: HashSet<&str> = results.filter_map(|b| b.call_id()).collect();
    let open = |b: &&Arc<Block>| {
        b.kind == BlockKind::Call && b.call_id().is_none_or(|id| !answered.contains(id))
    };
    blocks.iter().filter(open).cloned().collect()
}

/// The newest position from which the sizes to the end add up to at least `least`; `None` when all
/// of them together do not. What has no size is passed over.
pub fn suffix_reaching(sizes: &[u64], least: u64) -> Option<usize> {
    let mut total = 0;
    (0..sizes.len()).rev().filter(|&i| sizes[i] > 0).find(|&i| {
        total += sizes[i];
        total >= least
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_reaches_from_the_newest_item_back() {
        assert_eq!(suffix_reaching(&[5, 10, 100, 10], 110), Some(2));
        assert_eq!(suffix_reaching(&[5, 10, 100, 10], 111), Some(1));
        assert_eq!(suffix_reaching(&[5, 10, 100, 10, 0], 0), Some(3));
        assert_eq!(suffix_reaching(&[5, 10], 16), None);
        assert_eq!(suffix_reaching(&[0, 0], 0), None);
    }
}
