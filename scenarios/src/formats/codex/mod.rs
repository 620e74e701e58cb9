//! Codex CLI rollouts (`~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`), with
//! `{timestamp,type,payload}` lines or bare items.
//!
//! Rules, where the format leaves a choice:
//! - Assistant-side items (reasoning, text, calls) up to a tool output or user message are one
//!   reply. The first new token count after it is its usage; `input_tokens` contains the cached
//!   ones and is split.
//! - Developer items and user items that the program wrote itself (AGENTS.md, environment,
//!   permissions, …) become `memory` entries before the first user message and join the next user
//!   message later.
//! - A user's message is an item, an event, or both, in either order; of both the item counts.
//! - A web search ran at the provider: its result is not recorded, so it is a text part of the
//!   reply and not a call.
//! - `compacted` becomes a recorded compaction; its size before is the last counted context.
//! - A rollback takes back the last user turns, as the program does when it resumes.
//! - `context_window` is the program's effective window. `prefix_tokens` is the first request's
//!   counted input less the o200k count of everything that the session shows before the first
//!   reply: here, the tools.
//! - Every item follows the one before it; a rollback returns to the item before the turn.

mod content;

use ctxbench_core::content::Part;
use serde_json::{Map, Value};

use super::lines::{self, RecordedLine, list_of, object_of, str_of, string};
use super::recording::{
    ContextPlace, Counters, Input, MessagePart, NoteKind, ProviderRoute, Recording,
    RecordingCompaction, RecordingReply, RecordingStep, StepKind, tokens,
};
use super::{Format, Head};
use content::{content, context_path};

pub(super) const FORMAT: Format = Format {
    title: "Codex",
    name: "codex",
    untold: "system prompts and tools of older versions, what a web search found, and how the \
             provider's own compaction reads",
    sniff,
    read: |input, sink| lines::session(input, Vec::new(), sink, read),
    parts: super::no_parts,
};

const ENVELOPES: &[&str] =
    &["session_meta", "turn_context", "response_item", "event_msg", "compacted"];
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

fn sniff(head: &Head) -> bool {
    head.objects().any(|o| match str_of(o, "type") {
        Some(kind) => ENVELOPES.contains(&kind) && o.get("payload").is_some_and(Value::is_object),
        // Old rollouts begin with this line and contain bare items.
        None => {
            o.contains_key("instructions") && o.contains_key("timestamp") && o.contains_key("id")
        }
    })
}

fn read(lines: Vec<RecordedLine>, _file: &str, out: &mut Recording) {
    let mut reader = RolloutReader::default();
    for line in lines {
        reader.line(line);
    }
    out.steps = reader.steps;
    out.context_window = reader.window;
    out.route = reader.route;
}

#[derive(Default)]
struct RolloutReader {
    steps: Vec<RecordingStep>,
    route: ProviderRoute,
    model: Option<String>,
    effort: Option<String>,
    window: Option<u64>,
    /// Counted tokens of the last request and its reply.
    context: Option<u64>,
    total: Option<Value>,
    /// Whether the system prompt was already read.
    system: bool,
    /// Name of the newest step, the parent of the next one.
    tip: Option<String>,
    /// The tip before each user turn, for rolling back.
    turns: Vec<Option<String>>,
    /// Texts of the user since the last reply. If only an event contained the text so far, with its
    /// step.
    said: Vec<(String, Option<usize>)>,
}

impl RolloutReader {
    fn line(&mut self, line: RecordedLine) {
        let RecordedLine { number, mut object } = line;
        let at = RecordingStep::new(number, string(&object, "timestamp"), StepKind::Link);
        let kind = string(&object, "type").unwrap_or_default();
        let payload = match object.remove("payload") {
            Some(Value::Object(payload)) => payload,
            _ => object,
        };
        match kind.as_str() {
            "session_meta" | "" => self.meta(at, &payload),
            "turn_context" => self.turn(at, &payload),
            "event_msg" => self.event(at, &payload),
            "compacted" => {
                let summary = string(&payload, "message").filter(|m| !m.is_empty());
                let pre_tokens = self.context;
                let found =
                    RecordingCompaction { pre_tokens, summary, ..RecordingCompaction::default() };
                self.chained(at, StepKind::Compaction(found));
            }
            "response_item" => self.item(at, &payload),
            bare if ITEMS.contains(&bare) => self.item(at, &payload),
            _ => {}
        }
    }

