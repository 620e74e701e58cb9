//! pi's session: a log of entries in the order in which they were written (docs/sources/pi.md §7).
//! Entries never change. An edit hides a message, and a compaction replaces the messages before its
//! tail.

use std::ops::Index;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockForm, BlockKind, MessageId, Role};
use ctxbench_core::compaction::unanswered;
use ctxbench_core::engine::Engine;
use ctxbench_core::request::{ModelError, Reply, StopReason};
use ctxbench_core::tokens::utf16_len;
use ctxbench_core::usage::Usage;
use ctxbench_util::json::Json;

use super::summary::FileLists;
use crate::shared::{interrupted, recorded_since};

/// Characters that the estimators count for an image (docs/sources/pi.md §1).
const IMAGE_CHARS: u64 = 4_800;
/// Text of the error result that is sent for a call without a result (docs/sources/pi.md §7).
const NO_RESULT: &str = "No result provided";
/// Text that is sent for a result without text (docs/sources/pi.md §7).
const NO_OUTPUT: &str = "(no tool output)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PiSpeaker {
    User,
    Assistant,
    Tool,
}

/// Usage and outcome of a model's message.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) usage: Usage,
    /// The reply was cut off at its output limit.
    pub(super) cut_off: bool,
    /// Error of a message without a reply.
    pub(super) failed: Option<ModelError>,
}

impl Report {
    pub(super) fn from_reply(reply: &Reply) -> Report {
        let cut_off = matches!(reply.stop, StopReason::MaxTokens | StopReason::WindowExceeded);
        Report { usage: reply.usage, cut_off, failed: None }
    }

    /// Returns the tokens of prompt and output, or 0 if the request failed or nothing was reported.
    pub(super) fn total(&self) -> u64 {
        if self.failed.is_some() { 0 } else { self.usage.prompt() + self.usage.output }
    }
}

#[derive(Debug)]
pub(super) struct PiMessage {
    pub(super) speaker: PiSpeaker,
    /// Blocks that are sent for the message.
    pub(super) blocks: Vec<Arc<Block>>,
    /// Characters, as both estimators count them.
    pub(super) chars: u64,
    /// Set for the model's messages only.
    pub(super) report: Report,
    /// True if an edit excludes the message from every request.
    pub(super) hidden: bool,
}

#[derive(Debug)]
pub(super) struct PiCompaction {
    /// The message that is sent.
    pub(super) block: Arc<Block>,
    /// Summary with the file lists, but without the text around it.
    pub(super) summary: String,
    /// Index of the first entry of the tail.
    pub(super) first_kept: usize,
    pub(super) files: FileLists,
}

#[derive(Debug)]
pub(super) enum EntryContent {
    Message(PiMessage),
    Compaction(PiCompaction),
    /// Hides a message. The hidden message has its `hidden` flag set.
    Edit,
}

#[derive(Debug)]
pub(super) struct LogEntry {
    pub(super) id: MessageId,
    pub(super) content: EntryContent,
}

impl LogEntry {
    /// Returns the message of the entry, unless it is hidden.
    pub(super) fn visible(&self) -> Option<&PiMessage> {
        match &self.content {
            EntryContent::Message(m) if !m.hidden => Some(m),
            _ => None,
        }
    }

    pub(super) fn is_compaction(&self) -> bool {
        matches!(self.content, EntryContent::Compaction(_))
    }
}

/// All entries, oldest first.
#[derive(Default)]
pub(super) struct Log {
    entries: Vec<LogEntry>,
    synced: u32,
}

impl Index<usize> for Log {
    type Output = LogEntry;
    fn index(&self, i: usize) -> &LogEntry {
        &self.entries[i]
    }
}

impl Log {
    pub(super) fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    /// Appends the messages that the engine recorded since the last call. `report` belongs to the
    /// newest reply. Returns true if the log sends different content than the engine shows.
    pub(super) fn sync(&mut self, s: &Engine, report: &mut Option<Report>) -> bool {
        let mut changed = false;
        for (m, blocks) in recorded_since(s, self.synced) {
            let speaker = match m.role {
                Role::Tool => PiSpeaker::Tool,
                Role::Assistant => PiSpeaker::Assistant,
                _ => PiSpeaker::User,
            };
            let mut message = PiMessage::new(speaker, blocks);
            changed |= message.tidy();
            if speaker == PiSpeaker::Assistant {
                message.report = report.take().unwrap_or_default();
            }
            self.entries.push(LogEntry { id: m.id, content: EntryContent::Message(message) });
        }
        self.synced = s.history.messages().len() as u32;
        changed
    }

