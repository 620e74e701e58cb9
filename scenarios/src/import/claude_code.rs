//! Claude Code transcripts (`~/.claude/projects/<folder>/<session>.jsonl`).
//!
//! Rules, where the format leaves a choice:
//! - Of branches, the one that the file ends with counts; see `chain.rs`.
//! - A response is spread over lines with one `message.id`. It becomes one reply where its first line stands, with its parts
//!   in line order; results that were written between them follow it.
//! - `usage` counts once per response. `output_tokens` of a line without `stop_reason` is a stub from the start of the stream:
//!   the o200k count of the reply's parts stands instead, marked `output_estimated`.
//! - Lines with `isSidechain` belong to a subagent, and so do messages that progress lines repeat: they become messages of that
//!   `agent`, or the session where the whole file is one. Subagents in files of their own
//!   beside the session's are taken in by `load.rs`; see `companions.rs`.
//! - `isMeta` lines and the traces of local commands were sent to the model, though the user did not write them as a turn.
//!   They join the next user message, or the tool result before a reply. Those at the end of the file, which no request
//!   carried, are left out. Lines that are `isVisibleInTranscriptOnly` were not sent.
//! - `compact_boundary` and the `isCompactSummary` line after it become one recorded compaction, for manual ones too.
//! - API errors that the program wrote as a reply (`<synthetic>`) are no replies of the model and are left out.
//! - `prefix_tokens` is the first request's counted input less the o200k count of the messages in it.

use std::collections::{BTreeMap, HashMap};

use ctxbench_core::session::{Entry, Header, RecordedUsage, SessionCall, SessionPart};
use serde_json::{Map, Value};

use super::build::{Builder, Reply};
use super::claude_content::{blocks, is_command_trace, plain};
use super::{Importer, Line, chain, first_objects, flag, objects, sidechains, str_of};
use crate::error::{ImportError, Loaded};

/// Name of the format.
pub(crate) const NAME: &str = "claude-code";

/// The importer of Claude Code transcripts.
pub struct ClaudeCode;

impl Importer for ClaudeCode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn sniff(&self, text: &str) -> bool {
        first_objects(text).any(|o| {
            let kind = str_of(&o, "type").unwrap_or_default();
            (o.contains_key("sessionId") && (o.contains_key("parentUuid") || kind == "queue-operation"))
                || (kind == "file-history-snapshot" && o.contains_key("snapshot"))
                || (kind == "summary" && o.contains_key("leafUuid"))
        })
    }

    fn import(&self, text: &str, file: &str) -> Result<Loaded, ImportError> {
        let mut warnings = Vec::new();
        let mut lines = objects(text, file, &mut warnings);
        let mut windows: Vec<(Option<String>, Vec<Line>)> = Vec::new();
        let agents = sidechains::split(&mut lines);
        windows.push((None, lines));
        let mut calls: BTreeMap<String, String> = BTreeMap::new();
        for a in agents {
            calls.extend(a.call.map(|c| (a.id.clone(), c)));
            windows.push((Some(a.id), a.lines));
        }
        let mut left = 0;
        let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
        let mut items: Vec<(usize, Option<String>, Item)> = Vec::new();
        for (agent, mut lines) in windows {
            left += chain::follow(&mut lines);
            let mut reader = Reader { items: Vec::new(), replies: HashMap::new(), unknown: std::mem::take(&mut unknown) };
            for line in &lines {
                reader.line(line);
            }
            unknown = reader.unknown;
            // What was held back stands where the item before it does.
            let mut at = 0;
            items.extend(reader.items.into_iter().map(|item| {
                at = item.line().unwrap_or(at);
                (at, agent.clone(), item)
            }));
        }
        let last: Vec<_> = calls.iter().filter_map(|(agent, call)| last_reply(&items, agent, call)).collect();
        items.extend(last);
        if left > 0 {
            warnings.push(format!("{file}: {left} lines belong to branches that the session did not end with; left out"));
        }
        let mut builder = Builder::new(warnings);
        for (kind, n) in &unknown {
            builder.warn(format!("{file}: {n} × {kind}, which this importer does not know; left out"));
        }
        let several = items.iter().any(|(_, agent, _)| agent.is_some());
        if several {
            items.sort_by_key(|(line, _, _)| *line);
        }
        for (_, agent, item) in items {
            builder.enter(agent.as_deref());
            item.add(&mut builder);
        }
        builder.finish(self.name(), file, Header::default())
    }
}

