//! pi sessions (`~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl`), and those of OpenClaw, which
//! embeds pi and since 2026.8 keeps the lines in a database.
//!
//! Rules, where the format leaves a choice:
//! - Newer files name lines and parents (`id`, `parentId`); lines that are not on the way from the
//!   first to the last message are left out. In older files each line follows the one before.
//! - `usage` is complete and the provider's. A reply that ended with `error` or `aborted` is not
//!   shown to later calls
//!   ([transform-messages.ts](https://github.com/badlogic/pi-mono/blob/main/packages/ai/src/providers/transform-messages.ts)):
//!   its cost counts, its text and results are left out.
//! - `compaction` becomes a recorded compaction. The file does not say who asked for it: one below the
//!   limit that another one of the file reached is the user's. Commands that the user ran outside the
//!   conversation (`bashExecution`) join the next user message. Changes of model and thinking level
//!   are visible in the replies.
//! - OpenClaw copies replies for its chat channels and adds notices, as messages of its own provider.
//!   They are no replies of a model.

use std::collections::HashSet;

use super::database::{self, Database, Stored, has_tables, json_in};
use super::source::DATABASE;
use crate::formats::prelude::*;
use ctxbench_core::model::find_recorded;
use ctxbench_formats::pi;

pub(super) const FORMAT: Format = Format {
    title: "pi",
    name: "pi",
    untold: "system prompt and tools, ids of requests, and additions of extensions to the context",
    sniff,
    read: |input, sink| lines::session(input, Vec::new(), sink, read),
    parts: no_parts,
};

pub(super) const OPENCLAW: Format = Format {
    title: "OpenClaw",
    name: "openclaw",
    untold: "system prompt and tools, ids of requests, and what was pruned from the context",
    sniff: |head| {
        has_tables(head, &["transcript_events"])
            || sniff(head) && head.objects().any(is_of_openclaw)
    },
    read: |input, sink| match input.head()?.text.starts_with(DATABASE) {
        true => read_database(input, sink),
        false => (FORMAT.read)(input, sink),
    },
    ..FORMAT
};

fn read_database(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let db = Database::open(source, OPENCLAW.title)?;
    // A session has a key, and by it a name and the key of its caller.
    let columns = "session_key, current_session_id, display_name, parent_session_key";
    let nodes = db.rows("session_nodes", columns, "", None).unwrap_or_default();
    let node = |key: &str, value: Option<&str>| {
        nodes.iter().find(|node| value.is_some() && str_of(node, key) == value)
    };
    let order = "GROUP BY session_id ORDER BY min(created_at), session_id";
    let stored = |row: Map<String, Value>| {
        let id = string(&row, "session_id").unwrap_or_default();
        let own = node("current_session_id", Some(&id)).cloned().unwrap_or_default();
        let caller = node("session_key", str_of(&own, "parent_session_key"));
        let parent = caller.and_then(|node| string(node, "current_session_id"));
        Stored { id, parent, call: None, row: own }
    };
    let rows = db.rows("transcript_events", "session_id", order, None)?;
    let sessions: Vec<Stored> = rows.into_iter().map(stored).collect();
    let read_one = |session: &Stored| {
        let rest = "WHERE session_id = ?1 ORDER BY seq";
        let rows = db.rows("transcript_events", "event_json", rest, Some(&session.id))?;
        let line = |(number, row): (usize, Map<String, Value>)| {
            let object = json_in(&row, "event_json").as_object()?.clone();
            Some(RecordedLine { number, object })
        };
        let lines = (1..).zip(rows).filter_map(line).collect();
        let title = string(&session.row, "display_name");
        Ok(Recording { title, ..read(lines, source.name(), Recording::default()) })
    };
    database::read_sessions(&sessions, &read_one, sink)
}

/// Returns whether a line is one that OpenClaw writes and pi does not.
fn is_of_openclaw(o: &Map<String, Value>) -> bool {
    let message = object_in(o, "message");
    str_of(o, "customType") == Some("model-snapshot")
        || str_of(message, "provider") == Some(OPENCLAW.name)
}

/// Number of the session format that pi writes now.
const NEWEST_FORMAT: u64 = 3;

fn sniff(head: &Head) -> bool {
    let is_head = |o: &Map<String, Value>| {
        str_of(o, "type") == Some("session") && o.contains_key("cwd") && o.contains_key("timestamp")
    };
    let is_message = |o: &Map<String, Value>| {
        str_of(o, "type") == Some("message") && str_of(object_in(o, "message"), "role").is_some()
    };
    // The first line may break off.
    head.objects().any(|o| is_head(o) || is_message(o))
}

