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

use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path, PathBuf};

use ctxbench_core::block::Media;
use ctxbench_core::content::{Part, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::json::Document;
use super::lines::{RecordedLine, str_of, string};
use super::messages::{content as any_content, definitions};
use super::recording::{
    ContextPlace, Counters, Input, MessagePart, Recording, RecordingReply, RecordingStep, StepKind,
};
use super::{Format, Head, Sink, Source, time};
use crate::error::InputError;
use crate::escapes;

pub(super) const FORMAT: Format = Format {
    title: "ATIF",
    name: "atif",
    untold: "compactions but for the summary that a continuation begins with, encrypted reasoning, \
             whether a tool failed, and what the exporter of each agent left out",
    sniff,
    read,
    parts,
};

const EXPECTED: &str = "an ATIF trajectory: an object with \"schema_version\" and \"steps\"";

/// Maximum depth of references between trajectories.
const DEEPEST: usize = 8;

fn sniff(head: &Head) -> bool {
    let version = head.value().get("schema_version").and_then(Value::as_str);
    version.is_some_and(|v| v.starts_with("ATIF-v1"))
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let text = source.text()?;
    let document = Document::new(&text, source.name());
    let members = document.members(EXPECTED)?;
    let mut out = Recording::default();
    if source.stem() == "trajectory" {
        out.id = ["trajectory_id", "session_id"].iter().find_map(|k| text_of(&members, k));
    }
    if let Some(next) = text_of(&members, "continued_trajectory_ref") {
        out.left_out.push(format!("{}: the session continues in {next}", source.name()));
    }
    let beside = source.folder();
    let folder = beside.as_deref().and_then(Path::parent);
    let mut reader =
        AtifReader { steps: Vec::new(), agents: Vec::new(), told: HashSet::new(), folder };
    reader.trajectory(&document, &members, &mut out);
    out.last_line = reader.steps.last().map_or(1, |s| s.line);
    out.steps = reader.steps;
    let mut tips: BTreeMap<Option<String>, String> = BTreeMap::new();
    for (n, step) in out.steps.iter_mut().enumerate() {
        let name = format!("step {n}");
        step.parent = tips.insert(step.agent.clone(), name.clone());
        step.name = Some(name);
    }
    let _ = sink(Ok(out));
    Ok(())
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

fn value(members: &Members<'_>, key: &str) -> Value {
    members.get(key).and_then(|raw| escapes::from_str(raw.get()).ok()).unwrap_or_default()
}

fn text_of(members: &Members<'_>, key: &str) -> Option<String> {
    value(members, key).as_str().filter(|t| !t.trim().is_empty()).map(str::to_string)
}

struct AtifReader<'a> {
    steps: Vec<RecordingStep>,
    /// Subagents of the current steps, the innermost last.
    agents: Vec<String>,
    /// Ids of the subagents that were read. A trajectory appears where it is first named.
    told: HashSet<String>,
    /// Folder of the subagents' files.
    folder: Option<&'a Path>,
}

/// Properties that apply to all steps of a trajectory.
struct Trajectory<'a> {
    model: Option<String>,
    subagents: Vec<Document<'a>>,
}

