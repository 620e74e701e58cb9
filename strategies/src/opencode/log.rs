//! OpenCode's stored messages, from which each request is selected. A tool result belongs to the
//! message of its call.

use std::borrow::Cow;
use std::ops::Index;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockForm, BlockKind, Draft, MessageId, Origins, Role};
use ctxbench_core::compaction::{Transcript, origins};
use ctxbench_core::content::Part;
use ctxbench_core::engine::Engine;
use ctxbench_core::tokens::{json_utf16_len, utf16_len};
use ctxbench_util::json::Json;

use super::rules::{
    MessageView, PruneMessage, PruneResult, TurnSpan, filter_compacted, transcript_output,
};
use crate::shared::{interrupted, joined, recorded_since};

/// Placeholder of a cleared result, as sent to the provider (docs/sources/opencode.md §1).
pub const CLEARED: &str = "[Old tool result content cleared]";

/// Result of an interrupted call, as sent to the provider (docs/sources/opencode.md §5).
const INTERRUPTED: &str = "[Tool execution was interrupted]";

pub struct LogMessage {
    /// Facts that decide whether the message is sent.
    pub stored: MessageView,
    pub blocks: Vec<Arc<Block>>,
    /// Tokens that the provider reported with the message; 0 = none.
    pub used: u64,
}

impl LogMessage {
    fn new(id: MessageId, user: bool, blocks: Vec<Arc<Block>>) -> Self {
        LogMessage {
            stored: MessageView {
                id,
                user,
                marker: None,
                parent: None,
                summary: false,
                finished: true,
                error: false,
            },
            blocks,
            used: 0,
        }
    }

    pub fn user(block: Arc<Block>) -> Self {
        LogMessage::new(block.message, true, vec![block])
    }

    /// Builds the user message that marks a compaction.
    pub fn marker(block: Arc<Block>) -> Self {
        let mut e = LogMessage::user(block);
        e.stored.marker = Some(None);
        e
    }

    /// Builds a finished summary. Without text it has no parts, so it sends nothing.
    pub fn summary(block: Arc<Block>, parent: MessageId) -> Self {
        let id = block.message;
        let mut e =
            LogMessage::new(id, false, if block.text.is_empty() { vec![] } else { vec![block] });
        e.stored.summary = true;
        e.stored.parent = Some(parent);
        e
    }

    /// Builds a failed summary.
    pub fn failed_summary(s: &mut Engine, parent: MessageId, finished: bool) -> Self {
        let id = s.append(Role::Assistant, vec![]);
        let mut e = LogMessage::new(id, false, vec![]);
        e.stored =
            MessageView { parent: Some(parent), summary: true, finished, error: true, ..e.stored };
        e
    }

    pub fn id(&self) -> MessageId {
        self.stored.id
    }

    /// Returns true if the message is on the user's side.
    pub fn is_user(&self) -> bool {
        self.stored.user
    }

    /// Returns true if the message is the marker of a compaction.
    pub fn is_marker(&self) -> bool {
        self.stored.marker.is_some()
    }

    /// Joins the text parts with blank lines.
    pub fn text(&self) -> String {
        self.blocks
            .iter()
            .map(|b| b.text.trim())
            .filter(|t| !t.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n")
    }

    /// Returns true if the message is a finished summary of a compaction.
    pub fn is_summary(&self) -> bool {
        self.stored.summary && self.stored.finished && !self.stored.error
    }

    /// Returns the history parts that the message covers.
    pub fn origin(&self) -> Origins {
        origins(&self.blocks)
    }

    /// Returns the blocks to send; failed messages send nothing.
    pub fn blocks(&self) -> Vec<Arc<Block>> {
        if self.stored.error { Vec::new() } else { self.blocks.clone() }
    }

    /// Returns the blocks with files as notes and without those of tool results: the input of 1.3's
    /// summariser (docs/sources/opencode.md §0).
    pub fn shown_without_media(&self) -> Vec<Arc<Block>> {
        let user = self.is_user();
        let note = |b: &Arc<Block>| {
            b.map_draft(|d| {
                (d.kind, d.text, d.media) = (BlockKind::User, attachment_note(b).into(), None)
            })
        };
        let blocks = self.blocks().into_iter().filter(|b| user || b.media.is_none());
        blocks.map(|b| if b.media.is_some() { note(&b) } else { b }).collect()
    }

    /// Returns the UTF-16 length of the message's model messages as JSON, including the commas
    /// between them, and their number.
    fn json_len(&self) -> (u64, u64) {
        let outputs: Vec<&Arc<Block>> =
            self.blocks.iter().filter(|b| b.kind == BlockKind::Output).collect();
        let rest: Vec<&Arc<Block>> =
            self.blocks.iter().filter(|b| b.kind != BlockKind::Output).collect();
        if self.stored.error || self.blocks.is_empty() {
            return (0, 0);
        }
        let role = if self.is_user() { "user" } else { "assistant" };
        let mut lens = vec![message_len(role, rest.iter().map(|b| part_len(b)))];
        if !outputs.is_empty() {
            lens.push(message_len("tool", outputs.iter().map(|b| part_len(b))));
        }
        (lens.iter().sum::<u64>() + lens.len() as u64 - 1, lens.len() as u64)
    }

    /// Returns the facts that pruning needs.
    pub fn for_pruning(&self) -> PruneMessage<'_> {
        let outputs = self.blocks.iter().filter(|b| b.kind == BlockKind::Output);
        let results = outputs.map(|b| PruneResult {
            tool: b.call.as_ref().map_or("", |c| &c.name),
            output: &b.text,
            completed: !b.is_error,
            cleared: b.form == BlockForm::Cleared,
        });
        PruneMessage {
            user: self.is_user(),
            summary: self.stored.summary,
            results: results.collect(),
        }
    }

