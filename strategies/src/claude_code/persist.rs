//! Claude Code's transcript (docs/sources/claude-code.md §1.6): JSONL with one line per content
//! block, each with the id of its parent line (`parentUuid`). A registry, `~/.claude.json`,
//! contains the last session of each folder (docs/sources/opencode-vs-claude-code.md §3).
//!
//! A compaction is a `compact_boundary` line without a parent, followed by a user line with the
//! summary. `preservedMessages` lists the lines that it keeps. Reading follows the parents from the
//! last line back to the boundary. A crash between the two lines leaves a boundary without a
//! summary. Such a boundary is ignored: reading continues at its `logicalParentUuid` and adds a
//! note (the product's behaviour in this case is not known). No source describes a mark for results
//! that were only cleared, so none is written, and these results are restored in full.

use std::collections::HashMap;
use std::path::Path;

use ctxbench_core::block::Role;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_kit::transcript;
use ctxbench_util::plural::pluralize;
use serde_json::{Value, json};

use crate::persist::jsonl::{self, Appender};
use crate::persist::{
    BEGIN, CWD, JournalEntry, PersistError, PersistFormat, Persistence, ReopenedSession, SESSION,
    StoredMessage, name_results, pruned,
};

pub(crate) const FORMAT: PersistFormat = PersistFormat {
    name: "claude-code-jsonl",
    about: "one JSONL file per session, lines chained by parentUuid, boundaries, a registry of \
        sessions",
    open: |dir, seed| Ok(Box::new(TranscriptFile::open(dir, seed)?)),
};

struct TranscriptFile {
    file: Appender,
    seed: u64,
    lines: u64,
    /// Id of the last line, the parent of the next one.
    last: Option<String>,
    /// Current view, each message with the ids of its lines.
    shown: Vec<(StoredMessage, Vec<String>)>,
}

impl TranscriptFile {
    fn open(dir: &Path, seed: u64) -> Result<TranscriptFile, PersistError> {
        // Every character except letters and digits becomes a hyphen.
        let folder: String =
            CWD.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = dir.join(".claude/projects").join(folder).join(format!("{SESSION}.jsonl"));
        let file = Appender::open(&path)?;
        register(&dir.join(".claude.json"))?;
        let (lines, _) = file.objects()?;
        let last = lines.iter().rev().find_map(|l| l["uuid"].as_str().map(str::to_string));
        let (shown, _) = chain(&lines);
        Ok(TranscriptFile { file, seed, lines: lines.len() as u64, last, shown })
    }

    fn uuid(&mut self) -> String {
        self.lines += 1;
        format!(
            "{:08x}-0000-4000-8000-{:012x}",
            self.lines & 0xffff_ffff,
            self.seed & 0xffff_ffff_ffff
        )
    }

    /// Writes a line and returns its id.
    fn line(&mut self, mut object: Value) -> Result<String, PersistError> {
        let id = self.uuid();
        if object.get("parentUuid").is_none() {
            object["parentUuid"] = self.last.clone().into();
        }
        for (key, value) in [
            ("uuid", json!(id)),
            ("sessionId", SESSION.into()),
            ("cwd", CWD.into()),
            ("version", "2.1.0".into()),
            ("isSidechain", false.into()),
            ("timestamp", BEGIN.into()),
        ] {
            object[key] = value;
        }
        self.file.line(&object)?;
        self.last = Some(id.clone());
        Ok(id)
    }

    fn append_message(
        &mut self,
        said: &StoredMessage,
        flag: Option<&str>,
    ) -> Result<(), PersistError> {
        let mut ids = Vec::new();
        let flagged = |mut line: Value| {
            if let Some(flag) = flag {
                line[flag] = true.into();
                line["isVisibleInTranscriptOnly"] = (flag == "isCompactSummary").into();
            }
            line
        };
        if said.role == Role::Assistant {
            let message = format!("msg_{:x}_{}", self.seed, self.lines);
            for content in said.parts.iter().filter_map(block) {
                let message =
                    json!({"id": message, "role": "assistant", "content": [content], "usage": {}});
                ids.push(self.line(flagged(
                    json!({"type": "assistant", "requestId": message["id"], "message": message}),
                ))?);
            }
        } else {
            let content: Vec<Value> = said.parts.iter().filter_map(block).collect();
            ids.push(self.line(flagged(
                json!({"type": "user", "message": {"role": "user", "content": content}}),
            ))?);
        }
        self.shown.push((said.clone(), ids));
        Ok(())
    }