    fn push(&mut self, at: RecordingStep, what: StepKind) {
        self.steps.push(RecordingStep { what, ..at });
    }

    /// Adds a step that follows the newest one.
    fn chained(&mut self, at: RecordingStep, what: StepKind) {
        let name = Some(format!("line {}", at.line));
        let parent = std::mem::replace(&mut self.tip, name.clone());
        self.steps.push(RecordingStep { name, parent, what, ..at });
    }

    /// Reads the first line: the system prompt or, in old rollouts, the user's instructions.
    fn meta(&mut self, at: RecordingStep, payload: &Map<String, Value>) {
        match str_of(payload, "model_provider") {
            Some("openai") => {
                self.route = ProviderRoute::Direct("session_meta names the provider openai".into());
            }
            Some(other) => {
                self.route =
                    ProviderRoute::Gateway(format!("session_meta names the provider {other}"));
            }
            None => {}
        }
        let base = payload.get("base_instructions");
        let text = base.and_then(|b| b.as_str().or_else(|| b.get("text")?.as_str()));
        if let Some(text) = text.filter(|_| !self.system) {
            self.system = true;
            self.push(at, StepKind::System(text.to_string()));
        }
    }

    fn turn(&mut self, at: RecordingStep, payload: &Map<String, Value>) {
        self.model = string(payload, "model").or(self.model.take());
        let effort = string(payload, "effort");
        if self.effort.is_some() && effort != self.effort {
            let text = "the reasoning effort changed".to_string();
            self.push(at, StepKind::Note { kind: NoteKind::Settings, text });
        }
        self.effort = effort;
    }

    fn event(&mut self, at: RecordingStep, payload: &Map<String, Value>) {
        let number = |key: &str| payload.get(key).and_then(tokens);
        match str_of(payload, "type") {
            Some("token_count") => self.counted(at, payload),
            Some("task_started") => {
                self.window = number("model_context_window").or(self.window);
            }
            Some("user_message") => self.said_by_event(at, payload),
            Some("thread_rolled_back") => {
                let turns = number("num_turns").unwrap_or(1).max(1);
                let turns = usize::try_from(turns).unwrap_or(usize::MAX);
                let from = self.turns.len().saturating_sub(turns);
                if let Some(tip) = self.turns.drain(from..).next() {
                    self.tip = tip;
                }
                self.push(at, StepKind::RolledBack { turns });
            }
            _ => {}
        }
    }

    /// Adds a user message from an event, unless an item with the same text was read before.
    fn said_by_event(&mut self, at: RecordingStep, payload: &Map<String, Value>) {
        let text = str_of(payload, "message").unwrap_or_default().trim().to_string();
        if text.is_empty() || self.said.iter().any(|(known, _)| *known == text) {
            return;
        }
        self.turns.push(self.tip.clone());
        self.said.push((text.clone(), Some(self.steps.len())));
        self.input(at, None, vec![MessagePart::text(&text)]);
    }

    /// Adds counters, which belong to the parts since the last counters. Ignores counters with an
    /// unchanged total.
    fn counted(&mut self, at: RecordingStep, payload: &Map<String, Value>) {
        let Some(info) = object_of(payload, "info") else { return };
        self.window = info.get("model_context_window").and_then(tokens).or(self.window);
        let Some(last) = object_of(info, "last_token_usage") else { return };
        let names =
            ["input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens"];
        let all = Counters::read(last, names);
        self.context = Some(all.input.saturating_add(all.output));
        let total = info.get("total_token_usage").cloned();
        let repeated = total.is_some() && total == self.total;
        self.total = total;
        if repeated {
            return;
        }
        // The input includes the tokens read and written.
        let read = all.read.min(all.input);
        let input = (all.input - read).saturating_sub(all.write);
        let counters = Counters { input, read, ..all };
        let model = self.model.clone().unwrap_or_default();
        self.chained(at, StepKind::Counted { counters, model });
    }

