//! Sessions of GitHub Copilot CLI (`~/.copilot/session-state/ID/events.jsonl`), and transcripts of
//! Copilot in VS Code, which have the same lines. The counters are in `~/.copilot/session-store.db`.
//!
//! Rules, where the format leaves a choice:
//! - Lines of a subagent have its id. `parentId` names the line before, so there are no branches.
//! - Parts of a reply share the id of its call. The text that the user typed is part of the one that
//!   was sent; the program added the rest.
//! - The file counts the output of a call only. The first request of the database with the same model
//!   and output is the same call. Requests that are left over have no reply in the file.
//! - Totals of a process are no counters of a call: its price depends on each prompt.

use super::database::Database;
use crate::formats::prelude::*;
use std::path::PathBuf;

pub(super) const FORMAT: Format = Format {
    title: "GitHub Copilot CLI",
    name: "copilot-cli",
    untold: "title, dollars, what was rewound and, without `session-store.db`, all counters except those \
             of compactions",
    sniff: |head| head.objects().any(is_event),
    read,
    parts: no_parts,
};

fn is_event(o: &Map<String, Value>) -> bool {
    const KINDS: &[&str] = &["session", "user", "system", "assistant", "tool", "subagent", "hook"];
    let kind = str_of(o, "type").and_then(|kind| kind.split_once('.'));
    object_of(o, "data").is_some() && kind.is_some_and(|(kind, _)| KINDS.contains(&kind))
}

/// Returns the database of a session that lies on disk, in the folder above that of the sessions.
fn database(source: &Source<'_>) -> Option<PathBuf> {
    let path = source.path().and(source.folder())?;
    let mut folders = path.ancestors().skip(2).take(2);
    folders.find_map(|folder| source.companion(&folder.join("session-store.db")))
}

/// Returns the requests of a session in order.
fn requests(file: &Source<'_>, session: &str) -> Result<Vec<Map<String, Value>>, InputError> {
    let columns = "rowid, model, created_at, input_tokens, cache_read_tokens, \
                   cache_write_tokens, output_tokens";
    let rest = "WHERE session_id = ?1 ORDER BY created_at, rowid";
    let database = Database::open(file, FORMAT.title)?;
    database.rows("assistant_usage_events", columns, rest, Some(session))
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let mut reader = MessageReader::default();
    let lines = of_lines(source, &mut reader.out)?;
    let id = |l: &RecordedLine| string(object_in(&l.object, "data"), "sessionId");
    reader.out.id = lines.iter().find_map(id);
    let session = reader.out.id.clone().unwrap_or_default();
    let mut found = Vec::new();
    if let Some(path) = database(source) {
        match source.open_companion(&path).and_then(|file| requests(&file, &session)) {
            Ok(rows) => found = rows,
            Err(e) => reader.out.warnings.push(format!("{e}; left out")),
        }
        reader.out.beside.push(path);
    }
    let mut reader = EventReader { reader, session, requests: found, system: String::new() };
    lines.iter().for_each(|line| reader.line(line));
    reader.end(lines.last().map_or(1, |line| line.number));
    sink(Ok(reader.reader.out))
}

struct EventReader {
    reader: MessageReader,
    session: String,
    /// Requests of the database without a reply so far.
    requests: Vec<Map<String, Value>>,
    /// Newest system prompt.
    system: String,
}

impl EventReader {
    fn line(&mut self, line: &RecordedLine) {
        let o = &line.object;
        let data = object_in(o, "data");
        let told = |key: &str| data.get(key).cloned().unwrap_or_default();
        self.reader.agent = string(o, "agentId").or(string(data, "parentToolCallId"));
        self.size_of_prefix(data);
        let mut message = match str_of(o, "type").unwrap_or_default() {
            "system.message" if str_of(data, "content") == Some(&self.system) => return,
            "system.message" => {
                self.system = string(data, "content").unwrap_or_default();
                json!({"role": "system", "content": self.system})
            }
            "assistant.message" => {
                let call = string(data, "apiCallId").or(string(data, "messageId"));
                let model = string(data, "model").or(self.reader.model.clone());
                let request = self.take_request(model.as_deref(), data.get("outputTokens"));
                let name = format!("{} {}", self.session, call.as_deref().unwrap_or_default());
                self.reader.counters = request.map(|request| counters(&request).called(&*name));
                self.reader.response = call;
                json!({"role": "assistant", "content": told("content"), "model": model,
                    "reasoning_content": told("reasoningText"), "tool_calls": told("toolRequests")})
            }
            "tool.execution_complete" => {
                let result = object_in(data, "result").get("content");
                let content = result.or(object_in(data, "error").get("message"));
                json!({"role": "tool", "tool_call_id": told("toolCallId"), "content": content,
                    "is_error": told("success") == false})
            }
            kind => return self.event(line, kind, data),
        };
        message["timestamp"] = o.get("timestamp").cloned().unwrap_or_default();
        self.reader.message(line.number, &message);
    }

