//! Claude Code according to two published accounts, which differ from the actual program. Each
//! account is implemented as written.
//!
//! Differences from the facts (docs/sources/claude-code.md §1):
//! - 001 (docs/sources/opencode-vs-claude-code.md §2): 92 % of the window was the trigger of
//!   mid-2025. Since 2026-01 it is the window less the reserve for the reply and 13k. There is no
//!   source for three claims: that ten messages stay, that half of the window is full afterwards,
//!   and that anything is written to CLAUDE.md. Restored files, the guards and the handling of an
//!   overflow are not mentioned.
//! - 002 (docs/sources/login-bug.md §3): results are cleared from a warning level on, and not
//!   before every request. According to the facts, nothing cuts the end of a prompt to preserve
//!   its beginning. Session memory exists but is reported to be off.

use ctxbench_core::block::is_fixed;
use ctxbench_core::prelude::*;

use super::rules::{
    ClaudeCodeSettings, ClaudeCodeWords, Conduct, Trim, believed, clearable, estimate,
    last_messages, new_from,
};
use super::strategy::ClaudeCodeProgram;
use super::summary::{Deleted, Summaries};
use crate::scoped::{remember, sections};

/// Share of the window at which the compressor starts, per cent
/// (docs/sources/opencode-vs-claude-code.md §2).
const FULL: u64 = 92;
/// Share of the window that is full after a compaction, per cent
/// (docs/sources/opencode-vs-claude-code.md §2).
const AFTER: u64 = 50;
/// Number of newest messages that stay (docs/sources/opencode-vs-claude-code.md §2: of 50 messages
/// the last ten).
const LAST: usize = 10;
/// Section of the summary that moves to the memory file.
const MEMORY: &str = "Project Memory";
/// Name of the memory file in sessions.
const MEMORY_FILES: [&str; 1] = ["CLAUDE.md"];

/// "wU2" (docs/sources/opencode-vs-claude-code.md §2): at 92 % it identifies removable messages,
/// summarises them, migrates critical facts to CLAUDE.md and replaces the rest.
pub(crate) struct Wu2 {
    asked: Summaries,
    reported: Option<u64>,
    undo: UndoStack,
}

impl Wu2 {
    pub fn new(settings: ClaudeCodeSettings, words: ClaudeCodeWords) -> Self {
        let words = ClaudeCodeWords { summary_prompt: words.wu2_prompt.clone(), ..words };
        let conduct = Conduct::Reported;
        let asked = Summaries { settings, words, conduct, deleted: Deleted::default() };
        Wu2 { asked, reported: None, undo: UndoStack::default() }
    }

    async fn compress(&mut self, s: &mut Engine) -> Result<(), String> {
        let before = s.context.blocks().to_vec();
        let (fixed, history): (Vec<_>, Vec<_>) = before.iter().cloned().partition(|b| is_fixed(b));
        // Identify all but the last ten messages, or fewer if these alone fill half of the window.
        let starts: Vec<usize> = (1..=LAST).rev().map(|n| last_messages(&history, n)).collect();
        let room = (s.model.window * AFTER / 100).saturating_sub(estimate(&fixed));
        let size = |b: &Block| bytes_div4_up(&b.text);
        let from = suffix_within(&history, &starts, room, size).unwrap_or(history.len());
        if from == 0 {
            return Err("there is nothing but the last messages".into());
        }
        // Summarise them.
        let shown = (&fixed[..], &history[..]);
        let written = self.asked.ask(s, Phase::MidTurn, None, None, shown).await?;
        let (gone, tail) = history.split_at(from.min(written.upto));
        // Migrate facts to the memory file.
        remember(&mut s.fixed.context, &MEMORY_FILES, &sections(&written.text, &[MEMORY]));
        // Replace the messages.
        let summary = self.asked.block(s, &without_memory(&written.text), gone);
        self.undo.push(summary.message, before);
        let shown =
            [&s.fixed.base[..], &s.fixed.repo_map, &s.fixed.context, &[summary], tail].concat();
        s.compacted(CompactionKind::Summarise, "wU2", Phase::MidTurn, shown)
            .map_err(|e| e.to_string())?;
        self.reported = None;
        Ok(())
    }
}

