use ctxbench_session::Session;
use serde_json::json;

use super::super::testing::{counted, describe, times};
use super::*;

const ROLLOUT: &str = r##"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"x","base_instructions":{"text":"You are an agent."}}}
{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"<permissions instructions>ask</permissions instructions>"}]}}
{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"# AGENTS.md instructions for /w/app\n\nbe nice"},{"type":"input_text","text":"<environment_context>linux</environment_context>"}]}}
{"timestamp":"2026-01-01T00:00:00.000Z","type":"turn_context","payload":{"model":"gpt-x"}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"event_msg","payload":{"type":"user_message","message":"do it"}}
{"timestamp":"2026-01-01T00:00:02.000Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"think"}],"encrypted_content":"enc"}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I will"}]}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"web_search_call","status":"completed","action":{"type":"search","query":"how"}}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"function_call","name":"exec","arguments":"{\"cmd\":\"ls\"}","call_id":"c1"}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"c2"}}
{"timestamp":"2026-01-01T00:00:04.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1000},"last_token_usage":{"input_tokens":1000,"cached_input_tokens":900,"output_tokens":30},"model_context_window":5000}}}
{"timestamp":"2026-01-01T00:00:04.000Z","type":"event_msg","payload":{"type":"token_count","info":null}}
{"timestamp":"2026-01-01T00:00:05.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"files"}}
{"timestamp":"2026-01-01T00:00:05.000Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c2","output":"{\"output\":\"ok\"}"}}
{"timestamp":"2026-01-01T00:00:06.000Z","type":"compacted","payload":{"message":"so far","replacement_history":[]}}
{"timestamp":"2026-01-01T00:00:07.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>later</environment_context>"}]}}
{"timestamp":"2026-01-01T00:00:08.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"and now"},{"type":"input_image","image_url":"data:image/png;base64,QUJD"}]}}
"##;

fn import(text: &str) -> (Session, Vec<String>) {
    let loaded = FORMAT.session_of(text, "rollout-1.jsonl").unwrap();
    (loaded.session, loaded.warnings)
}

#[test]
fn a_rollout_becomes_a_session() {
    assert!(sniff(&Head::from_text(ROLLOUT, "x.jsonl")));
    let (s, warnings) = import(ROLLOUT);
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(
        (s.header.context_window, s.header.model.as_deref(), s.header.title.as_str()),
        (Some(5000), Some("gpt-x"), "do it")
    );
    assert_eq!(
        describe(&s),
        [
            "system: You are an agent.",
            "memory permissions instructions: <permissions instructions>ask</permissions instructions>",
            "memory /w/app/AGENTS.md: # AGENTS.md instructions for /w/app\n\nbe nice",
            "memory environment_context: <environment_context>linux</environment_context>",
            "user: do it",
            "model: (thinkenc) + I will + [web search: how] + exec[c1]{\"cmd\":\"ls\"} + \
             apply_patch[c2]*** Begin",
            "result[c1]: files",
            "result[c2]: {\"output\":\"ok\"}",
            "compaction: Some(1030) None Some(\"so far\")",
            "user: <environment_context>later</environment_context> + and now + <image/png 26>",
        ]
    );
    assert_eq!(counted(&s), [Some([100, 900, 0, 30])]);
    assert_eq!(times(&s), [0, 1_000, 4_000, 4_000, 5_000, 7_000]);
    assert!(s.header.prefix_tokens.is_some_and(|p| p > 900 && p < 1000));
}

#[test]
fn old_rollouts_are_bare_items() {
    let text = r#"{"id":"x","timestamp":"2025-06-01T00:00:00.000Z","instructions":"be nice","git":{}}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}
{"type":"local_shell_call","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"]}}
{"type":"function_call_output","call_id":"c1","output":{"content":"a b","success":false}}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"two"}]}"#;
    assert!(sniff(&Head::from_text(text, "x.jsonl")));
    let (s, warnings) = import(text);
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(
        describe(&s),
        [
            "user: hello",
            "model: local_shell[c1]{\"command\":[\"ls\"],\"type\":\"exec\"}",
            "result![c1]: a b",
            "model: two"
        ]
    );
}

#[test]
fn a_rollback_takes_turns_back() {
    let text = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"one"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":"1"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":"two"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":"2"}}
{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}
{"type":"response_item","payload":{"type":"message","role":"user","content":"three"}}"#;
    let (s, _) = import(text);
    assert_eq!(describe(&s), ["user: one", "model: 1", "user: three"]);
}

#[test]
fn what_the_user_said_counts_once_whether_item_or_event() {
    let line = |kind: &str, payload: Value| {
        json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload})
            .to_string()
    };
    let event = |text: &str| {
        line("event_msg", json!({"type": "user_message", "message": text, "images": []}))
    };
    let item = |role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        let content = [json!({"type": kind, "text": text})];
        let message = json!({"type": "message", "role": role, "content": content});
        line("response_item", message)
    };
    let said = |lines: &[String]| describe(&import(&lines.join("\n")).0);
    let done = [item("assistant", "done")];
    for first in [
        vec![event("fix it")],
        vec![item("user", "fix it"), event("fix it")],
        vec![event("fix it"), item("user", "fix it")],
    ] {
        // The same text in a later turn is a new message.
        let lines = [&first[..], &done, &first[..], &done].concat();
        assert_eq!(said(&lines), ["user: fix it", "model: done"].repeat(2), "{first:?}");
        let back = line("event_msg", json!({"type": "thread_rolled_back", "num_turns": 1}));
        let lines = [&first[..], &done, &[event("more")], &done, &[back]].concat();
        assert_eq!(said(&lines), ["user: fix it", "model: done"], "{first:?}");
    }
    // The same text in an instructions file is not a message of the user.
    let rules = item("user", "# AGENTS.md instructions for /w\n\nfix it");
    let told = said(&[&[rules, event("fix it")], &done[..]].concat());
    assert_eq!(told[1..], ["user: fix it", "model: done"]);
}
