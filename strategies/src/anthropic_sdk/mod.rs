//! The Anthropic SDK's tool runner: above a threshold, a summary replaces the whole conversation,
//! and the turn that crossed the threshold is lost.
//!
//! `old_runner.rs` follows Python 0.125 and TypeScript 0.124, `runner.rs` Python 2.12, and
//! `described.rs` the published description of the old runner.

mod conform;
mod described;
pub(crate) mod descriptor;
mod errors;
mod old_runner;
mod runner;
mod settings;
mod shared;
#[cfg(test)]
mod tests;
mod version;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{Build, Product, Requirement};
use described::DescribedSdk;
use old_runner::Old;
use runner::Runner;
use settings::SdkSettings;
use version::SdkVersion;
use words::SdkWords;

pub(crate) struct AnthropicSdk;

impl Product for AnthropicSdk {
    type Version = SdkVersion;
    type Settings = SdkSettings;
    type Words = SdkWords;

    /// Returns the capabilities that a version needs. The client of 0.125 compacts by itself and
    /// works with any wire. Threads and compaction on demand need the Anthropic API.
    fn needs(version: SdkVersion, _settings: &SdkSettings) -> Option<Requirement> {
        (version == SdkVersion::V2_12).then_some(Requirement {
            is_met: |c| c.message_threads,
            reason: "threads and compaction on demand exist on the Anthropic API only",
        })
    }

    fn build(b: Build<AnthropicSdk>) -> Box<dyn Strategy> {
        let s = &b.settings;
        match b.version {
            SdkVersion::V0_125 => Box::new(Old::new(s, b.words)),
            SdkVersion::V2_12 => Box::new(Runner::new(s, b.scale)),
            SdkVersion::Described001 => Box::new(DescribedSdk::new(s, b.words)),
        }
    }
}
