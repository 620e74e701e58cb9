//! Helpers that several modules use.

mod jsonl;
pub mod recordings;
pub mod replayed;
pub mod sdk;

pub use jsonl::{jsonl, session_of};
