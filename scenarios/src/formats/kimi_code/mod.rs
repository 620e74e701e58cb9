//! Kimi Code sessions (`~/.kimi-code/sessions/…/agents/NAME/wire.jsonl`, protocol 1.4), one per agent,
//! with the title in `state.json`.
//!
//! Rules, where the format leaves a choice:
//! - A step is a call, and the counters at its end are complete. `usage.record` repeats them, except
//!   those of a compaction.
//! - `turn.prompt` repeats the message of the user. The size before a compaction is the last counted
//!   context, because `tokensBefore` does not include the prefix.

use crate::formats::prelude::*;
use std::path::PathBuf;

pub(super) const FORMAT: Format = Format {
    title: "Kimi Code",
    name: "kimi-code",
    untold: "dollars, counters of requests that failed, and what was cleared or taken back",
    sniff: |head| head.objects().any(is_line),
    read: |input, sink| {
        lines::session(input, Vec::new(), &mut |one| sink(one.map(|out| named(input, out))), read)
    },
    parts: |input| state(input).into_iter().collect(),
};

fn is_line(o: &Map<String, Value>) -> bool {
    let is_metadata = o.contains_key("protocol_version") && o.contains_key("created_at");
    let kind = str_of(o, "type").unwrap_or_default();
    is_metadata || kind == "llm.tools_snapshot" || kind.starts_with("context.append_")
}

/// Returns the file with the title of the session.
fn state(input: &Source<'_>) -> Option<PathBuf> {
    input.companion(&input.folder()?.ancestors().nth(3)?.join("state.json"))
}

/// Adds title and id, which the folder of the session has.
fn named(input: &Source<'_>, mut out: Recording) -> Recording {
    let path = state(input);
    let state = input.json_in(path.as_ref());
    out.title = state["title"].as_str().map(str::to_string);
    let folder = input.folder();
    let name = |n: usize| folder.as_ref()?.ancestors().nth(n)?.file_name()?.to_str();
    out.id = name(3).zip(name(1)).map(|(session, agent)| match agent {
        "main" => session.to_string(),
        agent => format!("{session}-{agent}"),
    });
    out.beside.extend(path);
    out
}

fn read(lines: Vec<RecordedLine>, _file: &str, out: Recording) -> Recording {
    let mut reader = WireReader::new(out);
    for line in lines {
        let time = line.object.get("time").and_then(Value::as_i64).and_then(time::of_millis);
        reader.line(RecordingStep::new(line.number, time, StepKind::Link), &line.object);
    }
    reader.end_compaction(RecordingStep::default());
    reader.out
}

/// Reads the events of a session.
#[derive(Default)]
pub(super) struct WireReader {
    pub(super) out: Recording,
    model: Option<String>,
    /// Counted tokens of the last request and its reply.
    context: Option<u64>,
    trigger: Option<Trigger>,
    /// Reply to the request for the current compaction.
    summary: Option<Box<RecordingReply>>,
    /// First step of the current call.
    begin: usize,
    in_compaction: bool,
}

impl WireReader {
    pub(super) fn new(out: Recording) -> WireReader {
        WireReader { out, ..WireReader::default() }
    }

    pub(super) fn line(&mut self, at: RecordingStep, o: &Map<String, Value>) {
        let what = match str_of(o, "type").unwrap_or_default() {
            "config.update" => {
                self.model = string(o, "modelAlias").or(self.model.take());
                string(o, "systemPrompt").map(StepKind::System)
            }
            "llm.tools_snapshot" => definitions(o.get("tools")),
            "llm.request" => {
                self.in_compaction = str_of(o, "kind") == Some("compaction");
                None
            }
            "context.append_message" => self.message(object_in(o, "message")),
            "context.append_loop_event" => self.event(object_in(o, "event")),
            "usage.record" if std::mem::take(&mut self.in_compaction) => {
                let name = format!("compaction at {}", at.stamp.as_deref().unwrap_or_default());
                self.summary = object_of(o, "usage").map(|usage| {
                    let (model, counters) = (self.model.clone(), counters(usage, Some(&*name)));
                    Box::new(RecordingReply::of_counters(name, model, counters))
                });
                None
            }
            "full_compaction.begin" => {
                let by_user = str_of(o, "source") == Some("manual");
                self.trigger = Some(if by_user { Trigger::Manual } else { Trigger::Auto });
                None
            }
            "full_compaction.cancel" => return self.end_compaction(at),
            "context.apply_compaction" => Some(self.compaction(o)),
            "context.clear" => Some(StepKind::Cleared),
            _ => None,
        };
        self.out.steps.extend(what.map(|what| RecordingStep { what, ..at }));
    }