    fn compact(&mut self, view: &[StoredMessage]) -> Result<(), PersistError> {
        let before: Vec<StoredMessage> = self.shown.iter().map(|(s, _)| s.clone()).collect();
        let Some(at) = view
            .iter()
            .position(StoredMessage::is_summary)
            .filter(|_| pruned(&before, view).is_none())
        else {
            return Ok(());
        };
        // Unchanged messages after the summary are listed, and all others are written again.
        let kept: Vec<String> = view[at + 1..]
            .iter()
            .map_while(|s| self.shown.iter().rev().find(|(w, _)| w == s))
            .flat_map(|(_, ids)| ids.clone())
            .collect();
        let named =
            view[at + 1..].iter().take_while(|s| self.shown.iter().any(|(w, _)| w == *s)).count();
        let preserved = (!kept.is_empty()).then(|| json!({"anchorUuid": null, "uuids": kept}));
        let boundary = json!({
            "type": "system", "subtype": "compact_boundary", "parentUuid": null, "logicalParentUuid": self.last,
            "content": "Conversation \
             compacted", "compactMetadata": {"trigger": "auto", "preservedMessages": preserved},
        });
        self.line(boundary)?;
        self.shown.clear();
        for s in &view[..at] {
            self.append_message(s, Some("isMeta"))?;
        }
        self.append_message(&view[at], Some("isCompactSummary"))?;
        for s in &view[at + 1 + named..] {
            self.append_message(s, Some("isMeta"))?;
        }
        self.shown = chain(&self.file.objects()?.0).0;
        Ok(())
    }
}

impl Persistence for TranscriptFile {
    fn append(&mut self, entry: &JournalEntry) -> Result<(), PersistError> {
        match entry {
            JournalEntry::Message(said) => self.append_message(said, None),
            JournalEntry::View(view) => self.compact(view),
        }
    }

    fn load(&self) -> Result<ReopenedSession, PersistError> {
        let (lines, mut notes) = self.file.objects()?;
        let (shown, unfinished) = chain(&lines);
        if unfinished > 0 {
            let passed = pluralize(unfinished, "compaction");
            notes.push(format!("passed over {passed} with no summary"));
        }
        Ok(ReopenedSession {
            context: shown.into_iter().map(|(s, _)| s).collect(),
            bytes_read: self.size(),
            notes,
        })
    }

    fn log(&self) -> Result<Vec<StoredMessage>, PersistError> {
        let (lines, _) = self.file.objects()?;
        Ok(messages(lines.iter()).into_iter().map(|(s, _)| s).collect())
    }

    fn size(&self) -> u64 {
        self.file.size()
    }
}

/// Records the session in the registry by renaming a new file into place. Of two programs the later
/// one wins, and no reader sees a partial file. An unreadable registry is replaced, because only
/// the transcripts matter.
fn register(path: &Path) -> Result<(), PersistError> {
    let mut all: Value = serde_json::from_str(&jsonl::text(path)?).unwrap_or_default();
    let folder = jsonl::field(jsonl::field(&mut all, "projects"), CWD);
    *jsonl::field(folder, "lastSessionId") = SESSION.into();
    let fresh = path.with_extension(format!("json.{}", std::process::id()));
    std::fs::write(&fresh, all.to_string()).map_err(PersistError::io(&fresh, "write it"))?;
    std::fs::rename(&fresh, path).map_err(PersistError::io(path, "move it into place"))
}

