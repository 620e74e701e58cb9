//! pi's session file (docs/sources/pi.md §7): append-only JSONL. Each entry names its parent, so
//! the entries form a tree. The last line is the current leaf.
//!
//! A compaction is an entry with the summary and the ID of the first entry of the tail. The
//! summarised entries stay in the file. An edit hides a message. A rewind writes no line: the next
//! entry names an older entry as its parent. A restart before that entry shows the messages from
//! before the rewind.

use std::collections::HashMap;
use std::path::Path;

use ctxbench_core::block::{Media, Role};
use ctxbench_core::content::{Part, ToolCall};
use serde_json::{Value, json};

use super::summary::FileLists;
use super::words::PiWords;
use crate::persist::jsonl::{self, Appender};
use crate::persist::{
    BEGIN, CWD, JournalEntry, PersistError, PersistFormat, Persistence, ReopenedSession, SESSION,
    StoredMessage,
};

pub(crate) const FORMAT: PersistFormat = PersistFormat {
    name: "pi-jsonl",
    about: "one JSONL file per session, entries chained by parentId; a compaction names its tail",
    open: |dir, seed| Ok(Box::new(PiSession::open(dir, seed)?)),
};

struct PiSession {
    file: Appender,
    seed: u64,
    lines: u64,
    leaf: Option<String>,
    /// Current view: each message with the ID of its entry.
    shown: Vec<(String, StoredMessage)>,
}

impl PiSession {
    fn open(dir: &Path, seed: u64) -> Result<PiSession, PersistError> {
        let path = dir.join(".pi/agent/sessions/--work-project--");
        let path = path.join(format!("2023-11-14T22-13-20-000Z_{SESSION}.jsonl"));
        let mut file = Appender::open(&path)?;
        let (lines, _) = file.objects()?;
        if lines.is_empty() {
            file.line(&json!({
                "type": "session", "version": 3, "id": SESSION, "timestamp": BEGIN, "cwd": CWD,
            }))?;
        }
        let leaf = lines.iter().rev().find_map(entry_id).map(str::to_string);
        let shown = projected(&lines);
        Ok(PiSession { file, seed, lines: lines.len() as u64, leaf, shown })
    }

    /// Writes an entry and returns its ID.
    fn entry(&mut self, mut entry: Value) -> Result<String, PersistError> {
        self.lines += 1;
        let id = format!("{:08x}", (self.seed << 20 ^ self.lines) & 0xffff_ffff);
        entry["id"] = json!(id);
        entry["parentId"] = self.leaf.clone().into();
        entry["timestamp"] = json!(BEGIN);
        self.file.line(&entry)?;
        self.leaf = Some(id.clone());
        Ok(id)
    }

    fn append_message(&mut self, said: &StoredMessage) -> Result<(), PersistError> {
        let id = match said.is_summary() {
            // A summary without entries before it.
            true => self.compaction(said, None)?,
            false => self.entry(json!({"type": "message", "message": message(said)}))?,
        };
        self.shown.push((id, said.clone()));
        Ok(())
    }

    fn compaction(
        &mut self,
        said: &StoredMessage,
        kept: Option<&str>,
    ) -> Result<String, PersistError> {
        let words = PiWords::default();
        let text = said.parts.iter().map(Part::text).collect::<String>();
        let own = text.strip_prefix(&*words.summary_head);
        let own = own.and_then(|t| t.strip_suffix(&*words.summary_tail));
        let files = FileLists::found_in(own.unwrap_or_default());
        let mut entry = json!({
            "type": "compaction",
            "summary": own.unwrap_or(&text),
            "firstKeptEntryId": kept,
            "details": {"readFiles": files.read, "modifiedFiles": files.modified},
        });
        if own.is_none() {
            // An external compaction: the program adds no text around its summary.
            entry["fromHook"] = json!(true);
        }
        self.entry(entry)
    }

    fn become_view(&mut self, view: &[StoredMessage]) -> Result<(), PersistError> {
        let same = view.iter().zip(&self.shown).take_while(|(v, (_, s))| *v == s).count();
        if let Some(said) = view.first().filter(|s| s.is_summary() && same == 0) {
            return self.compact(said, &view[1..]);
        }
        let gone = &self.shown[same..];
        if same == view.len() && gone.len() > 1 {
            // Returns to an older entry.
            self.leaf = same.checked_sub(1).map(|i| self.shown[i].0.clone());
            self.shown.truncate(same);
            return Ok(());
        }
        if let Some(edits) = self.edits(view) {
            for (target, now) in edits {
                let replacement = now.map(|n| json!({"content": content(n)}));
                self.entry(json!({
                    "type": "context_edit", "targetId": target, "replacement": replacement,
                }))?;
            }
            self.shown = projected(&self.file.objects()?.0);
            return Ok(());
        }
        // Any other view starts a new branch at the root.
        self.leaf = None;
        self.shown.clear();
        view.iter().try_for_each(|s| self.append_message(s))
    }

