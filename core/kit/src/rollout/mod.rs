//! Codex CLI's session files, called rollouts (docs/sources/codex.md §4).
//!
//! A rollout is one JSON object per line: messages, and `compacted` lines with the history that a
//! compaction left. [`reconstruct()`] resumes a session. It is generic over the item type, so that a
//! replay in memory and a reader of files share it.

mod item;
mod line;
mod path;
mod reader;
mod reconstruct;
#[cfg(test)]
mod tests;
mod writer;

pub use item::{Content, Item, context_path, part};
pub use line::{
    Compacted, Counters, Event, Payload, RolloutLine, SessionMeta, TokenCount, TokenInfo,
};
pub use path::rollout_path;
pub use reader::{Rollout, Unreadable, numbered, records};
pub use reconstruct::{Count, Record, Resumed, reconstruct, surviving};
pub use writer::{RolloutError, Writer};

/// A clock: ms since 1970.
pub type Clock = Box<dyn Fn() -> u64 + Send>;
