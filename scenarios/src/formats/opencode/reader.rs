//! Conversion of a stored session to the steps of a recording.

use std::collections::HashSet;

use ctxbench_formats::opencode;

use super::super::counters;
use crate::formats::prelude::*;

/// Stored session: its properties, and its messages with their parts.
pub(super) struct StoredSession {
    pub(super) info: Map<String, Value>,
    pub(super) messages: Vec<MessageRow>,
}

pub(super) struct MessageRow {
    pub(super) line: usize,
    pub(super) info: Map<String, Value>,
    pub(super) parts: Vec<Map<String, Value>>,
}

pub(super) type Find<'a> = dyn FnMut(&str) -> Option<StoredSession> + 'a;

const DEEPEST: usize = 8;

/// Converts a session. Returns the ids of the subagents' sessions that it included.
pub(super) fn recording(
    stored: StoredSession,
    find: &mut Find<'_>,
    out: &mut Recording,
) -> HashSet<String> {
    out.title = string(&stored.info, "title");
    out.version = string(&stored.info, "version");
    out.of_subagent = parent_of(&stored.info).is_some();
    let mut reader = OpenCodeReader {
        find,
        out,
        agents: Vec::new(),
        told: HashSet::new(),
        pruned: 0,
        open: None,
        context: None,
        view: View::Both,
    };
    reader.session(stored);
    let OpenCodeReader { out, pruned, told, .. } = reader;
    if pruned > 0 {
        out.drops_content = true;
        out.left_out.push(format!(
            "{pruned} outputs were cleared by the program in later requests; they are whole here"
        ));
    }
    told
}

struct OpenCodeReader<'a, 'b> {
    find: &'a mut Find<'b>,
    out: &'a mut Recording,
    /// Subagents of the current messages, the innermost last.
    agents: Vec<String>,
    /// Ids of the subagents that were read. A session appears where it is first named.
    told: HashSet<String>,
    pruned: usize,
    /// A compaction of the current session without its summary so far.
    open: Option<(RecordingStep, RecordingCompaction)>,
    /// Tokens of its newest context.
    context: Option<u64>,
    view: View,
}

impl OpenCodeReader<'_, '_> {
    fn session(&mut self, stored: StoredSession) {
        let outer = (self.open.take(), self.context.take(), self.view);
        let revert = object_in(&stored.info, "revert");
        let [undone, part] = ["messageID", "partID"].map(|key| string(revert, key));
        for message in stored.messages {
            let is_undone = undone.is_some() && string(&message.info, "id") == undone;
            let part = part.as_deref().filter(|_| is_undone);
            self.view = if is_undone && part.is_none() { View::Calls } else { self.view };
            if str_of(&message.info, "role") == Some("user") {
                self.user(message);
            } else {
                self.assistant(message, part);
            }
            self.view = if is_undone { View::Calls } else { self.view };
        }
        if let Some((step, compaction)) = self.open.take() {
            self.push(step, StepKind::Compaction(compaction));
        }
        (self.open, self.context, self.view) = outer;
    }

    fn push(&mut self, step: RecordingStep, what: StepKind) {
        let (agent, view) = (self.agents.last().cloned(), self.view);
        self.out.steps.push(RecordingStep { agent, view, what, ..step });
    }

    fn user(&mut self, message: MessageRow) {
        let MessageRow { line, info, parts } = message;
        let step = RecordingStep::new(line, time_of(&info), StepKind::Link);
        if let Some(part) = parts.iter().find(|p| str_of(p, "type") == Some("compaction")) {
            let trigger = if flag(part, "auto") { Trigger::Auto } else { Trigger::Manual };
            let (pre_tokens, trigger) = (self.context, Some(trigger));
            let compaction = RecordingCompaction { pre_tokens, trigger, ..Default::default() };
            self.open = Some((step.clone(), compaction));
        }
        let pieces: Vec<MessagePart> = parts.iter().filter_map(piece_of).collect();
        if !pieces.is_empty() || self.open.is_none() {
            self.push(step, StepKind::question(string(&info, "id"), pieces));
        }
    }

