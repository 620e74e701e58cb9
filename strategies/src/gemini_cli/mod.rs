//! Gemini CLI: a snapshot, checked by a second request, replaces the oldest 70 % of the history.
//! Old tool results move to files.
//!
//! `contents.rs` models the history, `sizes.rs` measures it, `rules.rs` contains the rules that
//! depend on these sizes, and `program.rs` decides when to apply them.

mod conform;
mod contents;
pub(crate) mod descriptor;
mod files;
mod knobs;
pub(crate) mod persist;
mod preview;
mod program;
mod record;
mod resumed;
mod rules;
mod settings;
mod sizes;
#[cfg(test)]
mod tests;
mod version;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{Build, Product, Requirement};
use program::GeminiCliProgram;
use settings::GeminiCliSettings;
use version::GeminiCliVersion;
use words::GeminiCliWords;

pub(crate) struct GeminiCli;

impl Product for GeminiCli {
    type Version = GeminiCliVersion;
    type Settings = GeminiCliSettings;
    type Words = GeminiCliWords;

    fn needs(_version: GeminiCliVersion, _settings: &GeminiCliSettings) -> Option<Requirement> {
        None
    }

    fn build(b: Build<GeminiCli>) -> Box<dyn Strategy> {
        match b.version {
            GeminiCliVersion::V0_61 => Box::new(GeminiCliProgram::new(b.settings, b.words)),
        }
    }
}
