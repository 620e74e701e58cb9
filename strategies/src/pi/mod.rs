//! pi: replaces the history with a summary and keeps a tail of about 20,000 tokens. The cut may lie
//! within a turn.
//!
//! The session is a log of entries from which the view is derived (`log.rs`). `rules.rs` contains the
//! rules without state, and `strategy.rs` the hooks.

mod log;
pub(crate) mod persist;
mod rules;
mod strategy;
#[cfg(test)]
mod tests;

use crate::descriptor::Known;
pub use rules::FileLists;
use strategy::PiProgram;

pub(crate) const PI: Known = Known {
    formats: &[persist::FORMAT],
    ..Known::new(include_str!("about.toml"), |b| Box::new(PiProgram::new(b)))
};
