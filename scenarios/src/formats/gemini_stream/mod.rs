//! The output of `gemini --output-format stream-json`, of one prompt. The chat of the same session in
//! `~/.gemini` has more.
//!
//! Rules, where the format leaves a choice:
//! - Texts that follow each other are one. A reply ends with the results of its calls.
//! - The counters at the end are sums of all calls, so they are those of a reply only if there is one
//!   reply and one model. What the total counts in addition was thought.

use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "Gemini CLI stream-json",
    name: "gemini-stream",
    untold: "counters of a call (only sums), thoughts, results as the model saw them, system prompt and \
             tools, and compressions",
    sniff: |head| head.objects().any(is_line),
    read: |input, sink| lines::session(input, Vec::new(), sink, read),
    parts: no_parts,
};

fn is_line(o: &Map<String, Value>) -> bool {
    let has = |key: &str| o.contains_key(key);
    match str_of(o, "type").unwrap_or_default() {
        "init" => has("session_id") && has("model"),
        "message" => has("delta") && has("role"),
        "tool_use" => has("tool_name") && has("tool_id"),
        "result" => has("status") && has("stats"),
        _ => false,
    }
}

fn read(lines: Vec<RecordedLine>, _file: &str, out: Recording) -> Recording {
    let mut reader = MessageReader::default();
    reader.out = out;
    let (mut session, mut replies, mut is_answered) = (String::new(), 0, true);
    for RecordedLine { number, object: o } in joined(lines) {
        let told = |key: &str| o.get(key).cloned().unwrap_or_default();
        let kind = str_of(&o, "type").unwrap_or_default();
        let is_reply = kind == "tool_use" || str_of(&o, "role") == Some("assistant");
        replies += usize::from(is_reply && is_answered);
        is_answered = (is_answered || kind == "tool_result") && !is_reply;
        reader.response = is_reply.then(|| format!("reply {replies}"));
        let mut message = match kind {
            "init" => {
                reader.model = string(&o, "model");
                session = string(&o, "session_id").unwrap_or_default();
                continue;
            }
            "message" => json!({"role": told("role"), "content": told("content")}),
            "tool_use" => {
                let call = json!({"id": told("tool_id"), "name": told("tool_name"),
                    "arguments": told("parameters")});
                json!({"role": "assistant", "tool_calls": [call]})
            }
            "tool_result" => {
                let output = o.get("output").or(object_in(&o, "error").get("message"));
                json!({"role": "tool", "tool_call_id": told("tool_id"), "content": output,
                    "status": told("status")})
            }
            "result" if replies == 1 => {
                let call = format!("{session} {}", str_of(&o, "timestamp").unwrap_or_default());
                let counters = counters(object_in(&o, "stats")).map(|c| c.called(&*call));
                for step in &mut reader.out.steps {
                    if let StepKind::Reply(reply) = &mut step.what {
                        reply.counters = known(counters.clone());
                    }
                }
                continue;
            }
            _ => continue,
        };
        message["timestamp"] = told("timestamp");
        reader.message(number, &message);
    }
    reader.out
}

/// Joins texts of the model that follow each other.
fn joined(lines: Vec<RecordedLine>) -> Vec<RecordedLine> {
    let mut out: Vec<RecordedLine> = Vec::new();
    for line in lines {
        let is_more =
            |o: &Map<String, Value>| flag(o, "delta") && str_of(o, "role") == Some("assistant");
        match out.last_mut().filter(|last| is_more(&last.object) && is_more(&line.object)) {
            Some(last) => {
                let more = str_of(&line.object, "content").unwrap_or_default();
                match last.object.get_mut("content") {
                    Some(Value::String(text)) => text.push_str(more),
                    _ => drop(last.object.insert("content".into(), more.into())),
                }
            }
            None => out.push(line),
        }
    }
    out
}

/// Returns the counters of a process with one call, or `None` if several models were called.
fn counters(stats: &Map<String, Value>) -> Option<Counters> {
    let names = ["input_tokens", "cached", "write", "output_tokens"];
    let all = Counters::read(stats, names).of_whole_prompt();
    let total = stats.get("total_tokens").and_then(tokens).unwrap_or_default();
    let thought = total.saturating_sub(all.context());
    let output = all.output.saturating_add(thought);
    (object_in(stats, "models").len() == 1).then_some(Counters { output, ..all })
}
