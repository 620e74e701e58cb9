//! Codex CLI: the user's messages and one handoff summary replace the whole history.
//!
//! `program.rs` follows the releases, `described.rs` follows two published descriptions.

mod conform;
mod count;
mod cut;
mod described;
pub(crate) mod descriptor;
mod files;
mod items;
mod knobs;
pub(crate) mod persist;
mod program;
mod record;
#[cfg(test)]
mod recorded_tests;
pub mod reopened;
pub mod rollout;
mod settings;
#[cfg(test)]
mod tests;
mod version;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{Build, Product, Requirement};
use count::Release;
use described::DescribedCodex;
use program::CodexProgram;
use settings::CodexSettings;
use version::CodexVersion;
use words::CodexWords;

pub(crate) struct Codex;

impl Product for Codex {
    type Version = CodexVersion;
    type Settings = CodexSettings;
    type Words = CodexWords;

    /// Remote compaction is an item of the Responses API; compaction blocks of other providers
    /// differ.
    fn needs(version: CodexVersion, s: &CodexSettings) -> Option<Requirement> {
        (matches!(version, CodexVersion::Program(_)) && s.remote).then_some(Requirement {
            is_met: |c| c.compaction_items,
            reason: "remote compaction exists on the OpenAI Responses API only",
        })
    }

    fn build(b: Build<Codex>) -> Box<dyn Strategy> {
        let (mut s, words, scale) = (b.settings, b.words, b.scale);
        if b.version != CodexVersion::Program(Release::V169) {
            s.post_turn_percent = 0;
        }
        match b.version {
            CodexVersion::Program(release) => Box::new(CodexProgram::new(release, s, words, scale)),
            CodexVersion::Trims => Box::new(DescribedCodex::trims(&s, scale)),
            CodexVersion::HandsOver => Box::new(DescribedCodex::hands_over(&s, words, scale)),
        }
    }
}
