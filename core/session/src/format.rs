//! The session format: messages, calls and results in order. Importers write it, replay reads it.
//!
//! One JSON object per line; unknown fields are kept. The format is a contract (see
//! `docs/sessions.md`).

use ctxbench_core::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::fact::Fact;
use crate::recorded::{RecordedCall, RecordedCompaction, RecordedUsage, Trigger};

/// The first line of a session file.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Format version; this build reads 1.
    pub version: u32,
    /// Short name, unique in a run.
    pub id: String,
    /// A title for people.
    #[serde(default)]
    pub title: String,
    /// The model the session was recorded with.
    pub model: Option<String>,
    /// Context window in tokens, when it differs from the model's.
    pub context_window: Option<u64>,
    /// Largest reply in tokens, when it differs from the model's.
    pub max_output: Option<u64>,
    /// Size in tokens of system prompt and tools, if the recording lacks their text.
    pub prefix_tokens: Option<u64>,
    /// Start time, RFC 3339 in UTC; `at` of entries counts from here.
    pub started: Option<String>,
    /// Source of an imported session.
    pub source: Option<Source>,
}

/// Source of an imported session.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Importer name, such as `claude-code`.
    pub format: String,
    /// File name without its folder.
    pub file: Option<String>,
    /// Version of the program that recorded the session, if the file has it.
    pub version: Option<String>,
    /// Whether it begins within a conversation, most of which the file lacks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
}

/// One line after the header.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Entry {
    /// System prompt.
    System {
        text: String,
        /// Name of the subagent; absent means the main conversation.
        agent: Option<String>,
    },
    /// Tool definitions offered with every normal request.
    Tools {
        /// JSON objects with `name`, `description`, `input_schema`.
        definitions: Vec<Value>,
        /// Name of the subagent; absent means the main conversation.
        agent: Option<String>,
    },
    /// A memory file such as CLAUDE.md or AGENTS.md.
    Memory {
        /// Path shown to the model.
        path: String,
        text: String,
    },
    /// Overview of the code base.
    RepoMap { text: String },
    /// A file in the chat.
    File {
        /// Path shown to the model.
        path: String,
        text: String,
        /// `editable` or `read_only`.
        #[serde(default)]
        mode: FileMode,
    },
    /// A file on disk at the start of the session; not shown to the model.
    DiskFile {
        /// Path below the session's folder.
        path: String,
        text: String,
    },
    /// A user message.
    User(UserEntry),
    /// A model reply.
    Assistant(AssistantEntry),
    /// The result of a tool call.
    Tool(ToolEntry),
    /// Manual compaction.
    Compact {
        /// The user's instructions for the summary.
        instructions: Option<String>,
        /// ms since session start.
        at: Option<Millis>,
    },
    /// Goes back to an earlier message, or summarises everything before or after it.
    Rewind {
        /// Message id: the last message to keep, or the last before the dividing line.
        to: String,
        /// A [`RewindMode`]; empty means `conversation`. `summarize_from` summarises everything after
        /// the message, `summarize_to` everything up to it.
        #[serde(default)]
        mode: RewindMode,
        /// Instructions for a summary.
        instructions: Option<String>,
    },
    /// Starts a new conversation in the same session.
    Clear,
    /// Starts another session of the same project: an empty conversation, and the files that the
    /// product keeps on disk.
    NewSession,
    /// The program exited and reopened the session.
    Restart,
    /// The session is idle.
    Idle {
        /// Duration in ms.
        ms: Millis,
    },
    /// A compaction by the original program; replayed only if the user requested it.
    RecordedCompaction(RecordedCompaction),
    /// A billed request with a reply outside the session, on an abandoned branch.
    RecordedCall(RecordedCall),
    /// Information for measuring recall.
    Fact(Fact),
}

/// A user message line.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserEntry {
    /// Unique in the session.
    pub id: String,
    /// The text, unless `parts` is given.
    pub text: Option<Arc<str>>,
    /// Texts and images in order.
    pub parts: Option<Vec<Part>>,
    /// ms since session start.
    pub at: Option<Millis>,
    /// Name of the subagent; absent means the main conversation.
    pub agent: Option<String>,
}

/// A model reply line.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantEntry {
    /// Unique in the session.
    pub id: String,
    /// The text, unless `parts` is given.
    pub text: Option<Arc<str>>,
    /// Texts, reasoning and calls in order.
    pub parts: Option<Vec<Part>>,
    /// Thinking before the text.
    pub reasoning: Option<Arc<str>>,
    /// Tool calls after the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// The provider's counters.
    pub usage: Option<RecordedUsage>,
    /// Model that answered.
    pub model: Option<String>,
    /// ms since session start.
    pub at: Option<Millis>,
    /// Name of the subagent; absent means the main conversation.
    pub agent: Option<String>,
}

/// A tool result line.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolEntry {
    /// The call with this result.
    pub call_id: String,
    pub name: Option<String>,
    /// The text, unless `parts` is given.
    pub output: Option<Arc<str>>,
    /// Texts and images in order.
    pub parts: Option<Vec<Part>>,
    /// Whether the tool failed.
    pub is_error: Option<bool>,
    /// Files that a command changed on disk, in addition to those in an edit tool's arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// ms since session start.
    pub at: Option<Millis>,
    /// Name of the subagent; absent means the main conversation.
    pub agent: Option<String>,
}

/// A file that a command changed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Path below the session's folder.
    pub path: String,
    /// Contents afterwards.
    pub text: Option<String>,
    /// Whether the command removed the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

/// Whether the agent may change a file in the chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileMode {
    #[default]
    Editable,
    /// Reference only.
    ReadOnly,
}