    fn transcript(&self) -> Transcript {
        message_transcript(self.is_user(), &self.blocks)
    }
}

/// Merges consecutive texts of a user message into one block of several parts. The program sends a
/// message as a whole, while a wire treats separate texts as separate messages.
fn merge_texts(blocks: Vec<Arc<Block>>) -> Vec<Arc<Block>> {
    let is_text = |b: &Block| b.kind == BlockKind::User && b.media.is_none();
    let mut out: Vec<Arc<Block>> = Vec::new();
    for b in blocks {
        match out.last_mut() {
            Some(last) if is_text(last) && is_text(&b) => {
                let parts: Vec<_> = last.parts().chain(b.parts()).map(str::to_string).collect();
                let (text, splits) = joined(&parts);
                let origin = origins(&[last.clone(), b]);
                *last = Draft { splits, ..Draft::text(last.kind, last.role, text) }
                    .build(last.message, origin);
            }
            _ => out.push(b),
        }
    }
    out
}

/// Formats a message for the transcript, one line per block (docs/sources/opencode.md §3.2.6). A
/// cleared result shows its placeholder.
pub fn message_transcript(user: bool, blocks: &[Arc<Block>]) -> Transcript {
    let mut out = Transcript::default();
    let line = |out: &mut Transcript, tag: &str, b: &Block, text: &str| {
        if !out.is_empty() {
            out.push("\n");
        }
        out.push(tag);
        out.quote(b, text);
    };
    for (i, b) in blocks.iter().enumerate() {
        match b.kind {
            // Compaction markers are not part of the conversation.
            BlockKind::Marker => {}
            BlockKind::Reasoning => line(&mut out, "[Assistant reasoning]: ", b, &b.text),
            BlockKind::Call => {
                let name = b.call.as_ref().map_or("", |c| &*c.name);
                let tag = format!("[Assistant tool call]: {name}(");
                line(&mut out, &tag, b, &stringify(&b.text));
                out.push(")");
                if let Some(at) = blocks
                    .iter()
                    .position(|o| o.kind == BlockKind::Output && o.call_id() == b.call_id())
                {
                    let (tag, text) = result_line(&blocks[at..]);
                    line(&mut out, tag, &blocks[at], &text);
                }
            }
            // The line of a call includes its result and the files that came with it.
            BlockKind::Output => {}
            BlockKind::Image
                if !user && blocks[..i].iter().any(|o| o.kind == BlockKind::Output) => {}
            BlockKind::Image => line(&mut out, "", b, &attachment_note(b)),
            _ => {
                let tag = if user { "[User]: " } else { "[Assistant]: " };
                b.parts().for_each(|t| line(&mut out, tag, b, t));
            }
        }
    }
    out
}

/// Formats a tool result and the files after it. The cut counts the files' lines too.
fn result_line(blocks: &[Arc<Block>]) -> (&'static str, String) {
    let o = &blocks[0];
    let tag = if o.is_error { "[Tool error]: " } else { "[Tool result]: " };
    if o.is_error || o.form == BlockForm::Cleared {
        return (tag, o.text.to_string());
    }
    let files =
        blocks[1..].iter().take_while(|b| b.kind == BlockKind::Image).map(|b| attachment_note(b));
    let text: Vec<String> = std::iter::once(o.text.to_string()).chain(files).collect();
    (tag, transcript_output(&text.join("\n")))
}

/// Formats the note for a file that cannot be shown (docs/sources/opencode.md §3.2.6, §3.3).
pub fn attachment_note(b: &Block) -> String {
    let (mime, name) =
        b.media.as_ref().map_or(("file", None), |m| (m.media_type.as_str(), m.name.as_deref()));
    format!("[Attached {mime}: {}]", name.unwrap_or("file"))
}

