//! Components for programs that embed the engine: a store of sessions, file checkpoints and rewind,
//! memory files, spend and rate limits, and the session files of Codex and Claude Code.

pub mod checkpoint;
pub mod memory;
pub mod monitor;
pub mod rewind;
pub mod rollout;
pub mod store;
pub mod transcript;
