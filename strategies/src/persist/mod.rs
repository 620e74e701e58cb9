//! Session files of products, and the context that is restored from them.
//!
//! The interface is [`Persistence`]: it takes messages and the results of compactions in the order
//! in which they happened, and returns the context. Each file here describes the format of one
//! product. Information that the format cannot express is lost, and these losses are measured. A
//! [`PersistFormat`] opens sessions and is part of the descriptor of its product. [`formats`] lists them
//! all.

mod compare;
pub(crate) mod jsonl;
mod ours;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctxbench_core::{Block, BlockKind, Part, Role, ToolCall};
use ctxbench_kit::store::StoreError;
use ctxbench_util::io_hint::write_hint;
use thiserror::Error;

pub use compare::{Losses, losses};

/// Error of writing or reading a session.
#[derive(Debug, Error)]
pub enum PersistError {
    #[error("{}: could not {doing}: {why}", path.display())]
    File {
        path: PathBuf,
        /// Operation that failed, as a verb phrase for the message.
        doing: &'static str,
        /// Cause and remedy.
        why: String,
    },
    /// Error of the ctxbench store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PersistError {
    /// Creates the error of a temporary folder that cannot be created for testing a format.
    pub fn scratch(source: io::Error) -> PersistError {
        PersistError::io(&std::env::temp_dir(), "make a folder there")(source)
    }

    fn file(path: &Path, doing: &'static str, why: String) -> PersistError {
        PersistError::File { path: path.to_path_buf(), doing, why }
    }

    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> PersistError {
        move |e| PersistError::file(path, doing, format!("{e}; {}", write_hint(&e)))
    }

    pub(crate) fn sql(
        path: &Path,
        doing: &'static str,
    ) -> impl FnOnce(rusqlite::Error) -> PersistError {
        let kept = "what was stored before is still there";
        move |e| PersistError::file(path, doing, format!("{e}; {kept}"))
    }
}

/// Result of an operation on a session on disk.
pub type Result<T, E = PersistError> = std::result::Result<T, E>;

/// A message as a request shows it, with its texts, reasoning, calls, results, files or summaries.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMessage {
    pub role: Role,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JournalEntry {
    /// A message entered the conversation.
    Message(StoredMessage),
    /// The new view after the conversation was compacted, cleared, cut or rewound.
    View(Vec<StoredMessage>),
}

/// Result of reading a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReopenedSession {
    /// Conversation that the next request would show, oldest message first.
    pub context: Vec<StoredMessage>,
    /// Number of bytes read: whole files if the format cannot skip parts, otherwise rows.
    pub bytes_read: u64,
    /// Notes for the user about damaged entries that were skipped.
    pub notes: Vec<String>,
}

/// Open session in a product's format. When `append` returns, the entry is as durable as the
/// product makes it.
pub trait Persistence: Send {
    fn append(&mut self, entry: &JournalEntry) -> Result<()>;
    /// Reads the session as a restarted program would.
    fn load(&self) -> Result<ReopenedSession>;
    /// Returns all messages that the format still contains, compacted or not, oldest first.
    fn log(&self) -> Result<Vec<StoredMessage>>;
    /// Returns the size on disk in bytes.
    fn size(&self) -> u64;
}

/// Session format of a product or of ctxbench.
#[derive(Clone, Copy, Debug)]
pub struct PersistFormat {
    /// Name of the format in reports.
    pub name: &'static str,
    /// Opens or creates the session in a folder. The seed makes the ids of several writers differ.
    pub open: Open,
}

/// Opens or creates the session in a folder.
pub type Open = fn(&Path, u64) -> Result<Box<dyn Persistence>>;

/// Format for strategies that are not products.
pub const OURS: &[PersistFormat] = &[ours::FORMAT];

/// Returns the formats of all strategies, in report order.
pub fn formats() -> Vec<&'static PersistFormat> {
    let mut out: Vec<&PersistFormat> = Vec::new();
    for f in crate::built_in().iter().flat_map(|d| d.product.formats()) {
        if out.iter().all(|known| known.name != f.name) {
            out.push(f);
        }
    }
    out
}

/// Virtual start time of every session, ms since 1970. Formats need times, but results must not
/// depend on the clock.
pub(crate) const BEGIN_MS: u64 = 1_700_000_000_000;

