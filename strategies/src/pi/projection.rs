//! The view that the log gives, its size, and the position at which a compaction would cut it
//! (docs/sources/pi.md §1, §2).

use std::sync::Arc;

use ctxbench_core::block::{Block, Role};
use ctxbench_core::compaction::suffix_reaching;
use ctxbench_core::tokens::utf16_len;

use super::log::{EntryContent, Log, LogEntry, PiCompaction, PiMessage};
use super::rules::{Base, by_three_and_a_half, quarter};
use super::summary::FileLists;

/// Entries that a compaction would keep and summarise.
#[derive(Debug, PartialEq)]
pub(super) struct CompactionPlan {
    /// Index of the first entry of the tail.
    pub(super) first_kept: usize,
    /// Indexes of the entries to summarise.
    pub(super) history: Vec<usize>,
    /// Indexes of the beginning of a split turn; empty if the cut lies between turns.
    pub(super) turn: Vec<usize>,
    /// Whether the cut is inside a turn.
    pub(super) split: bool,
}

impl Log {
    /// Returns the newest compaction and its index.
    pub(super) fn compaction(&self) -> Option<(usize, &PiCompaction)> {
        self.0.iter().enumerate().rev().find_map(|(i, e)| match &e.content {
            EntryContent::Compaction(c) => Some((i, c)),
            _ => None,
        })
    }

    /// Returns the indexes of the entries of the view, with the newest compaction first.
    pub(super) fn projected(&self) -> Vec<usize> {
        let end = self.0.len();
        match self.compaction() {
            None => (0..end).collect(),
            Some((at, c)) => {
                std::iter::once(at).chain(c.first_kept..at).chain(at + 1..end).collect()
            }
        }
    }

    fn messages(&self) -> impl Iterator<Item = &PiMessage> {
        self.projected().into_iter().filter_map(|i| self.0[i].visible())
    }

    /// Returns the blocks that are sent after the fixed part.
    pub(super) fn visible_blocks(&self) -> Vec<Arc<Block>> {
        let summary = self.compaction().map(|(_, c)| c.block.clone());
        summary.into_iter().chain(self.messages().flat_map(|m| m.blocks.iter().cloned())).collect()
    }

    /// Returns true if a message is still sent.
    pub(super) fn is_projected(&self, at: usize) -> bool {
        let kept = self.compaction().is_none_or(|(_, c)| at >= c.first_kept);
        kept && self.0[at].visible().is_some()
    }

    /// Returns true if the view depends on an edit.
    pub(super) fn has_edits(&self) -> bool {
        let from = self.compaction().map_or(0, |(_, c)| c.first_kept);
        self.0[from..].iter().any(LogEntry::is_edit)
    }

    /// Returns the index of the newest sent message of the model, which may be a failure.
    pub(super) fn newest_reply(&self) -> Option<usize> {
        let replies = |m: &PiMessage| m.role == Role::Assistant;
        (0..self.0.len())
            .rev()
            .find(|&i| self.0[i].visible().is_some_and(replies) && self.is_projected(i))
    }

    /// Searches back from the newest entry for a reply with usable counters. Returns its total and
    /// the estimate `of` each message after it. `None` = an entry that `ends` accepts comes first.
    fn counted(&self, ends: fn(&LogEntry) -> bool, of: fn(u64) -> u64) -> Option<u64> {
        let mut behind = 0;
        for e in self.0.iter().rev().take_while(|e| !ends(e)) {
            let Some(m) = e.visible() else { continue };
            if m.report.total() > 0 {
                return Some(m.report.total() + behind);
            }
            behind += of(m.chars);
        }
        None
    }

    /// Estimates the tokens of the view: the counters of the last reply since the newest compaction
    /// or edit plus a quarter of the characters of the later messages. Without such a reply,
    /// everything is estimated by its length.
    pub(super) fn tokens(&self, base: u64) -> u64 {
        let ends = |e: &LogEntry| e.is_compaction() || e.is_edit();
        self.counted(ends, quarter).unwrap_or_else(|| self.estimate(base))
    }

