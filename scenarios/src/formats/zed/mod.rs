//! Threads of Zed's agent: its database (`threads/threads.db`), or one thread as JSON.
//!
//! Rules, where the format leaves a choice:
//! - The counters of a turn are those of its last call. The other calls and the compactions are known
//!   as a sum, which is billed in equal parts, one for each reply and compaction without counters.
//! - A thread that the result of a call names is the subagent of this call.

use super::blocks::{self, Block, Shape};
use super::database::{self, Database, Stored, has_tables};
use super::source::DATABASE;
use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "Zed",
    name: "zed",
    untold: "times of messages, system prompt and tools, dollars, and counters of all calls of a turn but \
             the last (only their sum)",
    sniff: |head| {
        let is_thread = |o: &Map<String, Value>| {
            o.contains_key("messages")
                && (o.contains_key("request_token_usage")
                    || o.contains_key("initial_project_snapshot"))
        };
        has_tables(head, &["threads"]) && head.text.contains("data_type")
            || head.value().as_object().is_some_and(is_thread)
    },
    read,
    parts: no_parts,
};

const SHAPE: Shape = Shape {
    kind: |block| block.as_object()?.iter().next().map(|(kind, value)| (&**kind, value)),
    blocks: &[
        ("Text", Block::Text(&["", "/text"])),
        ("Mention", Block::Text(&["/content"])),
        ("Image", Block::Image(&["/source"], &[])),
        ("Thinking", Block::Thought(&["/text"], &["/signature"])),
        ("RedactedThinking", Block::Thought(&[], &[""])),
        ("ToolUse", Block::Call(&["/id"], &["/name"], &["/raw_input", "/input"])),
    ],
};

/// Counters of a call: input, read, write, output.
const COUNTERS: [&str; 4] =
    ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    if !source.head()?.text.starts_with(DATABASE) {
        return sink(thread(&Document::from_source(source)?, None));
    }
    let db = Database::open(source, FORMAT.title)?;
    let (ids, columns) = (["id", "parent_id"], "created_at, updated_at");
    let mut sessions = db.sessions("threads", ids, columns, "")?;
    let began = |s: &Stored| string(&s.row, "created_at").or(string(&s.row, "updated_at"));
    sessions.sort_by_cached_key(|s| (began(s), s.id.clone()));
    let read = |session: &Stored| {
        let rows = db.rows("threads", "data", "WHERE id = ?1", Some(&session.id))?;
        let text = rows.first().and_then(|row| str_of(row, "data")).unwrap_or_default();
        thread(&Document::new(text, source.name()), string(&session.row, "created_at"))
    };
    database::read_sessions(&sessions, &read, sink)
}

/// Reads a thread that began at this time.
fn thread(document: &Document<'_>, began: Option<String>) -> Result<Recording, InputError> {
    let members = document.members()?;
    let snapshot = members.value("initial_project_snapshot");
    let mut reader = ThreadReader {
        out: Recording { title: members.text("title"), ..Recording::default() },
        began: began.or(snapshot["timestamp"].as_str().map(str::to_string)),
        model: members.value("model")["model"].as_str().map(str::to_string),
        usage: members.value("request_token_usage"),
        ..ThreadReader::default()
    };
    for (n, item) in (1..).zip(document.items(members.raw("messages"))) {
        reader.message(n, item.line, &item.value().unwrap_or_default());
    }
    reader.end_turn();
    reader.bill_rest(&members.value("cumulative_token_usage"));
    Ok(reader.out)
}

#[derive(Default)]
struct ThreadReader {
    out: Recording,
    began: Option<String>,
    model: Option<String>,
    /// Counters of the last call of each turn.
    usage: Value,
    /// Question of the current turn, and the step of its newest reply.
    turn: Option<String>,
    newest: Option<usize>,
    /// Sums of the counters so far, in the order of [`COUNTERS`].
    known: [u64; 4],
}

