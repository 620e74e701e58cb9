//! Chats of GitHub Copilot in VS Code (`User/workspaceStorage/HASH/chatSessions/ID.json`, since 2026
//! `ID.jsonl`, a journal of changes to the same object; also the output of "Chat: Export").
//!
//! Rules, where the format leaves a choice:
//! - A round of the agent (`toolCallRounds`) is a call. What the user saw (`response`) is read where
//!   there are no rounds.
//! - A summary replaces all up to its round. If that round is of an earlier message of the user, the
//!   compaction precedes the message in which it is recorded.
//! - `promptTokens` is the whole prompt of the last call of a message. Its cached part is not known,
//!   so it is no counter of a call, and says only how large system prompt and tools are.

mod journal;

use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "Copilot in VS Code",
    name: "copilot-vscode",
    untold: "all counters except those of compactions, dollars, system prompt and tools",
    sniff,
    read,
    parts: no_parts,
};

fn sniff(head: &Head) -> bool {
    head.value().as_object().is_some_and(is_chat) || head.objects().any(journal::is_change)
}

fn is_chat(o: &Map<String, Value>) -> bool {
    let names = ["requesterUsername", "responderUsername"];
    o.contains_key("requests") && names.iter().any(|name| o.contains_key(*name))
        || objects(o, "requests").any(|r| r.contains_key("requestId"))
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let mut reader = MessageReader::default();
    let head = source.head()?;
    let (turns, chat);
    if head.objects().any(journal::is_change) {
        (chat, turns) = journal::replayed(of_lines(source, &mut reader.out)?);
    } else {
        let document = Document::from_source(source)?;
        let members = document.members()?;
        turns = document.objects(members.raw("requests"), &mut reader.out);
        chat = json!({"sessionId": members.value("sessionId"), "customTitle": members.value("customTitle")});
    }
    let told = |key: &str| chat[key].as_str().map(str::to_string);
    (reader.out.id, reader.out.title) = (told("sessionId"), told("customTitle"));
    turns.iter().for_each(|line| turn(&mut reader, line));
    sink(Ok(reader.out))
}

/// Reads a message of the user and the calls that answer it.
fn turn(reader: &mut MessageReader, line: &RecordedLine) {
    let turn = &line.object;
    let result = object_in(turn, "result");
    let metadata = object_in(result, "metadata");
    let rounds: Vec<&Map<String, Value>> = objects(metadata, "toolCallRounds").collect();
    let summaries = objects(metadata, "summaries").chain(object_of(metadata, "summary"));
    let summaries: Vec<&Map<String, Value>> = summaries.collect();
    let names = [&reader.out.id, &string(turn, "requestId")].map(|n| n.clone().unwrap_or_default());
    let of_round = |id: Option<&str>| {
        let is_of_turn = |id| rounds.iter().any(|r| str_of(r, "id") == id);
        let all = summaries.iter().map(|s| (str_of(s, "toolCallRoundId"), s));
        let mine = all.filter(move |(of, _)| of.filter(|_| is_of_turn(*of)) == id);
        mine.map(|(_, s)| compaction(s, &names.join(" "))).collect::<Vec<_>>()
    };
    let sent_ms = turn.get("timestamp").and_then(Value::as_i64);
    let sent = sent_ms.and_then(time::of_millis);
    let took_ms = object_in(result, "timings").get("totalElapsed").and_then(Value::as_i64);
    let done = sent_ms.zip(took_ms).and_then(|(at, took)| time::of_millis(at.saturating_add(took)));
    for what in of_round(None) {
        reader.push(line.number, sent.clone(), what);
    }
    let rendered: Vec<&str> =
        objects(metadata, "renderedUserMessage").filter_map(|part| str_of(part, "text")).collect();
    let typed = str_of(object_in(turn, "message"), "text").unwrap_or_default();
    let asked = StepKind::question(None, sent_around(&rendered.join("\n"), typed));
    reader.push(line.number, sent, asked);
    let model = str_of(metadata, "resolvedModel").or(str_of(turn, "modelId"));
    let model = model.map(|name| name.trim_start_matches("copilot/"));
    for (n, round) in (1..).zip(&rounds) {
        let own = round.get("timestamp").and_then(Value::as_i64).and_then(time::of_millis);
        let stamp = own.or(done.clone().filter(|_| n == rounds.len()));
        let thinking = object_in(round, "thinking").get("text").map(texts);
        let message = json!({"role": "assistant", "content": round.get("response"), "model": model,
            "reasoning_content": thinking, "tool_calls": round.get("toolCalls"), "timestamp": stamp});
        reader.message(line.number, &message);
        let prompt = metadata.get("promptTokens").or(turn.get("promptTokens"));
        if let (true, Some(step)) = (n == rounds.len(), reader.out.steps.last_mut())
            && let StepKind::Reply(reply) = &mut step.what
        {
            reply.uncounted_prompt = prompt.and_then(tokens);
        }
        for call in objects(round, "toolCalls") {
            let id = str_of(call, "id").unwrap_or_default();
            let Some(result) = object_in(metadata, "toolCallResults").get(id) else { continue };
            let message =
                json!({"role": "tool", "tool_call_id": id, "content": texts(&result["content"])});
            reader.message(line.number, &message);
        }
        for what in of_round(Some(str_of(round, "id").unwrap_or_default())) {
            reader.push(line.number, stamp.clone(), what);
        }
    }
    let visible = visible_texts(turn);
    if rounds.is_empty() && !visible.is_empty() {
        let message =
            json!({"role": "assistant", "content": visible, "model": model, "timestamp": done});
        reader.message(line.number, &message);
    }
}

/// Returns the texts that the user saw, without tools and displays.
fn visible_texts(turn: &Map<String, Value>) -> Vec<Value> {
    let block = |part: &Map<String, Value>| {
        let text = str_of(part, "value")?;
        match str_of(part, "kind") {
            None => Some(json!({"type": "text", "text": text})),
            Some("thinking") => Some(json!({"type": "reasoning", "text": text})),
            Some(_) => None,
        }
    };
    objects(turn, "response").filter_map(block).collect()
}

/// Joins the texts within a value: a text, a list of parts, or a tree with texts at its leaves.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(texts).collect(),
        Value::Object(o) => ["value", "text", "node", "children"]
            .iter()
            .filter_map(|k| o.get(*k))
            .map(texts)
            .collect(),
        _ => String::new(),
    }
}

fn compaction(summary: &Map<String, Value>, turn: &str) -> StepKind {
    let name = format!("{turn} {}", str_of(summary, "toolCallRoundId").unwrap_or_default());
    let counters = object_of(summary, "usage").and_then(messages::counters);
    let reply = counters.map(|c| RecordingReply::of_counters(name, string(summary, "model"), c));
    StepKind::Compaction(RecordingCompaction {
        pre_tokens: summary.get("contextLengthBefore").and_then(tokens),
        summary: string(summary, "text"),
        reply: reply.map(Box::new),
        ..RecordingCompaction::default()
    })
}

#[cfg(test)]
mod tests;
