//! Components for programs that embed the engine: a store of sessions, file checkpoints and rewind,
//! memory files, and spend and rate limits.

pub mod checkpoint;
pub mod memory;
pub mod monitor;
pub mod rewind;
pub mod store;
