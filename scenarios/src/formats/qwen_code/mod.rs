//! Qwen Code chats (`~/.qwen/projects/FOLDER/chats/ID.jsonl`): lines chained by their parents like
//! Claude Code's, with parts of Google's API. Subagents have files of their own (`subagents/ID/`).
//!
//! Rules, where the format leaves a choice:
//! - Lines that are not on the way from the first to the last line are left out; their calls count. A
//!   rewind continues at an earlier line. Of two lines with one id, the last is whole.
//! - Thoughts are not sent again.
//! - A compression is followed by the context after it (`compressedHistory`), which begins with the
//!   summary.
//! - `promptTokenCount` contains the tokens read from the cache. Thoughts are billed as output where
//!   the total counts them in addition to the candidates.
//! - Telemetry repeats the counters of each reply. A request that no reply has is that of the
//!   compression after it, or one that the chat does not show.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::gemini_cli::content;
use crate::formats::prelude::*;
use ctxbench_formats::gemini_cli;

pub(super) const FORMAT: Format = Format {
    title: "Qwen Code",
    name: "qwen-code",
    untold: "system prompt and tools, tokens written to the cache, dollars, and in older versions \
             summaries of compressions",
    sniff,
    read: |input, sink| lines::session(input, subagents(input), sink, read),
    parts: subagents,
};

fn sniff(head: &Head) -> bool {
    let is_line = |o: &Map<String, Value>| {
        o.contains_key("uuid") && object_in(o, "message").contains_key("parts")
    };
    head.objects().any(is_line)
}

/// Returns the files of the subagents of a chat.
fn subagents(input: &Source<'_>) -> Vec<PathBuf> {
    let chat = input.folder();
    let Some(project) = chat.as_deref().and_then(Path::parent).and_then(Path::parent) else {
        return Vec::new();
    };
    let mut files = input.files_in(&project.join("subagents").join(input.stem()), false);
    files.retain(|path| unpacked(&path.to_string_lossy()).ends_with(".jsonl"));
    files
}

fn read(lines: Vec<RecordedLine>, file: &str, mut out: Recording) -> Recording {
    let usages = lines.iter().filter_map(|l| object_of(&l.object, "usageMetadata"));
    let mut replies: Vec<Counters> = usages.map(|usage| counters(usage, REPLY)).collect();
    let ids = lines.iter().enumerate().filter_map(|(n, l)| Some((string(&l.object, "uuid")?, n)));
    let newest: HashMap<String, usize> = ids.collect();
    let mut agents: BTreeMap<Option<String>, Vec<RecordedLine>> = BTreeMap::new();
    for (n, line) in lines.into_iter().enumerate() {
        if str_of(&line.object, "uuid").is_none_or(|id| newest.get(id) == Some(&n)) {
            agents.entry(string(&line.object, "agentId")).or_default().push(line);
        }
    }
    let is_message = |l: &RecordedLine| l.object.contains_key("message");
    out.of_subagent = !agents.get(&None).is_some_and(|lines| lines.iter().any(is_message));
    for (agent, lines) in agents {
        let left = given_up(&lines, ["uuid", "parentUuid"], is_message, file, &mut out);
        conversation(agent, lines.into_iter().zip(left), &mut replies, &mut out);
    }
    out.steps.sort_by_key(|step| step.line);
    out
}

/// Reads the lines of an agent, each with whether it was given up. `replies` are the counters of
/// replies that no telemetry repeated so far.
fn conversation(
    agent: Option<String>,
    lines: impl Iterator<Item = (RecordedLine, bool)>,
    replies: &mut Vec<Counters>,
    out: &mut Recording,
) {
    let (mut context, mut request) = (None, None);
    for (line, left) in lines {
        let o = &line.object;
        let payload = object_in(o, "systemPayload");
        out.title = string(payload, "customTitle").or(out.title.take());
        out.context_window = o.get("contextWindowSize").and_then(tokens).or(out.context_window);
        let view = if left { View::Calls } else { View::Both };
        let mut step = RecordingStep::new(line.number, string(o, "timestamp"), StepKind::Link);
        (step.name, step.parent) = (string(o, "uuid"), string(o, "parentUuid"));
        step = RecordingStep { view, agent: agent.clone(), ..step };
        let told = told_request(payload, replies).map(|reply| {
            let call = RecordingStep::of_call(line.number, step.stamp.clone(), reply);
            RecordingStep { agent: agent.clone(), ..call }
        });
        let ended = match told {
            Some(told) => request.replace(told),
            None if str_of(o, "type") != Some("system") => request.take(),
            None => None,
        };
        out.steps.extend(ended);
        let what = step_kind(o, &mut context, &mut request);
        out.steps.push(RecordingStep { what, ..step });
    }
    out.steps.extend(request);
}

