//! Conversion of messages and items to the steps of a recording.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::at_provider::{self, within};
use super::{MessageApi, api_of, usage};
use crate::formats::prelude::*;

/// Items of the Responses API, other than messages, that are parts of a reply.
const CALLS: &[&str] = &[
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
];

fn is_item(kind: &str) -> bool {
    CALLS.contains(&kind)
        || at_provider::KINDS.contains(&kind)
        || kind.ends_with("_call_output")
        || matches!(kind, "reasoning" | "compaction")
}

/// Collects the steps of one conversation.
#[derive(Default)]
pub(in super::super) struct MessageReader {
    /// Model of replies without their own.
    pub(in super::super) model: Option<String>,
    /// Subagent of the current messages.
    pub(in super::super) agent: Option<String>,
    /// Counters of the current message, if they stand elsewhere.
    pub(in super::super) counters: Option<Counters>,
    /// Id that the parts of the current reply share, if the recording names it.
    pub(in super::super) response: Option<String>,
    /// The conversation so far.
    pub(in super::super) out: Recording,
    /// Dialect of the lists so far.
    pub(super) api: Option<MessageApi>,
    count: usize,
    /// Newest call of each name, for results without an id.
    calls: HashMap<String, String>,
    last_call: Option<String>,
}

impl MessageReader {
    pub(in super::super) fn push(&mut self, line: usize, stamp: Option<String>, what: StepKind) {
        let agent = self.agent.clone();
        self.out.steps.push(RecordingStep { agent, ..RecordingStep::new(line, stamp, what) });
    }

    pub(in super::super) fn add_text(&mut self, line: usize, text: &str) {
        self.push(line, None, StepKind::input(vec![MessagePart::text(text)]));
    }

    pub(super) fn items(&mut self, document: &Document<'_>, list: Option<&RawValue>) {
        for RecordedLine { number, object } in document.objects(list, &mut self.out) {
            self.api = self.api.max(api_of(&object));
            self.item(number, &object);
        }
    }

    /// Reads a message that another format was converted to.
    pub(in super::super) fn message(&mut self, line: usize, message: &Value) {
        message.as_object().into_iter().for_each(|m| self.item(line, m));
    }

    pub(in super::super) fn item(&mut self, line: usize, o: &Map<String, Value>) {
        self.count += 1;
        let kind = str_of(o, "type").unwrap_or_default();
        let what = match str_of(o, "role") {
            Some("system" | "developer") => {
                let Some(what) = self.standing(o) else { return };
                what
            }
            Some("user" | "human") => {
                StepKind::question(string(o, "id"), content(o.get("content")))
            }
            Some("assistant" | "ai" | "model") => self.reply(o),
            Some("tool") => self.result(o, str_of(o, "tool_call_id")),
            Some("function") => {
                self.result(o, str_of(o, "name").and_then(|n| Some(&**self.calls.get(n)?)))
            }
            // Notes of the program at the end of a run.
            Some("exit") => return,
            Some(role) => StepKind::Unknown(format!("message of the role {role:?}")),
            None if str_of(o, "object") == Some("response") => return self.response(line, o),
            None if kind.ends_with("_call_output") => self.result(o, str_of(o, "call_id")),
            None if is_item(kind) => self.part(o, kind, None),
            None => StepKind::Unknown(format!("item of the type {kind:?}")),
        };
        self.push_with_inside(line, o, what);
    }

    /// Adds a step, after the requests that the provider made inside it.
    fn push_with_inside(&mut self, line: usize, o: &Map<String, Value>, mut what: StepKind) {
        if let StepKind::Reply(reply) = &mut what {
            let (usage, summary) = (usage_of(o), usage::compaction_in(o.get("content")));
            for (view, what) in usage::take_inside(usage.map(|[u, _]| u), summary, reply) {
                let (agent, step) = (self.agent.clone(), RecordingStep::new(line, stamp(o), what));
                self.out.steps.push(RecordingStep { agent, view, ..step });
            }
        }
        self.push(line, stamp(o), what);
    }

    /// Returns a text before the conversation. After the first message, it joins a message instead.
    fn standing(&self, o: &Map<String, Value>) -> Option<StepKind> {
        let text = Some(text_of(&content(o.get("content")))).filter(|t| !t.is_empty())?;
        let own = self.out.steps.iter().filter(|s| s.agent == self.agent);
        let begun =
            own.into_iter().any(|s| matches!(s.what, StepKind::Input(_) | StepKind::Reply(_)));
        Some(if begun {
            let added = MessagePart::Added(Part::Text(text.into()), ContextPlace::System);
            StepKind::input(vec![added])
        } else {
            StepKind::System(text)
        })
    }

