//! pi's session: entries in the order in which they were written (docs/sources/pi.md §7). Nothing
//! in it is changed; an edit hides a message and a compaction stands for those before its tail.

use std::ops::Index;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, Form, MessageId, Role};
use ctxbench_core::compaction::unanswered;
use ctxbench_core::content::Part;
use ctxbench_core::engine::Engine;
use ctxbench_core::json::Json;
use ctxbench_core::request::{ModelError, Reply, StopReason, Usage};
use ctxbench_core::tokens::utf16_len;

use super::summary::FileLists;

/// What an image counts as, characters (docs/sources/pi.md §1).
const IMAGE_CHARS: u64 = 4_800;
/// What a call shows whose result never came: the marker on the wire (docs/sources/pi.md §7).
const NO_RESULT: &str = "No result provided";
/// What a result without text shows: the marker on the wire (docs/sources/pi.md §7).
const NO_OUTPUT: &str = "(no tool output)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    Tool,
}

/// What a message of the model reports of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) usage: Usage,
    /// Cut off at its largest size.
    pub(super) cut_off: bool,
    /// It failed instead, for this reason.
    pub(super) failed: Option<ModelError>,
}

impl Report {
    pub(super) fn of(reply: &Reply) -> Report {
        let cut_off = matches!(reply.stop, StopReason::MaxTokens | StopReason::WindowExceeded);
        Report { usage: reply.usage, cut_off, failed: None }
    }

    /// Prompt and output together; 0 where it failed or nothing was reported.
    pub(super) fn total(&self) -> u64 {
        if self.failed.is_some() { 0 } else { self.usage.prompt() + self.usage.output }
    }
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) speaker: Speaker,
    /// What is sent of it.
    pub(super) blocks: Vec<Arc<Block>>,
    /// Characters, as both estimators count them.
    pub(super) chars: u64,
    /// Of the model's messages.
    pub(super) report: Report,
    /// An edit leaves it out of every request.
    pub(super) hidden: bool,
}

#[derive(Debug)]
pub(super) struct Compaction {
    /// The message that is sent.
    pub(super) block: Arc<Block>,
    /// The summary with the lists of files and without what is put around it.
    pub(super) summary: String,
    /// First entry of the tail.
    pub(super) first_kept: usize,
    pub(super) files: FileLists,
}

#[derive(Debug)]
pub(super) enum Content {
    Message(Message),
    Compaction(Compaction),
    /// Hides a message; what it hides is marked there.
    Edit,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: MessageId,
    pub(super) content: Content,
}

impl Entry {
    /// The message, unless it is hidden or the entry is none.
    pub(super) fn visible(&self) -> Option<&Message> {
        match &self.content {
            Content::Message(m) if !m.hidden => Some(m),
            _ => None,
        }
    }

    pub(super) fn is_compaction(&self) -> bool {
        matches!(self.content, Content::Compaction(_))
    }
}

/// All entries, oldest first.
#[derive(Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
    synced: u32,
}

impl Index<usize> for Log {
    type Output = Entry;
    fn index(&self, i: usize) -> &Entry {
        &self.entries[i]
    }
}

impl Log {
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Takes over what was recorded since the last time; `report` belongs to the newest reply.
    /// True if something is sent otherwise than the engine shows it.
    pub(super) fn sync(&mut self, s: &Engine, report: &mut Option<Report>) -> bool {
        let from = std::mem::replace(&mut self.synced, s.history.messages().len() as u32);
        let mut changed = false;
        // The newest blocks of the view are those of the newest messages; what is always shown
        // stands for nothing in the history.
        let mut fresh: Vec<Arc<Block>> = s
            .context
            .blocks()
            .iter()
            .rev()
            .take_while(|b| b.message.0 >= from && b.message.0 < self.synced)
            .filter(|b| !b.origin.is_empty())
            .cloned()
            .collect();
        fresh.reverse();
        for m in s.history.messages()[from as usize..].iter().filter(|m| !m.synthetic) {
            let all: Vec<Arc<Block>> =
                fresh.iter().filter(|b| b.message == m.id).cloned().collect();
            let speaker = match m.role {
                Role::Tool => Speaker::Tool,
                Role::Assistant => Speaker::Assistant,
                _ => Speaker::User,
            };
            let mut message = Message::said(speaker, all);
            changed |= message.tidy();
            if speaker == Speaker::Assistant {
                message.report = report.take().unwrap_or_default();
            }
            self.entries.push(Entry { id: m.id, content: Content::Message(message) });
        }
        changed
    }

