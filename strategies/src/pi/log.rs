//! pi's session: a log of entries in the order in which they were written (docs/sources/pi.md §7).
//! Entries never change. An edit hides a message, and a compaction replaces the messages before its
//! tail. The log gives the view, its size, and the position at which a compaction would cut it (§1, §2).

use ctxbench_core::prelude::*;

use super::rules::{FileLists, arguments, by_three_and_a_half, quarter};
use crate::shared::interrupted;

/// Characters that the estimators count for an image (docs/sources/pi.md §1).
const IMAGE_CHARS: u64 = 4_800;
/// Text of the error result that is sent for a call without a result (docs/sources/pi.md §7).
const NO_RESULT: &str = "No result provided";
/// Text that is sent for a result without text (docs/sources/pi.md §7).
const NO_OUTPUT: &str = "(no tool output)";

/// Usage and outcome of a model's message.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) usage: Usage,
    /// The reply was cut off at its output limit.
    pub(super) cut_off: bool,
    /// Error of a message without a reply.
    pub(super) failed: Option<ModelError>,
}

impl Report {
    pub(super) fn from_reply(reply: &Reply) -> Report {
        let cut_off = matches!(reply.stop, StopReason::MaxTokens | StopReason::WindowExceeded);
        Report { usage: reply.usage, cut_off, failed: None }
    }

    /// Returns the tokens of prompt and output, or 0 if the request failed or nothing was reported.
    pub(super) fn total(&self) -> u64 {
        if self.failed.is_some() { 0 } else { self.usage.prompt() + self.usage.output }
    }
}

#[derive(Debug)]
pub(super) struct PiMessage {
    pub(super) role: Role,
    /// Blocks that are sent for the message.
    pub(super) blocks: Vec<Arc<Block>>,
    /// Characters, as both estimators count them.
    pub(super) chars: u64,
    /// Set for the model's messages only.
    pub(super) report: Report,
    /// True if an edit excludes the message from every request.
    pub(super) hidden: bool,
}

#[derive(Debug)]
pub(super) struct PiCompaction {
    /// The message that is sent.
    pub(super) block: Arc<Block>,
    /// Summary with the file lists, but without the text around it.
    pub(super) summary: String,
    /// Index of the first entry of the tail.
    pub(super) first_kept: usize,
    pub(super) files: FileLists,
}

#[derive(Debug)]
pub(super) enum EntryContent {
    Message(PiMessage),
    Compaction(PiCompaction),
    /// Hides a message. The hidden message has its `hidden` flag set.
    Edit,
}

#[derive(Debug)]
pub(super) struct LogEntry {
    id: MessageId,
    pub(super) content: EntryContent,
}

impl LogEntry {
    /// Returns the message of the entry, unless it is hidden.
    pub(super) fn visible(&self) -> Option<&PiMessage> {
        match &self.content {
            EntryContent::Message(m) if !m.hidden => Some(m),
            _ => None,
        }
    }

    pub(super) fn is_compaction(&self) -> bool {
        matches!(self.content, EntryContent::Compaction(_))
    }

    pub(super) fn is_edit(&self) -> bool {
        matches!(self.content, EntryContent::Edit)
    }
}

/// All entries, oldest first.
#[derive(Default)]
pub(super) struct Log(pub(super) Vec<LogEntry>);

impl Log {
    /// Adds a message with its blocks. Returns true if the log sends other blocks.
    pub(super) fn push_message(
        &mut self,
        id: MessageId,
        role: Role,
        blocks: Vec<Arc<Block>>,
        report: Report,
    ) -> bool {
        let chars = blocks.iter().map(|b| chars(b)).sum();
        let mut message = PiMessage { role, blocks, chars, report, hidden: false };
        let changed = message.tidy();
        self.0.push(LogEntry { id, content: EntryContent::Message(message) });
        changed
    }

    /// Adds a failed reply and returns its index.
    pub(super) fn push_failed(&mut self, s: &mut Engine, e: &ModelError) -> usize {
        let id = s.append(Role::Assistant, vec![]);
        let report = Report { failed: Some(e.clone()), ..Report::default() };
        self.push_message(id, Role::Assistant, vec![], report);
        self.0.len() - 1
    }

    pub(super) fn push_compaction(&mut self, c: PiCompaction) {
        self.0.push(LogEntry { id: c.block.message, content: EntryContent::Compaction(c) });
    }

