//! Context management of each product, one folder per product, and the registry of strategies.

pub mod aider;
mod anthropic_sdk;
mod claude_code;
mod claude_code_api;
pub mod codex;
pub mod conform;
mod controls;
pub mod descriptor;
mod durable;
mod gemini_cli;
pub mod names;
mod observation_masking;
mod opencode;
mod openoxide;
mod own_settings;
pub mod persist;
mod pi;
mod registry;
mod scoped;
mod shared;
mod sliding_window;
pub mod sweep;
#[cfg(test)]
mod testing;
mod words;

pub use descriptor::SpecError;
pub use registry::{AddError, Spec, add, all, built_in};
