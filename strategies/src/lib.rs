//! The context management of each product, one file per system, and the registry that lists them.

mod aider;
mod aider_about;
pub mod aider_chunks;
mod aider_described;
mod aider_keepalive;
pub mod aider_map;
pub mod aider_markdown;
pub mod aider_summary;
mod anthropic_sdk;
mod anthropic_sdk_about;
mod anthropic_sdk_described;
pub mod anthropic_sdk_errors;
mod anthropic_sdk_runner;
#[cfg(test)]
mod anthropic_sdk_tests;
mod claude_code;
mod claude_code_about;
mod claude_code_api;
mod claude_code_api_about;
#[cfg(test)]
mod claude_code_api_tests;
mod claude_code_described;
mod claude_code_idle;
mod claude_code_memory;
mod claude_code_micro;
mod claude_code_restore;
mod claude_code_rules;
mod claude_code_summary;
pub mod codex;
mod codex_about;
pub mod codex_count;
mod codex_cut;
mod codex_described;
mod codex_items;
pub mod codex_rollout;
mod common;
mod controls;
mod observation_masking;
mod opencode;
mod opencode_001;
mod opencode_002;
mod opencode_about;
pub mod opencode_log;
mod opencode_request;
pub mod opencode_rules;
#[cfg(test)]
mod opencode_tests;
mod openoxide;
#[cfg(test)]
mod openoxide_figures_tests;
mod openoxide_summary;
#[cfg(test)]
mod openoxide_tests;
mod openoxide_view;
mod openoxide_words;
pub mod persist;
mod registry;
mod rewinds;
mod sliding_window;
#[cfg(test)]
mod testing;
mod tool_names;

pub use registry::{ALL, Spec, SpecError};
pub use rewinds::{CodeWay, Rewind, rewind_of};
pub use tool_names::{folded, is_edit};