fn read(lines: Vec<RecordedLine>, file: &str, mut out: Recording) -> Recording {
    let is_message = |l: &RecordedLine| str_of(&l.object, "type") == Some("message");
    let left = given_up(&lines, ["id", "parentId"], is_message, file, &mut out);
    let mut reader = PiReader { out, ..PiReader::default() };
    for (n, (line, left)) in lines.iter().zip(left).enumerate() {
        reader.line(n, line, if left { View::Calls } else { View::Both });
    }
    // Files name no version of the program. Those of older formats are of older versions.
    let header = lines.iter().find(|l| str_of(&l.object, "type") == Some("session"));
    let format = header.map(|l| l.object.get("version").and_then(Value::as_u64).unwrap_or(1));
    let version = format.filter(|n| *n < NEWEST_FORMAT);
    let version = version.map(|n| format!("with session format {n}"));
    manual_compactions(&mut reader.out.steps);
    Recording { version, ..reader.out }
}

/// Marks compactions after a whole answer below the limit by default as the user's, if another one above
/// it shows that this limit is set.
fn manual_compactions(steps: &mut [RecordingStep]) {
    /// Tokens of the window that are kept free, the default of `reserveTokens`.
    const RESERVE: u64 = 16_384;
    let (mut limit, mut is_answered, mut below, mut is_set) = (None, false, Vec::new(), false);
    for step in steps {
        match &mut step.what {
            StepKind::Reply(reply) => {
                let model = reply.model.as_deref().and_then(find_recorded);
                limit = model.map(|m| m.window.saturating_sub(RESERVE)).or(limit);
                let is_call = |p: &MessagePart| matches!(p, MessagePart::Said(Part::Call(_)));
                is_answered = step.view == View::Both && !reply.pieces.iter().any(is_call);
            }
            StepKind::Compaction(c) => match c.pre_tokens.zip(limit) {
                Some((tokens, limit)) if tokens > limit => is_set = true,
                Some(_) if is_answered => below.push(&mut c.trigger),
                _ => {}
            },
            _ => {}
        }
    }
    below.into_iter().filter(|_| is_set).for_each(|trigger| *trigger = Some(Trigger::Manual));
}

#[derive(Default)]
struct PiReader {
    out: Recording,
    /// Name of the newest line, the default parent of the next.
    tip: Option<String>,
    /// Current thinking level and its line, and the level of the last call.
    level: Option<String>,
    level_line: usize,
    level_of_call: Option<String>,
    /// Calls of replies that later requests do not show.
    unshown: HashSet<String>,
}

impl PiReader {
    /// Reads object `n` of the file.
    fn line(&mut self, n: usize, line: &RecordedLine, view: View) {
        let o = &line.object;
        let kind = str_of(o, "type").unwrap_or_default();
        let id =
            string(o, "id").filter(|_| kind != "session").unwrap_or_else(|| format!("entry {n}"));
        let parent = match o.get("parentId") {
            Some(parent) => parent.as_str().map(str::to_string),
            None => self.tip.clone(),
        };
        self.tip = Some(id.clone());
        let step = RecordingStep::new(line.number, string(o, "timestamp"), StepKind::Link);
        let step = RecordingStep { name: Some(id), parent, view, ..step };
        let what = match (kind, object_of(o, "message")) {
            ("session", _) => {
                self.level = string(o, "thinkingLevel");
                self.level_of_call.clone_from(&self.level);
                StepKind::Link
            }
            ("thinking_level_change", _) => {
                self.level = string(o, "thinkingLevel");
                self.level_line = line.number;
                StepKind::Link
            }
            ("compaction", _) => StepKind::Compaction(RecordingCompaction {
                pre_tokens: o.get("tokensBefore").and_then(tokens),
                summary: string(o, "summary"),
                ..RecordingCompaction::default()
            }),
            ("message", Some(m)) if str_of(m, "provider") == Some(OPENCLAW.name) => StepKind::Link,
            ("message", Some(m)) => return self.message(step, string(o, "id"), m),
            ("message", None) => return,
            _ => StepKind::Link,
        };
        self.out.steps.push(RecordingStep { what, ..step });
    }

