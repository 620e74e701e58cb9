//! Codex CLI rollouts (`~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`), with
//! `{timestamp,type,payload}` lines or bare items.
//!
//! Rules, where the format leaves a choice:
//! - Assistant-side items (reasoning, text, calls) up to a tool output or user message are one
//!   reply. The first new counters after it are its usage; `input_tokens` contains the tokens read
//!   and written and is split. `token_usage_record` and `token_count` may both tell of one call. Counters
//!   without a reply are those of the compaction after them, or of a reply that is not recorded.
//! - A fork and a subagent repeat the lines of their parent. A call has the same identity in every
//!   file: the provider's id, or totals and reply, in the first thread if the file tells which. What
//!   stands before a subagent's own history (`subagent_history_start_ordinal`), and counters that
//!   older subagents repeat without the replies, are the parent's and are left out.
//! - What the totals grow beyond the counters of the calls is a call that no line counts: the
//!   compaction before, or one whose line was lost.
//! - Developer items and user items that the program wrote itself (AGENTS.md, environment,
//!   permissions, …) become `memory` entries before the first user message and join the next user
//!   message later.
//! - A user's message is an item, an event, or both, in either order; of both the item counts.
//! - A web search ran at the provider: its result is not recorded, so it is a text part of the
//!   reply and not a call.
//! - `compacted` becomes a recorded compaction; its size before is the last counted context. Alone in
//!   its turn, it is the user's `/compact`.
//! - A rollback takes back the last user turns, as the program does when it resumes. Their calls
//!   are paid all the same.
//! - `context_window` is the window of which the program reports 95 %. `prefix_tokens` is the
//!   first request's counted input less the o200k count of everything that the session shows
//!   before the first reply: here, the tools.
//! - Every item follows the one before it; a rollback returns to the item before the turn.

mod calls;

use std::collections::HashSet;
use std::sync::Arc;

use ctxbench_formats::codex::{self, Record, context_path, surviving};

use crate::formats::prelude::*;
use calls::{CallRecord, RolloutCalls};

