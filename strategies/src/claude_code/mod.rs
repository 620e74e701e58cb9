//! Claude Code: one summary on the warm prefix replaces the conversation, and recent files come
//! back.
//!
//! Follows what is documented, measured and reported of 2.1 (docs/sources/claude-code.md §1). The
//! program is closed: every setting names its grade, A documented, B measured, C reported. Before
//! a request, judged by the last usage plus an estimate of what is new: where `microcompact` names
//! a rule, old tool results are cleared; above the threshold the conversation is summarised by the
//! same model over the same prefix, or replaced by the notes of a session memory where that is on.
//! An overflow error does the same, with one end of it left out.
//!
//! A large session that idles on the one-hour cache is compacted before the cache lets it go
//! (`idle.rs`).
//!
//! Where the user has hooks, they add to a compaction or block it (`hooks.rs`); a large session that
//! is resumed after a long pause may go on from a summary (`program/resume.rs`).
//!
//! Left out: images too large for a summary request (docs/sources/claude-code.md §1.3).

mod described;
pub(crate) mod descriptor;
mod files;
mod hooks;
mod knobs;
mod memory;
mod micro;
pub(crate) mod persist;
mod program;
mod restore;
mod rules;
mod settings;
mod summary;
#[cfg(test)]
mod tests;
mod version;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{Build, Product, Requirement};
use described::{ThreeTiers, Wu2};
use program::Program;
use settings::{ClaudeCodeSettings, Micro};
use version::ClaudeCodeVersion;
use words::ClaudeCodeWords;

pub(crate) struct ClaudeCode;

impl Product for ClaudeCode {
    type Version = ClaudeCodeVersion;
    type Settings = ClaudeCodeSettings;
    type Words = ClaudeCodeWords;

    fn needs(_version: ClaudeCodeVersion, s: &ClaudeCodeSettings) -> Option<Requirement> {
        (s.microcompact == Micro::CacheEdits).then_some(Requirement {
            is_met: |c| c.context_editing,
            reason: "edits of a cached prefix exist on the Anthropic API only",
        })
    }

    fn build(b: Build<ClaudeCode>) -> Box<dyn Strategy> {
        let (s, words) = (b.settings, b.words);
        match b.version {
            ClaudeCodeVersion::Described001 => Box::new(Wu2::new(&s, &words)),
            ClaudeCodeVersion::Described002 => Box::new(ThreeTiers::new(s, words)),
            ClaudeCodeVersion::Program => Box::new(Program::new(s, words)),
        }
    }
}
