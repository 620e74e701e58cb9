//! OpenCode: a summary after a marker message replaces the head of the session; the newest steps
//! stay.
//!
//! `rules.rs` and `strategy.rs` follow the releases; `described.rs` follows two published accounts.

mod described;
mod files;
#[cfg(test)]
mod hook_tests;
pub(crate) mod log;
pub(crate) mod persist;
pub(crate) mod persist_files;
pub(crate) mod persist_tables;
#[cfg(test)]
mod recorded_tests;
mod rules;
mod settings;
mod strategy;
#[cfg(test)]
mod tests;

use ctxbench_core::strategy::Strategy;
use ctxbench_kit::memory::{LoadRequest, LoadedFiles};
use serde::Deserialize;

use crate::descriptor::{About, BuildRequest, Product, Version};
use crate::persist::PersistFormat;
use described::{Account, DescribedOpenCode};
use strategy::OpenCodeProgram;

pub(crate) struct OpenCode;

#[derive(Deserialize)]
enum OpenCodeVersion {
    #[serde(rename = "1.18")]
    V1_18,
    #[serde(rename = "1.3")]
    V1_3,
    #[serde(rename = "described-001")]
    Described001,
    #[serde(rename = "described-002")]
    Described002,
}

impl Product for OpenCode {
    fn about(&self) -> About {
        About::read(include_str!("about.toml"))
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        let program = |old| -> Box<dyn Strategy> {
            Box::new(OpenCodeProgram::new(old, b.settings(), b.texts(), b.scale))
        };
        let described = |account| -> Box<dyn Strategy> {
            Box::new(DescribedOpenCode::new(account, b.settings(), b.texts(), b.scale))
        };
        match b.version() {
            OpenCodeVersion::V1_18 => program(false),
            OpenCodeVersion::V1_3 => program(true),
            OpenCodeVersion::Described001 => described(Account::Comparison),
            OpenCodeVersion::Described002 => described(Account::Article),
        }
    }

    fn load_files(&self, _version: Version, request: &LoadRequest<'_>) -> LoadedFiles {
        files::load_files(request)
    }

    fn formats(&self) -> &'static [PersistFormat] {
        &[persist_tables::FORMAT, persist_files::FORMAT]
    }
}