    fn item(&mut self, at: RecordingStep, item: &Map<String, Value>) {
        let text = |key: &str| str_of(item, key).unwrap_or_default();
        match text("type") {
            "message" => self.message(at, item),
            "reasoning" => {
                let texts = |key: &str| {
                    let list = list_of(item, key).iter();
                    list.filter_map(|s| s.get("text")?.as_str()).collect::<Vec<_>>().join("\n\n")
                };
                let (summary, content) = (texts("summary"), texts("content"));
                let text = if content.is_empty() { summary } else { content };
                let encrypted = string(item, "encrypted_content");
                // The encrypted part is sent again, not the readable text.
                let shown = MessagePart::Shown(Part::Reasoning {
                    text: text.into(),
                    encrypted: encrypted.map(Into::into),
                });
                self.reply(at, vec![shown, MessagePart::Opaque]);
            }
            "function_call" => {
                self.call(at, item, text("name"), Some(&text("arguments").into()));
            }
            "custom_tool_call" => self.call(at, item, text("name"), Some(&text("input").into())),
            "local_shell_call" => self.call(at, item, "local_shell", item.get("action")),
            "web_search_call" => {
                let action = object_of(item, "action");
                let query = action.and_then(|a| a.get("query").or(a.get("url"))?.as_str());
                let text = format!("[web search: {}]", query.unwrap_or_default());
                self.reply(at, vec![MessagePart::Shown(Part::Text(text.into()))]);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let output = item.get("output");
                let success = output.and_then(|o| o.get("success")).and_then(Value::as_bool);
                let pieces = match output {
                    Some(Value::Object(o)) => content(o.get("content")),
                    other => content(other),
                };
                let result =
                    StepKind::result(text("call_id").into(), pieces, success == Some(false));
                self.chained(at, result);
            }
            _ => {}
        }
    }

    fn message(&mut self, at: RecordingStep, item: &Map<String, Value>) {
        let pieces = content(item.get("content"));
        let role = str_of(item, "role").unwrap_or_default();
        if role == "assistant" {
            return self.reply(at, pieces);
        }
        if role == "user" {
            self.said_by_item(&pieces);
        }
        let placed = |piece: MessagePart| {
            let MessagePart::Said(part) = piece else { return piece };
            let named = match &part {
                Part::Text(text) => context_path(text),
                _ => None,
            };
            match named {
                _ if role == "system" => MessagePart::Added(part, ContextPlace::System),
                Some(path) => MessagePart::Added(part, ContextPlace::Memory(path)),
                None if role == "user" => MessagePart::Said(part),
                None => MessagePart::Added(part, ContextPlace::Memory(role.to_string())),
            }
        };
        self.input(at, string(item, "id"), pieces.into_iter().map(placed).collect());
    }

    /// Replaces the event with the same text by a user message from an item.
    fn said_by_item(&mut self, pieces: &[MessagePart]) {
        let texts = pieces.iter().filter_map(|p| match p {
            MessagePart::Said(part) => part.as_text().map(|t| t.trim().to_string()),
            _ => None,
        });
        let texts: Vec<String> = texts.collect();
        let repeats = |said: &&mut (String, Option<usize>)| texts.contains(&said.0);
        match self.said.iter_mut().find(repeats).and_then(|(_, step)| step.take()) {
            Some(step) => self.steps[step].what = StepKind::Link,
            None => self.turns.push(self.tip.clone()),
        }
        self.said.extend(texts.into_iter().map(|text| (text, None)));
    }

    fn input(&mut self, at: RecordingStep, id: Option<String>, pieces: Vec<MessagePart>) {
        self.chained(at, StepKind::Input(Input { id, pieces, blocks: 1 }));
    }

    fn call(
        &mut self,
        at: RecordingStep,
        item: &Map<String, Value>,
        name: &str,
        arguments: Option<&Value>,
    ) {
        let id = str_of(item, "call_id").or(str_of(item, "id")).unwrap_or_default();
        self.reply(at, vec![MessagePart::call(id, name, arguments)]);
    }

    fn reply(&mut self, at: RecordingStep, pieces: Vec<MessagePart>) {
        self.said.clear();
        let reply = RecordingReply::new(None::<String>, pieces);
        let reply = RecordingReply { model: self.model.clone(), blocks: 1, ..reply };
        self.push(at, StepKind::Reply(reply));
    }
}

#[cfg(test)]
mod tests;
