//! Claude Code transcripts (`~/.claude/projects/<folder>/<session>.jsonl`).
//!
//! Rules, where the format leaves a choice:
//! - Of branches, the one that the file ends with counts; see `chain.rs`.
//! - A response is spread over lines with one `message.id`. It becomes one reply at its first line,
//!   with its parts in line order; results that were written between them follow it.
//! - `usage` counts once per response. `output_tokens` of a line without `stop_reason` is a stub
//!   from the start of the stream: the o200k count of the reply's parts replaces it, marked
//!   `output_estimated`.
//! - Lines with `isSidechain` belong to a subagent: they become messages of that `agent`, or the
//!   session where the whole file is one. Subagents in separate files are imported too; see
//!   `companions.rs`.
//! - `isMeta` lines and the traces of local commands were sent to the model, though the user did
//!   not write them as a turn. They join the next user message, or the tool result before a reply.
//!   Those at the end of the file, which no request carried, are left out. Lines that are
//!   `isVisibleInTranscriptOnly` were not sent.
//! - `compact_boundary` and the `isCompactSummary` line after it become one recorded compaction.
//!   The request for its summary, from a separate file, and the user's command are part of it; see
//!   `compactions.rs`.
//! - A side question and the request for a summary continue the session in a file of their own,
//!   which repeats the lines before. A line counts where it is first; what such a file adds are
//!   calls, not a conversation of the session.
//! - A reply that the user interrupted while the model only thought is not sent again: its cost
//!   counts, its text is left out.
//! - API errors that the program wrote as a reply (`<synthetic>`) are not replies of the model and
//!   are left out.
//! - `prefix_tokens` is the first request's counted input less the o200k count of the messages in
//!   it.

mod chain;
mod compactions;
mod companions;
mod line;
mod route;
mod sidechains;

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use crate::formats::prelude::*;
use line::{Line, Message, TranscriptLine};

pub(super) const FORMAT: Format = Format {
    title: "Claude Code",
    name: "claude-code",
    untold: "system prompt and tools, the requests for titles, and the output of a reply that was \
             cut off, of which only a stub is counted",
    sniff,
    read: |input, sink| lines::session(input, companions::subagent_files(input), sink, read),
    parts: companions::subagent_files,
};

fn sniff(head: &Head) -> bool {
    head.objects().any(|o| {
        let kind = str_of(o, "type").unwrap_or_default();
        (o.contains_key("sessionId") && (o.contains_key("parentUuid") || kind == "queue-operation"))
            || (kind == "file-history-snapshot" && o.contains_key("snapshot"))
            || (kind == "summary" && o.contains_key("leafUuid"))
    })
}

fn read(lines: Vec<Line>, file: &str, mut out: Recording) -> Recording {
    let conversations = sidechains::split(lines);
    out.of_subagent = conversations.of_subagent;
    let windows = conversations.windows();
    let mut left: HashSet<usize> = windows.iter().flat_map(|w| chain::left_out(w)).collect();
    lines::note_branches(left.len(), "line", file, &mut out);
    left.extend(windows.iter().flat_map(|w| chain::interrupted(w)));
    out.continues = chain::begins_within(&conversations.lines);
    out.left_out.extend(notes_on(&conversations.lines).map(|told| format!("{file}: {told}")));
    let requests = requests(&conversations.lines);
    let mut reader = TranscriptReader { out, requests, ..TranscriptReader::default() };
    for line in conversations.lines {
        let from = reader.out.steps.len();
        let (number, agent) = (line.number, line.object.agent_id.as_ref());
        let is_aside = agent.is_some_and(|agent| conversations.asides.contains(agent));
        reader.line(line);
        if left.contains(&number) || is_aside {
            reader.out.steps[from..].iter_mut().for_each(|s| s.view = View::Calls);
        }
    }
    let TranscriptReader { mut out, ids, .. } = reader;
    out.context_window = window_of(&out.steps);
    compactions::commands(&mut out.steps);
    let alone = compactions::summaries(&mut out.steps);
    out.left_out.extend(alone.map(|why| format!("{file}: {why}")));
    Recording { route: ids.route(), ..out }
}

/// Returns notes on subagents whose own files are missing, and on results that the program cleared.
fn notes_on(lines: &[Line]) -> impl Iterator<Item = String> {
    let is_told = |line: &&Line| {
        let line = &line.object;
        let by = line.tool_use_id.as_deref().unwrap_or_default();
        line.kind() == "progress" && by.starts_with("agent_msg_")
    };
    let is_missing = lines.iter().all(|line| line.object.agent_id.is_none());
    let told = lines.iter().filter(is_told).count();
    let told = (is_missing && told > 0).then(|| {
        format!("{told} × message of a subagent whose own file is missing; not in the bill")
    });
    let is_clearing = |line: &&Line| is_microcompact(&line.object);
    let cleared = lines.iter().filter(is_clearing).count();
    let cleared = (cleared > 0).then(|| {
        format!("{cleared} × the program cleared older results (microcompact); they are whole here")
    });
    told.into_iter().chain(cleared)
}

