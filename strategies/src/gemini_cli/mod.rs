//! Gemini CLI: the oldest 70 % of the history become a snapshot that a second request checks, and
//! old tool results go to files on the way.
//!
//! `contents.rs` is the history as the program sees it, `sizes.rs` how large that is, `rules.rs` what
//! it decides by that, `program.rs` when it does.

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
use program::Program;
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
            GeminiCliVersion::V0_61 => Box::new(Program::new(b.settings, b.words)),
        }
    }
}