/// Formats arguments as `JSON.stringify` does. A text that is not JSON does not change.
fn stringify(arguments: &str) -> Cow<'_, str> {
    Json::read(arguments).map_or(Cow::Borrowed(arguments), |json| Cow::Owned(json.write()))
}

/// Returns the UTF-16 length of one model message as compact JSON, given the lengths of its parts.
pub fn message_len(role: &str, parts: impl Iterator<Item = u64>) -> u64 {
    let parts: Vec<u64> = parts.collect();
    r#"{"role":"","content":[]}"#.len() as u64
        + role.len() as u64
        + parts.iter().sum::<u64>()
        + (parts.len() as u64).saturating_sub(1)
}

/// Returns the UTF-16 length of a part of a model message as compact JSON.
pub fn part_len(b: &Block) -> u64 {
    let (id, name) = b.call.as_ref().map_or(("", ""), |c| (&*c.id, &*c.name));
    match b.kind {
        BlockKind::Call => {
            r#"{"type":"tool-call","toolCallId":,"toolName":,"input":}"#.len() as u64
                + json_utf16_len(id)
                + json_utf16_len(name)
                + utf16_len(&stringify(&b.text))
        }
        BlockKind::Output => {
            // A failure is an `error-text` (docs/sources/opencode.md §5).
            let kind = if b.is_error { "error-text" } else { "text" };
            r#"{"type":"tool-result","toolCallId":,"toolName":,"output":{"type":"","value":}}"#
                .len() as u64
                + kind.len() as u64
                + json_utf16_len(id)
                + json_utf16_len(name)
                + json_utf16_len(&b.text)
        }
        BlockKind::Reasoning => {
            r#"{"type":"reasoning","text":}"#.len() as u64 + json_utf16_len(&b.text)
        }
        BlockKind::Image => b.media.as_ref().map_or(0, |m| {
            let name =
                m.name.as_deref().map_or(0, |n| r#","filename":"#.len() as u64 + json_utf16_len(n));
            r#"{"type":"file","data":,"mediaType":}"#.len() as u64
                + json_utf16_len(&m.url)
                + json_utf16_len(&m.media_type)
                + name
        }),
        _ => {
            // Several parts are several members of the list, with commas between them.
            let texts =
                b.parts().map(|t| r#"{"type":"text","text":},"#.len() as u64 + json_utf16_len(t));
            texts.sum::<u64>() - 1
        }
    }
}

/// All stored messages, oldest first.
#[derive(Default)]
pub struct MessageLog {
    entries: Vec<LogMessage>,
    synced: u32,
}

impl Index<usize> for MessageLog {
    type Output = LogMessage;
    fn index(&self, i: usize) -> &LogMessage {
        &self.entries[i]
    }
}

impl MessageLog {
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Appends the messages recorded since the last call. Returns whether a message is sent differently
    /// from the engine's view.
    pub fn sync(&mut self, s: &Engine) -> bool {
        let mut changed = false;
        for (m, blocks) in recorded_since(s, self.synced) {
            match m.role {
                Role::User => {
                    let count = blocks.len();
                    let blocks = merge_texts(blocks);
                    changed |= blocks.len() < count;
                    self.entries.push(LogMessage::new(m.id, true, blocks));
                }
                Role::Tool => {
                    if let Some(e) = self.entries.iter_mut().rev().find(|e| !e.stored.user) {
                        e.blocks.extend(blocks);
                    }
                }
                _ => {
                    let mut e = LogMessage::new(m.id, false, blocks);
                    e.stored.parent = self.newest_user();
                    e.stored.finished =
                        !m.parts.iter().all(|p| matches!(p, Part::Reasoning { .. }));
                    self.entries.push(e);
                }
            }
        }
        self.synced = s.history.messages().len() as u32;
        changed
    }

    /// Adds a message that the strategy created.
    pub fn push(&mut self, e: LogMessage) {
        self.synced = self.synced.max(e.id().0 + 1);
        self.entries.push(e);
    }

    /// Adds a failed reply, after the provider refused the prompt or failed.
    pub fn push_failed_reply(&mut self, s: &mut Engine) {
        let parent = self.newest_user();
        let id = s.append(Role::Assistant, vec![]);
        let mut e = LogMessage::new(id, false, vec![]);
        e.stored = MessageView { parent, finished: false, error: true, ..e.stored };
        self.push(e);
    }

    /// Stores the tokens that the provider reported with the newest reply.
    pub fn note_used(&mut self, used: u64) {
        if let Some(e) = self.entries.iter_mut().rev().find(|e| !e.is_user()) {
            e.used = used;
        }
    }

    /// Returns the newest finished message of the model, among those that are sent.
    pub fn newest_finished(&self) -> Option<&LogMessage> {
        let sent = filter_compacted(&self.stored());
        sent.into_iter()
            .filter(|&i| !self[i].is_user() && self[i].stored.finished)
            .max()
            .map(|i| &self[i])
    }

    /// Clears the log: the session starts again after the messages recorded so far.
    pub fn clear_all(&mut self, s: &Engine) {
        *self = MessageLog { entries: Vec::new(), synced: s.history.messages().len() as u32 };
    }

    /// Deletes all messages after this one, markers and summaries too (docs/sources/opencode.md §7,
    /// revert).
    pub fn rewind(&mut self, to: MessageId) {
        self.entries.retain(|e| e.id() <= to);
    }

    /// Adds an error result to each call without a result, as the next request sends it. Returns
    /// whether there were such calls.
    pub fn close_calls(&mut self, s: &mut Engine) -> bool {
        let Some(e) = self.entries.iter_mut().rev().find(|e| !e.is_user()) else { return false };
        let has_result = |id: Option<&str>| {
            e.blocks.iter().any(|o| o.kind == BlockKind::Output && o.call_id() == id)
        };
        let open: Vec<Arc<Block>> = e
            .blocks
            .iter()
            .filter(|b| b.kind == BlockKind::Call && !has_result(b.call_id()))
            .cloned()
            .collect();
        for b in &open {
            let result = interrupted(s, b, INTERRUPTED);
            self.synced = self.synced.max(result.message.0 + 1);
            e.blocks.push(result);
        }
        !open.is_empty()
    }

    /// Returns the facts that decide which messages are sent.
    pub fn stored(&self) -> Vec<MessageView> {
        self.entries.iter().map(|e| e.stored).collect()
    }

    /// Returns the newest message on the user's side.
    pub fn newest_user(&self) -> Option<MessageId> {
        self.entries.iter().rev().find(|e| e.stored.user).map(LogMessage::id)
    }

    /// Returns true if the message with this ID is the marker of a compaction.
    pub fn is_marker(&self, id: MessageId) -> bool {
        self.entries.iter().any(|e| e.id() == id && e.is_marker())
    }

    /// Stores the start of a compaction's verbatim tail; messages other than markers do not change.
    pub fn set_tail(&mut self, marker: MessageId, start: Option<MessageId>) {
        if let Some(e) = self.entries.iter_mut().find(|e| e.id() == marker && e.is_marker()) {
            e.stored.marker = Some(start);
        }
    }

    /// Clears the `nth` tool result of a message.
    pub fn clear(&mut self, i: usize, nth: usize) {
        let mut outputs = self.entries[i].blocks.iter_mut().filter(|b| b.kind == BlockKind::Output);
        if let Some(b) = outputs.nth(nth) {
            *b = cleared(b);
        }
    }

    /// Returns the turns among these messages with the estimates of their suffixes.
    pub fn turns(&self, messages: &[usize]) -> Vec<TurnSpan> {
        let starts: Vec<usize> = (0..messages.len())
            .filter(|&k| self[messages[k]].is_user() && !self[messages[k]].is_marker())
            .collect();
        let lens: Vec<(u64, u64)> = messages.iter().map(|&i| self[i].json_len()).collect();
        starts
            .iter()
            .enumerate()
            .map(|(n, &first)| {
                let end = starts.get(n + 1).copied().unwrap_or(messages.len());
                let suffix_tokens = (first..end).map(|k| estimate_list(&lens[k..end])).collect();
                TurnSpan { first, end, suffix_tokens }
            })
            .collect()
    }

    /// Formats these messages as one text.
    pub fn transcript(&self, messages: &[usize]) -> Transcript {
        let mut out = Transcript::default();
        for t in messages.iter().map(|&i| self[i].transcript()).filter(|t| !t.is_empty()) {
            if !out.is_empty() {
                out.push("\n\n");
            }
            out.append(&t);
        }
        out
    }
}

/// Replaces the text of a tool result with the placeholder.
pub fn cleared(result: &Block) -> Arc<Block> {
    result.with_text(BlockForm::Cleared, CLEARED)
}

/// Estimates a list of messages as JSON, brackets and commas included: length / 4, rounded half up.
/// Each entry is the length of a message's model messages, including commas between them, and their
/// number.
pub fn estimate_list(lens: &[(u64, u64)]) -> u64 {
    let shown: Vec<u64> = lens.iter().filter(|(_, n)| *n > 0).map(|(l, _)| *l).collect();
    let len = 2 + shown.iter().sum::<u64>() + (shown.len() as u64).saturating_sub(1);
    (len + 2) / 4
}