/// Follows the chain of parents from the last line back to the newest boundary with a summary, plus
/// the lines preserved after it. Also returns the number of boundaries skipped. A parent lost in a
/// crash is replaced by the line before it.
fn chain(lines: &[Value]) -> (Vec<(StoredMessage, Vec<String>)>, usize) {
    let place: HashMap<&str, usize> =
        lines.iter().enumerate().filter_map(|(i, l)| Some((l["uuid"].as_str()?, i))).collect();
    let mut out = Vec::new();
    let mut next = lines.iter().rposition(|l| l["uuid"].is_string());
    let mut preserved = Vec::new();
    let (mut summarised, mut unfinished) = (false, 0);
    while let Some(i) = next {
        let line = &lines[i];
        let boundary = line["subtype"] == "compact_boundary";
        if boundary && summarised {
            let uuids = line["compactMetadata"]["preservedMessages"]["uuids"].as_array();
            preserved = uuids
                .into_iter()
                .flatten()
                .filter_map(|u| place.get(u.as_str()?))
                .map(|&i| &lines[i])
                .collect();
            break;
        }
        unfinished += usize::from(boundary);
        summarised |= line["isCompactSummary"] == true;
        out.push(line);
        let parent = line[if boundary { "logicalParentUuid" } else { "parentUuid" }].as_str();
        next = match parent {
            Some(p) => place.get(p).copied().or(i.checked_sub(1)),
            None => None,
        };
        // A chain that does not lead back would never end.
        next = next.filter(|n| *n < i);
    }
    out.reverse();
    let anchor = out.iter().position(|l| l["isCompactSummary"] == true).map_or(0, |i| i + 1);
    out.splice(anchor..anchor, preserved);
    (messages(out.into_iter()), unfinished)
}

/// Converts lines to messages. Lines of one response form one message.
fn messages<'a>(lines: impl Iterator<Item = &'a Value>) -> Vec<(StoredMessage, Vec<String>)> {
    let mut out: Vec<(StoredMessage, Vec<String>)> = Vec::new();
    let mut response: Option<&str> = None;
    for line in lines {
        let kind = line["type"].as_str().unwrap_or_default();
        if !matches!(kind, "user" | "assistant") {
            continue;
        }
        let summary = line["isCompactSummary"] == true;
        let parts: Vec<Part> = line["message"]["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|b| part(b, summary))
            .collect();
        let id = line["uuid"].as_str().unwrap_or_default().to_string();
        let own = line["message"]["id"].as_str();
        match out.last_mut() {
            Some((said, ids)) if own.is_some() && own == response => {
                said.parts.extend(parts);
                ids.push(id);
            }
            _ => {
                let result = parts.iter().any(|p| matches!(p, Part::Result { .. }));
                let role = if kind == "assistant" {
                    Role::Assistant
                } else if result {
                    Role::Tool
                } else {
                    Role::User
                };
                out.push((StoredMessage { role, parts }, vec![id]));
            }
        }
        response = own;
    }
    name_results(out.iter_mut().map(|(said, _)| said));
    out
}

fn block(p: &Part) -> Option<Value> {
    Some(match p {
        Part::Text(t) | Part::Summary(t) => json!({"type": "text", "text": **t}),
        Part::Reasoning { text, encrypted } => {
            json!({"type": "thinking", "thinking": **text, "signature": encrypted.as_deref()})
        }
        Part::Call(ToolCall { id, name, arguments }) => {
            // A JSON object in the request. Other text stays unchanged.
            let (input, raw) = jsonl::arguments(arguments, json!(**arguments));
            json!({"type": "tool_use", "id": **id, "name": **name, "input": input, "raw": raw})
        }
        Part::Result { id, output, is_error, .. } => {
            json!({"type": "tool_result", "tool_use_id": **id, "content": **output, "is_error": is_error})
        }
        Part::Image(m) => {
            json!({"type": "image", "source": {"type": "url", "media_type": m.media_type, "url": m.url}, "title": m.name})
        }
        Part::Compaction(Some(t)) => json!({"type": "compaction", "content": **t}),
        _ => return None,
    })
}

/// Parses a block. Facts that the product's format cannot express are in extra fields.
fn part(b: &Value, summary: bool) -> Option<Part> {
    let text = |key: &str| -> std::sync::Arc<str> { b[key].as_str().unwrap_or_default().into() };
    Some(match (b["type"].as_str()?, transcript::parse_part(b.as_object()?)) {
        (_, Some(Part::Text(said))) if summary => Part::Summary(said),
        (_, Some(Part::Call(call))) => {
            let arguments = b["raw"].as_str().map_or(call.arguments, Into::into);
            Part::Call(ToolCall { arguments, ..call })
        }
        (_, Some(part)) => part,
        ("tool_result", None) => Part::Result {
            id: text("tool_use_id"),
            name: "".into(),
            output: text("content"),
            is_error: b["is_error"].as_bool().unwrap_or_default(),
        },
        ("compaction", None) => Part::Compaction(Some(text("content"))),
        _ => return None,
    })
}