    /// Finds the entries with messages that are missing from the view or differ in it, if all other
    /// messages are the same. Returns each such entry with its new message. `None` = the view has
    /// other differences.
    fn edits<'a>(
        &self,
        view: &'a [StoredMessage],
    ) -> Option<Vec<(String, Option<&'a StoredMessage>)>> {
        let known = |v: &StoredMessage| self.shown.iter().any(|(_, s)| s == v);
        let mut rest = view.iter().peekable();
        let mut out = Vec::new();
        for (id, said) in &self.shown {
            if rest.next_if(|v| *v == said).is_none() {
                out.push((id.clone(), rest.next_if(|v| v.role == said.role && !known(v))));
            }
        }
        rest.peek().is_none().then_some(out)
    }

    /// Writes a compaction. The part of its tail that ends the current view is kept by reference,
    /// and all other messages of the tail are written again.
    fn compact(
        &mut self,
        summary: &StoredMessage,
        tail: &[StoredMessage],
    ) -> Result<(), PersistError> {
        let ends = |from: usize| {
            let shown = self.shown[from..].iter().map(|(_, s)| s);
            shown.clone().count() <= tail.len() && shown.zip(tail).all(|(a, b)| a == b)
        };
        let from = (0..self.shown.len()).find(|&i| ends(i));
        let kept = from.map(|i| self.shown[i].0.clone());
        let named = from.map_or(0, |i| self.shown.len() - i);
        self.compaction(summary, kept.as_deref())?;
        for s in &tail[named..] {
            self.entry(json!({"type": "message", "message": message(s)}))?;
        }
        self.shown = projected(&self.file.objects()?.0);
        Ok(())
    }
}

impl Persistence for PiSession {
    fn append(&mut self, entry: &JournalEntry) -> Result<(), PersistError> {
        match entry {
            JournalEntry::Message(said) => self.append_message(said),
            JournalEntry::View(view) => self.become_view(view),
        }
    }

    fn load(&self) -> Result<ReopenedSession, PersistError> {
        let (lines, notes) = self.file.objects()?;
        let context = projected(&lines).into_iter().map(|(_, s)| s).collect();
        Ok(ReopenedSession { context, bytes_read: self.size(), notes })
    }

    fn log(&self) -> Result<Vec<StoredMessage>, PersistError> {
        let (lines, _) = self.file.objects()?;
        let names = names(&lines);
        Ok(lines.iter().filter_map(|l| parse_message(&l["message"], &names)).collect())
    }

    fn size(&self) -> u64 {
        self.file.size()
    }
}

fn entry_id(line: &Value) -> Option<&str> {
    line["id"].as_str().filter(|_| line["type"] != "session")
}

/// Returns the messages on the path from the root to the last entry, each with its entry's ID. A
/// parent that was lost in a crash is replaced by the preceding entry.
fn projected(lines: &[Value]) -> Vec<(String, StoredMessage)> {
    let entries: Vec<&Value> = lines.iter().filter(|l| entry_id(l).is_some()).collect();
    let place: HashMap<&str, usize> =
        entries.iter().enumerate().filter_map(|(i, l)| Some((entry_id(l)?, i))).collect();
    let mut way = Vec::new();
    let mut next = entries.len().checked_sub(1);
    while let Some(i) = next {
        way.push(entries[i]);
        next = entries[i]["parentId"].as_str().and_then(|p| match place.get(p) {
            // A parent must precede its entry; this prevents endless loops.
            Some(&at) => Some(at).filter(|at| *at < i),
            None => i.checked_sub(1),
        });
    }
    way.reverse();
    let names = names(lines);
    let mut out = Vec::new();
    let mut from = 0;
    if let Some(at) = way.iter().rposition(|l| l["type"] == "compaction") {
        let entry = way[at];
        let kept = way[..at].iter().position(|l| l["id"] == entry["firstKeptEntryId"]);
        let id = entry_id(entry).unwrap_or_default().to_string();
        out.push((id, summary(entry)));
        way.remove(at);
        from = kept.unwrap_or(at);
    }
    let edits: HashMap<&str, &Value> = way
        .iter()
        .filter(|l| l["type"] == "context_edit")
        .filter_map(|l| Some((l["targetId"].as_str()?, &l["replacement"])))
        .collect();
    for line in &way[from..] {
        let id = entry_id(line).unwrap_or_default();
        let shown = match edits.get(id) {
            None => parse_message(&line["message"], &names),
            Some(Value::Null) => None,
            Some(replacement) => {
                let mut message = line["message"].clone();
                if message.is_object() {
                    message["content"] = replacement["content"].clone();
                }
                parse_message(&message, &names)
            }
        };
        out.extend(shown.map(|s| (id.to_string(), s)));
    }
    out
}