/// The last reply of a subagent whose messages progress lines repeat: these leave it out, and it stands as the result of its call.
fn last_reply(items: &[(usize, Option<String>, Item)], agent: &str, call: &str) -> Option<(usize, Option<String>, Item)> {
    let own = || items.iter().rev().filter(|(_, a, _)| a.as_deref() == Some(agent)).map(|(_, _, item)| item);
    if matches!(own().next()?, Item::Reply(_)) {
        return None;
    }
    let result = items.iter().find_map(|(_, a, item)| match item {
        Item::Result { line, call_id, parts, stamp, .. } if a.is_none() && call_id == call => Some((*line, parts, stamp)),
        _ => None,
    });
    let (line, parts, stamp) = result?;
    // The program adds a line of its own behind the words of the subagent.
    let said = |p: &&SessionPart| matches!(p, SessionPart::Text { text } if !text.starts_with("agentId: "));
    let parts: Vec<SessionPart> = parts.iter().filter(said).cloned().collect();
    let model = own().find_map(|i| if let Item::Reply(r) = i { r.model.clone() } else { None });
    // In front of the result.
    let line = line.saturating_sub(1);
    let reply = Reply { line, id: Some(format!("{agent}-last")), parts, model, stamp: stamp.clone(), ..Reply::default() };
    (!reply.parts.is_empty()).then(|| (line, Some(agent.to_string()), Item::Reply(Box::new(reply))))
}

enum Item {
    Reply(Box<Reply>),
    User { line: usize, id: Option<String>, parts: Vec<SessionPart>, stamp: Option<String> },
    Context(Vec<SessionPart>),
    Result { line: usize, call_id: String, parts: Vec<SessionPart>, is_error: Option<bool>, stamp: Option<String> },
    Compaction { line: usize, pre: Option<u64>, post: Option<u64>, summary: Option<String>, stamp: Option<String> },
}

impl Item {
    /// The line that it begins on; `None` = it joins another.
    fn line(&self) -> Option<usize> {
        match self {
            Item::Reply(reply) => Some(reply.line),
            Item::User { line, .. } | Item::Result { line, .. } | Item::Compaction { line, .. } => Some(*line),
            Item::Context(_) => None,
        }
    }

    fn add(self, builder: &mut Builder) {
        match self {
            Item::Reply(reply) => builder.reply(*reply),
            Item::User { line, id, parts, stamp } => builder.user(line, id.as_deref(), parts, stamp.as_deref()),
            Item::Context(parts) => parts.into_iter().for_each(|p| builder.hold(p)),
            Item::Result { line, call_id, parts, is_error, stamp } => {
                builder.result(line, &call_id, parts, is_error, stamp.as_deref());
            }
            // What a subagent's window did is not what the session did.
            Item::Compaction { .. } if builder.in_agent() => {}
            Item::Compaction { line, pre, post, summary, stamp } => {
                let at = builder.at(stamp.as_deref());
                builder
                    .entry(line, Entry::RecordedCompaction { pre_tokens: pre, post_tokens: post, summary, at, extra: Default::default() });
            }
        }
    }
}

struct Reader {
    items: Vec<Item>,
    /// Place of each response among the items, by message and request id.
    replies: HashMap<(String, String), usize>,
    unknown: BTreeMap<String, usize>,
}

impl Reader {
    fn line(&mut self, line: &Line) {
        let object = &line.object;
        match str_of(object, "type").unwrap_or_default() {
            "assistant" => self.assistant(line),
            "user" => self.user(line),
            "system" if str_of(object, "subtype") == Some("compact_boundary") => {
                let meta = object.get("compactMetadata");
                let tokens = |key: &str| meta.and_then(|m| m.get(key)).and_then(Value::as_u64);
                let (pre, post, stamp) = (tokens("preTokens"), tokens("postTokens"), stamp(object));
                self.items.push(Item::Compaction { line: line.number, pre, post, summary: None, stamp });
            }
            "attachment" => self.attachment(line),
            "system" | "progress" | "summary" | "queue-operation" | "file-history-snapshot" | "last-prompt" => {}
            other => self.note(&format!("line type {other:?}")),
        }
    }

    fn note(&mut self, what: &str) {
        *self.unknown.entry(what.to_string()).or_default() += 1;
    }

    fn assistant(&mut self, line: &Line) {
        let Some(message) = line.object.get("message").and_then(Value::as_object) else { return };
        if flag(&line.object, "isApiErrorMessage") || str_of(message, "model") == Some("<synthetic>") {
            return;
        }
        let parts = self.parts(message.get("content"));
        let id = str_of(message, "id").or(str_of(&line.object, "uuid")).map(str::to_string);
        let key = (id.clone().unwrap_or_default(), str_of(&line.object, "requestId").unwrap_or_default().to_string());
        let place = self.replies.get(&key).copied().filter(|_| id.is_some()).unwrap_or_else(|| {
            let model = str_of(message, "model").map(str::to_string);
            let reply = Reply { line: line.number, id, model, stamp: stamp(&line.object), ..Reply::default() };
            self.items.push(Item::Reply(Box::new(reply)));
            self.items.len() - 1
        });
        self.replies.insert(key, place);
        let Item::Reply(reply) = &mut self.items[place] else { return };
        reply.parts.extend(parts);
        if let Some(usage) = message.get("usage").and_then(Value::as_object) {
            let count = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or_default();
            reply.usage = Some(RecordedUsage {
                input: count("input_tokens"),
                output: count("output_tokens"),
                cache_read: count("cache_read_input_tokens"),
                cache_write: count("cache_creation_input_tokens"),
            });
            reply.estimate_output = str_of(message, "stop_reason").is_none();
        }
    }