    fn message(&self, m: &Map<String, Value>) -> Option<StepKind> {
        let pieces = content(m.get("content"));
        match str_of(object_in(m, "origin"), "kind") {
            Some("compaction_summary") => None,
            Some("user") | None => Some(StepKind::question(None, pieces)),
            Some(_) => Some(StepKind::input(added(pieces))),
        }
    }

    fn event(&mut self, e: &Map<String, Value>) -> Option<StepKind> {
        let step = string(e, "stepUuid").or(string(e, "uuid")).unwrap_or_default();
        let pieces = match str_of(e, "type").unwrap_or_default() {
            "step.begin" => {
                self.begin = self.out.steps.len();
                return None;
            }
            "content.part" => {
                let part = object_in(e, "part");
                let think = str_of(part, "think").map(|text| MessagePart::reasoning(text, None));
                think.map_or_else(|| content(e.get("part")), |thought| vec![thought])
            }
            "tool.call" => {
                let text = |key| str_of(e, key).unwrap_or_default();
                vec![MessagePart::call(text("toolCallId"), text("name"), e.get("args"))]
            }
            "tool.result" => {
                let (result, id) = (object_in(e, "result"), string(e, "toolCallId"));
                let pieces = content(result.get("output"));
                return Some(StepKind::result(id?, pieces, flag(result, "isError")));
            }
            "step.end" => {
                let id = str_of(e, "messageId");
                let counters = object_of(e, "usage").map(|usage| counters(usage, id));
                return self.end_reply(self.reply(step.clone(), Vec::new()), counters);
            }
            _ => return None,
        };
        Some(StepKind::Reply(self.reply(step, pieces)))
    }

    /// Gives the parts of a reply its counters. Returns the reply if it has no parts.
    fn end_reply(&mut self, end: RecordingReply, counters: Option<Counters>) -> Option<StepKind> {
        self.context = counters.as_ref().map(Counters::context).or(self.context);
        let mut has_parts = false;
        for step in &mut self.out.steps[self.begin..] {
            if let StepKind::Reply(part) = &mut step.what
                && part.response == end.response
            {
                part.counters = known(counters.clone());
                has_parts = true;
            }
        }
        let end = RecordingReply { counters: known(counters), ..end };
        (!has_parts).then_some(StepKind::Reply(end))
    }

    fn reply(&self, response: String, pieces: Vec<MessagePart>) -> RecordingReply {
        RecordingReply { model: self.model.clone(), ..RecordingReply::new(response, pieces) }
    }

    /// Adds the request for a compaction that did not come.
    fn end_compaction(&mut self, at: RecordingStep) {
        let what = self.summary.take().map(|reply| StepKind::Reply(*reply));
        self.out.steps.extend(what.map(|what| RecordingStep { view: View::Calls, what, ..at }));
    }

    fn compaction(&mut self, o: &Map<String, Value>) -> StepKind {
        StepKind::Compaction(RecordingCompaction {
            pre_tokens: self.context.or(o.get("tokensBefore").and_then(tokens)),
            summary: string(o, "contextSummary").or(string(o, "summary")),
            trigger: self.trigger.take(),
            reply: self.summary.take(),
            ..RecordingCompaction::default()
        })
    }
}

/// Reads the counters of a call.
fn counters(usage: &Map<String, Value>, id: Option<&str>) -> Counters {
    let names = ["inputOther", "inputCacheRead", "inputCacheCreation", "output"];
    Counters::read(usage, names).called(id)
}