    fn result(&self, o: &Map<String, Value>, call: Option<&str>) -> StepKind {
        let output = ["content", "output"].iter().find_map(|k| o.get(*k).filter(|v| !v.is_null()));
        let mut pieces = content(output);
        if pieces.is_empty()
            && let Some(other @ (Value::Object(_) | Value::Number(_) | Value::Bool(_))) = output
        {
            // Some agents store the result of a tool unchanged.
            pieces.push(MessagePart::text(&other.to_string()));
        }
        let call_id = call.map(str::to_string).or(self.last_call.clone()).unwrap_or_default();
        let is_error = flag(o, "is_error") || str_of(o, "status") == Some("error");
        StepKind::result(call_id, pieces, is_error)
    }

    fn reply(&mut self, o: &Map<String, Value>) -> StepKind {
        let mut pieces = Vec::new();
        let thoughts = ["reasoning_content", "reasoning", "thinking"];
        let thought = thoughts.iter().find_map(|k| str_of(o, k).filter(|t| !t.is_empty()));
        let signed = content(o.get("thinking_blocks").filter(|b| b.is_array()));
        match thought {
            // The same text again, with the signature that is sent back.
            _ if !signed.is_empty() => pieces.extend(signed),
            Some(text) => pieces.push(MessagePart::reasoning(text, None)),
            None => {}
        }
        pieces.extend(content(o.get("content")));
        pieces.extend(str_of(o, "refusal").filter(|t| !t.is_empty()).map(MessagePart::text));
        pieces.extend(objects(o, "tool_calls").map(|c| self.call(c)));
        pieces.extend(object_of(o, "function_call").map(|c| self.call(c)));
        for piece in &pieces {
            if let MessagePart::Said(Part::Call(call)) = piece {
                self.remember(&call.name, &call.id);
            }
        }
        // A message of the Responses API is part of a reply, like the items around it.
        let item = str_of(o, "type") == Some("message") && !o.contains_key("usage");
        let unnamed = (!item).then(|| format!("message {}", self.count));
        let response = self.response.take().or(unnamed);
        self.reply_of(o, pieces, response)
    }

