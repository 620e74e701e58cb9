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

use ctxbench_core::content::Part;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::json::{Document, Members};
use super::lines::{RecordedLine, list_of, object_of, objects, str_of, string};
use super::messages::{self, content as any_content, definitions};
use super::recording::{
    ContextPlace, Counters, MessagePart, Recording, RecordingReply, RecordingStep, StepKind, known,
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
        out.id = ["trajectory_id", "session_id"].iter().find_map(|k| members.text(k));
    }
    if let Some(next) = members.text("continued_trajectory_ref") {
        out.left_out.push(format!("{}: the session continues in {next}", source.name()));
    }
    let beside = source.folder();
    let folder = beside.as_deref().and_then(Path::parent);
    let mut reader =
        AtifReader { steps: Vec::new(), agents: Vec::new(), told: HashSet::new(), folder };
    reader.trajectory(&document, &members, &mut out);
    out.last_line = reader.steps.last().map_or(1, |s| s.line);
    out.steps = reader.steps;
    let _ = sink(Ok(out));
    Ok(())
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
        let agent = members.value("agent");
        let subagents = members.list("subagent_trajectories").into_iter();
        let whole = Trajectory {
            model: agent.get("model_name").and_then(Value::as_str).map(str::to_string),
            subagents: subagents.map(|r| document.part(r)).collect(),
        };
        if let Some(tools) = definitions(agent.get("tool_definitions")) {
            self.push(document.line, &None, tools);
        }
        let steps = document.objects(members.raw("steps"), out);
        for (n, step) in steps.into_iter().enumerate() {
            self.step(n, step, &whole, out);
        }
    }

    fn push(&mut self, line: usize, stamp: &Option<String>, what: StepKind) {
        let agent = self.agents.last().cloned();
        self.steps.push(RecordingStep { agent, ..RecordingStep::new(line, stamp.clone(), what) });
    }

    fn step(&mut self, n: usize, line: RecordedLine, whole: &Trajectory<'_>, out: &mut Recording) {
        let RecordedLine { number: line, object: o } = line;
        let stamp = str_of(&o, "timestamp").and_then(time::normal);
        let said = content(o.get("message"));
        match str_of(&o, "source") {
            Some("system") => {
                let begun =
                    |s: &RecordingStep| matches!(s.what, StepKind::Input(_) | StepKind::Reply(_));
                let agent = self.agents.last();
                let begun = self.steps.iter().any(|s| s.agent.as_ref() == agent && begun(s));
                for piece in said {
                    let what = match piece {
                        MessagePart::Said(Part::Text(text)) if !begun => {
                            StepKind::System(text.to_string())
                        }
                        other => StepKind::input(vec![other.added(ContextPlace::Message)]),
                    };
                    self.push(line, &stamp, what);
                }
            }
            Some("user") => self.push(line, &stamp, StepKind::question(None, said)),
            Some("agent") => {
                let reply = reply(n, &o, said, whole, self.agents.len());
                self.push(line, &stamp, StepKind::Reply(reply));
            }
            other => {
                let what = format!("step of the source {:?}", other.unwrap_or_default());
                self.push(line, &stamp, StepKind::Unknown(what));
            }
        }
        let ids: Vec<&str> =
            objects(&o, "tool_calls").filter_map(|c| str_of(c, "tool_call_id")).collect();
        let results = object_of(&o, "observation").into_iter().flat_map(|o| list_of(o, "results"));
        for (n, result) in results.enumerate() {
            for reference in subagents_of(result) {
                self.subagent(reference, whole, out);
            }
            let pieces = content(result.get("content"));
            let named = result.get("source_call_id").and_then(Value::as_str);
            let what = match named.or(ids.get(n).copied()) {
                Some(call_id) => {
                    // The format has no such member. The exporter of ctxbench writes it to `extra`.
                    let is_error = result.pointer("/extra/is_error").is_some_and(|e| *e == true);
                    StepKind::result(call_id.to_string(), pieces, is_error)
                }
                None => {
                    let added = pieces.into_iter().map(|p| p.added(ContextPlace::Message));
                    StepKind::input(added.collect())
                }
            };
            self.push(line, &stamp, what);
        }
    }

    /// Returns the trajectory of a reference: inside the document, or in a companion file.
    fn subagent(&mut self, reference: &Value, whole: &Trajectory<'_>, out: &mut Recording) {
        let text = |key: &str| reference.get(key).and_then(Value::as_str);
        if self.agents.len() >= DEEPEST {
            return;
        }
        let id = |members: &Members<'_>| members.text("trajectory_id");
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

/// Returns the references of a result to trajectories of subagents.
fn subagents_of(result: &Value) -> &[Value] {
    result.as_object().map_or(&[], |r| list_of(r, "subagent_trajectory_ref"))
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
    let results = outline.steps.iter().filter_map(|s| s.observation.as_ref());
    let results = results.flat_map(|o| &o.results).flat_map(subagents_of);
    results.filter_map(|r| companion(r, folder)).collect()
}

/// Returns the companion file that a reference names.
fn companion(reference: &Value, folder: &Path) -> Option<PathBuf> {
    // A recording from elsewhere must not be able to show files of this machine.
    let plain = |p: &&str| Path::new(p).components().all(|c| matches!(c, Component::Normal(_)));
    let name = reference.get("trajectory_path").and_then(Value::as_str).filter(plain)?;
    Some(folder.join(name)).filter(|path| path.is_file())
}

fn reply(
    n: usize,
    o: &Map<String, Value>,
    said: Vec<MessagePart>,
    whole: &Trajectory<'_>,
    depth: usize,
) -> RecordingReply {
    let thought = str_of(o, "reasoning_content").filter(|t| !t.is_empty());
    let thought = thought.map(|t| MessagePart::reasoning(t, None));
    let calls = objects(o, "tool_calls").map(|call| {
        let text = |key: &str| str_of(call, key).unwrap_or_default();
        MessagePart::call(text("tool_call_id"), text("function_name"), call.get("arguments"))
    });
    let pieces = thought.into_iter().chain(said).chain(calls).collect();
    let calls = o.get("llm_call_count").and_then(Value::as_u64);
    let counters = match calls {
        Some(n) if n > 1 => Err(format!("counters of {n} requests together")),
        _ => known(counters(o)),
    };
    RecordingReply {
        model: string(o, "model_name").or(whole.model.clone()),
        counters,
        ..RecordingReply::new(format!("step {n} of {depth}"), pieces)
    }
}

fn counters(o: &Map<String, Value>) -> Option<Counters> {
    let metrics = object_of(o, "metrics")?;
    let mut flat = object_of(metrics, "extra").cloned().unwrap_or_default();
    flat.extend(metrics.clone());
    messages::counters(&flat)
}

/// Converts a text, or a list of texts, images and sounds.
fn content(value: Option<&Value>) -> Vec<MessagePart> {
    let Some(Value::Array(list)) = value else { return any_content(value) };
    let piece = |part: &Value| match part.get("source") {
        Some(source) => {
            let text = |key: &str| source.get(key).and_then(Value::as_str);
            let media_type = text("media_type").unwrap_or("image/*");
            let path = text("path").filter(|_| media_type.starts_with("image/"));
            vec![path.map_or(MessagePart::Opaque, |url| MessagePart::image_of(media_type, url))]
        }
        None => any_content(Some(part)),
    };
    list.iter().flat_map(piece).collect()
}

#[cfg(test)]
mod tests;
