//! Claude Code: a summary, requested on the cached prefix, replaces the conversation, and recently
//! used files are restored.
//!
//! Follows the documented, measured and reported behaviour of 2.1 (docs/sources/claude-code.md §1).
//! The program is closed source, so every setting has a grade in its source: A documented, B measured,
//! C reported. Before a request, the strategy estimates the size from the last usage and the new
//! blocks. If `microcompact` names a rule, old tool results are cleared. Above the threshold, the
//! same model summarises the conversation over the same prefix, or the notes of a session memory
//! replace it if that is on. After an overflow error the same happens with one end of the
//! conversation left out.
//!
//! A large session that idles on the one-hour cache is compacted before the cache entry expires
//! (`strategy/idle.rs`).
//!
//! The user's hooks can add to a compaction or block it (`rules.rs`). A large session that is
//! resumed after a long pause may continue from a summary (`strategy/idle.rs`).
//!
//! Not modelled: images too large for a summary request (docs/sources/claude-code.md §1.3).

mod described;
#[cfg(test)]
mod hooks_tests;
pub(crate) mod persist;
mod restore;
mod rules;
mod strategy;
mod summary;
#[cfg(test)]
mod tests;

use ctxbench_core::prelude::*;
use ctxbench_kit::memory::load;

use crate::descriptor::{Known, Requirement};
use described::{Wu2, three_tiers};
use rules::{ClaudeCodeSettings, ClaudeCodeWords, Conduct, Micro};
use strategy::ClaudeCodeProgram;

/// Room for a reply up to 2.1.20, tokens (docs/sources/claude-code.md §1.1).
const OLDER_RESERVE: u64 = 32_000;

pub(crate) const CLAUDE_CODE: Known = Known {
    needs: |b| {
        let edits = b.settings::<ClaudeCodeSettings>().microcompact == Micro::CacheEdits;
        edits.then_some(Requirement {
            is_met: |c| c.context_editing,
            reason: "edits of a cached prefix exist on the Anthropic API only",
        })
    },
    load_files: |version, mut request| {
        request.table.rows.retain(|row| row.listed_in.is_none() || version.name == "described-001");
        load(&request, Vec::new())
    },
    formats: &[persist::FORMAT],
    ..Known::new(include_str!("about.toml"), |b| {
        let program = |settings, conduct| -> Box<dyn Strategy> {
            let mut words: ClaudeCodeWords = b.texts();
            if conduct == Conduct::Driven && b.scale == 1.0 {
                // As long as those of 2.1.332 (docs/sources/claude-code.md §1.3). In a window that is
                // scaled down, the short ones are used.
                words.summary_prompt = include_str!("long/summary_prompt.txt").trim_end().into();
                words.lead_in = include_str!("long/lead_in.txt").trim_end().into();
                words.go_on = include_str!("long/go_on.txt").trim_end().into();
            }
            Box::new(ClaudeCodeProgram::new(settings, words, conduct))
        };
        match b.version.name {
            "2.1.332" => program(b.settings(), Conduct::Driven),
            "2.1" => program(b.settings(), Conduct::Reported),
            "2.0" => {
                let output_reserve = scale_tokens(OLDER_RESERVE, b.scale);
                program(ClaudeCodeSettings { output_reserve, ..b.settings() }, Conduct::Reported)
            }
            "described-001" => Box::new(Wu2::new(b.settings(), b.texts())),
            "described-002" => program(three_tiers(b.settings()), Conduct::ThreeTiers),
            name => unreachable!("{name} is not in about.toml"),
        }
    })
};