impl AtifReader<'_> {
    fn trajectory(&mut self, document: &Document<'_>, members: &Members<'_>, out: &mut Recording) {
        let agent = value(members, "agent");
        let list = |key: &str| -> Vec<&RawValue> {
            members.get(key).and_then(|r| serde_json::from_str(r.get()).ok()).unwrap_or_default()
        };
        let whole = Trajectory {
            model: agent.get("model_name").and_then(Value::as_str).map(str::to_string),
            subagents: list("subagent_trajectories")
                .into_iter()
                .map(|r| document.part(r))
                .collect(),
        };
        if let Some(tools) = agent.get("tool_definitions").and_then(Value::as_array) {
            let tools = StepKind::Tools(definitions(tools));
            self.push(RecordingStep { line: document.line, ..RecordingStep::default() }, tools);
        }
        let steps = members.get("steps").map(|raw| document.objects(raw, out)).unwrap_or_default();
        for (n, step) in steps.into_iter().enumerate() {
            self.step(n, step, &whole, out);
        }
    }

    fn push(&mut self, step: RecordingStep, what: StepKind) {
        self.steps.push(RecordingStep { agent: self.agents.last().cloned(), what, ..step });
    }

    fn step(&mut self, n: usize, line: RecordedLine, whole: &Trajectory<'_>, out: &mut Recording) {
        let RecordedLine { number: line, object: o } = line;
        let stamp = str_of(&o, "timestamp").and_then(time::normal);
        let step = RecordingStep { line, stamp, ..RecordingStep::default() };
        let mut said = content(o.get("message"));
        match str_of(&o, "source") {
            Some("system") => {
                let begun =
                    |s: &RecordingStep| matches!(s.what, StepKind::Input(_) | StepKind::Reply(_));
                let agent = self.agents.last();
                let begun = self.steps.iter().any(|s| s.agent.as_ref() == agent && begun(s));
                for piece in said {
                    match piece {
                        MessagePart::Said(Part::Text(text)) if !begun => {
                            self.push(step.clone(), StepKind::System(text.to_string()));
                        }
                        other => self.input(step.clone(), vec![added(other)]),
                    }
                }
            }
            Some("user") => {
                if said.is_empty() {
                    // An empty message still counts as a message.
                    said.push(MessagePart::Shown(Part::Text("".into())));
                }
                self.input(step.clone(), said);
            }
            Some("agent") => {
                let reply = reply(n, &o, said, whole, self.agents.len());
                self.push(step.clone(), StepKind::Reply(reply));
            }
            other => {
                let what = format!("step of the source {:?}", other.unwrap_or_default());
                self.push(step.clone(), StepKind::Unknown(what));
            }
        }
        self.observed(step, &o, whole, out);
    }

    fn input(&mut self, step: RecordingStep, pieces: Vec<MessagePart>) {
        let blocks = pieces.len();
        self.push(step, StepKind::Input(Input { id: None, pieces, blocks }));
    }

    fn observed(
        &mut self,
        step: RecordingStep,
        o: &Map<String, Value>,
        whole: &Trajectory<'_>,
        out: &mut Recording,
    ) {
        let results = list(o.get("observation"), "results");
        let calls = o.get("tool_calls").and_then(Value::as_array);
        let ids: Vec<&str> =
            calls.into_iter().flatten().filter_map(|c| c.get("tool_call_id")?.as_str()).collect();
        for (n, result) in results.iter().enumerate() {
            for reference in list(Some(result), "subagent_trajectory_ref") {
                self.subagent(&reference, whole, out);
            }
            let pieces = content(result.get("content"));
            let named = result.get("source_call_id").and_then(Value::as_str);
            match named.or(ids.get(n).copied()) {
                Some(call_id) => {
                    let call_id = call_id.to_string();
                    // The format has no such member. The exporter of ctxbench writes it to `extra`.
                    let is_error = result.get("extra").and_then(|e| e.get("is_error"));
                    let is_error = is_error == Some(&Value::Bool(true));
                    let result = MessagePart::Result { call_id, pieces, is_error };
                    self.input(step.clone(), vec![result]);
                }
                None => self.input(step.clone(), pieces.into_iter().map(added).collect()),
            }
        }
    }

    /// Returns the trajectory of a reference: inside the document, or in a companion file.
    fn subagent(&mut self, reference: &Value, whole: &Trajectory<'_>, out: &mut Recording) {
        let text = |key: &str| reference.get(key).and_then(Value::as_str);
        if self.agents.len() >= DEEPEST {
            return;
        }
        let id = |members: &Members<'_>| text_of(members, "trajectory_id");
        for document in &whole.subagents {
            let Ok(members) = document.members(EXPECTED) else { continue };
            if let Some(id) = id(&members).filter(|id| Some(&**id) == text("trajectory_id")) {
                return self.enter(id, document, &members, out);
            }
        }
        let Some(path) = self.folder.and_then(|folder| companion(reference, folder)) else {
            return;
        };
        if out.beside.contains(&path) {
            return;
        }
        let source = Source::at(&path);
        let Ok(text) = source.text() else { return };
        let document = Document::new(&text, source.name());
        match document.members(EXPECTED) {
            Ok(members) => {
                out.beside.push(path.clone());
                let id = id(&members).unwrap_or_else(|| source.stem().to_string());
                self.enter(id, &document, &members, out);
            }
            Err(e) => out.warnings.push(format!("{e}; left out")),
        }
    }

    fn enter(
        &mut self,
        id: String,
        document: &Document<'_>,
        members: &Members<'_>,
        out: &mut Recording,
    ) {
        if !self.told.insert(id.clone()) {
            return;
        }
        self.agents.push(id);
        self.trajectory(document, members, out);
        self.agents.pop();
    }
}