pub(super) const FORMAT: Format = Format {
    title: "Codex",
    name: "codex",
    untold: "system prompts and tools of older versions, what a web search found, and how the \
             provider's own compaction reads",
    sniff,
    read: |input, sink| lines::session(input, Vec::new(), sink, read),
    parts: no_parts,
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
    "tool_search_call",
    "tool_search_output",
    "agent_message",
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

fn read(lines: Vec<RecordedLine>, _file: &str, out: Recording) -> Recording {
    let mut reader = RolloutReader { out, ..RolloutReader::default() };
    for line in lines {
        reader.line(line);
    }
    reader.end_call();
    let kept: HashSet<usize> = surviving(&reader.records).into_iter().collect();
    for (i, step) in reader.out.steps.iter_mut().enumerate().filter(|(i, _)| !kept.contains(i)) {
        let is_rollback = matches!(reader.records[i], Record::RolledBack { .. });
        step.view = if is_rollback { step.view } else { View::Calls };
    }
    reader.out
}

#[derive(Default)]
struct RolloutReader {
    out: Recording,
    /// What each step is to a rollback.
    records: Vec<Record<()>>,
    model: Option<String>,
    effort: Option<String>,
    /// Service tier of the requests from here on; `None` = the standard one.
    tier: Option<Arc<str>>,
    /// Counted tokens of the last request and its reply.
    context: Option<u64>,
    totals: Option<Map<String, Value>>,
    /// First thread of the history, as far as the file tells.
    thread: Option<String>,
    /// Whether that thread may be a fork of another one.
    is_fork: bool,
    /// Number of the first line of a subagent's own history, from 0.
    own_from: u64,
    /// Id of the file's own thread if it is a subagent's.
    subagent: Option<String>,
    system: bool,
    /// Name of the newest step, the parent of the next one.
    tip: Option<String>,
    /// Texts of the user since the last reply. If only an event contained the text so far, with its
    /// step.
    said: Vec<(String, Option<usize>)>,
    calls: RolloutCalls,
    /// The newest compaction, until the next totals, with the provider's id of the request for it.
    compaction: Option<(Option<String>, usize)>,
    /// Whether the turn has neither a message of the user nor a reply so far, and its compaction.
    is_bare_turn: bool,
    alone: Option<usize>,
}

impl RolloutReader {
    fn line(&mut self, line: RecordedLine) {
        let RecordedLine { number, mut object } = line;
        let ordinal = object.get("ordinal").and_then(Value::as_u64).unwrap_or(number as u64 - 1);
        if ordinal < self.own_from {
            return;
        }
        let at = RecordingStep::new(number, string(&object, "timestamp"), StepKind::Link);
        let kind = string(&object, "type").unwrap_or_default();
        let is_summary = flag(object_in(&object, "metadata"), "compaction_output");
        let payload = match object.remove("payload") {
            Some(Value::Object(payload)) => payload,
            _ => object,
        };
        match kind.as_str() {
            "session_meta" | "" => self.meta(at, &payload),
            "turn_context" => self.turn(at, &payload),
            "event_msg" => self.event(at, &payload),
            "token_usage_record" => self.usage_record(at, &payload),
            "compacted" => self.compacted(at, &payload),
            // `compacted` follows, with its counters.
            "response_item" if is_summary => self.calls.end_reply(),
            "response_item" => self.item(at, &payload),
            bare if ITEMS.contains(&bare) => self.item(at, &payload),
            // Without content for the model.
            "world_state" | "state" | "retained_context" | "security_risk_score" => {}
            "inter_agent_communication" | "inter_agent_communication_metadata" => {}
            "realtime_item" => {}
            other => self.push(at, StepKind::Unknown(format!("line of the type {other:?}"))),
        }
    }

    fn push(&mut self, at: RecordingStep, what: StepKind) {
        self.record(RecordingStep { what, ..at }, Record::Item { item: (), user: false });
    }

    fn record(&mut self, step: RecordingStep, record: Record<()>) {
        self.out.steps.push(step);
        self.records.push(record);
    }

    fn chained(&mut self, at: RecordingStep, what: StepKind) {
        let name = Some(format!("step {}", self.out.steps.len()));
        let parent = std::mem::replace(&mut self.tip, name.clone());
        self.push(RecordingStep { name, parent, ..at }, what);
    }

    /// Adds a message of the user, which may begin a turn.
    fn turn_of_user(&mut self, at: RecordingStep, id: Option<String>, pieces: Vec<MessagePart>) {
        self.is_bare_turn = false;
        self.input(at, id, pieces);
        if let Some(Record::Item { user, .. }) = self.records.last_mut() {
            *user = true;
        }
    }

    /// Reads the first line: the system prompt or, in old rollouts, the user's instructions. Lines
    /// after it may be the first lines of the threads that the session was forked from.
    fn meta(&mut self, at: RecordingStep, payload: &Map<String, Value>) {
        if let Some(provider) = str_of(payload, "model_provider") {
            let is_own = provider == "openai";
            let route = if is_own { ProviderRoute::Direct } else { ProviderRoute::Gateway };
            self.out.route = route(format!("session_meta names the provider {provider}"));
        }
        self.out.version = string(payload, "cli_version").or(self.out.version.take());
        let id = string(payload, "id");
        let source = payload.get("source").and_then(Value::as_object);
        let is_subagent = source.is_some_and(|s| s.contains_key("subagent"));
        if self.thread.is_none() && (is_subagent || payload.contains_key("parent_thread_id")) {
            self.subagent.clone_from(&id);
        }
        let forked = string(payload, "forked_from_id").or(string(payload, "parent_thread_id"));
        self.is_fork = forked.is_some() || is_subagent;
        self.thread = forked.or(id).or(self.thread.take());
        if let Some(from) = payload.get("subagent_history_start_ordinal").and_then(Value::as_u64) {
            (self.own_from, self.thread, self.is_fork) = (from, string(payload, "id"), false);
        }
        let base = payload.get("base_instructions");
        let text = base.and_then(|b| b.as_str().or_else(|| b.get("text")?.as_str()));
        if let Some(text) = text.filter(|_| !self.system) {
            self.system = true;
            self.push(at, StepKind::System(text.to_string()));
        }
    }

    /// Reads the window, of which Codex reports 95 % as usable, rounded down (docs/sources/codex.md §1.2).
    /// Its limits are shares of the whole window. Releases before 0.63 report the whole one, of whole
    /// thousands.
    fn window(&mut self, told: &Map<String, Value>) {
        let Some(usable) = told.get("model_context_window").and_then(tokens) else { return };
        let minor = self.out.version.as_deref().and_then(|v| v.split('.').nth(1)?.parse().ok());
        let is_whole = usable.is_multiple_of(1_000) && minor.is_some_and(|n: u64| n < 63);
        let whole = u64::try_from((u128::from(usable) * 100).div_ceil(95)).unwrap_or(u64::MAX);
        self.out.context_window = Some(if is_whole { usable } else { whole });
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
        match str_of(payload, "type") {
            Some("token_count") => self.counted(at, payload),
            Some("thread_settings_applied") => {
                let settings = object_in(payload, "thread_settings");
                self.tier = messages::terms(settings, settings).tier;
            }
            Some("task_started") => {
                self.window(payload);
                (self.is_bare_turn, self.alone) = (true, None);
                self.record(at, Record::TurnStarted);
            }
            Some("task_complete") => {
                let alone = self.alone.take().filter(|_| std::mem::take(&mut self.is_bare_turn));
                if let Some(StepKind::Compaction(c)) = alone.map(|at| &mut self.out.steps[at].what)
                {
                    c.trigger = Some(Trigger::Manual);
                }
            }
            Some("user_message") => self.said_by_event(at, payload),
            Some("thread_rolled_back") => {
                let turns = payload.get("num_turns").and_then(tokens).unwrap_or(1).max(1);
                let turns = usize::try_from(turns).unwrap_or(usize::MAX);
                self.end_call();
                self.record(at, Record::RolledBack { turns });
                let kept = surviving(&self.records);
                self.tip = kept.iter().rev().find_map(|i| self.out.steps[*i].name.clone());
                self.said.clear();
            }
            _ => {}
        }
    }

    fn compacted(&mut self, at: RecordingStep, payload: &Map<String, Value>) {
        self.compaction = Some((string(payload, "compaction_response_id"), self.out.steps.len()));
        self.alone = Some(self.out.steps.len());
        let reply = self.calls.unreplied.take().map(|(_, reply)| Box::new(reply));
        let summary = string(payload, "message").filter(|m| !m.is_empty());
        let pre_tokens = self.context;
        let found =
            RecordingCompaction { pre_tokens, summary, reply, ..RecordingCompaction::default() };
        self.calls.end_reply();
        self.chained(at, StepKind::Compaction(found));
    }

    /// Adds a user message from an event, unless an item with the same text was read before.
    fn said_by_event(&mut self, at: RecordingStep, payload: &Map<String, Value>) {
        let text = str_of(payload, "message").unwrap_or_default().trim().to_string();
        if text.is_empty() || self.said.iter().any(|(known, _)| *known == text) {
            return;
        }
        let message = vec![MessagePart::text(&text)];
        self.end_call();
        self.said.push((text, Some(self.out.steps.len())));
        self.turn_of_user(at, None, message);
    }

    /// Adds counters of an event. Ignores counters with an unchanged total.
    fn counted(&mut self, at: RecordingStep, payload: &Map<String, Value>) {
        let Some(info) = object_of(payload, "info") else { return };
        self.window(info);
        let totals = object_of(info, "total_token_usage");
        if totals.is_some() && totals == self.totals.as_ref() {
            return;
        }
        let Some(last) = calls::newest(info, self.totals.as_ref()) else { return };
        let thread = self.thread.clone().filter(|_| !self.is_fork);
        let record = self.record_of(&last, payload, false);
        let Some(totals) = totals else { return self.count(at, record) };
        let name = calls::name(totals, [0; 2]);
        self.count(at.clone(), record.named(&name, None, thread.as_deref()));
        // A line that is lost may have told the first totals.
        let is_whole = self.out.broken.is_empty() || thread.is_none() || self.own_from > 0;
        let before = self.totals.replace(totals.clone()).or((!is_whole).then(Map::new));
        if let Some(record) = self.calls.uncounted(before.as_ref(), totals, self.tier.clone()) {
            let name = format!("{name} uncounted");
            self.uncounted(at, record.named(&name, None, thread.as_deref()));
        }
        self.compaction = None;
    }

    /// Reads counters, with the service tier that they or the settings before them name. `fast` is the
    /// program's name of OpenAI's `priority`.
    fn record_of(
        &self,
        usage: &Map<String, Value>,
        payload: &Map<String, Value>,
        is_record: bool,
    ) -> CallRecord {
        let own = messages::terms(usage, payload).tier;
        CallRecord::new(usage, own.or(self.tier.clone()), is_record)
    }

    /// Adds a call that only the totals count: that of the compaction before, or an unknown one.
    fn uncounted(&mut self, at: RecordingStep, record: CallRecord) {
        let mut reply = record.reply(format!("totals on line {}", at.line), self.model.clone());
        match self.newest_compaction(None).filter(|c| c.reply.is_none()) {
            Some(compaction) => compaction.reply = Some(Box::new(reply)),
            None => {
                let counted = reply.counters.as_ref().map(|c| (c.prompt(), c.output));
                let (input, output) = counted.unwrap_or_default();
                self.out.left_out.push(format!(
                    "line {}: the totals grew by {input} input and {output} output tokens beyond \
                     the counters of the calls; they are billed as a call without a reply",
                    at.line
                ));
                // A line that is lost may have had another call.
                reply.is_single = self.out.broken.is_empty();
                self.without_reply(at, reply);
            }
        }
    }

    /// Adds counters of a record, which names the provider's id of the reply.
    fn usage_record(&mut self, at: RecordingStep, payload: &Map<String, Value>) {
        let response = str_of(payload, "response_id");
        let thread = str_of(payload, "thread_id").or(self.thread.as_deref());
        let usage = object_of(payload, "usage").unwrap_or(payload);
        let record = self.record_of(usage, payload, true);
        let totals = self.totals.clone().unwrap_or_default();
        let name = calls::name(&totals, self.calls.since_totals(&record));
        let record = record.named(&name, response, thread);
        let reply = record.clone().reply(format!("line {}", at.line), self.model.clone());
        match self.newest_compaction(response).filter(|_| response.is_some()) {
            Some(compaction) => {
                compaction.reply.get_or_insert(Box::new(reply));
                self.calls.add_to_totals(&record);
            }
            None => self.count(at, record),
        }
    }

    /// Returns the newest compaction, if no totals came after it and it has this request. `None` =
    /// any request.
    fn newest_compaction(&mut self, response: Option<&str>) -> Option<&mut RecordingCompaction> {
        let (id, step) = self.compaction.as_ref()?;
        let is_of = response.is_none() || id.as_deref() == response;
        match &mut self.out.steps.get_mut(*step)?.what {
            StepKind::Compaction(compaction) if is_of => Some(compaction),
            _ => None,
        }
    }

    fn count(&mut self, at: RecordingStep, record: CallRecord) {
        let (context, model) = (record.context(), self.model.clone());
        if let Some((at, reply)) = self.calls.count(at, record, model, &mut self.out.steps) {
            self.without_reply(at, reply);
        }
        if self.calls.unreplied.is_none() {
            self.context = context.or(self.context);
        }
    }

    /// Adds a call whose counters stand without a reply.
    fn end_call(&mut self) {
        self.calls.end_reply();
        if let Some((at, reply)) = self.calls.unreplied.take() {
            self.without_reply(at, reply);
        }
    }

    /// Adds a call without a reply. In a subagent that repeats its parent's counters without the
    /// replies, it is the parent's.
    fn without_reply(&mut self, at: RecordingStep, reply: RecordingReply) {
        if self.subagent.is_some() && self.subagent != self.thread {
            return;
        }
        let (parent, view) = (self.tip.clone(), View::Calls);
        self.push(RecordingStep { parent, view, ..at }, StepKind::Reply(reply));
    }

    fn item(&mut self, at: RecordingStep, item: &Map<String, Value>) {
        let text = |key: &str| str_of(item, key).unwrap_or_default();
        match text("type") {
            "message" => self.message(at, item),
            "web_search_call" => {
                let action = object_of(item, "action");
                let query = action.and_then(|a| a.get("query").or(a.get("url"))?.as_str());
                let text = format!("[web search: {}]", query.unwrap_or_default());
                self.reply(at, vec![MessagePart::Shown(Part::Text(text.into()))]);
                self.calls.searches += u64::from(messages::is_search(item));
            }
            "function_call_output" | "custom_tool_call_output" => {
                let output = item.get("output");
                let success = output.and_then(|o| o.get("success")).and_then(Value::as_bool);
                let pieces = match output {
                    Some(Value::Object(o)) => content(o.get("content")),
                    other => content(other),
                };
                self.result(at, text("call_id"), pieces, success == Some(false));
            }
            "tool_search_output" => {
                let tools = item.get("tools").map(Value::to_string).unwrap_or_default();
                self.result(at, text("call_id"), vec![MessagePart::text(&tools)], false);
            }
            // A message of another agent. After an answer, it is a separate message.
            "agent_message" => {
                let pieces = content(item.get("content"));
                let is_call = |p: &MessagePart| matches!(p, MessagePart::Said(Part::Call(_)));
                let newest = self.out.steps.last().and_then(|step| step.what.any_reply());
                let is_answered = newest.is_some_and(|r| !r.pieces.iter().any(is_call));
                let pieces = if is_answered { pieces } else { added(pieces) };
                self.input(at, None, pieces);
            }
            "additional_tools" => {
                let tools = definitions(item.get("tools").filter(|t| **t != json!([])));
                tools.into_iter().for_each(|tools| self.push(at.clone(), tools));
            }
            "context_compaction" => self.calls.end_reply(),
            "ghost_snapshot" | "compaction_trigger" | "configuration_update" => {}
            kind => match codex::part(item) {
                // The encrypted part is sent again, not the readable text.
                Some(part @ Part::Reasoning { .. }) => {
                    self.reply(at, vec![MessagePart::Shown(part), MessagePart::Opaque]);
                }
                Some(Part::Compaction(_)) => self.reply(at, vec![MessagePart::Opaque]),
                Some(part) => self.reply(at, vec![MessagePart::Said(part)]),
                None if kind.ends_with("_output") => {
                    self.input(at, None, vec![MessagePart::Unknown(kind.to_string())]);
                }
                None => self.reply(at, vec![MessagePart::Unknown(kind.to_string())]),
            },
        }
    }

    fn result(&mut self, at: RecordingStep, id: &str, pieces: Vec<MessagePart>, is_error: bool) {
        self.calls.end_reply();
        self.chained(at, StepKind::result(id.into(), pieces, is_error));
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
        let pieces: Vec<MessagePart> = pieces.into_iter().map(placed).collect();
        let id = string(item, "id");
        let is_context = pieces.iter().any(|p| matches!(p, MessagePart::Added(..)));
        match role == "user" && !is_context {
            true => self.turn_of_user(at, id, pieces),
            false => self.input(at, id, pieces),
        }
    }

    /// Removes the event with the same text as a user message from an item.
    fn said_by_item(&mut self, pieces: &[MessagePart]) {
        let texts = pieces.iter().filter_map(|p| match p {
            MessagePart::Said(part) => part.as_text().map(|t| t.trim().to_string()),
            _ => None,
        });
        let texts: Vec<String> = texts.collect();
        let repeats = |said: &&mut (String, Option<usize>)| texts.contains(&said.0);
        if let Some(step) = self.said.iter_mut().find(repeats).and_then(|(_, step)| step.take()) {
            self.out.steps[step].what = StepKind::Link;
            self.records[step] = Record::Item { item: (), user: false };
        }
        self.said.extend(texts.into_iter().map(|text| (text, None)));
    }

    fn input(&mut self, at: RecordingStep, id: Option<String>, pieces: Vec<MessagePart>) {
        self.end_call();
        self.chained(at, StepKind::Input(Input { id, pieces }));
    }

    fn reply(&mut self, at: RecordingStep, pieces: Vec<MessagePart>) {
        self.said.clear();
        // The provider's own compaction is an item, too.
        self.is_bare_turn &= pieces.iter().all(|piece| matches!(piece, MessagePart::Opaque));
        if let Some((at, reply)) = self.calls.unreplied.take() {
            self.without_reply(at, reply);
        }
        let response = self.calls.part(self.out.steps.len());
        let reply = RecordingReply::new(response, pieces);
        let reply = RecordingReply { model: self.model.clone(), ..reply };
        self.chained(at, StepKind::Reply(reply));
    }
}

#[cfg(test)]
mod tests;