fn is_microcompact(line: &TranscriptLine) -> bool {
    line.subtype.as_deref() == Some("microcompact_boundary")
}

/// Returns the requests of replies that some lines name and others do not, by the message's id.
fn requests(lines: &[Line]) -> HashMap<String, String> {
    let all = lines
        .iter()
        .filter_map(|line| Some((line.object.message_id()?, line.object.request_id.as_deref())));
    let bare = all.clone().filter_map(|(id, request)| request.is_none().then_some(id));
    let bare: HashSet<&str> = bare.collect();
    let named = all.filter(|(id, _)| bare.contains(id));
    named.filter_map(|(id, request)| Some((id.to_string(), request?.to_string()))).collect()
}

/// Returns the window of a client that compacted by itself where only clients with 200,000 tokens do.
/// Newer models have a larger one, which not every client uses (docs/sources/claude-code.md §1.1).
fn window_of(steps: &[RecordingStep]) -> Option<u64> {
    let sizes = steps.iter().filter_map(|step| match &step.what {
        StepKind::Compaction(c) if c.trigger == Some(Trigger::Auto) => c.pre_tokens,
        _ => None,
    });
    sizes.max().filter(|size| (150_000..200_000).contains(size)).map(|_| 200_000)
}

#[derive(Default)]
struct TranscriptReader {
    out: Recording,
    /// Requests that lines name, by the message's id.
    requests: HashMap<String, String>,
    /// Replies without a named request by the message's id: the first prompt, and the newest turn
    /// with the name of its request.
    unnamed: HashMap<String, (u64, usize, String)>,
    /// Number of messages and results sent so far.
    turns: usize,
    ids: route::Ids,
    /// Replies whose inner requests were added.
    with_inside: HashSet<String>,
}

impl TranscriptReader {
    fn line(&mut self, line: Line) {
        let RecordedLine { number, object: mut line } = line;
        self.turns += usize::from(line.kind() == "user");
        let step = RecordingStep::new(number, line.timestamp.take(), StepKind::Link);
        let (name, parent, agent) =
            (line.uuid.clone(), line.parent_uuid.take(), line.agent_id.take());
        let step = RecordingStep { name, parent, agent, ..step };
        self.note_version(&step, line.version.take());
        self.out.drops_content |= is_microcompact(&line);
        let unknown = match line.kind() {
            "attachment" => unknown_attachment(&line),
            "assistant"
            | "user"
            | "system"
            | "progress"
            | "summary"
            | "queue-operation"
            | "file-history-snapshot"
            | "last-prompt" => None,
            other => Some(format!("line type {other:?}")),
        };
        if let Some(kind) = unknown {
            let agent = step.agent.clone();
            let unknown = RecordingStep::new(0, None, StepKind::Unknown(kind));
            self.out.steps.push(RecordingStep { agent, ..unknown });
        }
        let what = match line.kind() {
            "assistant" => self.assistant(&step, line),
            "user" => user(line),
            "attachment" => attachment(line),
            "system" => system(&line),
            _ => StepKind::Link,
        };
        self.out.steps.push(RecordingStep { what, ..step });
    }

    /// Adds the requests that the provider made inside a reply, at the first line of the reply.
    fn inside(&mut self, step: &RecordingStep, message: &Message, reply: &mut RecordingReply) {
        let usage = message.usage.as_object();
        let inside = messages::take_inside(usage, message.content.compaction.as_ref(), reply);
        let named = reply.response.clone().unwrap_or_default();
        if inside.is_empty() || !self.with_inside.insert(named) {
            return;
        }
        for (view, what) in inside {
            let unnamed = RecordingStep { name: None, parent: None, ..step.clone() };
            self.out.steps.push(RecordingStep { view, what, ..unnamed });
        }
    }

    fn note_version(&mut self, step: &RecordingStep, new: Option<String>) {
        if new.is_none() || new == self.out.version {
            return;
        }
        if let Some((old, new)) = self.out.version.as_ref().zip(new.as_ref()) {
            let text = format!("the client changed from {old} to {new}");
            let what = StepKind::Note { kind: NoteKind::Settings, text };
            let note = RecordingStep::new(step.line, None, what);
            self.out.steps.push(RecordingStep { agent: step.agent.clone(), ..note });
        }
        self.out.version = new;
    }

