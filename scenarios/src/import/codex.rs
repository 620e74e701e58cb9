//! Codex CLI rollouts (`~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`), with `{timestamp,type,payload}` lines or bare items.
//!
//! Rules, where the format leaves a choice:
//! - Assistant-side items (reasoning, text, calls) up to a tool output or user message are one reply. The first new token
//!   count after it is its usage; `input_tokens` contains the cached ones and is split.
//! - Developer items and user items that the program wrote itself (AGENTS.md, environment, permissions, …) become `memory`
//!   entries before the first user message and join the next user message later.
//! - A web search ran at the provider: its result stands nowhere, so it is a text part of the reply and no call.
//! - `compacted` becomes a recorded compaction; its size before is the last counted context.
//! - A rollback takes back the last user turns, as the program does when it resumes.
//! - `context_window` is the program's effective window. `prefix_tokens` is the first request's counted input less the o200k
//!   count of everything that the session shows before the first reply: here, the tools.

use ctxbench_core::session::{Entry, Header, RecordedUsage, SessionCall, SessionPart};
use serde_json::{Map, Value};

use super::build::{Builder, Reply};
use super::codex_content::{content, context_path};
use super::{Importer, Line, first_objects, objects, str_of};
use crate::error::{ImportError, Loaded};

/// The importer of Codex rollouts.
pub struct Codex;

const ENVELOPES: &[&str] = &["session_meta", "turn_context", "response_item", "event_msg", "compacted"];
const ITEMS: &[&str] = &[
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "web_search_call",
];

impl Importer for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn sniff(&self, text: &str) -> bool {
        first_objects(text).any(|o| match str_of(&o, "type") {
            Some(kind) if ENVELOPES.contains(&kind) => o.get("payload").is_some_and(Value::is_object),
            Some("message") => o.contains_key("role") && o.get("content").is_some_and(|c| c.is_array()),
            Some(kind) => ITEMS.contains(&kind) && (o.contains_key("call_id") || o.contains_key("encrypted_content")),
            None => o.contains_key("instructions") && o.contains_key("timestamp") && o.contains_key("id"),
        })
    }

    fn import(&self, text: &str, file: &str) -> Result<Loaded, ImportError> {
        let mut warnings = Vec::new();
        let lines = objects(text, file, &mut warnings);
        let mut reader = Reader { builder: Builder::new(warnings), ..Reader::default() };
        for line in lines {
            reader.line(line);
        }
        reader.close();
        let header = Header { context_window: reader.window, ..Header::default() };
        reader.builder.finish(self.name(), file, header)
    }
}

#[derive(Default)]
struct Reader {
    builder: Builder,
    /// The reply whose items are still coming.
    open: Option<Reply>,
    model: Option<String>,
    window: Option<u64>,
    /// Counted context of the last request and its reply, in tokens.
    context: Option<u64>,
    total: Option<Value>,
    system: bool,
}

impl Reader {
    fn line(&mut self, line: Line) {
        let Line { number, mut object } = line;
        let stamp = str_of(&object, "timestamp").map(str::to_string);
        let kind = str_of(&object, "type").unwrap_or_default().to_string();
        let payload = match object.remove("payload") {
            Some(Value::Object(payload)) => payload,
            _ => object,
        };
        match kind.as_str() {
            "session_meta" | "" => self.meta(number, &payload),
            "turn_context" => self.model = str_of(&payload, "model").map(str::to_string).or(self.model.take()),
            "event_msg" => self.event(&payload),
            "compacted" => {
                self.close();
                let summary = str_of(&payload, "message").filter(|m| !m.is_empty()).map(str::to_string);
                let at = self.builder.at(stamp.as_deref());
                self.builder.entry(
                    number,
                    Entry::RecordedCompaction { pre_tokens: self.context, post_tokens: None, summary, at, extra: Default::default() },
                );
            }
            "response_item" => self.item(number, &payload, stamp),
            bare if ITEMS.contains(&bare) => self.item(number, &payload, stamp),
            _ => {}
        }
    }

    /// The first line: system text, or in old rollouts the user's instructions.
    fn meta(&mut self, line: usize, payload: &Map<String, Value>) {
        if self.builder.begun() || self.system {
            return;
        }
        let base = payload.get("base_instructions");
        if let Some(text) = base.and_then(|b| b.as_str().or_else(|| b.get("text")?.as_str())) {
            self.system = true;
            self.builder.entry(line, Entry::System { text: text.to_string(), agent: None, extra: Default::default() });
        }
    }

