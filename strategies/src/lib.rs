//! Context management of each product, one folder per product, and the registry of strategies.

mod aider;
mod anthropic_sdk;
mod claude_code;
mod claude_code_api;
mod codex;
mod controls;
pub mod descriptor;
mod gemini_cli;
mod generational;
pub mod names;
mod opencode;
mod openoxide;
mod own_settings;
pub mod persist;
mod pi;
mod registry;
mod scoped;
mod shared;
pub mod sweep;
#[cfg(test)]
mod testing;

/// Forms that requests of the products have, for the comparison with those of the real programs.
pub mod evidence {
    pub use crate::aider::markdown::split_chat_history_markdown;
    pub use crate::anthropic_sdk::Raised;
    pub use crate::gemini_cli::{CutSizes, phase as gemini_cli_phase};
    pub use crate::pi::FileLists;
}

pub use descriptor::SpecError;
pub use registry::{AddError, Spec, add, all, built_in};
