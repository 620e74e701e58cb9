//! OpenCode's session: messages and parts as JSON objects in tables
//! (docs/sources/opencode.md §6, §7, §9; docs/sources/chat-history.md §4.1).
//!
//! A call and its result are one `tool` part of the assistant's message, which is rewritten when
//! the result arrives. Pruning sets `state.time.compacted` in it and keeps the output. A compaction
//! is a user message with a `compaction` part and an assistant message with `summary: true`; only
//! the two together hide older messages, and `tail_start_id` names the first message kept after
//! them. The marker's text in a prompt is stored next to its part, because the caller chooses it.

use ctxbench_core::prelude::*;
use ctxbench_formats::opencode;
use serde_json::{Value, json};

use super::persist_tables::Tables;
use crate::opencode::log::CLEARED;
use crate::persist::jsonl::field;
use crate::persist::{
    BEGIN_MS, JournalEntry, Persistence, ReopenedSession, Result, StoredMessage, pruned,
};

/// ID of the only session of a folder.
pub(super) const SESSION: &str = "ses_000000000000ctxbenchsession";

/// A message with its parts, oldest first.
#[derive(Clone, Debug)]
pub(super) struct StoredRow {
    pub(super) id: String,
    pub(super) info: Value,
    pub(super) parts: Vec<(String, Value)>,
}

pub(super) struct OpenCodeStore {
    tables: Tables,
    /// Virtual time in ms. Each ID advances it by 1 ms, so no two IDs are equal
    /// (docs/sources/opencode.md §7).
    clock: u64,
    seed: u64,
    /// Current view: each message with the id of its stored message.
    shown: Vec<(StoredMessage, String)>,
}

impl OpenCodeStore {
    pub(super) fn new(tables: Tables, seed: u64) -> Result<Self> {
        let mut out = OpenCodeStore { tables, clock: BEGIN_MS, seed, shown: Vec::new() };
        let (newest, _) = out.tables.page(None)?;
        // The clock goes on after the newest ID.
        let of = |m: &StoredRow| m.parts.iter().map(|(id, _)| time_in(id)).max().flatten();
        let stored = newest.iter().map(|m| of(m).max(time_in(&m.id))).max().flatten();
        out.clock = stored.map_or(BEGIN_MS, |low| BEGIN_MS / ID_MS * ID_MS + low);
        out.shown = read(&out.tables)?.0;
        Ok(out)
    }

    /// Returns `prefix_` + 12 hex digits of the low 48 bits of ms · 4096 + counter, + 14 letters
    /// that distinguish writers.
    fn id(&mut self, prefix: &str) -> String {
        self.clock += 1;
        format!(
            "{prefix}_{:012x}{:014x}",
            (self.clock << 12) & 0xffff_ffff_ffff,
            self.seed & 0xff_ffff_ffff_ffff
        )
    }

    fn write_message(&mut self, info: Value, parts: Vec<Value>) -> Result<String> {
        let id = self.id("msg");
        let mut info = info;
        info["time"] = json!({ "created": self.clock });
        // A finished summary hides the messages before it, so it is marked finished after its text
        // is stored: a crash in between loses nothing.
        let mut begun = info.clone();
        let finished = begun.as_object_mut().and_then(|m| m.remove("finish")).is_some();
        self.tables.store_object(&id, None, self.clock, &begun)?;
        for part in parts {
            let part_id = self.id("prt");
            self.tables.store_object(&part_id, Some(&id), self.clock, &part)?;
        }
        if finished {
            self.tables.store_object(&id, None, self.clock, &info)?;
        }
        Ok(id)
    }

    fn append_message(&mut self, said: &StoredMessage) -> Result<()> {
        if said.role == Role::Tool {
            for p in &said.parts {
                if let Part::Result { id, output, is_error, .. } = p {
                    self.finish(id, output, *is_error)?;
                }
            }
            if let Some((_, message)) = self.shown.last().cloned() {
                self.shown.push((said.clone(), message));
            }
            return Ok(());
        }
        let role = if said.role == Role::Assistant { "assistant" } else { "user" };
        let id = self.write_message(
            json!({"role": role, "spoken": spoken(said.role)}),
            said.parts.iter().filter_map(opencode::block).collect(),
        )?;
        self.shown.push((said.clone(), id));
        Ok(())
    }

    /// Adds a result to the newest call with this ID.
    fn finish(&mut self, call: &str, output: &str, failed: bool) -> Result<()> {
        self.change_tool(call, |state| {
            *field(state, "status") = if failed { "error" } else { "completed" }.into();
            *field(state, if failed { "error" } else { "output" }) = output.into();
        })
    }

    fn change_tool(&mut self, call: &str, change: impl FnOnce(&mut Value)) -> Result<()> {
        let mut found = None;
        newest_first(&self.tables, |m| {
            let part = m.parts.into_iter().find(|(_, part)| part["callID"] == call);
            found = part.map(|part| (part, m.id));
            found.is_none()
        })?;
        let Some(((id, mut part), message)) = found else { return Ok(()) };
        change(field(&mut part, "state"));
        self.tables.store_object(&id, Some(&message), self.clock, &part)
    }

