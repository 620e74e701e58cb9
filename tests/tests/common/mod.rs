//! Helpers that several modules use.

mod jsonl;
pub mod recordings;
pub mod replayed;
pub mod sdk;

pub use jsonl::{json_lines, jsonl, session_of, words};