/// Returns a summary without its section for the memory file.
fn without_memory(text: &str) -> String {
    let is_heading = |l: &str| l.starts_with('#');
    let Some(at) = text.lines().position(|l| is_heading(l) && l.contains(MEMORY)) else {
        return text.to_string();
    };
    let lines: Vec<&str> = text.lines().collect();
    let end = (at + 1..lines.len()).find(|&i| is_heading(lines[i])).unwrap_or(lines.len());
    [&lines[..at], &lines[end..]].concat().join("\n").trim().to_string()
}

#[async_trait]
impl Strategy for Wu2 {
    async fn on_start(&mut self, s: &mut Engine) {
        (self.reported, self.undo) = (None, UndoStack::default());
        s.show_fixed();
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let (believed, limit) = (believed(s, self.reported), s.model.window * FULL / 100);
        if believed >= limit {
            s.trigger("92_percent", believed, limit);
            // The account mentions no failures, so the request is sent unchanged.
            let _ = self.compress(s).await;
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        Request { ttl: self.asked.ttl(s), ..s.sample_request() }
    }

    async fn on_reply(&mut self, _s: &mut Engine, reply: &Reply) -> ReplyFlow {
        self.reported = Some(reply.usage.prompt() + reply.usage.output);
        ReplyFlow::Proceed
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        self.undo.restore_before(s, to);
        s.truncate_after(to);
        self.reported = None;
    }
}

/// Three tiers from light to heavy, the model called last (docs/sources/login-bug.md §3): the program
/// with two tiers before it. The account does not mention the other mechanisms, so they are off.
pub(crate) fn three_tiers(s: ClaudeCodeSettings) -> ClaudeCodeSettings {
    ClaudeCodeSettings {
        session_memory: true,
        trim: Trim::Tail,
        output_chars: 0,
        shell_chars: 0,
        search_chars: 0,
        results_chars: 0,
        idle_compaction: false,
        ..s
    }
}

impl ClaudeCodeProgram {
    /// Runs tier 1, which clears old results before every request, except for the newest, and tier 2.
    /// Tier 3 is the program's: notes of the session memory, or else a summary with nine sections.
    pub(super) fn run_light_tiers(&mut self, s: &mut Engine) {
        let (keep, placeholder) = (self.asked.settings.micro_keep, &self.asked.words.cleared);
        let old = clearable(s.context.blocks(), keep, 0, placeholder);
        self.clear(s, &old, None);
        self.cut_the_end(s);
    }

    /// Runs tier 2: cuts the results at the unsent end, all to the same share, until the context is
    /// below the threshold. Content that was already sent stays unchanged, so that the cache still
    /// contains it.
    fn cut_the_end(&mut self, s: &mut Engine) {
        let limit = self.levels(s).compact;
        let over = (self.believed(s) + 1).saturating_sub(limit);
        let blocks = s.context.blocks();
        let new = new_from(blocks).max(s.context.changed_from());
        let may_go = |b: &Block| b.kind == BlockKind::Output && b.form == BlockForm::Verbatim;
        let new_results = blocks[new..].iter().filter(|b| may_go(b));
        let all: u64 = new_results.map(|b| b.text.len() as u64).sum();
        // Less than a tenth of a result is useless, so the third tier must run instead.
        let left = all.saturating_sub(over * 4);
        if over == 0 || all == 0 || left * 10 < all {
            return;
        }
        let mark = &self.asked.words.cut;
        let mut view = blocks.to_vec();
        for b in view[new..].iter_mut().filter(|b| may_go(b)) {
            let budget = (b.text.len() as u64 * left / all) as usize;
            if let Some(c) = middle_cut(&b.text, budget.saturating_sub(mark.len() + 2)) {
                let text = format!("{}\n{mark}\n{}", c.head, c.tail);
                *b = b.with_text(BlockForm::Truncated, text);
            }
        }
        s.trigger("over_the_limit", self.believed(s), limit);
        // Shorter results do not separate a call from its result.
        let _ = s.compacted(CompactionKind::Truncate, "tail_cut", Phase::MidTurn, view);
    }
}

#[cfg(test)]
#[path = "described_tests.rs"]
mod tests;