impl ThreadReader {
    fn push(&mut self, line: usize, what: StepKind) {
        // The time of the first step is known.
        self.out.steps.push(RecordingStep::new(line, self.began.take(), what));
    }

    /// Reads message `n`. Those that are no objects only continue the turn.
    fn message(&mut self, n: usize, line: usize, message: &Value) {
        let Some((kind, m)) = (SHAPE.kind)(message) else { return };
        match kind {
            "User" => {
                self.end_turn();
                self.turn = m["id"].as_str().map(str::to_string);
                let pieces = SHAPE.parts(&m["content"]);
                self.push(line, blocks::message("user", n, self.turn.clone(), None, pieces));
            }
            "Agent" => {
                self.newest = Some(self.out.steps.len());
                let pieces = SHAPE.parts(&m["content"]);
                let parts = pieces.clone();
                self.push(line, blocks::message("assistant", n, None, self.model.clone(), parts));
                for piece in pieces {
                    let MessagePart::Said(Part::Call(call)) = piece else { continue };
                    let Some(result) = m["tool_results"].get(&*call.id) else { continue };
                    let (shown, failed) = (SHAPE.parts(&result["content"]), &result["is_error"]);
                    self.push(line, StepKind::result(call.id.to_string(), shown, *failed == true));
                }
            }
            "Compaction" => {
                let summary = m["Summary"].as_str().map(str::to_string);
                let compaction = RecordingCompaction { summary, ..RecordingCompaction::default() };
                self.push(line, StepKind::Compaction(compaction));
            }
            kind => self.push(line, StepKind::Unknown(format!("message of the kind {kind:?}"))),
        }
    }

    /// Gives the last reply of a turn its counters. A compaction after it begins with this context.
    fn end_turn(&mut self) {
        let told = self.turn.as_ref().and_then(|id| self.usage.get(id)?.as_object());
        let Some((told, at)) = told.zip(self.newest.take()) else { return };
        let counters = Counters::read(told, COUNTERS).called(self.turn.as_deref());
        let Counters { input, read, write, output, .. } = counters;
        let counts = [input, read, write, output];
        self.known.iter_mut().zip(counts).for_each(|(sum, n)| *sum = sum.saturating_add(n));
        let context = Some(counters.context());
        for step in &mut self.out.steps[at..] {
            match &mut step.what {
                StepKind::Reply(reply) => reply.counters = Ok(counters.clone()),
                StepKind::Compaction(compaction) => compaction.pre_tokens = context,
                _ => {}
            }
        }
    }

    /// Adds what the sum of all calls has beyond the known ones.
    fn bill_rest(&mut self, all: &Value) {
        let is_uncounted = |step: &&RecordingStep| match &step.what {
            StepKind::Reply(reply) => reply.counters.is_err(),
            what => matches!(what, StepKind::Compaction(_)),
        };
        let parts = self.out.steps.iter().filter(is_uncounted).count() as u64;
        let mut rest = COUNTERS.map(|name| all.get(name).and_then(tokens).unwrap_or_default());
        rest.iter_mut().zip(self.known).for_each(|(n, known)| *n = n.saturating_sub(known));
        let line = self.out.steps.last().map_or(1, |step| step.line);
        for part in (0..parts).filter(|_| rest != [0; 4]) {
            let [input, read, write, output] =
                rest.map(|n| n / parts + u64::from(part < n % parts));
            let text = "only the sum of some calls is known".to_string();
            self.push(line, StepKind::Note { kind: NoteKind::Uncounted, text });
            let name = format!("{} part {part}", self.turn.as_deref().unwrap_or_default());
            let counters = Counters { input, read, write, output, ..Counters::default() };
            let reply = RecordingReply {
                model: self.model.clone(),
                counters: Ok(counters.called(&*name)),
                ..RecordingReply::new(name, vec![])
            };
            self.out.steps.push(RecordingStep::of_call(line, None, reply));
        }
    }
}
