//! OpenCode's stored messages, from which each request is selected. A tool result belongs to the
//! message of its call.

use std::borrow::Cow;

use ctxbench_core::prelude::*;
use ctxbench_util::json::Json;
use serde_json::{Value, json};

use crate::shared::{interrupted, joined};

/// Placeholder of a cleared result, as sent to the provider (docs/sources/opencode.md §1).
pub const CLEARED: &str = "[Old tool result content cleared]";

/// Result of an interrupted call, as sent to the provider (docs/sources/opencode.md §5).
const INTERRUPTED: &str = "[Tool execution was interrupted]";

/// A stored message. Failed messages have no blocks, so they send nothing.
#[derive(Default)]
pub struct StoredMessage {
    pub id: MessageId,
    /// True for a message on the user's side.
    pub user: bool,
    /// A marker of a compaction, with the start of its verbatim tail.
    pub marker: Option<Option<MessageId>>,
    /// The user message that an assistant message answers.
    pub parent: Option<MessageId>,
    pub summary: bool,
    pub finished: bool,
    pub error: bool,
    pub blocks: Vec<Arc<Block>>,
    /// Tokens that the provider reported with the message; 0 = none.
    pub used: u64,
}

impl StoredMessage {
    pub fn new(id: MessageId, user: bool, blocks: Vec<Arc<Block>>) -> Self {
        StoredMessage { id, user, blocks, finished: true, ..StoredMessage::default() }
    }

    pub fn user(block: Arc<Block>) -> Self {
        StoredMessage::new(block.message, true, vec![block])
    }

    /// Builds a finished summary. Without text it has no parts, so it sends nothing.
    pub fn summary(block: Arc<Block>, parent: MessageId) -> Self {
        let (id, blocks) = (block.message, Some(block).filter(|b| !b.text.is_empty()));
        let (summary, parent) = (true, Some(parent));
        let blocks = blocks.into_iter().collect();
        StoredMessage { summary, parent, ..StoredMessage::new(id, false, blocks) }
    }

    /// Builds a reply or summary that failed.
    pub fn failed(s: &mut Engine, parent: Option<MessageId>) -> Self {
        let id = s.append(Role::Assistant, vec![]);
        let (finished, error) = (false, true);
        StoredMessage { parent, finished, error, ..StoredMessage::new(id, false, vec![]) }
    }

    pub fn is_marker(&self) -> bool {
        self.marker.is_some()
    }

    /// Returns true if the user wrote the message or the program did on the user's behalf.
    pub fn is_prompt(&self) -> bool {
        self.user && !self.is_marker()
    }

    /// Returns true if the message is a finished summary of a compaction.
    pub fn is_summary(&self) -> bool {
        self.summary && self.finished && !self.error
    }

    /// Joins the text parts with blank lines.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().map(|b| b.text.trim()).filter(|t| !t.is_empty());
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Returns the blocks with files as notes and without those of tool results: the input of 1.3's
    /// summariser (docs/sources/opencode.md §0).
    pub fn shown_without_media(&self) -> impl Iterator<Item = Arc<Block>> {
        let note = |b: &Arc<Block>| {
            b.map_draft(|d| {
                (d.kind, d.text, d.media) = (BlockKind::User, attachment_note(b).into(), None)
            })
        };
        let blocks = self.blocks.iter().filter(|b| self.user || b.media.is_none());
        blocks.map(move |b| if b.media.is_some() { note(b) } else { b.clone() })
    }

