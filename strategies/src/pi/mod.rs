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
use ctxbench_kit::memory::{Base, Level, LoadRequest, LoadedFiles, MemoryTable, Pick, Row, load};

use crate::descriptor::{About, BuildRequest, Product, Version};
use crate::persist::PersistFormat;
pub use rules::FileLists;
use strategy::PiProgram;

/// Names of memory files in order of preference.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

pub(crate) struct Pi;

impl Product for Pi {
    fn about(&self) -> About {
        About::read(include_str!("about.toml"))
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        Box::new(PiProgram::new(b))
    }

    fn load_files(&self, _version: Version, request: &LoadRequest<'_>) -> LoadedFiles {
        // docs/sources/pi.md §9.
        let first = |level, base, names| Row { pick: Pick::First, ..Row::new(level, base, names) };
        let own = NAMES.map(|name| format!(".pi/agent/{name}"));
        let own = own.each_ref().map(String::as_str);
        let rows =
            [first(Level::User, Base::Home, &own[..]), first(Level::Project, Base::Above, &NAMES)];
        load(&MemoryTable { rows: &rows, ..MemoryTable::default() }, request, Vec::new())
    }

    fn formats(&self) -> &'static [PersistFormat] {
        &[persist::FORMAT]
    }
}
