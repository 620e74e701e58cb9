//! What a program that embeds the engine keeps beside it: a store of sessions, checkpoints of
//! files and going back to them, memory files, compaction in the background, spend and rate
//! limits, the session files of Codex and Claude Code.

#[cfg(feature = "background")]
pub mod background;
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