/// A whole session in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    pub header: Header,
    /// All entries in order, without facts.
    pub entries: Vec<Entry>,
    /// Facts, in file order.
    pub facts: Vec<Fact>,
}

impl Entry {
    /// Returns the name of the subagent; `None` means the main conversation.
    pub fn agent(&self) -> Option<&str> {
        match self {
            Entry::User(UserEntry { agent, .. })
            | Entry::Assistant(AssistantEntry { agent, .. })
            | Entry::Tool(ToolEntry { agent, .. })
            | Entry::System { agent, .. }
            | Entry::Tools { agent, .. } => agent.as_deref(),
            _ => None,
        }
    }

    /// Returns the id that facts and rewinds refer to: the message id, or the call id of a result.
    pub fn key(&self) -> Option<&str> {
        match self {
            Entry::User(UserEntry { id, .. })
            | Entry::Assistant(AssistantEntry { id, .. })
            | Entry::Tool(ToolEntry { call_id: id, .. }) => Some(id),
            _ => None,
        }
    }

    /// Returns instructions and time of a compaction by the user, scripted or recorded.
    pub fn compact_command(&self) -> Option<(Option<&str>, Option<Millis>)> {
        match self {
            Entry::Compact { instructions, at, .. } => Some((instructions.as_deref(), *at)),
            Entry::RecordedCompaction(c) if c.trigger == Some(Trigger::Manual) => {
                Some((c.instructions.as_deref(), c.at))
            }
            _ => None,
        }
    }

    /// Returns whether the entry is a message of the user or the model.
    pub fn is_message(&self) -> bool {
        matches!(self, Entry::User(_) | Entry::Assistant(_))
    }

    pub fn as_reply(&self) -> Option<&AssistantEntry> {
        if let Entry::Assistant(reply) = self { Some(reply) } else { None }
    }

    /// Returns the parts of a message or result; none for other entries.
    pub fn content(&self) -> Vec<Part> {
        match self {
            Entry::User(m) => m.content(),
            Entry::Assistant(m) => m.content(),
            Entry::Tool(m) => m.content(),
            _ => Vec::new(),
        }
    }

    /// Returns the text of a fixed entry: system prompt, memory, repository map or file.
    pub fn standing_text(&self) -> Option<&str> {
        match self {
            Entry::System { text, .. }
            | Entry::RepoMap { text, .. }
            | Entry::Memory { text, .. }
            | Entry::File { text, .. } => Some(text),
            _ => None,
        }
    }
}

impl UserEntry {
    pub fn content(&self) -> Vec<Part> {
        parts_or_text(self.parts.as_ref(), self.text.as_ref())
    }
}

impl AssistantEntry {
    /// Returns the parts of the reply: reasoning, then parts or text, then calls.
    pub fn content(&self) -> Vec<Part> {
        let parts = parts_or_text(self.parts.as_ref(), self.text.as_ref());
        let reasoning = usize::from(self.reasoning.is_some());
        let mut out = Vec::with_capacity(reasoning + parts.len() + self.calls.len());
        if let Some(r) = &self.reasoning {
            out.push(Part::Reasoning { text: r.clone(), encrypted: None });
        }
        out.extend(parts);
        out.extend(self.calls.iter().cloned().map(Part::Call));
        out
    }

    pub fn all_calls(&self) -> Vec<ToolCall> {
        self.content().iter().filter_map(|p| p.as_call().cloned()).collect()
    }
}

impl ToolEntry {
    pub fn content(&self) -> Vec<Part> {
        parts_or_text(self.parts.as_ref(), self.output.as_ref())
    }
}

fn parts_or_text(parts: Option<&Vec<Part>>, text: Option<&Arc<str>>) -> Vec<Part> {
    match (parts, text) {
        (Some(p), _) => p.clone(),
        (None, Some(t)) => vec![Part::Text(t.clone())],
        (None, None) => Vec::new(),
    }
}

/// A session that cannot be written to a session file.
#[derive(Debug, thiserror::Error)]
#[error(
    "entry {entry} of the session cannot be written to a session file: {why}; write tool results as \
     separate entries, and leave out summaries and the provider's compactions"
)]
pub struct UnwritableSession {
    /// Number of the entry, from 1.
    entry: usize,
    why: serde_json::Error,
}

impl Session {
    /// Returns whether any reply has the provider's counters.
    pub fn has_counters(&self) -> bool {
        self.entries.iter().filter_map(Entry::as_reply).any(|reply| reply.usage.is_some())
    }

    /// Writes the session as JSON lines: header, entries, facts.
    pub fn to_jsonl(&self) -> Result<String, UnwritableSession> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum NotEntry<'a> {
            Session(&'a Header),
            Fact(&'a Fact),
        }
        let header = serde_json::to_string(&NotEntry::Session(&self.header));
        let entries = self.entries.iter().map(serde_json::to_string);
        let fact = |fact| serde_json::to_string(&NotEntry::Fact(fact));
        let mut out = String::new();
        let lines = std::iter::once(header).chain(entries).chain(self.facts.iter().map(fact));
        for (entry, line) in lines.enumerate() {
            out += &line.map_err(|why| UnwritableSession { entry, why })?;
            out.push('\n');
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_jsonl_of_summary_part_names_the_entry() {
        let summary = AssistantEntry {
            parts: Some(vec![Part::Summary("so far".into())]),
            ..AssistantEntry::default()
        };
        let entries = vec![Entry::User(UserEntry::default()), Entry::Assistant(summary)];
        let error = Session { entries, ..Session::default() }.to_jsonl().unwrap_err().to_string();
        assert!(error.starts_with("entry 2 of the session cannot be written"), "{error}");
    }
}
