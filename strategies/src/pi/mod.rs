//! pi: replaces the history with a summary and keeps a tail of about 20,000 tokens. The cut may lie
//! within a turn.
//!
//! The session is a log of entries (`log.rs`) from which `projection.rs` derives the view.
//! `program.rs` models the released program.

mod conform;
pub(crate) mod descriptor;
mod errors;
mod estimate;
mod files;
mod knobs;
mod log;
pub(crate) mod persist;
mod program;
mod projection;
mod record;
mod settings;
mod summary;
#[cfg(test)]
mod tests;
mod version;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{Build, Product, Requirement};
use program::PiProgram;
use settings::PiSettings;
use version::PiVersion;
use words::PiWords;

pub(crate) struct Pi;

impl Product for Pi {
    type Version = PiVersion;
    type Settings = PiSettings;
    type Words = PiWords;

    fn needs(_version: PiVersion, _settings: &PiSettings) -> Option<Requirement> {
        None
    }

    fn build(b: Build<Pi>) -> Box<dyn Strategy> {
        match b.version {
            PiVersion::V1_5 => Box::new(PiProgram::new(b.settings, b.words, b.scale)),
        }
    }
}