    fn push(&mut self, id: MessageId, content: Content) {
        self.synced = self.synced.max(id.0 + 1);
        self.entries.push(Entry { id, content });
    }

    /// A reply that failed.
    pub(super) fn push_failed(&mut self, s: &mut Engine, e: &ModelError) -> usize {
        let id = s.history.append("", Role::Assistant, vec![], true);
        let mut message = Message::said(Speaker::Assistant, vec![]);
        message.report.failed = Some(e.clone());
        self.push(id, Content::Message(message));
        self.entries.len() - 1
    }

    /// A compaction.
    pub(super) fn push_compaction(&mut self, c: Compaction) {
        self.push(c.block.message, Content::Compaction(c));
    }

    /// Hides a message by an edit.
    pub(super) fn hide(&mut self, at: usize) {
        if let Content::Message(m) = &mut self.entries[at].content {
            m.hidden = true;
            // Whoever goes back to the message goes to before the edit, which is as if both were
            // one.
            let id = self.entries[at].id;
            self.push(id, Content::Edit);
        }
    }

    /// Gives calls whose result never came an error result, as they are sent then. True if there
    /// were any.
    pub(super) fn close_calls(&mut self, s: &mut Engine) -> bool {
        let newest = self.entries.iter().rposition(
            |e| matches!(&e.content, Content::Message(m) if m.speaker == Speaker::Assistant),
        );
        let Some(at) = newest else { return false };
        let visible = self.entries[at..].iter().filter_map(Entry::visible);
        let blocks: Vec<Arc<Block>> = visible.flat_map(|m| m.blocks.iter().cloned()).collect();
        let open = unanswered(&blocks);
        for b in &open {
            let id = s.history.append("", Role::Tool, vec![Part::Text(NO_RESULT.into())], true);
            let draft = Draft {
                call: b.call.clone(),
                is_error: true,
                ..Draft::synthetic(BlockKind::Output, Role::Tool, NO_RESULT)
            };
            // It belongs to the request and not to the session, so it is never estimated.
            if let Content::Message(m) = &mut self.entries[at].content {
                m.blocks.push(draft.build(id, vec![]));
            }
            self.synced = self.synced.max(id.0 + 1);
        }
        !open.is_empty()
    }

    /// Forgets everything: the session begins anew behind what is recorded so far.
    pub(super) fn clear(&mut self, s: &Engine) {
        *self = Log { entries: Vec::new(), synced: s.history.messages().len() as u32 };
    }

    /// Goes back to a message: entries are a tree, and what came later is on another branch.
    pub(super) fn rewind(&mut self, to: MessageId) {
        self.entries.retain(|e| e.id <= to);
    }
}

impl Message {
    fn said(speaker: Speaker, blocks: Vec<Arc<Block>>) -> Message {
        let chars = blocks.iter().map(|b| chars(b)).sum();
        Message { speaker, blocks, chars, report: Report::default(), hidden: false }
    }

    /// Leaves out or replaces what the program does not send as it stands. True if there was any.
    fn tidy(&mut self) -> bool {
        let blank = |b: &Block| b.text.trim().is_empty();
        match self.speaker {
            Speaker::User => false,
            Speaker::Assistant => {
                let before = self.blocks.len();
                self.blocks.retain(|b| b.kind != BlockKind::Assistant || !blank(b));
                self.blocks.len() < before
            }
            Speaker::Tool => {
                let mut changed = false;
                for b in &mut self.blocks {
                    if b.kind == BlockKind::Output && blank(b) {
                        *b = b.with_text(Form::Verbatim, NO_OUTPUT);
                        changed = true;
                    }
                }
                changed
            }
        }
    }
}

/// Characters of a block as the estimators count them.
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

/// Arguments of a call as the program reads them; what is no JSON is nothing.
pub(super) fn arguments(call: &Block) -> Json {
    Json::read(&call.text).unwrap_or(Json::Object(Vec::new()))
}
