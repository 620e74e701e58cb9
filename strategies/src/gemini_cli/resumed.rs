//! Duplicate tool results of a resumed session. The file contains each result twice, with its call
//! and as a message, and the program reads both (docs/sources/gemini-cli.md §6). Normal requests
//! show one copy. Estimates, compression and masking see both.

use std::collections::HashMap;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind};

/// Number of copies of each result in the history.
#[derive(Default)]
pub(super) struct Copies {
    /// Final numbers of copies, by call ID.
    settled: HashMap<String, usize>,
    /// Results that the file stores with their calls, by call ID.
    stored: HashMap<String, ResumedState>,
    /// No results are stored with calls after a compression in this process.
    rewritten: bool,
}

#[derive(Clone, Copy, Default)]
struct ResumedState {
    /// Number of times that the session was resumed since the result was stored.
    resumed: usize,
    /// Number of results in the same message.
    together: usize,
}

impl ResumedState {
    /// The first resume reads both copies. At each later one, every call of a message adds all of
    /// the message's results.
    fn copies(self) -> usize {
        match self.resumed {
            0 => 1,
            1 => 2,
            n => 2 + (n - 1) * self.together,
        }
    }
}

impl Copies {
    /// Records the results of one message, given their call IDs.
    pub(super) fn recorded(&mut self, ids: &[String]) {
        if !self.rewritten {
            let stored = ResumedState { resumed: 0, together: ids.len() };
            self.stored.extend(ids.iter().map(|id| (id.clone(), stored)));
        }
    }

    /// Records that the stored messages were rewritten from the history, without the results stored
    /// with calls. `ends` = a compression did it, after which no results are stored with calls
    /// until the process ends.
    pub(super) fn rewritten(&mut self, ends: bool) {
        for (id, stored) in self.stored.drain() {
            self.settled.insert(id, stored.copies());
        }
        self.rewritten |= ends;
    }

    /// Records that the session was opened again.
    pub(super) fn resumed(&mut self) {
        self.rewritten = false;
        self.stored.values_mut().for_each(|s| s.resumed += 1);
    }

    fn copies(&self, b: &Block) -> usize {
        let id = b.call_id().unwrap_or_default();
        let stored = self.stored.get(id).map(|s| s.copies());
        stored.or_else(|| self.settled.get(id).copied()).unwrap_or(1)
    }

    /// Repeats each result as often as it occurs in the history. The results of a message stay
    /// together.
    pub(super) fn spread<'a>(
        &'a self,
        blocks: &'a [Arc<Block>],
    ) -> impl Iterator<Item = &'a Arc<Block>> {
        let kind = |b: &Block| b.kind == BlockKind::Output;
        blocks.chunk_by(move |a, b| kind(a) == kind(b)).flat_map(move |run| {
            let most = match run.first() {
                Some(b) if kind(b) => run.iter().map(|b| self.copies(b)).max().unwrap_or(1),
                _ => 1,
            };
            (0..most).flat_map(move |k| run.iter().filter(move |b| !kind(b) || self.copies(b) > k))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::call_block;

    fn result(id: &str) -> Arc<Block> {
        call_block(BlockKind::Output, id, "t", "out")
    }

    fn ids(copies: &Copies, blocks: &[Arc<Block>]) -> Vec<String> {
        copies.spread(blocks).map(|b| b.call_id().unwrap().to_string()).collect()
    }

    #[test]
    fn a_resumed_result_stands_there_twice_unless_a_compression_came_before_it() {
        let mut copies = Copies::default();
        let blocks = [result("a"), result("b")];
        copies.recorded(&["a".into()]);
        assert_eq!(ids(&copies, &blocks), ["a", "b"]);
        copies.resumed();
        copies.rewritten(true);
        copies.recorded(&["b".into()]);
        assert_eq!(ids(&copies, &blocks), ["a", "b", "a"]);
        copies.resumed();
        assert_eq!(ids(&copies, &blocks), ["a", "b", "a"]);
        // The next process stores results with calls again.
        copies.recorded(&["c".into()]);
        copies.resumed();
        assert_eq!(ids(&copies, &[result("c")]), ["c", "c"]);
    }
}
