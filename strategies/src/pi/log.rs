//! pi's session: a log of entries in the order in which they were written (docs/sources/pi.md §7).
//! Entries never change. An edit hides a message, and a compaction replaces the messages before its
//! tail.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockForm, BlockKind, MessageId, Role};
use ctxbench_core::compaction::unanswered;
use ctxbench_core::engine::Engine;
use ctxbench_core::request::{ModelError, Reply, StopReason};
use ctxbench_core::tokens::utf16_len;
use ctxbench_core::usage::Usage;
use ctxbench_util::json::Json;

use super::summary::FileLists;
use crate::shared::interrupted;

/// Characters that the estimators count for an image (docs/sources/pi.md §1).
const IMAGE_CHARS: u64 = 4_800;
/// Text of the error result that is sent for a call without a result (docs/sources/pi.md §7).
const NO_RESULT: &str = "No result provided";
/// Text that is sent for a result without text (docs/sources/pi.md §7).
const NO_OUTPUT: &str = "(no tool output)";

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
    pub(super) role: Role,
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
    id: MessageId,
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

    pub(super) fn is_edit(&self) -> bool {
        matches!(self.content, EntryContent::Edit)
    }
}

/// All entries, oldest first.
#[derive(Default)]
pub(super) struct Log(pub(super) Vec<LogEntry>);

impl Log {
    /// Adds a message with its blocks. Returns true if the log sends other blocks.
    pub(super) fn push_message(
        &mut self,
        id: MessageId,
        role: Role,
        blocks: Vec<Arc<Block>>,
        report: Report,
    ) -> bool {
        let chars = blocks.iter().map(|b| chars(b)).sum();
        let mut message = PiMessage { role, blocks, chars, report, hidden: false };
        let changed = message.tidy();
        self.0.push(LogEntry { id, content: EntryContent::Message(message) });
        changed
    }

    /// Adds a failed reply and returns its index.
    pub(super) fn push_failed(&mut self, s: &mut Engine, e: &ModelError) -> usize {
        let id = s.append(Role::Assistant, vec![]);
        let report = Report { failed: Some(e.clone()), ..Report::default() };
        self.push_message(id, Role::Assistant, vec![], report);
        self.0.len() - 1
    }

    pub(super) fn push_compaction(&mut self, c: PiCompaction) {
        self.0.push(LogEntry { id: c.block.message, content: EntryContent::Compaction(c) });
    }

    /// Hides a message by an edit.
    pub(super) fn hide(&mut self, at: usize) {
        if let EntryContent::Message(m) = &mut self.0[at].content {
            m.hidden = true;
            // A rewind to the message also removes the edit, because both have the same ID.
            let id = self.0[at].id;
            self.0.push(LogEntry { id, content: EntryContent::Edit });
        }
    }

    /// Adds an error result to each call without a result, as the next request sends it. Returns
    /// true if there were such calls.
    pub(super) fn close_calls(&mut self, s: &mut Engine) -> bool {
        let newest = self.0.iter().rposition(
            |e| matches!(&e.content, EntryContent::Message(m) if m.role == Role::Assistant),
        );
        let Some(at) = newest else { return false };
        let visible = self.0[at..].iter().filter_map(LogEntry::visible);
        let blocks: Vec<Arc<Block>> = visible.flat_map(|m| m.blocks.iter().cloned()).collect();
        let open = unanswered(&blocks);
        // The results belong to the request and not to the session, so they are never counted.
        if let EntryContent::Message(m) = &mut self.0[at].content {
            m.blocks.extend(open.iter().map(|b| interrupted(s, b, NO_RESULT)));
        }
        !open.is_empty()
    }

    /// Removes the entries after a message. The program keeps them on another branch of its tree of
    /// entries.
    pub(super) fn rewind(&mut self, to: MessageId) {
        self.0.retain(|e| e.id <= to);
    }
}

impl PiMessage {
    /// Removes blank replies and replaces blank results, as the program does before it sends them.
    /// Returns true if a block changed.
    fn tidy(&mut self) -> bool {
        let blank = |b: &Block, kind| b.kind == kind && b.text.trim().is_empty();
        let before = self.blocks.len();
        if self.role == Role::Assistant {
            self.blocks.retain(|b| !blank(b, BlockKind::Assistant));
        }
        let mut changed = self.blocks.len() < before;
        for b in self.blocks.iter_mut().filter(|b| blank(b, BlockKind::Output)) {
            *b = b.with_text(BlockForm::Verbatim, NO_OUTPUT);
            changed = true;
        }
        changed
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
