//! Kimi Code sessions (`~/.kimi-code/sessions/…/agents/NAME/wire.jsonl`, protocol 1.4), one per agent,
//! with the title in `state.json`.
//!
//! Rules, where the format leaves a choice:
//! - A step is a call, and the counters at its end are complete. `usage.record` repeats them, except
//!   those of a compaction.
//! - `turn.prompt` repeats the message of the user. The size before a compaction is the last counted
//!   context, because `tokensBefore` does not include the prefix.
//! - An undo takes back the last messages of the user and what follows them.

use crate::formats::prelude::*;
use std::path::PathBuf;

pub(super) const FORMAT: Format = Format {
    title: "Kimi Code",
    name: "kimi-code",
    untold: "dollars, counters of requests that failed, and which old results were cleared",
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
    let text = path.as_ref().and_then(|path| input.open_companion(path).ok()?.text().ok());
    let state: Value = text.and_then(|text| escapes::from_str(&text).ok()).unwrap_or_default();
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
    let mut reader = WireReader { out, ..WireReader::default() };
    for line in lines {
        let time = line.object.get("time").and_then(Value::as_i64).and_then(time::of_millis);
        reader.line(RecordingStep::new(line.number, time, StepKind::Link), &line.object);
    }
    reader.out
}

#[derive(Default)]
struct WireReader {
    out: Recording,
    model: Option<String>,
    /// Counted tokens of the last request and its reply.
    context: Option<u64>,
    trigger: Option<Trigger>,
    /// Step of the request for the current compaction.
    summary: Option<usize>,
    /// First step of the current call.
    begin: usize,
    in_compaction: bool,
}

impl WireReader {
    fn line(&mut self, at: RecordingStep, o: &Map<String, Value>) {
        let note = |text: &str| StepKind::Note { kind: NoteKind::Edit, text: text.into() };
        let what = match str_of(o, "type").unwrap_or_default() {
            "config.update" => {
                self.model = string(o, "modelAlias").or(self.model.take());
                string(o, "systemPrompt").map(StepKind::System)
            }
            "llm.tools_snapshot" => definitions(o.get("tools")),
            "llm.request" => {
                self.model = string(o, "modelAlias").or(self.model.take());
                self.in_compaction = str_of(o, "kind") == Some("compaction");
                None
            }
            "context.append_message" => self.message(object_in(o, "message")),
            "context.append_loop_event" => self.event(object_in(o, "event")),
            "usage.record" if std::mem::take(&mut self.in_compaction) => {
                let name = format!("compaction at {}", at.stamp.as_deref().unwrap_or_default());
                let call = self.reply(name, Vec::new(), object_of(o, "usage"), None);
                self.summary = Some(self.out.steps.len());
                let what = StepKind::Reply(call);
                self.out.steps.push(RecordingStep { view: View::Calls, what, ..at });
                return;
            }
            "full_compaction.begin" => {
                let by_user = str_of(o, "source") == Some("manual");
                self.trigger = Some(if by_user { Trigger::Manual } else { Trigger::Auto });
                self.summary = None;
                None
            }
            "context.apply_compaction" => Some(self.compaction(o)),
            "context.clear" => Some(StepKind::Cleared),
            "context.undo" => {
                self.undo(o.get("count").and_then(Value::as_u64).unwrap_or(1));
                None
            }
            "micro_compaction.apply" => Some(note("old results were cleared")),
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
                let id = str_of(e, "messageId").or(Some(&step)).map(str::to_string);
                let reply = self.reply(step, Vec::new(), object_of(e, "usage"), id);
                return self.end(reply);
            }
            _ => return None,
        };
        Some(StepKind::Reply(self.reply(step, pieces, None, None)))
    }

    /// Gives the parts of a reply its counters. Returns the reply if it has no parts.
    fn end(&mut self, reply: RecordingReply) -> Option<StepKind> {
        if let Ok(counters) = &reply.counters {
            self.context = Some(counters.context());
        }
        let mut has_parts = false;
        for step in &mut self.out.steps[self.begin..] {
            if let StepKind::Reply(part) = &mut step.what
                && part.response == reply.response
            {
                part.counters.clone_from(&reply.counters);
                has_parts = true;
            }
        }
        (!has_parts).then_some(StepKind::Reply(reply))
    }

    /// Returns a part of a reply, or its end with the counters and the id of the call.
    fn reply(
        &self,
        response: String,
        pieces: Vec<MessagePart>,
        usage: Option<&Map<String, Value>>,
        id: Option<String>,
    ) -> RecordingReply {
        let names = ["inputOther", "inputCacheRead", "inputCacheCreation", "output"];
        let id = id.unwrap_or_else(|| response.clone());
        let counters = usage.map(|usage| Counters::read(usage, names).called(&*id));
        let model = self.model.clone();
        let reply = RecordingReply::new(response, pieces);
        RecordingReply { model, counters: known(counters), ..reply }
    }

    fn compaction(&mut self, o: &Map<String, Value>) -> StepKind {
        let request = self.summary.take().map(|n| std::mem::take(&mut self.out.steps[n].what));
        let reply = match request {
            Some(StepKind::Reply(reply)) => Some(Box::new(reply)),
            _ => None,
        };
        StepKind::Compaction(RecordingCompaction {
            pre_tokens: self.context.or(o.get("tokensBefore").and_then(tokens)),
            summary: string(o, "contextSummary").or(string(o, "summary")),
            trigger: self.trigger.take(),
            reply,
            ..RecordingCompaction::default()
        })
    }

    fn undo(&mut self, count: u64) {
        let is_said = |p: &MessagePart| matches!(p, MessagePart::Said(_) | MessagePart::Shown(_));
        let is_turn = |s: &RecordingStep| {
            s.view == View::Both
                && matches!(&s.what, StepKind::Input(i) if i.pieces.iter().any(is_said))
        };
        for _ in 0..count.min(self.out.steps.len() as u64) {
            let Some(from) = self.out.steps.iter().rposition(is_turn) else { return };
            self.out.steps[from..].iter_mut().for_each(|step| step.view = View::Calls);
        }
    }
}

#[cfg(test)]
mod tests;