fn summary(entry: &Value) -> StoredMessage {
    let text = entry["summary"].as_str().unwrap_or_default();
    let words = PiWords::default();
    let text = match entry["fromHook"] == true {
        true => text.to_string(),
        false => format!("{}{text}{}", words.summary_head, words.summary_tail),
    };
    StoredMessage { role: Role::User, parts: vec![Part::Summary(text.into())] }
}

/// Maps call IDs to tool names.
fn names(lines: &[Value]) -> HashMap<&str, &str> {
    let blocks = lines.iter().filter_map(|l| l["message"]["content"].as_array()).flatten();
    blocks.filter_map(|b| Some((b["id"].as_str()?, b["name"].as_str()?))).collect()
}

fn message(said: &StoredMessage) -> Value {
    let content = content(said);
    match (said.role, said.parts.first()) {
        (_, Some(Part::Result { id, name, is_error, .. })) => json!({
            "role": "toolResult", "toolCallId": **id, "toolName": **name, "content": content,
            "isError": is_error,
        }),
        (Role::Assistant, _) => json!({"role": "assistant", "content": content}),
        _ => json!({"role": "user", "content": content}),
    }
}

fn content(said: &StoredMessage) -> Vec<Value> {
    said.parts.iter().filter_map(block).collect()
}

fn block(p: &Part) -> Option<Value> {
    Some(match p {
        Part::Text(t) | Part::Summary(t) | Part::Result { output: t, .. } => {
            json!({"type": "text", "text": **t})
        }
        Part::Reasoning { text, encrypted } => json!({
            "type": "thinking", "thinking": **text, "thinkingSignature": encrypted.as_deref(),
        }),
        Part::Call(ToolCall { id, name, arguments }) => {
            // The arguments as an object. If they are not valid JSON, or not in canonical form,
            // their text is kept in `raw`.
            let (input, raw) = jsonl::arguments(arguments, json!({}));
            json!({"type": "toolCall", "id": **id, "name": **name, "arguments": input, "raw": raw})
        }
        Part::Image(m) => {
            let data = m.url.split_once(";base64,").map_or(m.url.as_str(), |(_, data)| data);
            let linked = (data == m.url).then_some(true);
            json!({
                "type": "image", "data": data, "mimeType": m.media_type, "linked": linked,
                "name": m.name,
            })
        }
        _ => return None,
    })
}

fn parse_message(message: &Value, names: &HashMap<&str, &str>) -> Option<StoredMessage> {
    let blocks = message["content"].as_array()?;
    if message["role"] == "toolResult" {
        let id = message["toolCallId"].as_str().unwrap_or_default();
        let mut texts = blocks.iter().filter(|b| b["type"] == "text");
        let output = texts.next().and_then(|b| b["text"].as_str()).unwrap_or_default();
        let name = message["toolName"].as_str().or(names.get(id).copied()).unwrap_or_default();
        let is_error = message["isError"] == true;
        let result =
            Part::Result { id: id.into(), name: name.into(), output: output.into(), is_error };
        let more = blocks.iter().filter(|b| b["type"] != "text").chain(texts).filter_map(part);
        return Some(StoredMessage {
            role: Role::Tool,
            parts: std::iter::once(result).chain(more).collect(),
        });
    }
    let role = if message["role"] == "assistant" { Role::Assistant } else { Role::User };
    Some(StoredMessage { role, parts: blocks.iter().filter_map(part).collect() })
}

fn part(b: &Value) -> Option<Part> {
    let text = |key: &str| b[key].as_str().unwrap_or_default();
    Some(match text("type") {
        "text" => Part::Text(text("text").into()),
        "thinking" => Part::Reasoning {
            text: text("thinking").into(),
            encrypted: b["thinkingSignature"].as_str().map(Into::into),
        },
        "toolCall" => {
            let arguments =
                b["raw"].as_str().map_or_else(|| b["arguments"].to_string(), str::to_string);
            Part::Call(ToolCall::new(text("id"), text("name"), arguments))
        }
        "image" => {
            let media_type = text("mimeType").to_string();
            let url = match b["linked"] == true {
                true => text("data").to_string(),
                false => format!("data:{media_type};base64,{}", text("data")),
            };
            Part::Image(Media { media_type, url, name: b["name"].as_str().map(str::to_string) })
        }
        _ => return None,
    })
}
