//! Codex CLI: the user's messages and one handoff summary replace the whole history.
//!
//! `rules.rs` and `strategy.rs` follow the releases, `described.rs` follows two published descriptions.

mod described;
mod files;
mod items;
pub(crate) mod persist;
#[cfg(test)]
mod recorded_tests;
mod rules;
mod settings;
mod strategy;
#[cfg(test)]
mod tests;

use ctxbench_core::strategy::Strategy;
use ctxbench_kit::memory::{LoadRequest, LoadedFiles};
use serde::Deserialize;

use crate::descriptor::{About, BuildRequest, Product, Requirement, Version};
use crate::persist::PersistFormat;
use described::DescribedCodex;
use rules::Release;
use settings::CodexSettings;
use strategy::CodexProgram;

pub(crate) struct Codex;

#[derive(Deserialize)]
enum CodexVersion {
    #[serde(rename = "0.169")]
    V169,
    #[serde(rename = "0.104")]
    V104,
    #[serde(rename = "0.63")]
    V063,
    /// Trims the oldest items.
    #[serde(rename = "described-000")]
    Described000,
    /// Replaces the history with a note as a message of the assistant.
    #[serde(rename = "described-002")]
    Described002,
}

impl Product for Codex {
    fn about(&self) -> About {
        About::read(include_str!("about.toml"))
    }

    /// Remote compaction is an item of the Responses API; compaction blocks of other providers
    /// differ.
    fn needs(&self, b: &BuildRequest<'_>) -> Option<Requirement> {
        let remote = b.settings::<CodexSettings>().remote && !b.version.is_description();
        remote.then_some(Requirement {
            is_met: |c| c.compaction_items,
            reason: "remote compaction exists on the OpenAI Responses API only",
        })
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        let program = |release| -> Box<dyn Strategy> {
            Box::new(CodexProgram::new(release, b.settings(), b.texts(), b.scale))
        };
        let described = |hands_over| -> Box<dyn Strategy> {
            Box::new(DescribedCodex::new(hands_over, b.settings(), b.texts(), b.scale))
        };
        match b.version() {
            CodexVersion::V169 => program(Release::V169),
            CodexVersion::V104 => program(Release::V104),
            CodexVersion::V063 => program(Release::V063),
            CodexVersion::Described000 => described(false),
            CodexVersion::Described002 => described(true),
        }
    }

    fn load_files(&self, _version: Version, request: &LoadRequest<'_>) -> LoadedFiles {
        files::load_files(request)
    }

    fn formats(&self) -> &'static [PersistFormat] {
        &[persist::FORMAT]
    }
}
