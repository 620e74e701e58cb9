//! Helpers that several modules use.

mod jsonl;
pub mod recordings;
pub mod replayed;

pub use jsonl::{jsonl, session_of};