/// [`BEGIN_MS`] as text.
pub(crate) const BEGIN: &str = "2023-11-14T22:13:20.000Z";

/// ID of the only session of a folder, in formats with UUIDs.
pub(crate) const SESSION: &str = "00000000-0000-4000-8000-000000000001";

/// Folder in which every session works.
pub(crate) const CWD: &str = "/work/project";

/// Returns the conversation of a context, without the blocks that a program shows again on every
/// start (instructions, memory, map, files of the chat, reminders). Joins the blocks of each
/// message.
pub fn conversation(blocks: &[Arc<Block>]) -> Vec<StoredMessage> {
    let mut out: Vec<(u32, StoredMessage)> = Vec::new();
    for b in blocks.iter().filter(|b| !is_repeated(b)) {
        let part = Part::from(&***b);
        match out.last_mut() {
            Some((message, said)) if *message == b.message.0 && said.role == b.role => {
                said.parts.push(part)
            }
            _ => out.push((b.message.0, StoredMessage { role: b.role, parts: vec![part] })),
        }
    }
    out.into_iter().map(|(_, said)| said).collect()
}

/// Returns whether a program shows a block again on every start.
fn is_repeated(b: &Block) -> bool {
    let of_program = matches!(b.kind, BlockKind::RepoMap | BlockKind::Reminder);
    let asks = matches!(b.kind, BlockKind::SummaryPrompt | BlockKind::CompactionTrigger);
    let is_given = matches!(b.kind, BlockKind::Base | BlockKind::Context);
    is_given || of_program || asks || (b.kind == BlockKind::File && b.message.0 == u32::MAX)
}

/// Journal of a session, derived from its context at each change: new messages are recorded as
/// such, and a context with missing or changed messages as a new view.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    shown: Vec<StoredMessage>,
    /// Entries so far, oldest first.
    pub entries: Vec<JournalEntry>,
}

impl Journal {
    /// Records a context that grew. Any other change, such as a rewind, is recorded as a new view.
    pub fn grew(&mut self, now: Vec<StoredMessage>) {
        if now.starts_with(&self.shown) {
            self.entries.extend(now[self.shown.len()..].iter().cloned().map(JournalEntry::Message));
            self.shown = now;
        } else {
            self.became(now);
        }
    }

    /// Records a context that was replaced.
    pub fn became(&mut self, now: Vec<StoredMessage>) {
        if now != self.shown {
            self.entries.push(JournalEntry::View(now.clone()));
            self.shown = now;
        }
    }
}

/// Sets the tool names of results, in formats in which only the call has one.
pub(crate) fn name_results<'a>(messages: impl Iterator<Item = &'a mut StoredMessage>) {
    let mut names = HashMap::new();
    for p in messages.flat_map(|m| &mut m.parts) {
        match p {
            Part::Call(ToolCall { id, name, .. }) => drop(names.insert(id.clone(), name.clone())),
            Part::Result { id, name, .. } => *name = names.get(id).cloned().unwrap_or_default(),
            _ => {}
        }
    }
}

impl StoredMessage {
    pub fn text(role: Role, text: &str) -> StoredMessage {
        StoredMessage { role, parts: vec![Part::Text(text.into())] }
    }

    pub(crate) fn is_summary(&self) -> bool {
        self.parts.iter().any(|p| matches!(p, Part::Summary(_)))
    }
}

/// Returns the results of a view that changed, as (message, part, output), or `None` if anything
/// else changed too. Pruning leaves such views.
pub(crate) fn pruned<'a>(
    before: &[StoredMessage],
    after: &'a [StoredMessage],
) -> Option<Vec<(usize, usize, &'a Arc<str>)>> {
    let shape = |m: &StoredMessage| (m.role, m.parts.len());
    if !before.iter().map(shape).eq(after.iter().map(shape)) {
        return None;
    }
    let mut out = Vec::new();
    for (i, (a, b)) in before.iter().zip(after).enumerate() {
        for (k, pair) in a.parts.iter().zip(&b.parts).enumerate().filter(|(_, (x, y))| x != y) {
            let (Part::Result { id, name, .. }, Part::Result { id: to, name: of, output, .. }) =
                pair
            else {
                return None;
            };
            if (id, name) != (to, of) {
                return None;
            }
            out.push((i, k, output));
        }
    }
    Some(out)
}
