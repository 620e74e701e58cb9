//! A task of which only `ui_messages.json` is left: what the user saw, with the counters. Calls have no
//! results that the model saw, and are kept as text.

use super::{alone, change, models, request, time_ms};
use crate::formats::prelude::*;

/// Returns whether an object is a message for the user.
pub(super) fn is_message(m: &Map<String, Value>) -> bool {
    let kind = str_of(m, "type").filter(|kind| matches!(*kind, "say" | "ask"));
    m.contains_key("ts") && kind.is_some_and(|kind| m.contains_key(kind))
}

pub(super) fn steps(
    messages: &[RecordedLine],
    task: &str,
    metadata: Option<&Value>,
) -> Vec<RecordingStep> {
    let mut out: Vec<RecordingStep> = Vec::new();
    let models = metadata.map(models).unwrap_or_default();
    let mut reply = RecordingReply::new("before requests".to_string(), Vec::new());
    for message in messages.iter().filter(|m| !flag(&m.object, "partial")) {
        let (m, ms) = (&message.object, time_ms(message));
        let text = str_of(m, "text").unwrap_or_default();
        let with_part = |piece| RecordingReply { pieces: vec![piece], ..reply.clone() };
        let kind = str_of(m, "say").or(str_of(m, "ask")).unwrap_or_default();
        let what = match kind {
            "api_req_started" => {
                let used = models.iter().rfind(|(from, _)| ms.is_none_or(|ms| *from <= ms));
                let model = string(object_in(m, "modelInfo"), "modelId");
                let model = model.or(used.map(|(_, name)| name.clone()));
                let mut request = request(m, task);
                if let Some(paid) = request.take_if(|request| !request.is_counted()) {
                    out.push(alone(message.number, paid, &|_| model.clone()));
                }
                reply = RecordingReply {
                    model,
                    counters: known(request.map(|request| request.counters)),
                    ..RecordingReply::new(format!("request {}", out.len()), Vec::new())
                };
                StepKind::Reply(reply.clone())
            }
            "condense_context" | "sliding_window_truncation" => {
                let told = ["contextCondense", "contextTruncation"];
                let Some(told) = told.iter().find_map(|key| object_of(m, key)) else { continue };
                change(Some((ms, told)), string(told, "summary"), task)
            }
            _ if text.is_empty() => continue,
            "task" | "user_feedback" => StepKind::input(vec![MessagePart::text(text)]),
            "text" if out.is_empty() => StepKind::input(vec![MessagePart::text(text)]),
            "text" | "completion_result" | "followup" => {
                StepKind::Reply(with_part(MessagePart::text(text)))
            }
            "reasoning" => StepKind::Reply(with_part(MessagePart::reasoning(text, None))),
            "tool" | "command" | "use_mcp_server" | "browser_action" => {
                let asked = Part::Text(format!("[{kind}: {text}]").into());
                StepKind::Reply(with_part(MessagePart::Unanswered { kind: kind.into(), asked }))
            }
            "command_output" | "mcp_server_response" | "browser_action_result" => {
                StepKind::input(added(vec![MessagePart::text(text)]))
            }
            _ => continue,
        };
        let stamp = ms.and_then(|ms| time::of_epoch(ms as f64));
        out.push(RecordingStep::new(message.number, stamp, what));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{self, counted, describe, recorded};
    use super::*;

    const TASK: &str = "roo-code/0a0a0a0a-0000-4000-8000-000000000005";

    #[test]
    fn messages_for_the_user_are_a_session_where_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("task-1/ui_messages.json");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::copy(recorded(TASK).join("ui_messages.json"), &path).unwrap();
        let source = Source::at(&path);
        let loaded = testing::import("cline", &source).remove(0);
        let s = &loaded.session;
        assert_eq!((&*s.header.id, &*s.header.title), ("task-1", "Which port does server.ts use?"));
        // As with the messages of the model.
        let expected = [[12, 0, 14_000, 60], [9, 14_000, 120, 40], [30, 0, 9_300, 30]];
        assert_eq!(counted(s), expected.map(Some));
        let expected = [
            "user: Which port does server.ts use?",
            "model: (The port is probably a constant in server.ts.) + I will read server.ts. + \
             [tool: {\"tool\":\"readFile\",\"path\":\"server.ts\",\"isOutsideWorkspace\":false,\"content\":\"/repo/server.ts\"}]",
            "model: server.ts listens on port 8443.",
            "user: And which file sets it in tests?",
            "compaction: Some(14169) Some(9300) Some(\"The user asked for the port of server.ts; it \
             is 8443.\")",
            "model: test/setup.ts sets it.",
        ];
        assert_eq!(describe(s), expected);
        assert!((super::super::FORMAT.parts)(&source).is_empty());
        // Next to the messages of the model, they are read with these.
        std::fs::copy(
            recorded(TASK).join("api_conversation_history.json"),
            path.with_file_name("api_conversation_history.json"),
        )
        .unwrap();
        assert_eq!(crate::load_path(folder.path()).unwrap().scenarios.len(), 1);
    }
}
