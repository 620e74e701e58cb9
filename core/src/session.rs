//! The canonical session: what was said, called and returned, in order. Importers produce it,
//! replay reads it.
//!
//! One JSON object per line; unknown fields are kept. The format is a contract (see
//! `docs/formats.md`).

mod recorded;

pub use recorded::{RecordedCall, RecordedCompaction, RecordedUsage, Trigger};

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::{Part, ToolCall};
use crate::fact::Fact;

/// Milliseconds of session time.
pub type Millis = u64;

/// The first line of a session file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Header {
    /// Format version; this build reads 1.
    #[cfg_attr(feature = "schema", schemars(extend("const" = 1)))]
    pub version: u32,
    /// Short name, unique in a run.
    pub id: String,
    /// A line for people.
    #[serde(default)]
    pub title: String,
    /// The model the session was recorded with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Context window in tokens, when it differs from the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Largest reply in tokens, when it differs from the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// Size in tokens of system prompt and tools where the recording lacks their text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_tokens: Option<u64>,
    /// When it began, RFC 3339 in UTC; `at` of entries counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Where an imported session came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Fields this build does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Origin of an imported session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// Importer name, such as `claude-code`.
    pub format: String,
    /// File name without its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// One line after the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Entry {
    /// System prompt.
    System {
        /// Its text.
        text: String,
        /// Which subagent's window; absent = the main conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// Tool definitions offered with every normal request.
    Tools {
        /// JSON objects with `name`, `description`, `input_schema`.
        definitions: Vec<Value>,
        /// Which subagent's window; absent = the main conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// A memory file such as CLAUDE.md or AGENTS.md.
    Memory {
        /// Path shown to the model.
        path: String,
        /// Contents.
        text: String,
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// Overview of the code base.
    RepoMap {
        /// The map.
        text: String,
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// A file in the chat.
    File {
        /// Path shown to the model.
        path: String,
        /// Contents.
        text: String,
        /// `editable` or `read_only`.
        #[serde(default)]
        mode: FileMode,
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// A file on disk when the session begins; it is not shown to the model.
    DiskFile {
        /// Path below the session's folder.
        path: String,
        /// Contents.
        text: String,
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// A user message.
    User(UserEntry),
    /// A model reply.
    Assistant(AssistantEntry),
    /// The result of a tool call.
    Tool(ToolEntry),
    /// Manual compaction.
    Compact {
        /// What the user asked the summary to keep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
        /// ms since session start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Millis>,
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// Back to an earlier message, or a summary of what lies on one side of it.
    Rewind {
        /// Message id: the last one that stays, or behind which the seam lies.
        to: String,
        /// One of [`RewindMode`]; empty = `conversation`. `summarize_from` summarises what follows
        /// the message, `summarize_to` what stands up to it.
        #[serde(default)]
        #[cfg_attr(
            feature = "schema",
            schemars(with = "String", extend("enum" = ["", "conversation", "code", "both", "summarize_from", "summarize_to"]))
        )]
        mode: RewindMode,
        /// What a summary should keep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// A fresh conversation in the same session.
    Clear {
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// The session ends, and another one of the same project begins: an empty conversation, and what
    /// the product carries over on disk.
    NewSession {
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// The program ended and the session was opened again.
    Restart {
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// Nothing happens for a while.
    Idle {
        /// Length in ms.
        ms: Millis,
        /// Fields this build does not know.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// A compaction by the original program; replayed only if the user asked for it.
    RecordedCompaction(RecordedCompaction),
    /// A counted call whose reply is no part of the session: a branch that was given up.
    RecordedCall(RecordedCall),
    /// Something the session establishes, for retention.
    Fact(Fact),
}

/// What a rewind brings back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindMode {
    /// The conversation; files stay.
    #[default]
    #[serde(alias = "")]
    Conversation,
    /// Files; the conversation stays.
    Code,
    /// Either.
    Both,
    /// Nothing: what follows the message is replaced by a summary.
    SummarizeFrom,
    /// Nothing: what stands up to the message is replaced by a summary.
    SummarizeTo,
}

impl RewindMode {
    /// Every mode.
    pub const ALL: [RewindMode; 5] = [
        RewindMode::Conversation,
        RewindMode::Code,
        RewindMode::Both,
        RewindMode::SummarizeFrom,
        RewindMode::SummarizeTo,
    ];

    /// The word in files.
    pub const fn word(self) -> &'static str {
        match self {
            RewindMode::Conversation => "conversation",
            RewindMode::Code => "code",
            RewindMode::Both => "both",
            RewindMode::SummarizeFrom => "summarize_from",
            RewindMode::SummarizeTo => "summarize_to",
        }
    }

    /// Whether the conversation goes back.
    pub fn restores_conversation(self) -> bool {
        matches!(self, RewindMode::Conversation | RewindMode::Both)
    }

    /// Whether files go back.
    pub fn restores_code(self) -> bool {
        matches!(self, RewindMode::Code | RewindMode::Both)
    }

    /// Whether a summary is asked for.
    pub fn summarises(self) -> bool {
        matches!(self, RewindMode::SummarizeFrom | RewindMode::SummarizeTo)
    }
}

/// A user message line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("anyOf" = [{ "required": ["text"] }, { "required": ["parts"] }])))]
pub struct UserEntry {
    /// Unique in the session.
    pub id: String,
    /// The words, unless `parts` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Arc<str>>,
    /// Texts and images in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<Part>>,
    /// ms since session start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Millis>,
    /// Which subagent's window; absent = the main conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Fields this build does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A model reply line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssistantEntry {
    /// Unique in the session.
    pub id: String,
    /// The words, unless `parts` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Arc<str>>,
    /// Texts, reasoning and calls in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<Part>>,
    /// Thinking before the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Arc<str>>,
    /// Tool calls after the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// The provider's counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<RecordedUsage>,
    /// Model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// ms since session start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Millis>,
    /// Which subagent's window; absent = the main conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Fields this build does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A tool result line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("anyOf" = [{ "required": ["output"] }, { "required": ["parts"] }])))]
pub struct ToolEntry {
    /// The call it answers.
    pub call_id: String,
    /// Tool name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The words, unless `parts` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
    /// Texts and images in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<Part>>,
    /// The tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// What a command changed on disk besides what an edit tool's own arguments say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// ms since session start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Millis>,
    /// Which subagent's window; absent = the main conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Fields this build does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A file that a command changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("anyOf" = [{ "required": ["text"] }, { "required": ["removed"] }])))]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Path below the session's folder.
    pub path: String,
    /// Its contents afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// It is gone afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

/// Whether the agent may change a file in the chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileMode {
    /// The agent may edit it.
    #[default]
    Editable,
    /// Reference only.
    ReadOnly,
}

/// A whole session in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// First line.
    pub header: Header,
    /// Everything else in order, facts left out.
    pub entries: Vec<Entry>,
    /// Facts, in file order.
    pub facts: Vec<Fact>,
}

impl Entry {
    /// The subagent whose window it belongs to; `None` = the main conversation.
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

    /// By what facts and rewinds name it: the id of a message, the call of a result.
    pub fn key(&self) -> Option<&str> {
        match self {
            Entry::User(UserEntry { id, .. })
            | Entry::Assistant(AssistantEntry { id, .. })
            | Entry::Tool(ToolEntry { call_id: id, .. }) => Some(id),
            _ => None,
        }
    }

    /// The user's command to compact, whether scripted or recorded: its instructions and its time.
    pub fn compact_command(&self) -> Option<(Option<&str>, Option<Millis>)> {
        match self {
            Entry::Compact { instructions, at, .. } => Some((instructions.as_deref(), *at)),
            Entry::RecordedCompaction(c) if c.trigger == Some(Trigger::Manual) => {
                Some((c.instructions.as_deref(), c.at))
            }
            _ => None,
        }
    }

    /// Whether somebody says something: the user, or the model.
    pub fn is_message(&self) -> bool {
        matches!(self, Entry::User(_) | Entry::Assistant(_))
    }

    /// A message or result as parts; nothing of anything else.
    pub fn content(&self) -> Vec<Part> {
        match self {
            Entry::User(m) => m.content(),
            Entry::Assistant(m) => m.content(),
            Entry::Tool(m) => m.content(),
            _ => Vec::new(),
        }
    }

    /// The text of what every request shows: system prompt, memory, map, files of the chat.
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
    /// The message as parts, whichever way it was written.
    pub fn content(&self) -> Vec<Part> {
        parts_or_text(self.parts.as_ref(), self.text.as_ref())
    }
}

impl AssistantEntry {
    /// The reply as parts in order: given parts, or reasoning, text and calls.
    pub fn content(&self) -> Vec<Part> {
        let said = parts_or_text(self.parts.as_ref(), self.text.as_ref());
        let thought = usize::from(self.reasoning.is_some());
        let mut out = Vec::with_capacity(thought + said.len() + self.calls.len());
        if let Some(r) = &self.reasoning {
            out.push(Part::Reasoning { text: r.clone(), encrypted: None });
        }
        out.extend(said);
        out.extend(self.calls.iter().cloned().map(Part::Call));
        out
    }

    /// The calls of the reply, wherever they stand.
    pub fn all_calls(&self) -> Vec<ToolCall> {
        self.content().iter().filter_map(|p| p.as_call().cloned()).collect()
    }
}

impl ToolEntry {
    /// The result as parts.
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

/// A session in memory that no session file can hold.
#[derive(Debug, thiserror::Error)]
#[error(
    "entry {entry} of the session cannot be written to a session file: {why}; tool results are \
     entries of their own, summaries and the provider's compactions have no place in a recorded \
     message"
)]
pub struct UnwritableSession {
    /// Its place, from 1.
    entry: usize,
    why: serde_json::Error,
}

impl Session {
    /// Whether it holds the provider's counters of any reply.
    pub fn has_counters(&self) -> bool {
        self.entries.iter().any(|e| matches!(e, Entry::Assistant(a) if a.usage.is_some()))
    }

    /// The session as JSON lines: header, entries, facts.
    pub fn to_jsonl(&self) -> Result<String, UnwritableSession> {
        #[derive(Serialize)]
        struct Tagged<'a, T> {
            #[serde(rename = "type")]
            tag: &'static str,
            #[serde(flatten)]
            line: &'a T,
        }
        let header = serde_json::to_string(&Tagged { tag: "session", line: &self.header });
        let entries = self.entries.iter().map(serde_json::to_string);
        let fact = |line| serde_json::to_string(&Tagged { tag: "fact", line });
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
    fn a_part_that_no_session_file_has_is_an_error_that_names_its_entry() {
        let summary = AssistantEntry {
            parts: Some(vec![Part::Summary("so far".into())]),
            ..AssistantEntry::default()
        };
        let entries = vec![Entry::User(UserEntry::default()), Entry::Assistant(summary)];
        let error = Session { entries, ..Session::default() }.to_jsonl().unwrap_err().to_string();
        assert!(error.starts_with("entry 2 of the session cannot be written"), "{error}");
    }
}
