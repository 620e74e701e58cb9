//! The Anthropic SDK's tool runner: above a threshold, a summary replaces the whole conversation,
//! and the turn that crossed the threshold is lost.
//!
//! `old_runner.rs` follows Python 0.125 and TypeScript 0.124, and the published description of them;
//! `runner.rs` follows Python 2.12.

mod old_runner;
mod runner;
mod settings;
#[cfg(test)]
mod tests;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{About, BuildRequest, Product, Requirement};
use crate::persist::PersistFormat;
use old_runner::Old;
use runner::Runner;
pub use settings::Raised;

pub(crate) struct AnthropicSdk;

impl Product for AnthropicSdk {
    fn about(&self) -> About {
        About::read(include_str!("about.toml"))
    }

    /// Returns the capabilities that a version needs. The client of 0.125 compacts by itself and
    /// works with any wire. Threads and compaction on demand need the Anthropic API.
    fn needs(&self, b: &BuildRequest<'_>) -> Option<Requirement> {
        (b.version.name == "2.12").then_some(Requirement {
            is_met: |c| c.message_threads,
            reason: "threads and compaction on demand exist on the Anthropic API only",
        })
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        match b.version.name {
            "2.12" => Box::new(Runner::new(b.settings(), b.scale)),
            _ => Box::new(Old::new(b.version.is_description(), b.settings(), b.texts())),
        }
    }

    /// The program that embeds the SDK stores sessions.
    fn formats(&self) -> &'static [PersistFormat] {
        &[]
    }
}