    fn event(&mut self, payload: &Map<String, Value>) {
        match str_of(payload, "type") {
            Some("token_count") => {
                let Some(info) = payload.get("info").and_then(Value::as_object) else { return };
                self.window = info.get("model_context_window").and_then(Value::as_u64).or(self.window);
                let Some(last) = info.get("last_token_usage").and_then(Value::as_object) else { return };
                let total = info.get("total_token_usage").cloned();
                let repeated = total.is_some() && total == self.total;
                self.total = total;
                let count = |key: &str| last.get(key).and_then(Value::as_u64).unwrap_or_default();
                let (input, cached, output) = (count("input_tokens"), count("cached_input_tokens"), count("output_tokens"));
                self.context = Some(input.saturating_add(output));
                if let Some(reply) = self.open.as_mut().filter(|r| r.usage.is_none() && !repeated && input > 0) {
                    let cache_read = cached.min(input);
                    reply.usage = Some(RecordedUsage { input: input - cache_read, output, cache_read, cache_write: 0 });
                }
            }
            Some("task_started") => self.window = payload.get("model_context_window").and_then(Value::as_u64).or(self.window),
            Some("thread_rolled_back") => {
                self.close();
                let turns = payload.get("num_turns").and_then(Value::as_u64).unwrap_or(1);
                self.builder.roll_back(usize::try_from(turns).unwrap_or(usize::MAX));
            }
            _ => {}
        }
    }

    fn item(&mut self, line: usize, item: &Map<String, Value>, stamp: Option<String>) {
        let text = |key: &str| str_of(item, key).unwrap_or_default().to_string();
        match str_of(item, "type").unwrap_or_default() {
            "message" => self.message(line, item, stamp),
            "reasoning" => {
                let texts = |key: &str| {
                    let list = item.get(key).and_then(Value::as_array).into_iter().flatten();
                    list.filter_map(|s| s.get("text")?.as_str()).collect::<Vec<_>>().join("\n\n")
                };
                let (summary, content) = (texts("summary"), texts("content"));
                let words = if content.is_empty() { summary } else { content };
                let encrypted = str_of(item, "encrypted_content").map(str::to_string);
                self.part(line, SessionPart::Reasoning { text: words, encrypted }, stamp);
            }
            "function_call" => self.call(line, item, text("name"), text("arguments"), stamp),
            "custom_tool_call" => self.call(line, item, text("name"), text("input"), stamp),
            "local_shell_call" => {
                let arguments = item.get("action").map_or_else(|| "{}".to_string(), Value::to_string);
                self.call(line, item, "local_shell".to_string(), arguments, stamp);
            }
            "web_search_call" => {
                let query = item.get("action").and_then(|a| a.get("query").or(a.get("url"))).and_then(Value::as_str).unwrap_or_default();
                self.part(line, SessionPart::Text { text: format!("[web search: {query}]") }, stamp);
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.close();
                let output = item.get("output");
                let failed = output.and_then(|o| o.get("success")).and_then(Value::as_bool) == Some(false);
                let parts = match output {
                    Some(Value::Object(o)) => content(o.get("content")),
                    other => content(other),
                };
                self.builder.result(line, &text("call_id"), parts, failed.then_some(true), stamp.as_deref());
            }
            _ => {}
        }
    }

    fn message(&mut self, line: usize, item: &Map<String, Value>, stamp: Option<String>) {
        let parts = content(item.get("content"));
        match str_of(item, "role").unwrap_or_default() {
            "assistant" => {
                for part in parts {
                    self.part(line, part, stamp.clone());
                }
            }
            "system" if !self.builder.begun() => {
                for text in parts.into_iter().filter_map(SessionPart::into_text) {
                    self.builder.entry(line, Entry::System { text, agent: None, extra: Default::default() });
                }
            }
            role => {
                self.close();
                let of_program =
                    |p: &SessionPart| role != "user" || matches!(p, SessionPart::Text { text } if context_path(text).is_some());
                let (context, said): (Vec<_>, Vec<_>) = parts.into_iter().partition(of_program);
                for part in context {
                    self.context_part(line, part, role);
                }
                if !said.is_empty() {
                    self.builder.user(line, str_of(item, "id"), said, stamp.as_deref());
                }
            }
        }
    }

    fn context_part(&mut self, line: usize, part: SessionPart, role: &str) {
        if self.builder.begun() {
            self.builder.hold(part);
        } else if let Some(text) = part.into_text() {
            let path = context_path(&text).unwrap_or_else(|| role.to_string());
            self.builder.entry(line, Entry::Memory { path, text, extra: Default::default() });
        }
    }

    fn call(&mut self, line: usize, item: &Map<String, Value>, name: String, arguments: String, stamp: Option<String>) {
        let id = str_of(item, "call_id").or(str_of(item, "id")).unwrap_or_default().to_string();
        self.part(line, SessionPart::Call(SessionCall { id, name, arguments }), stamp);
    }

    fn part(&mut self, line: usize, part: SessionPart, stamp: Option<String>) {
        let model = self.model.clone();
        let reply = self.open.get_or_insert_with(|| Reply { line, model, stamp, ..Reply::default() });
        reply.parts.push(part);
    }

    fn close(&mut self) {
        if let Some(reply) = self.open.take() {
            self.builder.reply(reply);
        }
    }
}

#[cfg(test)]
#[path = "codex_tests.rs"]
mod tests;