/// Returns the request of a telemetry event, unless it is that of one of these replies.
fn told_request(
    payload: &Map<String, Value>,
    replies: &mut Vec<Counters>,
) -> Option<RecordingReply> {
    let event = object_in(payload, "uiEvent");
    let id = string(event, "response_id").filter(|_| event.contains_key(EVENT[0]))?;
    let counters = counters(event, EVENT);
    if let Some(at) = replies.iter().position(|reply| *reply == counters) {
        replies.swap_remove(at);
        return None;
    }
    Some(RecordingReply::of_counters(id, string(event, "model"), counters))
}

/// `context` is the counted tokens of the last request and its reply, `request` the newest one without
/// a reply, which a compression takes.
fn step_kind(
    o: &Map<String, Value>,
    context: &mut Option<u64>,
    request: &mut Option<RecordingStep>,
) -> StepKind {
    let id = string(o, "uuid");
    let message = object_in(o, "message");
    match (str_of(o, "type").unwrap_or_default(), str_of(o, "subtype")) {
        ("user", _) => StepKind::question(id, content(message.get("parts"))),
        ("assistant", _) => {
            let pieces = list_of(message, "parts").iter().filter_map(piece).collect();
            let usage = object_of(o, "usageMetadata");
            // Forks have other ids, so time and content identify the call.
            let counters = usage.map(|usage| counters(usage, REPLY));
            *context = counters.as_ref().map(Counters::context).or(*context);
            StepKind::Reply(RecordingReply {
                model: string(o, "model"),
                counters: known(counters),
                id: id.clone(),
                ..RecordingReply::new(id, pieces)
            })
        }
        ("tool_result", _) => {
            let status = str_of(object_in(o, "toolCallResult"), "status");
            let is_error = matches!(status, Some("error" | "cancelled"));
            let result = |part: &Value| match gemini_cli::part(part.as_object()?)? {
                Part::Result { id, output, is_error: failed, .. } => Some(MessagePart::Result {
                    call_id: id.to_string(),
                    pieces: vec![MessagePart::text(&output)],
                    is_error: is_error || failed,
                }),
                _ => None,
            };
            StepKind::input(list_of(message, "parts").iter().filter_map(result).collect())
        }
        ("system", Some("chat_compression")) => {
            let payload = object_in(o, "systemPayload");
            let info = object_in(payload, "info");
            // 2 and more: it failed.
            if info.get("compressionStatus").and_then(tokens).is_some_and(|status| status > 1) {
                return StepKind::Link;
            }
            let count = |key: &str| info.get(key).and_then(tokens);
            let summary = objects(payload, "compressedHistory").next();
            StepKind::Compaction(RecordingCompaction {
                pre_tokens: count("originalTokenCount").or(*context),
                post_tokens: count("newTokenCount"),
                summary: summary.map(|first| text_of(&content(first.get("parts")))),
                reply: request.take().and_then(|step| step.what.any_reply().cloned().map(Box::new)),
                ..RecordingCompaction::default()
            })
        }
        ("system", _) => StepKind::Link,
        (kind, _) => StepKind::Unknown(format!("line of the type {kind:?}")),
    }
}

fn piece(part: &Value) -> Option<MessagePart> {
    match gemini_cli::part(part.as_object()?) {
        Some(call @ Part::Call(_)) => Some(MessagePart::Said(call)),
        _ => content(Some(part)).pop(),
    }
}

/// Names of the counters of a reply and of a telemetry event: prompt, read from the cache, written to
/// it (not recorded), candidates, thoughts and total.
const REPLY: [&str; 6] = [
    "promptTokenCount",
    "cachedContentTokenCount",
    "",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "totalTokenCount",
];
const EVENT: [&str; 6] = [
    "input_token_count",
    "cached_content_token_count",
    "",
    "output_token_count",
    "thoughts_token_count",
    "total_token_count",
];

fn counters(usage: &Map<String, Value>, names: [&str; 6]) -> Counters {
    let [prompt, read, write, output, thoughts, total] = names;
    let all = Counters::read(usage, [prompt, read, write, output]).of_whole_prompt();
    let total = usage.get(total).and_then(tokens);
    let within = total == Some(all.prompt().saturating_add(all.output));
    if within { all } else { all.and_output(usage, thoughts) }
}
