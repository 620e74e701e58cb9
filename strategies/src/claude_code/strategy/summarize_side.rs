//! "Summarise from here" and "summarise up to here" of Claude Code's rewind menu: one side of a
//! message becomes a summary, and the other stays verbatim (docs/sources/claude-code.md §1.5,
//! versions 2.1.32 and 2.1.141, grade A).
//!
//! The first keeps the prefix, so the prompt cache still contains it. The second keeps the suffix.
//! Recent files are not restored afterwards, because no source says that they are.

use super::ClaudeCodeProgram;
use ctxbench_core::prelude::*;

/// Number of characters that the instruction quotes of the message before the split; ours.
const QUOTED: usize = 80;

impl ClaudeCodeProgram {
    /// Summarises one side of the conversation, split right after a message. A failure changes
    /// nothing.
    pub(super) async fn summarise_side(
        &mut self,
        s: &mut Engine,
        to: MessageId,
        mode: RewindMode,
        instructions: Option<&str>,
    ) -> Result<(), String> {
        let (fixed, history) = self.split_fixed(s);
        // The split is after the last block of the message. A summary that replaces it has a newer
        // id but an earlier position.
        let seam = history.iter().rposition(|b| b.message <= to).map_or(0, |i| i + 1);
        let (before, after) = history.split_at(seam);
        let from_here = mode == RewindMode::SummarizeFrom;
        let (gone, shown) = if from_here { (after, &history[..]) } else { (before, before) };
        if gone.is_empty() {
            return Err("there is nothing to summarise on this side".into());
        }
        let only = before.last().filter(|_| from_here).map(|b| {
            let quoted: String = b.text.chars().take(QUOTED).collect();
            format!(
                "Summarise only what comes after the message that begins with \"{quoted}\"; \
                 everything up to it stays in the conversation."
            )
        });
        let extra: Vec<&str> = only.iter().map(String::as_str).chain(instructions).collect();
        let extra = extra.join("\n");
        let phase = Phase::StandaloneTurn;
        let written = self.asked.ask(s, phase, Some(&extra), None, (&fixed, shown)).await?;
        if written.upto < shown.len() {
            return Err("the conversation is too long to be summarised at once".into());
        }
        let summary = [self.asked.block(s, &written.text, gone)];
        let sides = if from_here { [before, &summary] } else { [&summary, after] };
        self.replace(s, mode.word(), phase, [&fixed[..], sides[0], sides[1]].concat())?;
        self.memory.forget(s);
        Ok(())
    }
}

#[cfg(test)]
#[path = "summarize_side_tests.rs"]
mod tests;
