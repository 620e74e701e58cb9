//! Components for programs that embed the engine: a store of sessions, file checkpoints and rewind,
//! memory files, spend and rate limits, and the session files of Codex and Claude Code.

#[cfg(feature = "checkpoints")]
pub mod checkpoint;
pub mod memory;
pub mod monitor;
#[cfg(all(feature = "checkpoints", feature = "sqlite"))]
pub mod rewind;
pub mod rollout;
#[cfg(feature = "sqlite")]
pub mod store;
pub mod transcript;
