//! pi: replaces the history with a summary and keeps a tail of about 20,000 tokens. The cut may lie
//! within a turn.
//!
//! The session is a log of entries from which the view is derived (`log.rs`). `rules.rs` contains the
//! rules without state, and `strategy.rs` the hooks.

mod log;
pub(crate) mod persist;
mod rules;
mod settings;
mod strategy;
#[cfg(test)]
mod tests;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{About, BuildRequest, Product};
use crate::persist::PersistFormat;
pub use rules::FileLists;
use strategy::PiProgram;

pub(crate) struct Pi;

impl Product for Pi {
    fn about(&self) -> About {
        About::read(include_str!("about.toml"))
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        Box::new(PiProgram::new(b))
    }

    fn formats(&self) -> &'static [PersistFormat] {
        &[persist::FORMAT]
    }
}