    fn compact(&mut self, view: &[StoredMessage]) -> Result<()> {
        let before: Vec<StoredMessage> = self.shown.iter().map(|(s, _)| s.clone()).collect();
        if let Some(marks) = pruned(&before, view) {
            for (i, k, _) in marks {
                if let Part::Result { id, .. } = &before[i].parts[k] {
                    let at = self.clock;
                    self.change_tool(id, |state| {
                        *field(field(state, "time"), "compacted") = at.into()
                    })?;
                }
            }
        } else if let Some(at) = view.iter().position(StoredMessage::is_summary) {
            let behind = &view[at + 1..];
            // The longest unchanged end of the view.
            let kept = (0..=behind.len().min(before.len()))
                .rev()
                .find(|n| before.ends_with(&behind[..*n]))
                .unwrap_or(0);
            let tail = self
                .shown
                .get(self.shown.len() - kept)
                .filter(|_| kept > 0)
                .map(|(_, id)| id.clone());
            let mut marker = vec![
                json!({"type": "compaction", "auto": true, "overflow": false, "tail_start_id": tail}),
            ];
            marker
                .extend(view[..at].iter().flat_map(|s| s.parts.iter().filter_map(opencode::block)));
            let parent = self.write_message(json!({"role": "user"}), marker)?;
            let info = json!({"role": "assistant", "summary": true, "mode": "compaction", "parentID": parent, "finish": "stop",
                              "spoken": spoken(view[at].role)});
            self.write_message(info, view[at].parts.iter().filter_map(opencode::block).collect())?;
            self.shown = read(&self.tables)?.0;
            for said in &behind[kept..] {
                self.append_message(said)?;
            }
        }
        // In this product's view, only compactions remove messages.
        self.shown = read(&self.tables)?.0;
        Ok(())
    }
}

impl Persistence for OpenCodeStore {
    fn append(&mut self, entry: &JournalEntry) -> Result<()> {
        match entry {
            JournalEntry::Message(said) => self.append_message(said),
            JournalEntry::View(view) => self.compact(view),
        }
    }

    fn load(&self) -> Result<ReopenedSession> {
        let (context, bytes_read) = read(&self.tables)?;
        Ok(ReopenedSession {
            context: context.into_iter().map(|(s, _)| s).collect(),
            bytes_read,
            notes: Vec::new(),
        })
    }

    fn log(&self) -> Result<Vec<StoredMessage>> {
        let mut all = Vec::new();
        newest_first(&self.tables, |m| {
            all.push(m);
            true
        })?;
        all.reverse();
        Ok(all.iter().flat_map(|m| to_messages(m, false)).collect())
    }

    fn size(&self) -> u64 {
        self.tables.size()
    }
}

/// Number of milliseconds that fit in an ID: 12 of the 48 bits count within one millisecond.
const ID_MS: u64 = 1 << 36;

/// Returns the low bits of the time in an ID, ms.
fn time_in(id: &str) -> Option<u64> {
    let digits = id.split_once('_')?.1.get(..12)?;
    u64::from_str_radix(digits, 16).ok().map(|time| time >> 12)
}

/// Calls `wants_more` with each message, newest first, until it returns false. Returns the bytes read.
fn newest_first(tables: &Tables, mut wants_more: impl FnMut(StoredRow) -> bool) -> Result<u64> {
    let (mut before, mut bytes) = (None::<String>, 0);
    loop {
        let (page, read) = tables.page(before.as_deref())?;
        bytes += read;
        let Some(last) = page.last() else { return Ok(bytes) };
        before = Some(last.id.clone());
        if !page.into_iter().all(&mut wants_more) {
            return Ok(bytes);
        }
    }
}

/// Reads the contents of the next request, each with the id of its stored message: back to the
/// newest finished compaction, or to the tail that it keeps (docs/sources/opencode.md §9, 39 to
/// 48).
fn read(tables: &Tables) -> Result<(Vec<(StoredMessage, String)>, u64)> {
    let mut kept: Vec<StoredRow> = Vec::new();
    // Marker of the newest finished compaction, and the message at which its tail begins, once the
    // marker was found.
    let (mut marker, mut tail) = (None::<String>, None::<String>);
    let mut pair: Vec<StoredRow> = Vec::new();
    let bytes = newest_first(tables, |m| {
        let summary =
            m.info["summary"] == true && m.info["finish"].is_string() && m.info["error"].is_null();
        if marker.is_none() && summary {
            marker = m.info["parentID"].as_str().map(str::to_string);
            pair.push(m);
        } else if pair.len() == 1 && marker.as_deref() == Some(m.id.as_str()) {
            tail =
                m.parts.iter().find_map(|(_, p)| p["tail_start_id"].as_str().map(str::to_string));
            pair.push(m);
            return tail.is_some();
        } else if tail.as_deref().is_some_and(|t| m.id.as_str() < t) {
            return false;
        } else {
            kept.push(m);
        }
        true
    })?;
    kept.reverse();
    pair.reverse();
    // The pair comes before its tail, and later messages after it.
    let place = if pair.len() == 2 { 0 } else { kept.len() };
    kept.splice(place..place, pair);
    let shown = kept.iter().filter(|m| !is_marker(m) || m.parts.len() > 1);
    Ok((
        shown.flat_map(|m| to_messages(m, true).into_iter().map(|s| (s, m.id.clone()))).collect(),
        bytes,
    ))
}

