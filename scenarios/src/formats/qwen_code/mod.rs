//! Qwen Code chats (`~/.qwen/projects/FOLDER/chats/ID.jsonl`): lines chained by their parents like
//! Claude Code's, with parts of Google's API.
//!
//! Rules, where the format leaves a choice:
//! - Lines that are not on the way from the first to the last line are left out; their calls count.
//! - Thoughts are not sent again.
//! - A compression is followed by the context after it (`compressedHistory`), which begins with the
//!   summary.
//! - `promptTokenCount` contains the tokens read from the cache. Thoughts are billed as output where
//!   the total counts them in addition to the candidates.

use super::gemini_cli::content;
use crate::formats::prelude::*;
use ctxbench_formats::gemini_cli;

pub(super) const FORMAT: Format = Format {
    title: "Qwen Code",
    name: "qwen-code",
    untold: "system prompt and tools, ids of requests, and in older versions how the summary of a \
             compression reads",
    sniff,
    read: |input, sink| lines::session(input, Vec::new(), sink, read),
    parts: no_parts,
};

fn sniff(head: &Head) -> bool {
    let is_line = |o: &Map<String, Value>| {
        o.contains_key("uuid") && object_in(o, "message").contains_key("parts")
    };
    head.objects().any(is_line)
}

fn read(lines: Vec<RecordedLine>, file: &str, mut out: Recording) -> Recording {
    let is_message = |l: &RecordedLine| l.object.contains_key("message");
    let left = given_up(&lines, ["uuid", "parentUuid"], is_message, file, &mut out);
    let mut context = None;
    for (line, left) in lines.iter().zip(left) {
        let o = &line.object;
        let payload = object_in(o, "systemPayload");
        out.title = string(payload, "customTitle").or(out.title.take());
        out.context_window = o.get("contextWindowSize").and_then(tokens).or(out.context_window);
        let view = if left { View::Calls } else { View::Both };
        let step =
            RecordingStep::new(line.number, string(o, "timestamp"), step_kind(o, &mut context));
        let (name, parent) = (string(o, "uuid"), string(o, "parentUuid"));
        out.steps.push(RecordingStep { name, parent, view, ..step });
    }
    out
}

/// `context` is the counted tokens of the last request and its reply.
fn step_kind(o: &Map<String, Value>, context: &mut Option<u64>) -> StepKind {
    let id = string(o, "uuid");
    let message = object_in(o, "message");
    match (str_of(o, "type").unwrap_or_default(), str_of(o, "subtype")) {
        ("user", _) => StepKind::question(id, content(message.get("parts"))),
        ("assistant", _) => {
            let pieces = list_of(message, "parts").iter().filter_map(piece).collect();
            let usage = object_of(o, "usageMetadata");
            let counters = usage.map(|usage| counters(usage).called(id.as_deref()));
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
            let count = |key: &str| info.get(key).and_then(tokens);
            let summary = objects(payload, "compressedHistory").next();
            StepKind::Compaction(RecordingCompaction {
                pre_tokens: count("originalTokenCount").or(*context),
                post_tokens: count("newTokenCount"),
                summary: summary.map(|first| text_of(&content(first.get("parts")))),
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

fn counters(usage: &Map<String, Value>) -> Counters {
    let names = ["promptTokenCount", "cachedContentTokenCount", "write", "candidatesTokenCount"];
    let all = Counters::read(usage, names).of_whole_prompt();
    let total = usage.get("totalTokenCount").and_then(tokens);
    let within = total == Some(all.prompt().saturating_add(all.output));
    if within { all } else { all.and_output(usage, "thoughtsTokenCount") }
}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::super::testing::{counted, describe, import, recorded};

    #[test]
    fn a_chat_becomes_a_session_of_its_own_program() {
        let loaded = import("qwen-code", &Source::at(&recorded("qwen-code/chat.jsonl"))).remove(0);
        let s = &loaded.session;
        assert_eq!(s.header.model.as_deref(), Some("qwen3-coder-plus"));
        assert_eq!(s.header.context_window, Some(1_000_000));
        let told = [
            "user: Which port does server.ts use?",
            "model: (I read the file.) + read_file[c1]{\"path\":\"server.ts\"}",
            "result[c1]: app.listen(8443)",
            "model: It listens on 8443.",
        ];
        assert_eq!(describe(s), told);
        // Candidates and thoughts: 60 + 10. The second prompt read 15,000 from the cache.
        assert_eq!(counted(s), [Some([15_000, 0, 0, 70]), Some([200, 15_000, 0, 12])]);
        assert_eq!(loaded.warnings, Vec::<String>::new());
    }

    #[test]
    fn a_compression_has_its_summary_and_a_chat_its_title() {
        let source = recorded("qwen-code/compressed.jsonl");
        let loaded = import("qwen-code", &Source::at(&source)).remove(0);
        let s = &loaded.session;
        assert_eq!(s.header.title, "Port of server.ts");
        let summary = "compaction: Some(13111) Some(9200) \
                       Some(\"The user asked for the port of server.ts; it is 8443.\")";
        assert_eq!(describe(s)[4], summary);
        // Candidates and thoughts: 30 + 12.
        let told = [[13_000, 0, 0, 42], [300, 12_800, 0, 11], [9_230, 0, 0, 9]];
        assert_eq!(counted(s), told.map(Some));
        assert_eq!(loaded.warnings, Vec::<String>::new());
    }
}
