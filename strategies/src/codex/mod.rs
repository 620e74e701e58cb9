//! Codex CLI: the whole history becomes the user's own messages and one handoff summary.
//!
//! `program.rs` is what was released, `described.rs` what two documents say of it.

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
pub mod reopened;
pub mod rollout;
mod settings;
#[cfg(test)]
mod tests;
mod version;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{Build, Need, Product};
use count::Era;
use described::Described;
use program::Program;
use settings::CodexSettings;
use version::CodexVersion;
use words::CodexWords;

pub(crate) struct Codex;

impl Product for Codex {
    type Version = CodexVersion;
    type Settings = CodexSettings;
    type Words = CodexWords;

    /// Remote compaction is an item of the Responses API, and what a provider's compaction block
    /// means differs elsewhere.
    fn needs(version: CodexVersion, s: &CodexSettings) -> Option<Need> {
        (matches!(version, CodexVersion::Program(_)) && s.remote).then_some(Need {
            can: |c| c.compaction_items,
            why: "remote compaction exists on the OpenAI Responses API only",
        })
    }

    fn build(b: Build<Codex>) -> Box<dyn Strategy> {
        let (mut s, words, scale) = (b.settings, b.words, b.scale);
        if b.version != CodexVersion::Program(Era::V169) {
            s.post_turn_percent = 0;
        }
        match b.version {
            CodexVersion::Program(era) => Box::new(Program::new(era, s, words, scale)),
            CodexVersion::Trims => Box::new(Described::trims(&s, scale)),
            CodexVersion::HandsOver => Box::new(Described::hands_over(&s, words, scale)),
        }
    }
}
