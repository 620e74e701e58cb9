//! Sessions of Crush (`.crush/crush.db` in a project), with those of its subagents.
//!
//! Rules, where the format leaves a choice:
//! - A session has its cost, with that of its subagents, and the size of its last request only. The
//!   cost becomes a separate call, and no reply has counters.
//! - The reply marked as summary is a compaction. Older versions mark only the newest, in the session.

use super::blocks::{self, Block, Shape};
use super::database::{self, Database, Stored, has_tables, json_in};
use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "Crush",
    name: "crush",
    untold: "counters of each call (only the session's cost), system prompt and tools, and in older \
             versions compactions but for the newest",
    sniff: |head| {
        has_tables(head, &["sessions", "messages"]) && head.text.contains("summary_message_id")
    },
    read,
    parts: no_parts,
};

const SHAPE: Shape = Shape {
    kind: |block| Some((block["type"].as_str()?, &block["data"])),
    blocks: &[
        ("text", Block::Text(&["/text"])),
        ("reasoning", Block::Thought(&["/thinking"], &["/signature"])),
        ("tool_call", Block::Call(&["/id"], &["/name"], &["/input"])),
        ("tool_result", Block::Result(&["/tool_call_id"], &["/content"], &["/is_error"])),
        ("image_url", Block::Image(&["/url"], &[])),
        ("binary", Block::Image(&["/data"], &["/mimeType", "/MIMEType"])),
        ("shell_command", Block::Text(&["/command"])),
        ("shell_command", Block::Text(&["/output"])),
        ("finish", Block::Shown),
    ],
};

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let db = Database::open(source, FORMAT.title)?;
    let (ids, columns) = (["id", "parent_session_id"], "title, cost, summary_message_id");
    let mut sessions = db.sessions("sessions", ids, columns, "ORDER BY created_at, id")?;
    for session in &mut sessions {
        session.call = session.id.split_once("$$").map(|(_, call)| call.to_string());
    }
    let spent = |s: &Stored| s.row.get("cost").and_then(Value::as_f64).unwrap_or_default();
    let read = |session: &Stored| {
        let columns = "id, role, parts, model, created_at, is_summary_message";
        let rest = "WHERE session_id = ?1 ORDER BY created_at, rowid";
        let messages = db.rows("messages", columns, rest, Some(&session.id))?;
        let mut out = Recording { title: string(&session.row, "title"), ..Recording::default() };
        let newest = str_of(&session.row, "summary_message_id");
        out.steps = (1..).zip(&messages).map(|(n, m)| step(n, m, newest)).collect();
        let is_called = |s: &&Stored| s.call.is_some() && s.parent.as_ref() == Some(&session.id);
        let own = spent(session) - sessions.iter().filter(is_called).map(spent).sum::<f64>();
        if own > 1e-9 {
            let model =
                messages.iter().rev().find_map(|m| string(m, "model").filter(|m| !m.is_empty()));
            let paid = RecordingStep::of_cost(messages.len().max(1), model, own);
            out.steps.push(paid.called(&session.id));
        }
        Ok(out)
    };
    database::read_sessions(&sessions, &read, sink)
}

/// Returns the step of message `n`. `newest` is the id of the newest summary.
fn step(n: usize, m: &Map<String, Value>, newest: Option<&str>) -> RecordingStep {
    let at = m.get("created_at").and_then(Value::as_f64).and_then(time::of_epoch);
    let (id, model) = (string(m, "id"), string(m, "model").filter(|m| !m.is_empty()));
    let pieces = SHAPE.parts(&json_in(m, "parts"));
    let is_marked = m.get("is_summary_message").is_some_and(|marked| *marked == 1);
    let what = if is_marked || id.is_some() && id.as_deref() == newest {
        let summary = Some(text_of(&pieces)).filter(|text| !text.is_empty());
        let reply = RecordingReply { model, ..RecordingReply::new(id, vec![]) };
        let reply = Some(Box::new(reply));
        StepKind::Compaction(RecordingCompaction { summary, reply, ..Default::default() })
    } else {
        blocks::message(str_of(m, "role").unwrap_or_default(), n, id, model, pieces)
    };
    RecordingStep::new(n, at, what)
}
