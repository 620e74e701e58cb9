//! ATIF trajectories, versions 1.0 to 1.8, as Harbor writes them (`agent/trajectory.json` in the
//! folder of a trial).
//!
//! Rules, where the format leaves a choice:
//! - A step of the agent is a reply with its counters; its observation follows. Results without a
//!   call id belong to the calls in order, and without calls join the next message.
//! - `prompt_tokens` contain the cached ones; written tokens are in `extra`, where the exporter
//!   knew them. Metrics of several calls of the model (`llm_call_count`) are not counters of one
//!   call, and a step without a call has none.
//! - Trajectories of subagents, inside the document or in companion files, are windows before their
//!   result.
//! - A file named `trajectory` gives its session the id inside it.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "ATIF",
    name: "atif",
    untold: "compactions but for the summary that a continuation begins with, encrypted reasoning, \
             whether a tool failed, and what the exporter of each agent left out",
    sniff,
    read,
    parts,
};

/// Maximum depth of references between trajectories.
const DEEPEST: usize = 8;

const VERSION: &str = "ATIF-v1";

fn sniff(head: &Head) -> bool {
    let version = head.value().get("schema_version").and_then(Value::as_str);
    version.is_some_and(|v| v.starts_with(VERSION))
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let document = Document::from_source(source)?;
    let members = document.members()?;
    let reader = MessageReader::default();
    let mut reader = AtifReader { reader, agents: Vec::new(), told: HashSet::new(), source };
    let out = &mut reader.reader.out;
    if source.stem() == "trajectory" {
        out.id = ["trajectory_id", "session_id"].iter().find_map(|k| members.text(k));
    }
    if let Some(next) = members.text("continued_trajectory_ref") {
        out.left_out.push(format!("{}: the session continues in {next}", source.name()));
    }
    reader.trajectory(&document, &members);
    sink(Ok(reader.reader.out))
}

struct AtifReader<'a> {
    reader: MessageReader,
    /// Subagents of the current steps, the innermost last.
    agents: Vec<String>,
    /// Ids of the subagents that were read. A trajectory appears where it is first named.
    told: HashSet<String>,
    /// File that the files of subagents lie next to.
    source: &'a Source<'a>,
}

