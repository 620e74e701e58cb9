//! Positions at which a verbatim tail may start without separating calls from their results.

use std::collections::HashSet;
use std::sync::Arc;

use crate::block::{Block, BlockKind};

/// Returns the positions at which user messages begin.
pub fn turn_starts(blocks: &[Arc<Block>]) -> Vec<usize> {
    (0..blocks.len())
        .filter(|&i| {
            let user = |b: &Block| b.kind == BlockKind::User;
            user(&blocks[i])
                && (i == 0 || !user(&blocks[i - 1]) || blocks[i - 1].message != blocks[i].message)
        })
        .collect()
}

pub fn is_reply(b: &Block) -> bool {
    matches!(b.kind, BlockKind::Assistant | BlockKind::Reasoning | BlockKind::Call)
}

/// Returns the positions at which messages begin whose first block is `of` this kind.
fn message_starts(blocks: &[Arc<Block>], of: impl Fn(&Block) -> bool) -> Vec<usize> {
    let begins = |i: usize| i == 0 || blocks[i - 1].message != blocks[i].message;
    (0..blocks.len()).filter(|&i| begins(i) && of(&blocks[i])).collect()
}

/// Returns the positions at which replies begin.
pub fn step_starts(blocks: &[Arc<Block>]) -> Vec<usize> {
    message_starts(blocks, is_reply)
}

/// Returns the positions where the view can be split without separating a tool call from its result:
/// the beginning of each message that is not a tool result.
pub fn group_starts(blocks: &[Arc<Block>]) -> Vec<usize> {
    message_starts(blocks, |b| b.kind != BlockKind::Output)
}

/// Returns the earliest of `starts` with a suffix of at most `budget` tokens; `None` if none fits.
pub fn suffix_within(
    blocks: &[Arc<Block>],
    starts: &[usize],
    budget: u64,
    size: impl Fn(&Block) -> u64,
) -> Option<usize> {
    let suffix = |start: usize| blocks[start..].iter().map(|b| size(b)).sum::<u64>();
    starts.iter().copied().find(|&start| suffix(start) <= budget)
}

/// Returns the calls without a result.
pub fn unanswered(blocks: &[Arc<Block>]) -> Vec<Arc<Block>> {
    let results = blocks.iter().filter(|b| b.kind == BlockKind::Output);
    let answered: HashSet<&str> = results.filter_map(|b| b.call_id()).collect();
    let open = |b: &&Arc<Block>| {
        b.kind == BlockKind::Call && b.call_id().is_none_or(|id| !answered.contains(id))
    };
    blocks.iter().filter(open).cloned().collect()
}

/// Returns the newest position with a suffix of at least `min`; `None` if the total is less. Skips
/// items of size 0.
pub fn suffix_reaching(sizes: &[u64], min: u64) -> Option<usize> {
    let mut total = 0;
    (0..sizes.len()).rev().filter(|&i| sizes[i] > 0).find(|&i| {
        total += sizes[i];
        total >= min
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffix_reaching_counts_from_the_newest_item() {
        assert_eq!(suffix_reaching(&[5, 10, 100, 10], 110), Some(2));
        assert_eq!(suffix_reaching(&[5, 10, 100, 10], 111), Some(1));
        assert_eq!(suffix_reaching(&[5, 10, 100, 10, 0], 0), Some(3));
        assert_eq!(suffix_reaching(&[5, 10], 16), None);
        assert_eq!(suffix_reaching(&[0, 0], 0), None);
    }
}