    /// Hides a message by an edit.
    pub(super) fn hide(&mut self, at: usize) {
        if let EntryContent::Message(m) = &mut self.0[at].content {
            m.hidden = true;
            // A rewind to the message also removes the edit, because both have the same ID.
            let id = self.0[at].id;
            self.0.push(LogEntry { id, content: EntryContent::Edit });
        }
    }

    /// Adds an error result to each call without a result, as the next request sends it. Returns
    /// true if there were such calls.
    pub(super) fn close_calls(&mut self, s: &mut Engine) -> bool {
        let newest = self.0.iter().rposition(
            |e| matches!(&e.content, EntryContent::Message(m) if m.role == Role::Assistant),
        );
        let Some(at) = newest else { return false };
        let visible = self.0[at..].iter().filter_map(LogEntry::visible);
        let blocks: Vec<Arc<Block>> = visible.flat_map(|m| m.blocks.iter().cloned()).collect();
        let open = unanswered(&blocks);
        // The results belong to the request and not to the session, so they are never counted.
        if let EntryContent::Message(m) = &mut self.0[at].content {
            m.blocks.extend(open.iter().map(|b| interrupted(s, b, NO_RESULT)));
        }
        !open.is_empty()
    }

    /// Removes the entries after a message. The program keeps them on another branch of its tree of
    /// entries.
    pub(super) fn rewind(&mut self, to: MessageId) {
        self.0.retain(|e| e.id <= to);
    }
}

impl PiMessage {
    /// Removes blank replies and replaces blank results, as the program does before it sends them.
    /// Returns true if a block changed.
    fn tidy(&mut self) -> bool {
        let blank = |b: &Block, kind| b.kind == kind && b.text.trim().is_empty();
        let before = self.blocks.len();
        if self.role == Role::Assistant {
            self.blocks.retain(|b| !blank(b, BlockKind::Assistant));
        }
        let mut changed = self.blocks.len() < before;
        for b in self.blocks.iter_mut().filter(|b| blank(b, BlockKind::Output)) {
            *b = b.with_text(BlockForm::Verbatim, NO_OUTPUT);
            changed = true;
        }
        changed
    }
}

/// Returns the characters of a block as the estimators count them.
fn chars(b: &Block) -> u64 {
    match b.kind {
        BlockKind::Image => IMAGE_CHARS,
        BlockKind::Call => {
            let name = b.call.as_ref().map_or(0, |c| utf16_len(&c.name));
            name + utf16_len(&arguments(b).write())
        }
        _ => utf16_len(&b.text),
    }
}

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
    pub(super) fn input(&self, base_chars: [u64; 2]) -> u64 {
        let by = by_three_and_a_half;
        self.counted(LogEntry::is_compaction, by).unwrap_or_else(|| {
            let summary = self.compaction().map_or(0, |(_, c)| by(utf16_len(&c.block.text)));
            let base = base_chars.into_iter().map(by).sum::<u64>();
            base + summary + self.messages().map(|m| by(m.chars)).sum::<u64>()
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

    /// Plans a compaction as version 0.14: the tail begins with a message of the user, and the counters
    /// since the newest compaction tell its size. What that compaction kept is neither summarised nor
    /// kept (docs/sources/pi.md §10).
    pub(super) fn plan_of_turns(&self, keep: u64) -> Option<CompactionPlan> {
        let from = self.compaction().map_or(0, |(at, _)| at + 1);
        let is_turn = |i: &usize| self.0[*i].visible().is_some_and(|m| m.role == Role::User);
        let total = |i: usize| self.0[i].visible().map_or(0, |m| m.report.total());
        let mut counted = (from..self.0.len()).rev().filter(|i| total(*i) > 0).peekable();
        let newest = counted.peek().map_or(0, |i| total(*i));
        let mut first_kept = from;
        while let Some(at) = counted.next() {
            // With the reply before, the tail would be larger than asked.
            if counted.peek().is_some_and(|i| newest.saturating_sub(total(*i)) >= keep) {
                first_kept = (from..=at).rev().find(is_turn).unwrap_or(from);
                break;
            }
        }
        let history = (from..first_kept).filter(|i| self.0[*i].visible().is_some()).collect();
        let plan = CompactionPlan { first_kept, history, turn: Vec::new(), split: false };
        (from < self.0.len()).then_some(plan)
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