impl AtifReader<'_> {
    fn trajectory(&mut self, document: &Document<'_>, members: &Members<'_>) {
        let agent = members.value("agent");
        let subagents = document.items(members.raw("subagent_trajectories"));
        let model = agent.get("model_name").and_then(Value::as_str).map(str::to_string);
        if let Some(tools) = definitions(agent.get("tool_definitions")) {
            self.reader.push(document.line, None, tools);
        }
        for step in document.objects(members.raw("steps"), &mut self.reader.out) {
            self.reader.model.clone_from(&model);
            self.step(step, &subagents);
        }
    }

    fn step(&mut self, line: RecordedLine, subagents: &[Document<'_>]) {
        let RecordedLine { number: line, object: o } = line;
        let role = match str_of(&o, "source") {
            Some("agent") => "assistant",
            Some(other @ ("system" | "user")) => other,
            other => {
                let what = format!("step of the source {:?}", other.unwrap_or_default());
                return self.reader.push(line, None, StepKind::Unknown(what));
            }
        };
        self.reader.item(line, &message(role, &o));
        let ids: Vec<&str> =
            objects(&o, "tool_calls").filter_map(|c| str_of(c, "tool_call_id")).collect();
        for (n, result) in list_of(object_in(&o, "observation"), "results").iter().enumerate() {
            for reference in subagents_of(result) {
                self.subagent(reference, subagents);
            }
            let named = result.get("source_call_id").and_then(Value::as_str);
            // The format has no such member. The exporter of ctxbench writes it to `extra`.
            let is_error = result.pointer("/extra/is_error").is_some_and(|e| *e == true);
            let time = o.get("timestamp");
            let content = blocks(result.get("content"));
            let message = match named.or(ids.get(n).copied()) {
                Some(id) => json!({"role": "tool", "tool_call_id": id, "content": content,
                    "is_error": is_error, "timestamp": time}),
                // The program tells it with the next message.
                None => json!({"role": "system", "content": content, "timestamp": time}),
            };
            message.as_object().into_iter().for_each(|message| self.reader.item(line, message));
        }
    }

    /// Returns the trajectory of a reference: inside the document, or in a companion file.
    fn subagent(&mut self, reference: &Value, subagents: &[Document<'_>]) {
        let text = |key: &str| reference.get(key).and_then(Value::as_str);
        if self.agents.len() >= DEEPEST {
            return;
        }
        let id = |members: &Members<'_>| members.text("trajectory_id");
        for document in subagents {
            let Ok(members) = document.members() else { continue };
            if let Some(id) = id(&members).filter(|id| Some(&**id) == text("trajectory_id")) {
                return self.enter(id, document, &members);
            }
        }
        let Some(path) = companion(reference, self.source) else {
            return;
        };
        if self.reader.out.beside.contains(&path) {
            return;
        }
        let Ok(source) = self.source.open_companion(&path) else { return };
        let Ok(document) = Document::from_source(&source) else { return };
        match document.members() {
            Ok(members) => {
                self.reader.out.beside.push(path.clone());
                let id = id(&members).unwrap_or_else(|| source.stem().to_string());
                self.enter(id, &document, &members);
            }
            Err(e) => self.reader.out.warnings.push(format!("{e}; left out")),
        }
    }

    fn enter(&mut self, id: String, document: &Document<'_>, members: &Members<'_>) {
        if !self.told.insert(id.clone()) {
            return;
        }
        self.agents.push(id);
        self.reader.agent = self.agents.last().cloned();
        self.trajectory(document, members);
        self.agents.pop();
        self.reader.agent = self.agents.last().cloned();
    }
}

fn subagents_of(result: &Value) -> &[Value] {
    result.as_object().map_or(&[], |r| list_of(r, "subagent_trajectory_ref"))
}

fn parts(source: &Source<'_>) -> Vec<PathBuf> {
    // Files of other formats are not read to their end, and those with many lines not at all.
    let is_atif = !unpacked(source.name()).ends_with(".jsonl")
        && source.head().is_ok_and(|head| head.text.contains(VERSION));
    let Some(Ok(text)) = is_atif.then(|| source.text()) else { return Vec::new() };
    let whole: Value = escapes::from_str(text).unwrap_or_default();
    let steps = whole["steps"].as_array().into_iter().flatten();
    let results = steps.filter_map(|s| s.pointer("/observation/results")?.as_array()).flatten();
    results.flat_map(subagents_of).filter_map(|r| companion(r, source)).collect()
}

fn companion(reference: &Value, source: &Source<'_>) -> Option<PathBuf> {
    // A recording from elsewhere must not be able to show files of this machine.
    let plain = |p: &&str| Path::new(p).components().all(|c| matches!(c, Component::Normal(_)));
    let name = reference.get("trajectory_path").and_then(Value::as_str).filter(plain)?;
    source.companion(&source.folder()?.parent()?.join(name))
}

fn message(role: &str, o: &Map<String, Value>) -> Map<String, Value> {
    let call = |call: &Map<String, Value>| {
        let function =
            json!({"name": call.get("function_name"), "arguments": call.get("arguments")});
        json!({"id": call.get("tool_call_id"), "function": function})
    };
    let calls: Vec<Value> = objects(o, "tool_calls").map(call).collect();
    let counted = o.get("llm_call_count").and_then(Value::as_u64).is_none_or(|calls| calls <= 1);
    let usage = object_of(o, "metrics").filter(|_| counted).map(|metrics| {
        let mut usage = object_in(metrics, "extra").clone();
        usage.extend(metrics.clone());
        usage
    });
    let mut out = o.clone();
    out.retain(|key, _| matches!(key.as_str(), "timestamp" | "reasoning_content"));
    let content = blocks(o.get("message"));
    let more = [
        ("role", role.into()),
        ("content", content),
        ("tool_calls", calls.into()),
        ("usage", json!(usage)),
        ("model", o.get("model_name").cloned().unwrap_or_default()),
    ];
    out.extend(more.map(|(key, value)| (key.to_string(), value)));
    out
}

/// Converts a text, or a list of texts, images and sounds, to blocks of an API.
fn blocks(value: Option<&Value>) -> Value {
    let Some(Value::Array(list)) = value else { return value.cloned().unwrap_or_default() };
    let block = |part: &Value| match part.get("source") {
        Some(source) => {
            let text = |key: &str| source.get(key).and_then(Value::as_str);
            let media_type = text("media_type").unwrap_or("image/*");
            match text("path").filter(|_| media_type.starts_with("image/")) {
                Some(path) => {
                    json!({"type": "image", "source": {"media_type": media_type, "url": path}})
                }
                None => json!({"type": "file"}),
            }
        }
        None => part.clone(),
    };
    list.iter().map(block).collect()
}
