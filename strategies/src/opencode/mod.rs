//! OpenCode: a summary after a marker message replaces the head of the session; the newest steps
//! stay.
//!
//! `program.rs` follows the releases; `described_001.rs` and `described_002.rs` follow two
//! published descriptions.

mod conform;
mod described_001;
mod described_002;
pub(crate) mod descriptor;
mod files;
#[cfg(test)]
mod hook_tests;
mod knobs;
pub(crate) mod log;
pub(crate) mod persist;
pub(crate) mod persist_files;
pub(crate) mod persist_tables;
mod program;
mod record;
#[cfg(test)]
mod recorded_tests;
mod request;
mod rules;
mod settings;
#[cfg(test)]
mod tests;
mod version;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{Build, Product, Requirement};
use program::OpenCodeProgram;
use settings::OpenCodeSettings;
use version::OpenCodeVersion;
use words::OpenCodeWords;

pub(crate) struct OpenCode;

impl Product for OpenCode {
    type Version = OpenCodeVersion;
    type Settings = OpenCodeSettings;
    type Words = OpenCodeWords;

    fn needs(_version: OpenCodeVersion, _settings: &OpenCodeSettings) -> Option<Requirement> {
        None
    }

    fn build(b: Build<OpenCode>) -> Box<dyn Strategy> {
        let (s, words, scale) = (b.settings, b.words, b.scale);
        match b.version {
            OpenCodeVersion::V1_18 => Box::new(OpenCodeProgram::new(false, s, words, scale)),
            OpenCodeVersion::V1_3 => {
                let s = OpenCodeSettings { autocontinue: true, ..s };
                Box::new(OpenCodeProgram::new(true, s, words, scale))
            }
            OpenCodeVersion::Described001 => {
                Box::new(described_001::DescribedComparison::new(&s, words, scale))
            }
            OpenCodeVersion::Described002 => {
                Box::new(described_002::DescribedArticle::new(&s, words, scale))
            }
        }
    }
}
