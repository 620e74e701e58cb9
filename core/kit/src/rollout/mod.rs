//! What Codex CLI keeps on disk (docs/sources/codex.md §4): the rollout of a session and the global
//! prompt history.
//!
//! A rollout is one JSON object per line: what was said, and `compacted` lines that say what a
//! compaction put in its place. A session is resumed by [`reconstruct`], which is generic over the
//! kind of item, so that the strategy which replays a session in memory and the reader of a file
//! decide alike. `history.jsonl` is what people typed, in every session; no model sees it.

mod history;
mod item;
mod line;
mod path;
mod reader;
mod reconstruct;
#[cfg(test)]
mod tests;
mod writer;

pub use history::{HistoryError, HistoryFile, LogId, Metadata, TypedPrompt, soft_cap, trimmed};
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
