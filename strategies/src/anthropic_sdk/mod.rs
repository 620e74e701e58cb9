//! The Anthropic SDK's tool runner: above a threshold, a summary replaces the whole conversation,
//! and the turn that crossed the threshold is lost.
//!
//! `old_runner.rs` follows Python 0.125 and TypeScript 0.124, and the published description of them;
//! `runner.rs` follows Python 2.12.

mod errors;
mod old_runner;
mod runner;
mod settings;
mod shared;
#[cfg(test)]
mod tests;

use ctxbench_core::strategy::Strategy;
use serde::Deserialize;

use crate::descriptor::{About, BuildRequest, Product, Requirement};
use crate::persist::PersistFormat;
pub use errors::Raised;
use old_runner::Old;
use runner::Runner;

pub(crate) struct AnthropicSdk;

#[derive(PartialEq, Deserialize)]
enum SdkVersion {
    #[serde(rename = "0.125")]
    V0_125,
    #[serde(rename = "2.12")]
    V2_12,
    #[serde(rename = "described-001")]
    Described001,
}

impl Product for AnthropicSdk {
    fn about(&self) -> About {
        About::read(include_str!("about.toml"))
    }

    /// Returns the capabilities that a version needs. The client of 0.125 compacts by itself and
    /// works with any wire. Threads and compaction on demand need the Anthropic API.
    fn needs(&self, b: &BuildRequest<'_>) -> Option<Requirement> {
        (b.version::<SdkVersion>() == SdkVersion::V2_12).then_some(Requirement {
            is_met: |c| c.message_threads,
            reason: "threads and compaction on demand exist on the Anthropic API only",
        })
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        match b.version() {
            SdkVersion::V0_125 => Box::new(Old::new(false, b.settings(), b.texts())),
            SdkVersion::V2_12 => Box::new(Runner::new(&b.settings(), b.scale)),
            SdkVersion::Described001 => Box::new(Old::new(true, b.settings(), b.texts())),
        }
    }

    /// The program that embeds the SDK stores sessions.
    fn formats(&self) -> &'static [PersistFormat] {
        &[]
    }
}
