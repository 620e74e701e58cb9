//! Codex: one rollout per session (docs/sources/codex.md §4).
//!
//! A compaction is a line with the complete new history, so any context can be expressed. Reading
//! starts at the newest such line.

use std::path::{Path, PathBuf};

use ctxbench_core::block::Role;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_kit::rollout::{
    Compacted, ItemContent, Payload, Rollout, RolloutItem, SessionMeta, Writer, parse_part,
    rollout_path,
};

use crate::persist::{
    BEGIN_MS, JournalEntry, PersistError, PersistFormat, Persistence, ReopenedSession, SESSION,
    StoredMessage, jsonl, name_results,
};

pub(crate) const FORMAT: PersistFormat = PersistFormat {
    name: "codex-rollout",
    about: "one JSONL file per session; a compaction is a line with the new history",
    open: |dir, _seed| Ok(Box::new(Codex::open(dir)?)),
};

struct Codex {
    path: PathBuf,
    writer: Writer,
}

impl Codex {
    fn open(dir: &Path) -> Result<Codex, PersistError> {
        let path = dir.join(rollout_path(BEGIN_MS, SESSION));
        let meta = SessionMeta { id: SESSION.into(), cli_version: "0.169.0".into() };
        let writer = if path.exists() {
            Writer::reopen(&path)?.0
        } else {
            Writer::create(dir, meta, BEGIN_MS)?
        };
        Ok(Codex { path, writer })
    }
}

impl Persistence for Codex {
    fn append(&mut self, entry: &JournalEntry) -> Result<(), PersistError> {
        match entry {
            JournalEntry::Message(said) => {
                for item in items(said) {
                    self.writer.append(Payload::ResponseItem(item), BEGIN_MS)?;
                }
            }
            JournalEntry::View(view) => {
                let summary = view
                    .iter()
                    .flat_map(|s| &s.parts)
                    .find_map(|p| if let Part::Summary(t) = p { Some(&**t) } else { None });
                let new = view.iter().flat_map(items).collect();
                let message = summary.unwrap_or_default().to_string();
                let replacement_history = Some(new);
                let new = Compacted { message, replacement_history };
                self.writer.append(Payload::Compacted(new), BEGIN_MS)?;
            }
        }
        Ok(())
    }

    fn load(&self) -> Result<ReopenedSession, PersistError> {
        let rollout = Rollout::read(&self.path)?;
        let notes = rollout.unreadable.clone();
        let context = to_messages(&rollout.resume(|before, _| before.to_vec()).items);
        Ok(ReopenedSession { context, bytes_read: self.size(), notes })
    }

    fn log(&self) -> Result<Vec<StoredMessage>, PersistError> {
        let lines = Rollout::read(&self.path)?.lines;
        let items: Vec<RolloutItem> = lines
            .into_iter()
            .filter_map(|l| if let Payload::ResponseItem(i) = l.payload { Some(i) } else { None })
            .collect();
        Ok(to_messages(&items))
    }

    fn size(&self) -> u64 {
        jsonl::size(&self.path)
    }
}

/// Converts a message to items: texts and images together, each other part as a separate item.
fn items(said: &StoredMessage) -> Vec<RolloutItem> {
    let role = match said.role {
        Role::Assistant => "assistant",
        Role::Developer => "developer",
        Role::System | Role::Instructions => "system",
        Role::User | Role::Tool => "user",
    };
    let mut out: Vec<RolloutItem> = Vec::new();
    for p in &said.parts {
        let content = match p {
            Part::Text(t) | Part::Summary(t) if role == "assistant" => {
                ItemContent::OutputText { text: t.to_string() }
            }
            Part::Text(t) | Part::Summary(t) => ItemContent::InputText { text: t.to_string() },
            Part::Image(m) => ItemContent::image(&m.url),
            other => {
                out.extend(item(other));
                continue;
            }
        };
        match out.last_mut() {
            Some(RolloutItem::Message { content: list, .. }) => list.push(content),
            _ => out.push(RolloutItem::Message { role: role.into(), content: vec![content] }),
        }
    }
    out
}

fn item(p: &Part) -> Option<RolloutItem> {
    Some(match p {
        Part::Reasoning { text, encrypted } => {
            let summary = serde_json::json!([{"type": "summary_text", "text": **text}]);
            let encrypted_content = encrypted.as_ref().map(|e| e.to_string());
            RolloutItem::Reasoning { encrypted_content, summary }
        }
        Part::Call(ToolCall { id, name, arguments }) => RolloutItem::FunctionCall {
            name: name.to_string(),
            arguments: arguments.to_string(),
            call_id: id.to_string(),
        },
        Part::Result { id, output, .. } => RolloutItem::FunctionCallOutput {
            call_id: id.to_string(),
            output: output.to_string().into(),
        },
        Part::Compaction(Some(t)) => RolloutItem::Compaction { encrypted_content: t.to_string() },
        _ => return None,
    })
}

/// Converts items to messages: consecutive items of the assistant are one message. An output does
/// not name its tool; the call does.
fn to_messages(items: &[RolloutItem]) -> Vec<StoredMessage> {
    let mut out: Vec<StoredMessage> = Vec::new();
    for i in items {
        let (role, parts) = match i {
            RolloutItem::Message { role, content, .. } => {
                let role = match role.as_str() {
                    "assistant" => Role::Assistant,
                    "developer" => Role::Developer,
                    "system" => Role::System,
                    _ => Role::User,
                };
                (role, content.iter().filter_map(content_part).collect())
            }
            RolloutItem::Reasoning { encrypted_content, summary } => {
                let text = summary[0]["text"].as_str().unwrap_or_default().into();
                let encrypted = encrypted_content.as_deref().map(Into::into);
                (Role::Assistant, vec![Part::Reasoning { text, encrypted }])
            }
            RolloutItem::FunctionCall { name, arguments, call_id, .. } => {
                let call = ToolCall::new(call_id.as_str(), name.as_str(), arguments.as_str());
                (Role::Assistant, vec![Part::Call(call)])
            }
            RolloutItem::FunctionCallOutput { call_id, output, .. } => {
                let (id, output) = (call_id.as_str(), output.as_str().unwrap_or_default());
                let (name, is_error) = ("".into(), false);
                let result = Part::Result { id: id.into(), name, output: output.into(), is_error };
                (Role::Tool, vec![result])
            }
            RolloutItem::Compaction { encrypted_content, .. } => {
                (Role::Assistant, vec![Part::Compaction(Some(encrypted_content.as_str().into()))])
            }
            RolloutItem::GhostSnapshot { .. } | RolloutItem::Other(_) => continue,
        };
        match out.last_mut() {
            Some(last)
                if role == Role::Assistant
                    && last.role == role
                    && !matches!(i, RolloutItem::Message { .. }) =>
            {
                last.parts.extend(parts)
            }
            _ => out.push(StoredMessage { role, parts }),
        }
    }
    name_results(out.iter_mut());
    out
}

fn content_part(c: &ItemContent) -> Option<Part> {
    match c {
        ItemContent::InputText { text } | ItemContent::OutputText { text } => {
            Some(Part::Text(text.as_str().into()))
        }
        ItemContent::Other(v) => parse_part(v.as_object()?),
    }
}