    /// Returns the UTF-16 length of the message's model messages as JSON, each with a comma.
    pub fn json_len(&self) -> u64 {
        if self.blocks.is_empty() {
            return 0;
        }
        let (mut results, mut rest) = (Vec::new(), Vec::new());
        for (i, b) in self.blocks.iter().enumerate() {
            match b.kind {
                BlockKind::Output => results.push(result_len(&self.blocks[i..])),
                BlockKind::Image if !results.is_empty() => {}
                _ => rest.push(part_len(b)),
            }
        }
        let tool = if results.is_empty() { 0 } else { message_len("tool", &results) };
        message_len(if self.user { "user" } else { "assistant" }, &rest) + tool
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

/// Formats a message for the transcript, one line per block of the model (docs/sources/opencode.md §3.2.6). A
/// cleared result shows its placeholder.
pub fn message_transcript(user: bool, blocks: &[Arc<Block>]) -> Transcript {
    let mut out = Transcript::default();
    if user {
        // All texts are one entry, before the files.
        let texts = blocks.iter().filter(|b| b.media.is_none() && b.kind != BlockKind::Marker);
        let parts = texts.flat_map(|b| b.parts().map(move |text| (b, text)));
        for (n, (b, text)) in parts.filter(|(_, text)| !text.is_empty()).enumerate() {
            out.push(if n == 0 { "[User]: " } else { "\n" });
            out.quote(b, text);
        }
        for file in blocks.iter().filter(|b| b.media.is_some()) {
            out.separate("\n");
            out.quote(file, &attachment_note(file));
        }
        return out;
    }
    let line = |out: &mut Transcript, tag: &str, b: &Block, text: &str| {
        out.separate("\n");
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
                let of_call =
                    |o: &Arc<Block>| o.kind == BlockKind::Output && o.call_id() == b.call_id();
                if let Some(at) = blocks.iter().position(of_call) {
                    let (tag, text) = result_line(&blocks[at..]);
                    line(&mut out, tag, &blocks[at], &text);
                }
            }
            // The line of a call includes its result and the files that came with it.
            BlockKind::Output => {}
            BlockKind::Image if blocks[..i].iter().any(|o| o.kind == BlockKind::Output) => {}
            BlockKind::Image => line(&mut out, "", b, &attachment_note(b)),
            _ => b.parts().for_each(|t| line(&mut out, "[Assistant]: ", b, t)),
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
    let files = files_after(blocks).map(|b| attachment_note(b));
    let text: Vec<String> = std::iter::once(o.text.to_string()).chain(files).collect();
    let text = text.join("\n");
    let shown = head_cut(&text, TRANSCRIPT_OUTPUT).map(|head| format!("{head}\n[truncated]"));
    (tag, shown.unwrap_or(text))
}

/// Maximum length of a tool result in a transcript, in UTF-16 units (docs/sources/opencode.md
/// §3.2.6).
const TRANSCRIPT_OUTPUT: usize = 2_000;

/// Returns the files that came with a tool result.
fn files_after(blocks: &[Arc<Block>]) -> impl Iterator<Item = &Arc<Block>> {
    blocks[1..].iter().take_while(|b| b.kind == BlockKind::Image)
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

fn json_len(v: &Value) -> u64 {
    utf16_len(&v.to_string())
}

/// Returns the UTF-16 length of one model message with parts of these lengths as compact JSON, with a
/// comma.
pub fn message_len(role: &str, parts: &[u64]) -> u64 {
    // A list has a comma less than parts.
    json_len(&json!({"role": role, "content": []}))
        + parts.iter().sum::<u64>()
        + parts.len().max(1) as u64
}

/// Returns the UTF-16 length of a tool result with its files, which are part of the result for the
/// packages of Anthropic and OpenAI (docs/sources/opencode.md §5).
fn result_len(blocks: &[Arc<Block>]) -> u64 {
    let result = &blocks[0];
    let inline = |b: &Arc<Block>| {
        let media = b.media.as_ref()?;
        let (_, data) = media.url.strip_prefix("data:")?.split_once(',')?;
        Some(json!({"type": "media", "mediaType": media.media_type, "data": data}))
    };
    let mut value: Vec<Value> = files_after(blocks).filter_map(inline).collect();
    if value.is_empty() || result.is_error || result.form == BlockForm::Cleared {
        return part_len(result);
    }
    if !result.text.is_empty() {
        value.insert(0, json!({"type": "text", "text": &*result.text}));
    }
    let (id, name) = result.call.as_ref().map_or(("", ""), |c| (&*c.id, &*c.name));
    json_len(&json!({
        "type": "tool-result", "toolCallId": id, "toolName": name,
        "output": {"type": "content", "value": value},
    }))
}

/// Returns the UTF-16 length of a part of a model message as compact JSON.
pub fn part_len(b: &Block) -> u64 {
    let (id, name) = b.call.as_ref().map_or(("", ""), |c| (&*c.id, &*c.name));
    let text = &*b.text;
    match b.kind {
        BlockKind::Call => {
            // The arguments take the place of the digit.
            let call = json!({"type": "tool-call", "toolCallId": id, "toolName": name, "input": 0});
            json_len(&call) - 1 + utf16_len(&stringify(text))
        }
        BlockKind::Output => {
            // A failure is an `error-text` (docs/sources/opencode.md §5).
            let output =
                json!({"type": if b.is_error { "error-text" } else { "text" }, "value": text});
            json_len(&json!({
                "type": "tool-result", "toolCallId": id, "toolName": name, "output": output
            }))
        }
        BlockKind::Reasoning => json_len(&json!({"type": "reasoning", "text": text})),
        BlockKind::Image => b.media.as_ref().map_or(0, |m| {
            let mut file = json!({"type": "file", "data": m.url, "mediaType": m.media_type});
            if let Some(name) = &m.name {
                file["filename"] = json!(name);
            }
            json_len(&file)
        }),
        // Several parts are several members of the list, with commas between them.
        _ => b.parts().map(|t| json_len(&json!({"type": "text", "text": t})) + 1).sum::<u64>() - 1,
    }
}

/// All stored messages, oldest first.
#[derive(Default)]
pub struct MessageLog(pub Vec<StoredMessage>);

impl MessageLog {
    /// Adds the newest message of the session. Returns whether it is sent differently from the
    /// engine's view.
    pub fn record(&mut self, s: &Engine, id: MessageId) -> bool {
        let Some(m) = s.history.get(id) else { return false };
        let blocks = s.newest_blocks();
        let count = blocks.len();
        match m.role {
            Role::User => {
                let blocks = merge_texts(blocks);
                let merged = blocks.len() < count;
                self.0.push(StoredMessage::new(id, true, blocks));
                return merged;
            }
            Role::Tool => {
                if let Some(m) = self.newest_reply() {
                    m.blocks.extend(blocks);
                }
            }
            _ => {
                let parent = self.newest_user();
                let finished = !m.parts.iter().all(|p| matches!(p, Part::Reasoning { .. }));
                self.0.push(StoredMessage {
                    parent,
                    finished,
                    ..StoredMessage::new(id, false, blocks)
                });
            }
        }
        false
    }

    pub fn newest_reply(&mut self) -> Option<&mut StoredMessage> {
        self.0.iter_mut().rev().find(|m| !m.user)
    }

    /// Returns the newest message on the user's side.
    pub fn newest_user(&self) -> Option<MessageId> {
        self.0.iter().rev().find(|m| m.user).map(|m| m.id)
    }

    pub fn find_marker(&mut self, id: MessageId) -> Option<&mut StoredMessage> {
        self.0.iter_mut().find(|m| m.id == id && m.is_marker())
    }

    /// Deletes all messages after this one, markers and summaries too (docs/sources/opencode.md §7,
    /// revert).
    pub fn rewind(&mut self, to: MessageId) {
        self.0.retain(|m| m.id <= to);
    }

    /// Adds an error result to each call without a result, as the next request sends it. Returns
    /// whether there were such calls.
    pub fn close_calls(&mut self, s: &mut Engine) -> bool {
        let Some(m) = self.newest_reply() else { return false };
        let open = unanswered(&m.blocks);
        m.blocks.extend(open.iter().map(|b| interrupted(s, b, INTERRUPTED)));
        !open.is_empty()
    }

    /// Formats these messages as one text.
    pub fn transcript(&self, messages: &[usize]) -> Transcript {
        let mut out = Transcript::default();
        let shown = messages.iter().map(|&i| &self.0[i]);
        let shown = shown.map(|m| message_transcript(m.user, &m.blocks));
        for t in shown.filter(|t| !t.is_empty()) {
            out.separate("\n\n");
            out.append(&t);
        }
        out
    }
}