    fn assistant(&mut self, step: &RecordingStep, line: TranscriptLine) -> StepKind {
        let Some(mut message) = line.message else { return StepKind::Link };
        if line.is_api_error_message || message.model.as_deref() == Some("<synthetic>") {
            let text = "a request that failed or was cut short, without counters".into();
            return StepKind::Note { kind: NoteKind::Uncounted, text };
        }
        let id = message.id.as_deref().unwrap_or_default();
        let usage = message.usage.as_object();
        let counters = usage.map(|u| messages::counters(u).unwrap_or_default());
        let told = line.request_id.or(self.requests.get(id).cloned());
        let prompt = counters.as_ref().map_or(0, Counters::prompt);
        let request = told.clone().unwrap_or_else(|| self.of_relay(id, prompt));
        let response = match id.is_empty() {
            true => format!("line {} {}", step.line, line.uuid.as_deref().unwrap_or_default()),
            false => format!("{id} {request}"),
        };
        let pieces = std::mem::take(&mut message.content.pieces);
        let mut reply = RecordingReply {
            id: message.id.clone().or(line.uuid),
            model: message.model.clone(),
            ..RecordingReply::new(response, pieces)
        };
        if let Some(mut counters) = counters {
            self.ids.add(id, &request);
            // Told by versions before 1.0.
            counters.billing.told_usd = cost(Some(&line.cost_usd));
            let call = format!("claude-code {id} {}", reply.model.as_deref().unwrap_or_default());
            if !id.is_empty() {
                counters = counters.called(&*call);
                counters.billing.call_in = told.map(Into::into);
            }
            reply.counters = Ok(counters);
            reply.output_is_stub = message.stop_reason.is_none();
        }
        self.inside(step, &message, &mut reply);
        StepKind::Reply(reply)
    }

    /// Names the request of a reply of a relay that gives all replies the same id and names no
    /// requests: by its prompt, unless that is the first one with this id. Lines of one reply have the
    /// same prompt, or nothing was sent between them.
    fn of_relay(&mut self, id: &str, prompt: u64) -> String {
        let (first, turn, name) = self.unnamed.entry(id.to_string()).or_default();
        if std::mem::replace(turn, self.turns) != self.turns || *first == 0 {
            *first = if *first == 0 { prompt } else { *first };
            let is_first = prompt == *first || prompt == 0;
            *name = if is_first { String::new() } else { prompt.to_string() };
        }
        name.clone()
    }
}

fn system(line: &TranscriptLine) -> StepKind {
    match line.subtype.as_deref().unwrap_or_default() {
        "compact_boundary" => {
            let meta = &line.compact_metadata;
            StepKind::Compaction(RecordingCompaction {
                pre_tokens: tokens(&meta["preTokens"]),
                post_tokens: tokens(&meta["postTokens"]),
                trigger: Trigger::deserialize(&meta["trigger"]).ok(),
                ..RecordingCompaction::default()
            })
        }
        // Clearing of old results under any name, which changes earlier content.
        other if other.contains("compact") => StepKind::Note {
            kind: NoteKind::Edit,
            text: format!("the program cleared earlier content ({other})"),
        },
        _ => StepKind::Link,
    }
}

fn user(line: TranscriptLine) -> StepKind {
    let summary = line.is_compact_summary;
    let message = line.message.filter(|_| summary || !line.is_visible_in_transcript_only);
    let Some(message) = message else { return StepKind::Input(Input::default()) };
    let mut pieces = message.content.pieces;
    if summary {
        return StepKind::Summary(pieces);
    }
    let is_trace = |p: &MessagePart| match p {
        MessagePart::Said(part) => {
            matches!(part, Part::Text(text) if is_command_trace(text))
        }
        _ => true,
    };
    if line.is_meta || pieces.iter().all(is_trace) {
        pieces = added(pieces);
    }
    StepKind::Input(Input { id: line.uuid, pieces })
}

/// Returns whether a text is the trace of a command that the user ran outside the conversation.
fn is_command_trace(text: &str) -> bool {
    const TRACES: &[&str] = &[
        "<command-name>",
        "<command-message>",
        "<local-command-stdout>",
        "<local-command-stderr>",
        "<local-command-caveat>",
        "<bash-input>",
        "<bash-stdout>",
        "<bash-stderr>",
    ];
    TRACES.iter().any(|t| text.trim_start().starts_with(t))
}

/// Returns the kind of an attachment. A prompt that the user typed while the agent worked is stored
/// as an attachment; other attachments are reminders by the program.
fn attachment(line: TranscriptLine) -> StepKind {
    let is_queued = line.attachment["type"] == "queued_command";
    let pieces = content(line.attachment.get("prompt").filter(|_| is_queued));
    StepKind::Input(Input { id: line.uuid, pieces })
}

fn unknown_attachment(line: &TranscriptLine) -> Option<String> {
    let kind = str_of(line.attachment.as_object()?, "type").unwrap_or("without a type");
    (kind != "queued_command").then(|| format!("attachment {kind:?}"))
}

#[cfg(test)]
mod tests;
