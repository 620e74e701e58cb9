//! OpenCode's stored messages: what is sent is chosen from them. A tool result belongs to the message of its call.

use std::ops::Index;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Form, MessageId, Origin, Role};
use ctxbench_core::engine::Engine;
use ctxbench_core::history::Part;

use crate::opencode_rules::{PruneMessage, PruneResult, Stored, TurnSpan, json_string_len, transcript_output};

/// What is shown in the place of a cleared result: the marker on the wire (facts/opencode.md §1).
pub const CLEARED: &str = "[Old tool result content cleared]";

/// One stored message.
pub struct Entry {
    /// What decides whether it is sent.
    pub stored: Stored,
    /// Its contents.
    pub blocks: Vec<Arc<Block>>,
}

impl Entry {
    fn of(id: MessageId, user: bool, blocks: Vec<Arc<Block>>) -> Self {
        Entry { stored: Stored { id, user, marker: None, parent: None, summary: false, finished: true, error: false }, blocks }
    }

    /// A user message.
    pub fn user(block: Arc<Block>) -> Self {
        Entry::of(block.message, true, vec![block])
    }

    /// The user message that stands for a compaction.
    pub fn marker(block: Arc<Block>) -> Self {
        let mut e = Entry::user(block);
        e.stored.marker = Some(None);
        e
    }

    /// A finished summary.
    pub fn summary(block: Arc<Block>, parent: MessageId) -> Self {
        let mut e = Entry::of(block.message, false, vec![block]);
        e.stored.summary = true;
        e.stored.parent = Some(parent);
        e
    }

    /// A summary that failed.
    pub fn failed_summary(s: &mut Engine, parent: MessageId, finished: bool) -> Self {
        let id = s.history.append("", Role::Assistant, vec![], true);
        let mut e = Entry::of(id, false, vec![]);
        e.stored = Stored { parent: Some(parent), summary: true, finished, error: true, ..e.stored };
        e
    }

    /// Its number.
    pub fn id(&self) -> MessageId {
        self.stored.id
    }

    /// From the user's side.
    pub fn is_user(&self) -> bool {
        self.stored.user
    }

    /// Stands for a compaction.
    pub fn is_marker(&self) -> bool {
        self.stored.marker.is_some()
    }

    /// The text parts, blank line between.
    pub fn text(&self) -> String {
        self.blocks.iter().map(|b| b.text.trim()).collect::<Vec<_>>().join("\n\n")
    }

    /// History parts that it stands for.
    pub fn origin(&self) -> Vec<Origin> {
        self.blocks.iter().flat_map(|b| b.origin.iter().copied()).collect()
    }

    /// What is sent of it: failed messages are left out.
    pub fn shown(&self) -> Vec<Arc<Block>> {
        if self.stored.error { Vec::new() } else { self.blocks.clone() }
    }

    /// UTF-16 length of its model messages as JSON, commas between them included, and their number.
    fn json_len(&self) -> (u64, u64) {
        let outputs: Vec<&Arc<Block>> = self.blocks.iter().filter(|b| b.kind == BlockKind::Output).collect();
        let rest: Vec<&Arc<Block>> = self.blocks.iter().filter(|b| b.kind != BlockKind::Output).collect();
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

    /// What pruning needs to know of it.
    pub fn for_pruning(&self) -> PruneMessage<'_> {
        let outputs = self.blocks.iter().filter(|b| b.kind == BlockKind::Output);
        let results = outputs.map(|b| PruneResult {
            tool: b.call.as_ref().map_or("", |c| &c.name),
            output: &b.text,
            completed: !b.is_error,
            cleared: b.form == Form::Cleared,
        });
        PruneMessage { user: self.is_user(), summary: self.stored.summary, results: results.collect() }
    }

    fn transcript(&self) -> String {
        message_transcript(self.is_user(), &self.blocks)
    }
}

/// One message as its part of the transcript, a line per block (facts §3.2.6); a cleared result shows its placeholder.
pub fn message_transcript(user: bool, blocks: &[Arc<Block>]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for b in blocks {
        match b.kind {
            // What stands for a compaction is not part of the conversation.
            BlockKind::Marker => {}
            BlockKind::Reasoning => lines.push(format!("[Assistant reasoning]: {}", b.text)),
            BlockKind::Call => {
                let name = b.call.as_ref().map_or("", |c| c.name.as_str());
                lines.push(format!("[Assistant tool call]: {name}({})", b.text));
                if let Some(o) = blocks.iter().find(|o| o.kind == BlockKind::Output && o.call_id() == b.call_id()) {
                    let tag = if o.is_error { "[Tool error]" } else { "[Tool result]" };
                    lines.push(format!("{tag}: {}", transcript_output(&o.text)));
                }
            }
            BlockKind::Output => {}
            BlockKind::Image => {
                let (mime, name) = b.media.as_ref().map_or(("file", None), |m| (m.media_type.as_str(), m.name.as_deref()));
                lines.push(format!("[Attached {mime}: {}]", name.unwrap_or("file")));
            }
            _ if user => lines.push(format!("[User]: {}", b.text)),
            _ => lines.push(format!("[Assistant]: {}", b.text)),
        }
    }
    lines.join("\n")
}

/// UTF-16 length of one model message as compact JSON, its parts' lengths given.
pub fn message_len(role: &str, parts: impl Iterator<Item = u64>) -> u64 {
    let parts: Vec<u64> = parts.collect();
    r#"{"role":"","content":[]}"#.len() as u64 + role.len() as u64 + parts.iter().sum::<u64>() + (parts.len() as u64).saturating_sub(1)
}

