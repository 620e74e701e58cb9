//! Gemini CLI: a snapshot, checked by a second request, replaces the oldest 70 % of the history.
//! Old tool results move to files.
//!
//! `rules.rs` models the history, measures it and contains the rules that depend on these sizes, and
//! `strategy.rs` decides when to apply them.

pub(crate) mod persist;
mod preview;
mod rules;
mod settings;
mod strategy;
#[cfg(test)]
mod tests;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{About, BuildRequest, Product};
use crate::persist::PersistFormat;
pub use preview::CutSizes;
use strategy::GeminiCliProgram;
pub use strategy::phase;

pub(crate) struct GeminiCli;

impl Product for GeminiCli {
    fn about(&self) -> About {
        About::read(include_str!("about.toml"))
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        Box::new(GeminiCliProgram::new(b.settings(), b.texts()))
    }

    fn formats(&self) -> &'static [PersistFormat] {
        &[persist::FORMAT]
    }
}