    /// Reads an event that is not a message of the model or for it.
    fn event(&mut self, line: &RecordedLine, kind: &str, data: &Map<String, Value>) {
        let count = |key: &str| data.get(key).and_then(tokens);
        let stamp = string(&line.object, "timestamp");
        let text = |key: &str| str_of(data, key).unwrap_or_default();
        let is_manual = |by: &str| if by == "manual" { Trigger::Manual } else { Trigger::Auto };
        let what = match kind {
            "session.start" | "session.resume" | "session.model_change" => {
                let model = string(data, "newModel").or(string(data, "selectedModel"));
                self.reader.model = model.or(self.reader.model.take());
                return;
            }
            "user.message" => {
                StepKind::question(None, sent_around(text("transformedContent"), text("content")))
            }
            "session.compaction_complete" => {
                let reply = self.summary(line, data);
                if !flag(data, "success") {
                    let call = reply.map(|reply| RecordingStep::of_call(line.number, stamp, reply));
                    return self.reader.out.steps.extend(call);
                }
                StepKind::Compaction(RecordingCompaction {
                    pre_tokens: count("preCompactionTokens"),
                    post_tokens: count("postCompactionTokens"),
                    summary: string(data, "summaryContent"),
                    trigger: str_of(data, "trigger").map(is_manual),
                    instructions: string(data, "customInstructions"),
                    reply: reply.map(Box::new),
                })
            }
            "session.truncation" if count("messagesRemovedDuringTruncation") > Some(0) => {
                StepKind::Compaction(RecordingCompaction::default())
            }
            "session.context_cleared" => StepKind::Cleared,
            _ => return,
        };
        self.reader.push(line.number, stamp, what);
    }

    /// Notes the sizes of window, system prompt and tools, which some events count.
    fn size_of_prefix(&mut self, data: &Map<String, Value>) {
        let count = |key: &str| data.get(key).and_then(tokens);
        let out = &mut self.reader.out;
        out.context_window = count("tokenLimit").or(out.context_window);
        if let Some(tools) = count("toolDefinitionsTokens") {
            let system = count("systemTokens").filter(|_| self.system.is_empty());
            out.prefix_tokens = Some(tools.saturating_add(system.unwrap_or_default()));
        }
    }

    /// Returns the reply to the request for a summary.
    fn summary(
        &mut self,
        line: &RecordedLine,
        data: &Map<String, Value>,
    ) -> Option<RecordingReply> {
        let used =
            object_of(data, "compactionTokensUsed").filter(|u| u.contains_key("inputTokens"))?;
        let model = string(used, "model").or(self.reader.model.clone());
        self.take_request(model.as_deref(), used.get("outputTokens"));
        let id = string(data, "requestId").or(string(&line.object, "id"));
        let name = format!("{} {}", self.session, id.unwrap_or_default());
        let names = ["inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens"];
        let counters = Counters::read(used, names).of_whole_prompt();
        Some(RecordingReply::of_counters(name, model, counters))
    }

    /// Takes the request of a call from those of the database.
    fn take_request(
        &mut self,
        model: Option<&str>,
        output: Option<&Value>,
    ) -> Option<Map<String, Value>> {
        let is_same = |r: &Map<String, Value>| {
            str_of(r, "model") == model && r.get("output_tokens") == output
        };
        let at = self.requests.iter().position(is_same)?;
        Some(self.requests.remove(at))
    }

    /// Adds the requests without a reply.
    fn end(&mut self, line: usize) {
        for request in self.requests.drain(..) {
            let name =
                format!("{} row {:?}", self.session, request.get("rowid").and_then(Value::as_i64));
            let (model, stamp) = (string(&request, "model"), messages::stamp(&request));
            let reply = RecordingReply::of_counters(name, model, counters(&request));
            self.reader.out.steps.push(RecordingStep::of_call(line, stamp, reply));
        }
    }
}

/// Returns the counters of a request in the database, whose input includes tokens read and written.
fn counters(request: &Map<String, Value>) -> Counters {
    let names = ["input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"];
    Counters::read(request, names).of_whole_prompt()
}

#[cfg(test)]
mod tests;