    fn call(&mut self, o: &Map<String, Value>) -> MessagePart {
        let function = object_of(o, "function").unwrap_or(o);
        let name = str_of(function, "name").unwrap_or_default();
        let written = ["arguments", "input", "args"].iter().find_map(|k| function.get(*k));
        let id = ["call_id", "id", "toolCallId"].iter().find_map(|key| string(o, key));
        let id = id.filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("call-{}", self.count));
        self.remember(name, &id);
        MessagePart::call(&id, name, written.or(o.get("custom")))
    }

    fn remember(&mut self, name: &str, id: &str) {
        self.calls.insert(name.to_string(), id.to_string());
        self.last_call = Some(id.to_string());
    }

    fn part(&mut self, o: &Map<String, Value>, kind: &str, response: Option<String>) -> StepKind {
        let pieces = match kind {
            "reasoning" => {
                let summary = text_of(&content(o.get("summary")));
                let full = text_of(&content(o.get("content")));
                let text = if full.is_empty() { summary } else { full };
                let encrypted = str_of(o, "encrypted_content");
                // The encrypted part is sent again, not the readable text.
                let shown =
                    Part::Reasoning { text: text.into(), encrypted: encrypted.map(Into::into) };
                vec![MessagePart::Shown(shown), MessagePart::Opaque]
            }
            "compaction" => return StepKind::Compaction(RecordingCompaction::default()),
            _ if CALLS.contains(&kind) => {
                let name = str_of(o, "name")
                    .map_or_else(|| kind.trim_end_matches("_call").to_string(), str::to_string);
                let mut call = o.clone();
                call.insert("name".into(), name.into());
                if let Some(action) = o.get("action").or_else(|| o.get("operation")) {
                    call.insert("arguments".into(), action.clone());
                }
                vec![self.call(&call)]
            }
            _ => {
                let unnamed = format!("call-{}-{}", self.count, self.out.steps.len());
                at_provider::pieces(kind, o, &unnamed)
            }
        };
        self.reply_of(o, pieces, response)
    }

    /// Adds a complete answer of the Responses API. Its items form one reply.
    fn response(&mut self, line: usize, o: &Map<String, Value>) {
        let name = Some(string(o, "id").unwrap_or_else(|| format!("message {}", self.count)));
        let before = self.out.steps.len();
        // Ids of items are not the id of the reply.
        for (n, item) in objects(o, "output").enumerate() {
            let mut item = item.clone();
            if item.contains_key("role") {
                item.remove("id");
            }
            if n == 0 {
                for key in ["usage", "model", "service_tier"] {
                    item.extend(o.get(key).map(|v| (key.to_string(), v.clone())));
                }
            }
            let kind = string(&item, "type").unwrap_or_default();
            let what = if kind == "message" || item.contains_key("role") {
                self.reply_of(&item, content(item.get("content")), name.clone())
            } else {
                self.part(&item, &kind, name.clone())
            };
            self.push_with_inside(line, &item, what);
        }
        let replies = self.out.steps[before..].iter_mut().filter_map(|s| match &mut s.what {
            StepKind::Reply(reply) => Some(reply),
            _ => None,
        });
        let mut replies: Vec<&mut RecordingReply> = replies.collect();
        let counted = replies.iter_mut().filter_map(|reply| reply.counters.as_mut().ok());
        counted.for_each(|c| c.billing.web_searches = usage::terms(o, o).web_searches);
        let reasoning = within(o, &["usage", "output_tokens_details", "reasoning_tokens"]);
        if let Some(tokens) = reasoning.and_then(tokens) {
            let pieces = replies.into_iter().flat_map(|reply| &mut reply.pieces);
            weigh_reasoning(pieces.collect(), tokens);
        }
    }

    fn reply_of(
        &self,
        o: &Map<String, Value>,
        pieces: Vec<MessagePart>,
        response: Option<String>,
    ) -> StepKind {
        let model = string(o, "model")
            .or_else(|| string(within(o, &["extra", "response"])?.as_object()?, "model"));
        let model = model.filter(|m| !m.is_empty()).or(self.model.clone());
        let mut counters = self.counters.clone().or_else(|| {
            let [usage, response] = usage_of(o)?;
            let billing = usage::terms(usage, response);
            Some(Counters { billing, ..usage::counters(usage)? })
        });
        if let Some(id) = str_of(o, "id").or(response.as_deref()).filter(|id| is_of_provider(id)) {
            let name = format!("{id} {}", model.as_deref().unwrap_or_default());
            counters = counters.map(|c| c.called(&*name));
        }
        StepKind::Reply(RecordingReply {
            id: string(o, "id").filter(|_| str_of(o, "role").is_some()),
            model,
            counters: known(counters),
            ..RecordingReply::new(response, pieces)
        })
    }
}

/// Returns whether an id is one that an API gave to a reply, and not a number in a file.
fn is_of_provider(id: &str) -> bool {
    ["msg_", "resp_", "chatcmpl-", "gen-"].iter().any(|begin| id.starts_with(begin))
}

/// Returns the counters of a message and the object around them, from one of the members that agents
/// use.
fn usage_of(o: &Map<String, Value>) -> Option<[&Map<String, Value>; 2]> {
    const PLACES: &[&[&str]] = &[
        &["usage"],
        &["extra", "response", "usage"],
        &["response_metadata", "token_usage"],
        &["metadata", "usage"],
    ];
    PLACES.iter().find_map(|path| {
        let around = within(o, &path[..path.len() - 1]).and_then(Value::as_object);
        Some([within(o, path)?.as_object()?, around.unwrap_or(o)])
    })
}

/// Returns whether an object is a message or an item of a conversation.
pub(super) fn is_message(object: &Map<String, Value>) -> bool {
    const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];
    let said = ["content", "tool_calls", "function_call", "refusal", "audio"];
    match str_of(object, "role") {
        Some(role) => ROLES.contains(&role) && said.iter().any(|k| object.contains_key(*k)),
        None => str_of(object, "type").is_some_and(|kind| {
            let of_item = object.contains_key("call_id")
                || object.contains_key("summary")
                || object.contains_key("encrypted_content")
                || object.contains_key("action");
            is_item(kind) && of_item
        }),
    }
}

/// Returns the time of a message: RFC 3339, or seconds or milliseconds since 1970.
pub(in super::super) fn stamp(o: &Map<String, Value>) -> Option<String> {
    let keys = ["timestamp", "created_at", "createdAt", "created", "date", "ts"];
    let own = |o: &'_ Map<String, Value>| {
        keys.iter().find_map(|k| o.get(*k).filter(|v| v.is_string() || v.is_number()).cloned())
    };
    let value = own(o).or_else(|| own(o.get("extra")?.as_object()?))?;
    match value.as_str() {
        Some(text) => time::normal(text),
        None => time::of_epoch(value.as_f64()?),
    }
}
