//! Claude Code: a summary, requested on the cached prefix, replaces the conversation, and recently
//! used files are restored.
//!
//! Follows the documented, measured and reported behaviour of 2.1 (docs/sources/claude-code.md §1).
//! The program is closed source, so every setting has a grade: A documented, B measured, C
//! reported. Before a request, the strategy estimates the size from the last usage and the new
//! blocks. If `microcompact` names a rule, old tool results are cleared. Above the threshold, the
//! same model summarises the conversation over the same prefix, or the notes of a session memory
//! replace it if that is on. After an overflow error the same happens with one end of the
//! conversation left out.
//!
//! A large session that idles on the one-hour cache is compacted before the cache entry expires
//! (`idle.rs`).
//!
//! The user's hooks can add to a compaction or block it (`hooks.rs`). A large session that is
//! resumed after a long pause may continue from a summary (`program/resume.rs`).
//!
//! Not modelled: images too large for a summary request (docs/sources/claude-code.md §1.3).

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
use program::ClaudeCodeProgram;
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
            ClaudeCodeVersion::Program => Box::new(ClaudeCodeProgram::new(s, words)),
        }
    }
}