/// UTF-16 length of a part of a model message as compact JSON.
pub fn part_len(b: &Block) -> u64 {
    let (id, name) = b.call.as_ref().map_or(("", ""), |c| (c.id.as_str(), c.name.as_str()));
    match b.kind {
        BlockKind::Call => {
            r#"{"type":"tool-call","toolCallId":,"toolName":,"input":}"#.len() as u64
                + json_string_len(id)
                + json_string_len(name)
                + ctxbench_core::tokens::utf16_len(&b.text)
        }
        BlockKind::Output => {
            // A failure is an `error-text` (facts §5).
            let kind = if b.is_error { "error-text" } else { "text" };
            r#"{"type":"tool-result","toolCallId":,"toolName":,"output":{"type":"","value":}}"#.len() as u64
                + kind.len() as u64
                + json_string_len(id)
                + json_string_len(name)
                + json_string_len(&b.text)
        }
        BlockKind::Reasoning => r#"{"type":"reasoning","text":}"#.len() as u64 + json_string_len(&b.text),
        BlockKind::Image => b.media.as_ref().map_or(0, |m| {
            r#"{"type":"file","data":,"mediaType":}"#.len() as u64 + json_string_len(&m.url) + json_string_len(&m.media_type)
        }),
        _ => r#"{"type":"text","text":}"#.len() as u64 + json_string_len(&b.text),
    }
}

/// All stored messages, oldest first.
#[derive(Default)]
pub struct Log {
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
    /// Number of messages.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Takes over what was recorded since the last time. Costs as much as is new.
    pub fn sync(&mut self, s: &Engine) {
        let end = s.history.messages().len() as u32;
        if end == self.synced {
            return;
        }
        let fresh: Vec<Arc<Block>> = {
            let new = s.context.blocks().iter().rev().take_while(|b| b.message.0 >= self.synced && b.message.0 < end);
            let mut v: Vec<Arc<Block>> = new.cloned().collect();
            v.reverse();
            v
        };
        for m in &s.history.messages()[self.synced as usize..] {
            if m.synthetic {
                continue;
            }
            let blocks: Vec<Arc<Block>> = fresh.iter().filter(|b| b.message == m.id).cloned().collect();
            match m.role {
                Role::User => self.entries.push(Entry::of(m.id, true, blocks)),
                Role::Tool => {
                    if let Some(e) = self.entries.iter_mut().rev().find(|e| !e.stored.user) {
                        e.blocks.extend(blocks);
                    }
                }
                _ => {
                    let mut e = Entry::of(m.id, false, blocks);
                    e.stored.parent = self.newest_user();
                    e.stored.finished = !m.parts.iter().all(|p| matches!(p, Part::Reasoning { .. }));
                    self.entries.push(e);
                }
            }
        }
        self.synced = end;
    }

    /// Adds a message that the strategy made.
    pub fn push(&mut self, e: Entry) {
        self.synced = self.synced.max(e.id().0 + 1);
        self.entries.push(e);
    }

    /// A reply that never came, because the provider refused the prompt.
    pub fn push_failed_reply(&mut self, s: &mut Engine) {
        let parent = self.newest_user();
        let id = s.history.append("", Role::Assistant, vec![], true);
        let mut e = Entry::of(id, false, vec![]);
        e.stored = Stored { parent, finished: false, error: true, ..e.stored };
        self.push(e);
    }

    /// What decides which messages are sent.
    pub fn stored(&self) -> Vec<Stored> {
        self.entries.iter().map(|e| e.stored).collect()
    }

    /// The newest message from the user's side.
    pub fn newest_user(&self) -> Option<MessageId> {
        self.entries.iter().rev().find(|e| e.stored.user).map(Entry::id)
    }

    /// Whether a message stands for a compaction.
    pub fn is_marker(&self, id: MessageId) -> bool {
        self.entries.iter().any(|e| e.id() == id && e.is_marker())
    }

    /// Notes where the verbatim tail of a compaction starts; messages that are no markers cannot cut and stay as they are.
    pub fn set_tail(&mut self, marker: MessageId, start: Option<MessageId>) {
        if let Some(e) = self.entries.iter_mut().find(|e| e.id() == marker && e.is_marker()) {
            e.stored.marker = Some(start);
        }
    }

    /// Clears one tool result: the `nth` of a message.
    pub fn clear(&mut self, i: usize, nth: usize) {
        let mut outputs = self.entries[i].blocks.iter_mut().filter(|b| b.kind == BlockKind::Output);
        if let Some(b) = outputs.nth(nth) {
            *b = cleared(b);
        }
    }

    /// The turns among these messages with the estimates of their suffixes.
    pub fn turns(&self, messages: &[usize]) -> Vec<TurnSpan> {
        let starts: Vec<usize> = (0..messages.len()).filter(|&k| self[messages[k]].is_user() && !self[messages[k]].is_marker()).collect();
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

    /// These messages as one text.
    pub fn transcript(&self, messages: &[usize]) -> String {
        let parts: Vec<String> = messages.iter().map(|&i| self[i].transcript()).filter(|t| !t.is_empty()).collect();
        parts.join("\n\n")
    }
}

/// A tool result with the placeholder in its place.
pub fn cleared(result: &Block) -> Arc<Block> {
    result.altered(Form::Cleared, CLEARED)
}

/// Estimate of a list of messages as JSON, brackets and commas included: length / 4, half up. Of each entry the length of its model
/// messages, commas between them included, and their number.
pub fn estimate_list(lens: &[(u64, u64)]) -> u64 {
    let shown: Vec<u64> = lens.iter().filter(|(_, n)| *n > 0).map(|(l, _)| *l).collect();
    let len = 2 + shown.iter().sum::<u64>() + (shown.len() as u64).saturating_sub(1);
    (len + 2) / 4
}
