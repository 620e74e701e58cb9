//! Gemini CLI's session file (docs/sources/gemini-cli.md §6): append-only JSONL. Each message is a
//! line. A compression is a line that replaces the whole list of messages. A rewind is a line with
//! the ID of the first message to remove; all later messages are removed too.

use std::path::Path;

use ctxbench_core::block::{Media, Role};
use ctxbench_core::content::{Part, ToolCall};
use serde_json::{Value, json};

use crate::persist::jsonl::{self, Appender};
use crate::persist::{
    BEGIN, JournalEntry, PersistError, PersistFormat, Persistence, ReopenedSession, SESSION,
    StoredMessage,
};

pub(crate) const FORMAT: PersistFormat = PersistFormat {
    name: "gemini-cli-jsonl",
    about: "one JSONL file per session; a compression rewrites the whole list of messages",
    open: |dir, seed| Ok(Box::new(GeminiCliSession::open(dir, seed)?)),
};

struct GeminiCliSession {
    file: Appender,
    seed: u64,
    written: u64,
    /// Current view: each message with its ID.
    shown: Vec<(String, StoredMessage)>,
}

impl GeminiCliSession {
    fn open(dir: &Path, seed: u64) -> Result<GeminiCliSession, PersistError> {
        let path = dir.join(".gemini/tmp/project/chats");
        let path = path.join(format!("session-2023-11-14T22-13-{}.jsonl", &SESSION[..8]));
        let mut file = Appender::open(&path)?;
        let (lines, _) = file.objects()?;
        if lines.is_empty() {
            file.line(&json!({
                "sessionId": SESSION, "projectHash": "project", "startTime": BEGIN,
                "lastUpdated": BEGIN, "kind": "main",
            }))?;
        }
        let written = lines.len() as u64;
        Ok(GeminiCliSession { file, seed, written, shown: messages(&lines) })
    }

    fn message(&mut self, said: &StoredMessage) -> (String, Value) {
        self.written += 1;
        let id = format!("{:08x}-0000-4000-8000-{:012x}", self.written, self.seed & 0xffff_ffff);
        let kind = if said.role == Role::Assistant { "gemini" } else { "user" };
        let content: Vec<Value> = said.parts.iter().filter_map(part).collect();
        let line = json!({"id": id, "timestamp": BEGIN, "type": kind, "content": content});
        (id, line)
    }

    /// Replaces the list of messages.
    fn set(&mut self, view: &[StoredMessage]) -> Result<(), PersistError> {
        let mut shown = Vec::new();
        let mut lines = Vec::new();
        for said in view {
            // Unchanged messages keep their IDs.
            let known = self.shown.iter().find(|(_, s)| s == said).map(|(id, _)| id.clone());
            let (id, mut line) = self.message(said);
            let id = known.unwrap_or(id);
            line["id"] = json!(id);
            lines.push(line);
            shown.push((id, said.clone()));
        }
        self.file.line(&json!({"$set": {"messages": lines, "lastUpdated": BEGIN}}))?;
        self.shown = shown;
        Ok(())
    }
}

impl Persistence for GeminiCliSession {
    fn append(&mut self, entry: &JournalEntry) -> Result<(), PersistError> {
        match entry {
            JournalEntry::Message(said) => {
                let (id, line) = self.message(said);
                self.file.line(&line)?;
                self.shown.push((id, said.clone()));
                Ok(())
            }
            JournalEntry::View(view) => {
                let same = view.iter().zip(&self.shown).take_while(|(v, (_, s))| *v == s).count();
                match self.shown.get(same) {
                    Some((id, _)) if same == view.len() => {
                        self.file.line(&json!({"$rewindTo": id}))?;
                        self.shown.truncate(same);
                        Ok(())
                    }
                    _ => self.set(view),
                }
            }
        }
    }

    fn load(&self) -> Result<ReopenedSession, PersistError> {
        let (lines, notes) = self.file.objects()?;
        let context = messages(&lines).into_iter().map(|(_, s)| s).collect();
        Ok(ReopenedSession { context, bytes_read: self.size(), notes })
    }

