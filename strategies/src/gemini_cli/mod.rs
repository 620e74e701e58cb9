//! Gemini CLI: a snapshot, checked by a second request, replaces the oldest 70 % of the history.
//! Old tool results move to files.
//!
//! `rules.rs` models the history, measures it and contains the rules that depend on these sizes, and
//! `strategy.rs` decides when to apply them.

pub(crate) mod persist;
mod preview;
mod rules;
mod strategy;
#[cfg(test)]
mod tests;

use crate::descriptor::Known;
pub use preview::CutSizes;
use strategy::GeminiCliProgram;
pub use strategy::phase;

pub(crate) const GEMINI_CLI: Known = Known {
    formats: &[persist::FORMAT],
    ..Known::new(include_str!("about.toml"), |b| {
        Box::new(GeminiCliProgram::new(b.settings(), b.texts()))
    })
};