    fn push(&mut self, id: MessageId, content: EntryContent) {
        self.synced = self.synced.max(id.0 + 1);
        self.entries.push(LogEntry { id, content });
    }

    /// Adds a failed reply and returns its index.
    pub(super) fn push_failed(&mut self, s: &mut Engine, e: &ModelError) -> usize {
        let id = s.append(Role::Assistant, vec![]);
        let mut message = PiMessage::new(PiSpeaker::Assistant, vec![]);
        message.report.failed = Some(e.clone());
        self.push(id, EntryContent::Message(message));
        self.entries.len() - 1
    }

    pub(super) fn push_compaction(&mut self, c: PiCompaction) {
        self.push(c.block.message, EntryContent::Compaction(c));
    }

    /// Hides a message by an edit.
    pub(super) fn hide(&mut self, at: usize) {
        if let EntryContent::Message(m) = &mut self.entries[at].content {
            m.hidden = true;
            // A rewind to the message also removes the edit, because both have the same ID.
            let id = self.entries[at].id;
            self.push(id, EntryContent::Edit);
        }
    }

    /// Adds an error result to each call without a result, as the next request sends it. Returns
    /// true if there were such calls.
    pub(super) fn close_calls(&mut self, s: &mut Engine) -> bool {
        let newest = self.entries.iter().rposition(
            |e| matches!(&e.content, EntryContent::Message(m) if m.speaker == PiSpeaker::Assistant),
        );
        let Some(at) = newest else { return false };
        let visible = self.entries[at..].iter().filter_map(LogEntry::visible);
        let blocks: Vec<Arc<Block>> = visible.flat_map(|m| m.blocks.iter().cloned()).collect();
        let open = unanswered(&blocks);
        for b in &open {
            let result = interrupted(s, b, NO_RESULT);
            self.synced = self.synced.max(result.message.0 + 1);
            // The result belongs to the request and not to the session, so it is never counted.
            if let EntryContent::Message(m) = &mut self.entries[at].content {
                m.blocks.push(result);
            }
        }
        !open.is_empty()
    }

    /// Removes all entries: the session starts again after the messages recorded so far.
    pub(super) fn clear(&mut self, s: &Engine) {
        *self = Log { entries: Vec::new(), synced: s.history.messages().len() as u32 };
    }

    /// Removes the entries after a message. The program keeps them on another branch of its tree of
    /// entries.
    pub(super) fn rewind(&mut self, to: MessageId) {
        self.entries.retain(|e| e.id <= to);
    }
}

impl PiMessage {
    fn new(speaker: PiSpeaker, blocks: Vec<Arc<Block>>) -> PiMessage {
        let chars = blocks.iter().map(|b| chars(b)).sum();
        PiMessage { speaker, blocks, chars, report: Report::default(), hidden: false }
    }

    /// Removes blank replies and replaces blank results, as the program does before it sends them.
    /// Returns true if a block changed.
    fn tidy(&mut self) -> bool {
        let blank = |b: &Block| b.text.trim().is_empty();
        match self.speaker {
            PiSpeaker::User => false,
            PiSpeaker::Assistant => {
                let before = self.blocks.len();
                self.blocks.retain(|b| b.kind != BlockKind::Assistant || !blank(b));
                self.blocks.len() < before
            }
            PiSpeaker::Tool => {
                let mut changed = false;
                for b in &mut self.blocks {
                    if b.kind == BlockKind::Output && blank(b) {
                        *b = b.with_text(BlockForm::Verbatim, NO_OUTPUT);
                        changed = true;
                    }
                }
                changed
            }
        }
    }
}

/// Returns the characters of a block as the estimators count them.
fn chars(b: &Block) -> u64 {
    match b.kind {
        BlockKind::Image => IMAGE_CHARS,
        BlockKind::Call => {
            let name = b.call.as_ref().map_or(0, |c| utf16_len(&c.name));
            name + utf16_len(&arguments(b).write())
        }
        _ => utf16_len(&b.text),
    }
}

/// Parses the arguments of a call as the program does. Invalid JSON gives an empty object.
pub(super) fn arguments(call: &Block) -> Json {
    Json::read(&call.text).unwrap_or(Json::Object(Vec::new()))
}