    /// Adds the replies of a message. From the part `undone` on, the user took them back.
    fn assistant(&mut self, message: MessageRow, undone: Option<&str>) {
        let MessageRow { line, info, parts } = message;
        let is_summary = flag(&info, "summary") || str_of(&info, "mode") == Some("compaction");
        let has_failed = is_summary && info.contains_key("error");
        self.open.take_if(|_| has_failed);
        let mut asked = PendingReply::default();
        let (mut replies, mut is_undone) = (Vec::new(), false);
        for part in &parts {
            is_undone |= undone.is_some() && str_of(part, "id") == undone;
            if asked.pieces.is_empty() {
                asked.is_undone = is_undone;
            }
            match str_of(part, "type").unwrap_or_default() {
                "step-start" if !asked.pieces.is_empty() => {
                    replies.push(std::mem::take(&mut asked));
                }
                "step-finish" => {
                    asked.counted(part);
                    replies.push(std::mem::take(&mut asked));
                }
                // The rest of a step whose first parts stay.
                "step-start" => {}
                _ if is_undone != asked.is_undone => {}
                "tool" => asked.tool(part),
                _ => {
                    asked.is_sealed |= opencode::is_sealed(part);
                    asked.pieces.extend(piece_of(part));
                }
            }
        }
        if !asked.pieces.is_empty() {
            replies.push(asked);
        }
        if let [one] = replies.as_mut_slice()
            && one.counters.is_none()
        {
            one.counted(&info);
        }
        // Some providers price the message only.
        if let [PendingReply { counters: Some(counters), .. }] = replies.as_mut_slice() {
            let usd = &mut counters.billing.told_usd;
            *usd = usd.or(counters::cost(info.get("cost")));
        }
        for (n, asked) in replies.into_iter().enumerate() {
            let PendingReply { pieces, results, counters, is_undone, .. } = asked;
            self.view = if is_undone { View::Calls } else { self.view };
            let step = RecordingStep::new(line, time_of(&info), StepKind::Link);
            let id = string(&info, "id");
            let response = id.as_deref().map_or(format!("line {line}"), str::to_string);
            if let Some(c) = &counters {
                self.context = Some(c.context());
            }
            let counters = counters.filter(|c| c.prompt() > 0 || !c.wrong.is_empty());
            // A fork gives new ids to the messages that it repeats, and keeps their times.
            let times = object_of(&info, "time").filter(|t| t.contains_key("created"));
            let call = times.map(|times| format!("{} {n}", Value::from(times.clone())));
            let counters = counters.map(|c| c.called(call.as_deref()));
            let reply = RecordingReply {
                id: id.filter(|_| n == 0),
                model: string(&info, "modelID"),
                counters: counters.ok_or_else(|| {
                    let error = str_of(object_in(&info, "error"), "name").unwrap_or("no error");
                    format!("a request without counters ({error})")
                }),
                ..RecordingReply::new(format!("{response} {n}"), pieces)
            };
            if has_failed {
                // It is paid, and nothing is cut.
                let (agent, view) = (self.agents.last().cloned(), View::Calls);
                let what = StepKind::Reply(reply);
                self.out.steps.push(RecordingStep { agent, view, what, ..step });
                continue;
            }
            if is_summary {
                self.summary(step, reply);
                continue;
            }
            self.push(step.clone(), StepKind::Reply(reply));
            for (result, subagent, pruned, at) in results {
                self.pruned += usize::from(pruned);
                self.subagent(subagent);
                let stamp = at.or(step.stamp.clone());
                self.push(RecordingStep { stamp, ..step.clone() }, StepKind::input(vec![result]));
            }
        }
    }

    /// Adds the reply with a summary to its compaction.
    fn summary(&mut self, step: RecordingStep, reply: RecordingReply) {
        let (step, mut compaction) =
            self.open.take().unwrap_or_else(|| (step, RecordingCompaction::default()));
        compaction.summary = Some(text_of(&reply.pieces)).filter(|t| !t.is_empty());
        compaction.reply = Some(Box::new(reply));
        self.push(step, StepKind::Compaction(compaction));
    }

    /// Adds the window of a subagent before its result.
    fn subagent(&mut self, id: Option<String>) {
        let Some(id) = id.filter(|id| !self.told.contains(id)) else { return };
        if self.agents.len() < DEEPEST
            && let Some(stored) = (self.find)(&id)
        {
            self.told.insert(id.clone());
            self.agents.push(id);
            self.session(stored);
            self.agents.pop();
        }
    }
}