fn is_marker(m: &StoredRow) -> bool {
    m.parts.iter().any(|(_, p)| p["type"] == "compaction")
}

/// Reads a message as requests show it: a tool part becomes a call of the assistant, with its
/// result after the message.
fn to_messages(m: &StoredRow, prune: bool) -> Vec<StoredMessage> {
    let mut own = StoredMessage { role: role_of(&m.info), parts: Vec::new() };
    let mut results = Vec::new();
    for (_, p) in &m.parts {
        let text = |v: &Value| -> Arc<str> { v.as_str().unwrap_or_default().into() };
        match p["type"].as_str().unwrap_or_default() {
            "text" if m.info["summary"] == true => own.parts.push(Part::Summary(text(&p["text"]))),
            "tool" => {
                let (id, name, state) = (text(&p["callID"]), text(&p["tool"]), &p["state"]);
                own.parts.push(Part::Call(ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: text(&state["raw"]),
                }));
                let is_error = state["status"] == "error";
                let output = match &state["time"]["compacted"] {
                    Value::Number(_) if prune => CLEARED.into(),
                    _ => text(&state[if is_error { "error" } else { "output" }]),
                };
                if matches!(state["status"].as_str(), Some("completed" | "error")) {
                    results.push(StoredMessage {
                        role: Role::Tool,
                        parts: vec![Part::Result { id, name, output, is_error }],
                    });
                }
            }
            "opaque" => own.parts.push(Part::Compaction(Some(text(&p["text"])))),
            _ => own.parts.extend(p.as_object().and_then(opencode::part)),
        }
    }
    let mut out = if own.parts.is_empty() { vec![] } else { vec![own] };
    out.append(&mut results);
    out
}

/// Returns the name of a system or developer role, which the product does not store as messages.
/// `None` = any other role.
fn spoken(role: Role) -> Option<&'static str> {
    match role {
        Role::System | Role::Instructions => Some("system"),
        Role::Developer => Some("developer"),
        _ => None,
    }
}

fn role_of(info: &Value) -> Role {
    match (info["spoken"].as_str(), info["role"].as_str()) {
        (Some("system"), _) => Role::System,
        (Some(_), _) => Role::Developer,
        (None, Some("assistant")) => Role::Assistant,
        _ => Role::User,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets this many writes succeed, as of a program that is killed at the next.
    fn die_after(tables: &Tables, writes: usize) {
        let trigger = |table: &str| {
            format!(
                "CREATE TEMP TRIGGER in_{table} BEFORE INSERT ON main.{table} BEGIN
                 SELECT RAISE(ABORT, 'killed') WHERE (SELECT n FROM writes) = 0;
                 UPDATE writes SET n = n - 1; END;"
            )
        };
        let triggers = ["message", "part"].map(trigger).concat();
        let begin = format!("CREATE TEMP TABLE writes AS SELECT {writes} AS n;");
        tables.db.execute_batch(&(begin + &triggers)).unwrap();
    }

    #[test]
    fn killed_at_any_write_of_a_compaction_all_is_there_or_its_summary_is() {
        let said = |role, part: Part| StoredMessage { role, parts: vec![part] };
        let user = said(Role::User, Part::Text("find the bug".into()));
        let reply = said(Role::Assistant, Part::Text("it is in the cache".into()));
        let summary = said(Role::Assistant, Part::Summary("the bug is in the cache".into()));
        let question = said(Role::User, Part::Text("what was it about?".into()));
        let before = vec![user, reply.clone()];
        let after = vec![question, summary, reply];
        let mut ends = Vec::new();
        for writes in 0..10 {
            let dir = tempfile::tempdir().unwrap();
            let mut open = OpenCodeStore::new(Tables::open(dir.path()).unwrap(), 1).unwrap();
            for said in &before {
                open.append(&JournalEntry::Message(said.clone())).unwrap();
            }
            drop(open);
            let dying = Tables::open(dir.path()).unwrap();
            die_after(&dying, writes);
            let done =
                OpenCodeStore::new(dying, 2).unwrap().append(&JournalEntry::View(after.clone()));
            let again = OpenCodeStore::new(Tables::open(dir.path()).unwrap(), 3).unwrap();
            let found = again.load().unwrap().context;
            // The marker's question exists before the summary.
            let kept = found == after || found.starts_with(&before);
            assert!(kept, "died before write {}: {found:#?}", writes + 1);
            ends.push(done.is_ok());
        }
        assert!(!ends[0] && ends[9], "it neither died nor ended: {ends:?}");
    }
}
