//! Codex CLI's session files, called rollouts (docs/sources/codex.md §4).
//!
//! A rollout has one JSON object per line: messages, and `compacted` lines with the history after a
//! compaction. [`reconstruct()`] resumes a session. It is generic over the item type, so that replays
//! in memory and files share it.

mod item;
mod line;
mod reader;
mod reconstruct;
#[cfg(test)]
mod tests;
mod writer;

pub use item::{ItemContent, RolloutItem, context_path, parse_part};
pub use line::{
    Compacted, Counters, Payload, RolloutEvent, RolloutLine, SessionMeta, TokenCount, TokenInfo,
};
pub use reader::{Rollout, numbered, records};
pub use reconstruct::{Record, ResumedSession, TokenTotals, reconstruct, surviving};
pub use writer::{RolloutError, Writer, rollout_path};