    fn message(&mut self, step: RecordingStep, id: Option<String>, m: &Map<String, Value>) {
        let mut pieces = pieces(m);
        if let Some(reasoning) = object_in(m, "usage").get("reasoning").and_then(tokens) {
            // The signature of OpenAI's reasoning is the whole item. Others repeat the text.
            let is_item = |p: &&mut MessagePart| {
                matches!(p, MessagePart::Said(Part::Reasoning { encrypted: Some(e), .. })
                    if e.starts_with('{'))
            };
            weigh_reasoning(pieces.iter_mut().filter(is_item).collect(), reasoning);
        }
        let text = |key: &str| str_of(m, key).unwrap_or_default();
        let mut view = step.view;
        let what = match text("role") {
            "assistant" => {
                self.note_level();
                if matches!(text("stopReason"), "error" | "aborted") {
                    view = View::Calls;
                    self.unshown.extend(pieces.iter().filter_map(|p| match p {
                        MessagePart::Said(Part::Call(call)) => Some(call.id.to_string()),
                        _ => None,
                    }));
                }
                let counters = counters(m);
                let reply = RecordingReply {
                    id,
                    model: string(m, "model"),
                    counters: Ok(counters.clone()),
                    sent_ms: m.get("timestamp").and_then(Value::as_i64),
                    ..RecordingReply::new(step.name.clone(), pieces)
                };
                if counters.prompt() == 0 && counters.output > 0 {
                    // The session has the output. In the list of calls it has no counters.
                    if view == View::Both {
                        let (view, what) = (View::Session, StepKind::Reply(reply.clone()));
                        self.out.steps.push(RecordingStep { view, what, ..step.clone() });
                    }
                    view = View::Calls;
                }
                match counters.prompt() > 0 || !counters.wrong.is_empty() {
                    true => StepKind::Reply(reply),
                    false => uncounted(reply, text("stopReason")),
                }
            }
            "toolResult" => {
                let call_id = text("toolCallId").to_string();
                if self.unshown.contains(&call_id) {
                    view = View::Calls;
                }
                let is_error = flag(m, "isError");
                let pieces = vec![MessagePart::Result { call_id, pieces, is_error }];
                StepKind::Input(Input { id, pieces })
            }
            "bashExecution" => {
                let text = format!("$ {}\n{}", text("command"), text("output"));
                let shown = MessagePart::Added(Part::Text(text.into()), ContextPlace::Message);
                StepKind::Input(Input { id, pieces: vec![shown] })
            }
            role => {
                let mut pieces = pieces;
                if role != "user" {
                    view = View::Calls;
                } else if !pieces.iter().any(|p| matches!(p, MessagePart::Said(_))) {
                    // An empty message still counts as a message.
                    pieces.push(MessagePart::Shown(Part::Text("".into())));
                }
                StepKind::Input(Input { id, pieces })
            }
        };
        self.out.steps.push(RecordingStep { what, view, ..step });
    }

    fn note_level(&mut self) {
        if self.level != self.level_of_call {
            let level = self.level.as_deref().unwrap_or("none");
            let text = format!("the thinking level changed to {level}");
            let what = StepKind::Note { kind: NoteKind::Settings, text };
            self.out.steps.push(RecordingStep::new(self.level_line, None, what));
        }
        self.level_of_call.clone_from(&self.level);
    }
}

/// Reads the counters of a reply. The time of the request and the content name the call: copies of a
/// session can have other ids and times of their entries. The first format has no time of the request.
fn counters(m: &Map<String, Value>) -> Counters {
    let call = m.get("timestamp").map(|time| format!("{time} {:x}", hash_of(m.get("content"))));
    let names = ["input", "cacheRead", "cacheWrite", "output"];
    let usage = object_in(m, "usage");
    let mut counters = Counters::read(usage, names).called(call.as_deref());
    let long = usage.get("cacheWrite1h").or(object_in(usage, "cttl").get("ephemeral1h"));
    counters.write_1h = long.and_then(tokens);
    counters.billing.told_usd = cost(object_in(usage, "cost").get("total"));
    counters
}

/// Returns a reply without a prompt, or a note if it has no content either.
fn uncounted(reply: RecordingReply, why: &str) -> StepKind {
    let why = if why.is_empty() { "unknown" } else { why };
    let text = format!("a request without counters (it ended with: {why})");
    match reply.pieces.is_empty() {
        true => StepKind::Note { kind: NoteKind::Uncounted, text },
        false => StepKind::Reply(RecordingReply { counters: Err(text), ..reply }),
    }
}

/// Converts the content of a message, which is a string or a list of blocks.
fn pieces(m: &Map<String, Value>) -> Vec<MessagePart> {
    let part = |b: &Value| b.as_object().and_then(pi::part).map(MessagePart::Said);
    match m.get("content") {
        Some(Value::String(text)) => vec![MessagePart::text(text)],
        Some(Value::Array(list)) => {
            list.iter().map(|b| part(b).unwrap_or(MessagePart::Opaque)).collect()
        }
        _ => Vec::new(),
    }
}
