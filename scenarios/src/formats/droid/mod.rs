//! Sessions of Factory's Droid (`~/.factory/sessions/FOLDER/ID.jsonl`), whose messages have
//! Anthropic's blocks, with the model in `ID.settings.json`.
//!
//! Rules, where the format leaves a choice:
//! - Lines that are not on the way from the first to the last message are left out.
//! - The settings count the tokens of the whole session. That is no counter of a call.
//! - Blocks of reminders at the beginning of a message were added by the program.

use crate::formats::prelude::*;
use std::path::PathBuf;

pub(super) const FORMAT: Format = Format {
    title: "Factory Droid",
    name: "droid",
    untold: "counters of a call (only sums), dollars, system prompt and tools",
    sniff: |head| head.objects().any(is_line),
    read,
    parts: |input| settings(input).into_iter().collect(),
};

fn is_line(o: &Map<String, Value>) -> bool {
    const KINDS: &[&str] =
        &["session_start", "compaction_state", "todo_state", "agent_turn_outcome"];
    str_of(o, "type").is_some_and(|kind| KINDS.contains(&kind))
        || object_in(o, "message").contains_key("modelId") && o.contains_key("parentId")
}

fn settings(input: &Source<'_>) -> Option<PathBuf> {
    input.companion(&input.folder()?.with_extension("settings.json"))
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let mut reader = MessageReader::default();
    let lines = of_lines(source, &mut reader.out)?;
    let beside = settings(source);
    let told = source.json_in(beside.as_ref());
    reader.model = told["model"].as_str().map(str::to_string);
    let is_message = |l: &RecordedLine| str_of(&l.object, "type") == Some("message");
    let left = given_up(&lines, ["id", "parentId"], is_message, source.name(), &mut reader.out);
    for (line, left) in lines.iter().zip(left) {
        let before = reader.out.steps.len();
        read_line(&mut reader, line);
        for step in reader.out.steps[before..].iter_mut().filter(|_| left) {
            step.view = View::Calls;
        }
    }
    reader.out.beside.extend(beside);
    sink(Ok(reader.out))
}

fn read_line(reader: &mut MessageReader, line: &RecordedLine) {
    let RecordedLine { number, object: o } = line;
    let stamp = messages::stamp(o);
    match str_of(o, "type").unwrap_or_default() {
        "session_start" => {
            reader.out.id = string(o, "id").or(reader.out.id.take());
            let title = string(o, "sessionTitle").or(string(o, "title"));
            reader.out.title = title.or(reader.out.title.take());
        }
        "message" if str_of(object_in(o, "message"), "role") == Some("user") => {
            let pieces = content(object_in(o, "message").get("content"));
            let pieces = pieces.into_iter().map(|piece| match &piece {
                MessagePart::Said(Part::Text(text)) if text.starts_with("<system-reminder>") => {
                    piece.added(ContextPlace::Message)
                }
                _ => piece,
            });
            let what = StepKind::question(string(o, "id"), pieces.collect());
            reader.push(*number, stamp, what);
        }
        "message" => {
            let mut message = object_in(o, "message").clone();
            let model = json!(message.get("modelId"));
            let own = [("model", model), ("id", json!(o.get("id"))), ("timestamp", json!(stamp))];
            message.extend(own.map(|(key, value)| (key.to_string(), value)));
            reader.item(*number, &message);
        }
        "compaction_state" => {
            let compaction = RecordingCompaction {
                summary: string(o, "summaryText"),
                ..RecordingCompaction::default()
            };
            reader.push(*number, stamp, StepKind::Compaction(compaction));
        }
        _ => {}
    }
}
