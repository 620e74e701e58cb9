//! The context management of each product, one file per system, and the registry that lists them.

mod anthropic_sdk;
pub mod codex;
pub mod codex_count;
mod common;
mod controls;
mod observation_masking;
mod opencode;
pub mod opencode_log;
pub mod opencode_rules;
mod registry;
mod sliding_window;

pub use registry::{ALL, Spec, SpecError};
