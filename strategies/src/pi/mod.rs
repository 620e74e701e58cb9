//! pi: replaces the history with a summary and keeps a tail of about 20,000 tokens. The cut may lie
//! within a turn.
//!
//! The session is a log of entries (`log.rs`) from which `projection.rs` derives the view.
//! `rules.rs` contains the rules without state, and `strategy.rs` the hooks.

mod files;
mod log;
pub(crate) mod persist;
mod projection;
mod rules;
mod settings;
mod strategy;
mod summary;
#[cfg(test)]
mod tests;

use ctxbench_core::strategy::Strategy;
use ctxbench_kit::memory::{LoadRequest, LoadedFiles};

use crate::descriptor::{About, BuildRequest, Product, Version};
use crate::persist::PersistFormat;
use strategy::PiProgram;
pub use summary::FileLists;

pub(crate) struct Pi;

impl Product for Pi {
    fn about(&self) -> About {
        About::read(include_str!("about.toml"))
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        Box::new(PiProgram::new(b.settings(), b.texts(), b.scale))
    }

    fn load_files(&self, _version: Version, request: &LoadRequest<'_>) -> LoadedFiles {
        files::load(request)
    }

    fn formats(&self) -> &'static [PersistFormat] {
        &[persist::FORMAT]
    }
}
