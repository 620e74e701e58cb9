//! Sessions of Kimi CLI, the predecessor of Kimi Code (`~/.kimi/sessions/HASH/ID/wire.jsonl`, protocol
//! 1.10). Its events are those of Kimi Code under other names.
//!
//! Rules, where the format leaves a choice:
//! - A compaction is a mark without content. Its summary is at the beginning of the next context:
//!   `context_2.jsonl` and following have those before later compactions, `context.jsonl` the last.
//! - Arguments of a call may continue in later events (`ToolCallPart`).

use super::kimi_code::WireReader;
use crate::formats::prelude::*;
use std::collections::HashMap;
use std::path::PathBuf;

pub(super) const FORMAT: Format = Format {
    title: "Kimi CLI",
    name: "kimi-cli",
    untold: "model, dollars, system prompt and tools, and the request for a compaction",
    sniff: |head| head.objects().any(is_line),
    read,
    parts: |input| {
        // A folder of many files is not listed for each of them.
        let folder = folder(input).filter(|f| input.companion(&f.join("context.jsonl")).is_some());
        let mut files = folder.map(|f| input.files_in(&f, false)).unwrap_or_default();
        files.retain(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("context"))
        });
        files
    },
};

fn is_line(o: &Map<String, Value>) -> bool {
    let message = object_in(o, "message");
    message.contains_key("type") && message.contains_key("payload")
        || o.contains_key("protocol_version") && !o.contains_key("created_at")
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let mut out = Recording::default();
    let lines: Vec<RecordedLine> = of_lines(source, &mut out)?;
    let name = folder(source).and_then(|f| Some(f.file_name()?.to_string_lossy().into_owned()));
    out.id = name.filter(|_| source.stem() == "wire");
    let mut reader = EventReader::new(source);
    for RecordedLine { number, object } in lines {
        let stamp = object.get("timestamp").and_then(Value::as_f64).and_then(time::of_epoch);
        let at = RecordingStep::new(number, stamp, StepKind::Link);
        reader.message(at, object.get("message").unwrap_or(&Value::Null));
    }
    let mut newest = reader.events.iter().rev();
    out.context_window = newest.find_map(|(_, event)| event["window"].as_u64());
    out.beside = reader.contexts.into_iter().take(reader.compactions).collect();
    let mut wire = WireReader::new(out);
    for (step, event) in &reader.events {
        event.as_object().into_iter().for_each(|event| wire.line(step.clone(), event));
    }
    sink(Ok(wire.out))
}

fn folder(source: &Source<'_>) -> Option<PathBuf> {
    Some(source.folder()?.parent()?.to_path_buf())
}

/// Returns the contexts after the first, second and following compactions, where they exist.
fn contexts(source: &Source<'_>) -> Vec<PathBuf> {
    let folder = folder(source);
    let named = |name: String| source.companion(&folder.as_ref()?.join(name));
    let earlier = (2..).map_while(|n| named(format!("context_{n}.jsonl")));
    earlier.chain(named("context.jsonl".to_string())).collect()
}

/// Converts events to those of Kimi Code.
struct EventReader<'a> {
    source: &'a Source<'a>,
    events: Vec<(RecordingStep, Value)>,
    contexts: Vec<PathBuf>,
    /// Number of compactions so far.
    compactions: usize,
    /// Number of steps of each agent so far.
    steps: HashMap<Option<String>, usize>,
}

impl<'a> EventReader<'a> {
    fn new(source: &'a Source<'a>) -> EventReader<'a> {
        let (contexts, events) = (contexts(source), Vec::new());
        EventReader { source, events, contexts, compactions: 0, steps: HashMap::new() }
    }

    fn message(&mut self, at: RecordingStep, message: &Value) {
        let p = &message["payload"];
        let kind = message["type"].as_str().unwrap_or_default();
        let mut event = match kind {
            "SubagentEvent" => {
                let ids = [&p["agent_id"], &p["parent_tool_call_id"]];
                let agent = ids.into_iter().find_map(Value::as_str).map(str::to_string);
                // A subagent has no subagents.
                if at.agent.is_none() && agent.is_some() {
                    self.message(RecordingStep { agent, ..at }, &p["event"]);
                }
                return;
            }
            "StepBegin" => {
                *self.steps.entry(at.agent.clone()).or_default() += 1;
                json!({"type": "step.begin"})
            }
            "ContentPart" => json!({"type": "content.part", "part": p}),
            "ToolCall" => json!({"type": "tool.call", "toolCallId": p["id"],
                "name": p["function"]["name"], "args": p["function"]["arguments"]}),
            "ToolCallPart" => return self.more_arguments(p["arguments_part"].as_str()),
            "ToolResult" => {
                let returned = &p["return_value"];
                let result = json!({"output": returned["output"], "isError": returned["is_error"]});
                json!({"type": "tool.result", "toolCallId": p["tool_call_id"], "result": result})
            }
            "StatusUpdate" if p["token_usage"].is_object() => {
                let u = &p["token_usage"];
                let usage = json!({"inputOther": u["input_other"], "output": u["output"],
                    "inputCacheRead": u["input_cache_read"],
                    "inputCacheCreation": u["input_cache_creation"]});
                json!({"type": "step.end", "messageId": p["message_id"], "usage": usage})
            }
            "TurnBegin" | "SteerInput" => {
                let message = json!({"content": p["user_input"]});
                return self
                    .push(at, json!({"type": "context.append_message", "message": message}));
            }
            "CompactionEnd" => {
                self.compactions += 1;
                let summary = self.summary();
                return self
                    .push(at, json!({"type": "context.apply_compaction", "summary": summary}));
            }
            _ => return,
        };
        let step =
            format!("{} {:?}", at.agent.as_deref().unwrap_or("main"), self.steps.get(&at.agent));
        event["stepUuid"] = step.into();
        let window = p["max_context_tokens"].clone();
        let line = json!({"type": "context.append_loop_event", "event": event, "window": window});
        self.push(at, line);
    }

    fn push(&mut self, at: RecordingStep, event: Value) {
        self.events.push((at, event));
    }

    /// Continues the arguments of the newest call.
    fn more_arguments(&mut self, text: Option<&str>) {
        let last = self.events.last_mut().map(|(_, line)| &mut line["event"]["args"]);
        if let Some(Value::String(arguments)) = last {
            arguments.push_str(text.unwrap_or_default());
        }
    }

    /// Returns the summary of the newest compaction, which the context after it begins with.
    fn summary(&self) -> Option<String> {
        let context = self.contexts.get(self.compactions - 1)?;
        let context = self.source.open_companion(context).ok()?;
        let lines = of_lines(&context, &mut Recording::default()).ok()?;
        let is_message =
            |l: &&RecordedLine| matches!(str_of(&l.object, "role"), Some("user" | "assistant"));
        let pieces = content(lines.iter().find(is_message)?.object.get("content"));
        let text = text_of(&pieces);
        let (mark, summary) = text.split_once("</system>")?;
        mark.contains("compacted").then(|| summary.trim().to_string())
    }
}