    /// Estimates the tokens of the view as [`Log::tokens`] does, but also uses counters from before
    /// an edit. `None` = the counters are older than the newest compaction.
    pub(super) fn tokens_across_edits(&self, base: u64) -> Option<u64> {
        let stale = || self.messages().any(|m| m.report.total() > 0);
        let counted = self.counted(LogEntry::is_compaction, quarter);
        counted.or_else(|| (!stale()).then(|| self.estimate(base)))
    }

    /// Estimates the tokens of the view by its length alone.
    pub(super) fn estimate(&self, base: u64) -> u64 {
        let summary = self.compaction().map_or(0, |(_, c)| quarter(utf16_len(&c.summary)));
        base + summary + self.messages().map(|m| quarter(m.chars)).sum::<u64>()
    }

    /// Estimates the tokens of the next request at 3.5 characters per token. Edits do not
    /// invalidate the counters.
    pub(super) fn input(&self, base: &Base) -> u64 {
        let by = by_three_and_a_half;
        self.counted(LogEntry::is_compaction, by).unwrap_or_else(|| {
            let summary = self.compaction().map_or(0, |(_, c)| by(utf16_len(&c.block.text)));
            base.by_three_and_a_half() + summary + self.messages().map(|m| by(m.chars)).sum::<u64>()
        })
    }

    /// Plans a compaction that keeps about `keep` tokens. `None` = there is nothing to compact.
    pub(super) fn plan(&self, keep: u64) -> Option<CompactionPlan> {
        if self.0.last()?.is_compaction() {
            return None;
        }
        let all = self.projected();
        let view = &all[usize::from(self.compaction().is_some())..];
        let says = |i: usize| self.0[view[i]].visible();
        let is = |i: usize, roles: &[Role]| says(i).is_some_and(|m| roles.contains(&m.role));
        // A tail never begins with a result.
        let cuts: Vec<usize> =
            (0..view.len()).filter(|&i| is(i, &[Role::User, Role::Assistant])).collect();
        let sizes: Vec<u64> =
            (0..view.len()).map(|i| says(i).map_or(0, |m| quarter(m.chars))).collect();
        let mut cut = *cuts.first()?;
        if let Some(reached) = suffix_reaching(&sizes, keep) {
            cut = *cuts.iter().find(|&&c| c >= reached).or(cuts.last())?;
            cut += usize::from(self.only_a_hidden_reply_follows(&view[cut + 1..]));
        }
        // Entries that are not sent stay with the message after them.
        while cut > 0 && says(cut - 1).is_none() && !self.0[view[cut - 1]].is_compaction() {
            cut -= 1;
        }
        let starts_turn = |i: usize| is(i, &[Role::User]);
        let turn = if starts_turn(cut) { None } else { (0..=cut).rev().find(|&i| starts_turn(i)) };
        let messages = |from: usize, to: usize| -> Vec<usize> {
            view[from..to].iter().copied().filter(|&i| self.0[i].visible().is_some()).collect()
        };
        let plan = CompactionPlan {
            first_kept: *view.get(cut)?,
            history: messages(0, turn.unwrap_or(cut)),
            turn: turn.map_or_else(Vec::new, |t| messages(t, cut)),
            split: turn.is_some(),
        };
        (!plan.history.is_empty() || !plan.turn.is_empty()).then_some(plan)
    }

    /// Returns true if only a hidden reply follows the cut. The last visible message is then
    /// summarised too, since it has no answer.
    fn only_a_hidden_reply_follows(&self, suffix: &[usize]) -> bool {
        let hidden = |m: &PiMessage| m.hidden && m.role == Role::Assistant;
        let mut found = false;
        for &i in suffix {
            match &self.0[i].content {
                EntryContent::Compaction(_) => return false,
                EntryContent::Message(m) if !m.hidden => return false,
                EntryContent::Message(m) => found |= hidden(m),
                EntryContent::Edit => {}
            }
        }
        found
    }

    /// Returns the files that the messages and the previous summary name.
    pub(super) fn files(&self, messages: impl Iterator<Item = usize>) -> FileLists {
        let mut files = self.compaction().map(|(_, c)| c.files.clone()).unwrap_or_default();
        for m in messages.filter_map(|i| self.0[i].visible()) {
            m.blocks.iter().for_each(|b| files.note(b));
        }
        files.settled()
    }
}