    fn user(&mut self, line: &Line) {
        let object = &line.object;
        let Some(message) = object.get("message").and_then(Value::as_object) else { return };
        if flag(object, "isCompactSummary") {
            let text = plain(self.parts(message.get("content")));
            match self.items.iter_mut().rev().find(|i| !matches!(i, Item::Context(_))) {
                Some(Item::Compaction { summary: slot @ None, .. }) => *slot = Some(text),
                _ => {
                    let stamp = stamp(object);
                    self.items.push(Item::Compaction { line: line.number, pre: None, post: None, summary: Some(text), stamp });
                }
            }
            return;
        }
        if flag(object, "isVisibleInTranscriptOnly") {
            return;
        }
        let mut said = Vec::new();
        for block in blocks(message.get("content")) {
            if block.get("type").and_then(Value::as_str) == Some("tool_result") {
                let call_id = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default().to_string();
                let parts = self.parts(block.get("content"));
                let is_error = block.get("is_error").and_then(Value::as_bool).filter(|e| *e);
                self.items.push(Item::Result { line: line.number, call_id, parts, is_error, stamp: stamp(object) });
            } else {
                said.extend(self.parts(Some(&Value::Array(vec![block]))));
            }
        }
        if said.is_empty() {
            return;
        }
        let of_program = flag(object, "isMeta") || said.iter().all(|p| matches!(p, SessionPart::Text { text } if is_command_trace(text)));
        if of_program {
            self.items.push(Item::Context(said));
        } else {
            let id = str_of(object, "uuid").map(str::to_string);
            self.items.push(Item::User { line: line.number, id, parts: said, stamp: stamp(object) });
        }
    }

    /// A prompt that was typed while the agent worked is stored as an attachment; others are the program's own reminders.
    fn attachment(&mut self, line: &Line) {
        let Some(attachment) = line.object.get("attachment").and_then(Value::as_object) else { return };
        match str_of(attachment, "type") {
            Some("queued_command") => {
                let parts = self.parts(attachment.get("prompt"));
                if !parts.is_empty() {
                    let id = str_of(&line.object, "uuid").map(str::to_string);
                    self.items.push(Item::User { line: line.number, id, parts, stamp: stamp(&line.object) });
                }
            }
            other => self.note(&format!("attachment {:?}", other.unwrap_or("without a type"))),
        }
    }

    /// A message's or result's content: a string or a list of blocks.
    fn parts(&mut self, content: Option<&Value>) -> Vec<SessionPart> {
        blocks(content).into_iter().filter_map(|b| self.part(b.as_object()?)).collect()
    }

    fn part(&mut self, block: &Map<String, Value>) -> Option<SessionPart> {
        let text = |key: &str| str_of(block, key).unwrap_or_default().to_string();
        match str_of(block, "type").unwrap_or_default() {
            "text" => Some(SessionPart::Text { text: text("text") }),
            "thinking" => {
                let encrypted = str_of(block, "signature").filter(|s| !s.is_empty()).map(str::to_string);
                Some(SessionPart::Reasoning { text: text("thinking"), encrypted })
            }
            "redacted_thinking" => Some(SessionPart::Reasoning { text: String::new(), encrypted: Some(text("data")) }),
            "tool_use" => {
                let arguments = block.get("input").map_or_else(|| "{}".to_string(), Value::to_string);
                Some(SessionPart::Call(SessionCall { id: text("id"), name: text("name"), arguments }))
            }
            "image" | "document" => {
                let source = block.get("source").and_then(Value::as_object)?;
                let media_type = str_of(source, "media_type").unwrap_or("application/octet-stream").to_string();
                let url = match str_of(source, "data") {
                    Some(data) => format!("data:{media_type};base64,{data}"),
                    None => str_of(source, "url").unwrap_or_default().to_string(),
                };
                Some(SessionPart::Image { media_type, url, name: str_of(block, "title").map(str::to_string) })
            }
            other => {
                self.note(&format!("content block {other:?}"));
                None
            }
        }
    }
}

fn stamp(object: &Map<String, Value>) -> Option<String> {
    str_of(object, "timestamp").map(str::to_string)
}

#[cfg(test)]
#[path = "claude_code_tests.rs"]
mod tests;