    fn log(&self) -> Result<Vec<StoredMessage>, PersistError> {
        let (lines, _) = self.file.objects()?;
        Ok(lines.iter().filter_map(parse_message).map(|(_, s)| s).collect())
    }

    fn size(&self) -> u64 {
        self.file.size()
    }
}

/// Replays the lines. Returns the remaining messages with their IDs.
fn messages(lines: &[Value]) -> Vec<(String, StoredMessage)> {
    let mut out: Vec<(String, StoredMessage)> = Vec::new();
    for line in lines {
        if let Some(list) = line["$set"]["messages"].as_array() {
            out = list.iter().filter_map(parse_message).collect();
        } else if let Some(id) = line["$rewindTo"].as_str() {
            let at = out.iter().position(|(known, _)| known == id);
            out.truncate(at.unwrap_or(out.len()));
        } else {
            out.extend(parse_message(line));
        }
    }
    out
}

fn parse_message(line: &Value) -> Option<(String, StoredMessage)> {
    let id = line["id"].as_str()?.to_string();
    let parts: Vec<Part> = line["content"].as_array()?.iter().filter_map(read_part).collect();
    let result = parts.iter().any(|p| matches!(p, Part::Result { .. }));
    let role = match line["type"].as_str()? {
        "gemini" => Role::Assistant,
        "user" if result => Role::Tool,
        "user" => Role::User,
        _ => return None,
    };
    Some((id, StoredMessage { role, parts }))
}

/// Converts a part to the API's format. Fields that the API lacks are custom fields.
fn part(p: &Part) -> Option<Value> {
    Some(match p {
        Part::Text(t) => json!({"text": **t}),
        Part::Summary(t) => json!({"text": **t, "snapshot": true}),
        Part::Reasoning { text, encrypted } => json!({
            "text": **text, "thought": true, "thoughtSignature": encrypted.as_deref(),
        }),
        Part::Call(ToolCall { id, name, arguments }) => {
            let (args, raw) = jsonl::arguments(arguments, json!({}));
            json!({"functionCall": {"id": **id, "name": **name, "args": args}, "raw": raw})
        }
        Part::Result { id, name, output, is_error } => {
            let key = if *is_error { "error" } else { "output" };
            json!({"functionResponse": {"id": **id, "name": **name, "response": {key: **output}}})
        }
        Part::Image(m) => match m.url.split_once(";base64,") {
            Some((_, data)) => json!({
                "inlineData": {"mimeType": m.media_type, "data": data}, "name": m.name,
            }),
            None => json!({
                "fileData": {"mimeType": m.media_type, "fileUri": m.url}, "name": m.name,
            }),
        },
        _ => return None,
    })
}

fn read_part(p: &Value) -> Option<Part> {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_string();
    if let Some(call) = p.get("functionCall") {
        let arguments = p["raw"].as_str().map_or_else(|| call["args"].to_string(), str::to_string);
        return Some(Part::Call(ToolCall::new(text(&call["id"]), text(&call["name"]), arguments)));
    }
    if let Some(result) = p.get("functionResponse") {
        let response = &result["response"];
        let is_error = response.get("error").is_some();
        let output = text(&response[if is_error { "error" } else { "output" }]);
        return Some(Part::Result {
            id: text(&result["id"]).into(),
            name: text(&result["name"]).into(),
            output: output.into(),
            is_error,
        });
    }
    let name = p["name"].as_str().map(str::to_string);
    if let Some(data) = p.get("inlineData") {
        let media_type = text(&data["mimeType"]);
        let url = format!("data:{media_type};base64,{}", text(&data["data"]));
        return Some(Part::Image(Media { media_type, url, name }));
    }
    if let Some(file) = p.get("fileData") {
        let (media_type, url) = (text(&file["mimeType"]), text(&file["fileUri"]));
        return Some(Part::Image(Media { media_type, url, name }));
    }
    let words = p["text"].as_str()?;
    Some(match () {
        () if p["thought"] == true => Part::Reasoning {
            text: words.into(),
            encrypted: p["thoughtSignature"].as_str().map(Into::into),
        },
        () if p["snapshot"] == true => Part::Summary(words.into()),
        () => Part::Text(words.into()),
    })
}