/// Reply that is being assembled from the parts of a step.
#[derive(Default)]
struct PendingReply {
    pieces: Vec<MessagePart>,
    /// Results of its calls: content, session of a subagent, whether it was cleared later, and
    /// time.
    results: Vec<(MessagePart, Option<String>, bool, Option<String>)>,
    counters: Option<Counters>,
    /// Whether only the provider can read its reasoning.
    is_sealed: bool,
    /// Whether the user took it back.
    is_undone: bool,
}

impl PendingReply {
    /// Takes the counters of a step or a message.
    fn counted(&mut self, o: &Map<String, Value>) {
        let Some(tokens) = object_of(o, "tokens") else { return };
        let mut counters = counters(tokens);
        counters.billing.told_usd = counters::cost(o.get("cost"));
        self.counters = Some(counters);
        let reasoning = tokens.get("reasoning").filter(|_| self.is_sealed);
        if let Some(reasoning) = reasoning.and_then(counters::tokens) {
            weigh_reasoning(self.pieces.iter_mut().collect(), reasoning);
        }
    }

    fn tool(&mut self, part: &Map<String, Value>) {
        let state = object_in(part, "state");
        let call_id = string(part, "callID").or(string(part, "id")).unwrap_or_default();
        let name = str_of(part, "tool").unwrap_or_default();
        self.pieces.push(MessagePart::call(&call_id, name, state.get("input")));
        let status = str_of(state, "status").unwrap_or_default();
        let text = match status {
            "completed" => str_of(state, "output"),
            "error" => str_of(state, "error"),
            // The call did not return.
            _ => return,
        };
        let mut pieces: Vec<MessagePart> = text.map(MessagePart::text).into_iter().collect();
        pieces.extend(objects(state, "attachments").filter_map(piece_of));
        let result = MessagePart::Result { call_id, pieces, is_error: status == "error" };
        let times = object_in(state, "time");
        let pruned = times.get("compacted").is_some_and(Value::is_number);
        let at = times.get("end").and_then(Value::as_f64).and_then(time::of_epoch);
        let of = object_in(state, "metadata");
        let session = string(of, "sessionId").or(string(of, "sessionID"));
        self.results.push((result, session, pruned, at));
    }
}

/// Returns the part that the model is shown; `None` for parts that are not sent.
fn piece_of(part: &Map<String, Value>) -> Option<MessagePart> {
    if flag(part, "ignored") {
        return None;
    }
    let kind = str_of(part, "mime").unwrap_or_default();
    match opencode::part(part) {
        Some(Part::Text(text)) if text.is_empty() => None,
        Some(Part::Reasoning { text, encrypted: None }) if text.is_empty() => None,
        // The content of a text file is in a synthetic part.
        Some(Part::Image(_)) if kind.starts_with("text/") || kind == "application/x-directory" => {
            None
        }
        Some(text @ Part::Text(_)) if flag(part, "synthetic") => {
            Some(MessagePart::Added(text, ContextPlace::Message))
        }
        Some(part) => Some(MessagePart::Said(part)),
        None => match str_of(part, "type").unwrap_or_default() {
            // The call contains a subagent's task as well. The other parts are about files and
            // steps.
            "compaction" | "step-start" | "step-finish" | "snapshot" | "patch" | "agent"
            | "retry" | "subtask" | "tool" | "file" => None,
            kind => Some(MessagePart::Unknown(kind.to_string())),
        },
    }
}

fn counters(tokens: &Map<String, Value>) -> Counters {
    let mut flat = tokens.clone();
    flat.extend(object_in(tokens, "cache").clone());
    let all = Counters::read(&flat, ["input", "read", "write", "output"]);
    all.and_output(tokens, "reasoning")
}

fn time_of(info: &Map<String, Value>) -> Option<String> {
    time::of_epoch(object_in(info, "time").get("created")?.as_f64()?)
}

pub(super) fn id_of(info: &Map<String, Value>) -> Option<String> {
    string(info, "id").filter(|id| !id.is_empty())
}

/// Returns the id of the session that called a subagent's session.
pub(super) fn parent_of(info: &Map<String, Value>) -> Option<&str> {
    ["parentID", "parent_id"].iter().find_map(|k| str_of(info, k)).filter(|p| !p.is_empty())
}