fn list(object: Option<&Value>, key: &str) -> Vec<Value> {
    object.and_then(|o| o.get(key)?.as_array()).cloned().unwrap_or_default()
}

/// Returns the files that a trajectory refers to.
fn parts(source: &Source<'_>) -> Vec<PathBuf> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Outline {
        steps: Vec<OutlineStep>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct OutlineStep {
        observation: Option<Observation>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Observation {
        results: Vec<Value>,
    }
    let beside_it = source.folder();
    let Some(folder) = beside_it.as_deref().and_then(Path::parent) else { return Vec::new() };
    let Ok(text) = source.text() else { return Vec::new() };
    let outline: Outline = escapes::from_str(&text).unwrap_or_default();
    let results = outline.steps.into_iter().filter_map(|s| s.observation).flat_map(|o| o.results);
    let refs = results.flat_map(|r| list(Some(&r), "subagent_trajectory_ref"));
    refs.filter_map(|r| companion(&r, folder)).collect()
}

/// Returns the companion file that a reference names.
fn companion(reference: &Value, folder: &Path) -> Option<PathBuf> {
    // A recording from elsewhere must not be able to show files of this machine.
    let plain = |p: &&str| Path::new(p).components().all(|c| matches!(c, Component::Normal(_)));
    let name = reference.get("trajectory_path").and_then(Value::as_str).filter(plain)?;
    Some(folder.join(name)).filter(|path| path.is_file())
}

/// Marks a text that the program wrote.
fn added(piece: MessagePart) -> MessagePart {
    match piece {
        MessagePart::Said(part) => MessagePart::Added(part, ContextPlace::Message),
        other => other,
    }
}

fn reply(
    n: usize,
    o: &Map<String, Value>,
    said: Vec<MessagePart>,
    whole: &Trajectory<'_>,
    depth: usize,
) -> RecordingReply {
    let thought = str_of(o, "reasoning_content").filter(|t| !t.is_empty());
    let thought = thought.map(|t| Part::Reasoning { text: t.into(), encrypted: None });
    let mut pieces: Vec<MessagePart> =
        thought.map(MessagePart::Said).into_iter().chain(said).collect();
    for call in o.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default();
        let arguments = match call.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => "{}".to_string(),
        };
        let call = ToolCall::new(text("tool_call_id"), text("function_name"), arguments);
        pieces.push(MessagePart::Said(Part::Call(call)));
    }
    let calls = o.get("llm_call_count").and_then(Value::as_u64);
    let counters = match calls {
        Some(n) if n > 1 => Err(format!("counters of {n} requests together")),
        _ => counters(o).ok_or_else(|| "a reply without counters".to_string()),
    };
    RecordingReply {
        response: Some(format!("step {n} of {depth}")),
        model: string(o, "model_name").or(whole.model.clone()),
        blocks: pieces.len(),
        pieces,
        counters,
        ..RecordingReply::default()
    }
}

fn counters(o: &Map<String, Value>) -> Option<Counters> {
    let metrics = o.get("metrics")?.as_object()?;
    metrics.get("prompt_tokens").filter(|p| !p.is_null())?;
    let mut flat = metrics.clone();
    let extra = metrics.get("extra").and_then(Value::as_object);
    let names = ["cache_creation_input_tokens", "cache_write_tokens"];
    let written = names.into_iter().find_map(|n| Some((n, extra?.get(n)?)));
    let (written, value) = written.unwrap_or((names[0], &Value::Null));
    flat.insert(written.into(), value.clone());
    let names = ["prompt_tokens", "cached_tokens", written, "completion_tokens"];
    Some(Counters::read(&flat, names).of_whole_prompt())
}

/// Converts a text, or a list of texts, images and sounds.
fn content(value: Option<&Value>) -> Vec<MessagePart> {
    let Some(Value::Array(list)) = value else { return any_content(value) };
    let piece = |part: &Value| match part.get("source") {
        Some(source) => {
            let text = |key: &str| source.get(key).and_then(Value::as_str);
            let media_type = text("media_type").unwrap_or("image/*").to_string();
            match text("path").filter(|_| media_type.starts_with("image/")) {
                Some(url) => {
                    let image = Media { media_type, url: url.to_string(), name: None };
                    vec![MessagePart::Said(Part::Image(image))]
                }
                None => vec![MessagePart::Opaque],
            }
        }
        None => any_content(Some(part)),
    };
    list.iter().flat_map(piece).collect()
}

#[cfg(test)]
mod tests;
