use ctxbench_session::{Entry, RecordedCompaction, Session, Trigger};
use serde_json::json;

use super::super::testing::{self, counted, describe, recorded, times};
use super::*;
use crate::Loaded;

fn all(source: &Source<'_>) -> Vec<Loaded> {
    testing::import("openhands", source)
}

fn import(value: &Value) -> Session {
    all(&Source::of_bytes(value.to_string().as_bytes(), "x.json")).remove(0).session
}

fn trigger(session: &Session) -> Option<Trigger> {
    session.entries.iter().find_map(|e| match e {
        Entry::RecordedCompaction(RecordedCompaction { trigger, .. }) => *trigger,
        _ => None,
    })
}

#[test]
fn each_row_of_a_benchmark_is_a_session() {
    let all = all(&Source::at(&recorded("openhands/output.jsonl")));
    let sums = |l: &Loaded| {
        let each: Vec<[u64; 4]> = counted(&l.session).into_iter().flatten().collect();
        let prompts: u64 = each.iter().flat_map(|c| &c[..3]).sum();
        let output: u64 = each.iter().map(|c| c[3]).sum();
        (l.session.header.id.clone(), each.len(), prompts, output)
    };
    let expected = [
        ("ponylang__ponyc-4595".to_string(), 7, 67_043, 721),
        ("ponylang__ponyc-4593".to_string(), 3, 17_241, 193),
        ("ponylang__ponyc-4588".to_string(), 1, 5_282, 117),
    ];
    assert_eq!(all.iter().map(sums).collect::<Vec<_>>(), expected);
    let s = &all[0].session;
    assert_eq!(s.header.model.as_deref(), Some("meta-llama/llama-4-maverick"));
    assert_eq!(s.header.title, "<uploaded_files>");
    let told = describe(s);
    assert!(told[0].starts_with("system: You are OpenHands agent"));
    for name in ["execute_bash", "think", "finish", "str_replace_editor"] {
        assert!(told[1].contains(&format!("\"name\":\"{name}\"")), "{name}");
    }
    // Two pieces of recalled knowledge come before the task.
    assert_eq!(s.entries[2].content().len(), 3);
    let call = r#"execute_bash[toolu_01]{"command": "ls -l /workspace/ponylang__ponyc__0.1"}"#;
    assert!(told[3].ends_with(call) && told[4].starts_with("result[toolu_01]: "), "{told:?}");
    assert_eq!(times(s)[1..3], [3_113, 3_733]);
}

#[test]
fn actions_without_function_calls_are_calls_by_their_events() {
    let row = json!({"instance_id": "i", "metadata": {"llm_config": {"model": "m"}}, "history": [
        [{"id": 0, "source": "user", "action": "message", "args": {"content": "fix", "image_urls": ["data:image/png;base64,QUJD"]}},
         {"id": -1, "source": "agent", "observation": "null", "content": "", "extras": {}}],
        [{"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "I look.", "blocking": false}},
         {"id": 2, "source": "agent", "cause": 1, "observation": "run", "content": "a.py", "extras": {"exit_code": 1}}],
        [{"id": 3, "source": "agent", "action": "message", "args": {"content": "Done."}},
         {"id": 4, "source": "user", "action": "message", "args": {"content": "Go on."}}]]});
    let expected = [
        "user: fix + <image/png 26>",
        "model: I look. + run[event-1]{\"command\":\"ls\"}",
        "result[event-1]: a.py",
        "model: Done.",
        "user: Go on.",
    ];
    assert_eq!(describe(&import(&row)), expected);
}

#[test]
fn calls_of_one_response_are_one_reply_and_condensations_compactions() {
    let called = |call: &str| {
        json!({"function_name": "bash", "tool_call_id": call, "total_calls_in_response": 2,
        "model_response": {"id": "r1", "model": "m", "usage": {"prompt_tokens": 100, "completion_tokens": 9},
            "choices": [{"message": {"role": "assistant", "content": "Both.", "tool_calls": [
                {"id": "c1", "function": {"name": "bash", "arguments": "{\"a\": 1}"}},
                {"id": "c2", "function": {"name": "bash", "arguments": "{\"a\": 2}"}}]}}]}})
    };
    let row = json!({"instance_id": "i", "metadata": {}, "metrics": {"token_usages": [
            {"response_id": "r1", "prompt_tokens": 100, "completion_tokens": 9, "cache_read_tokens": 60, "cache_write_tokens": 30}]},
        "history": [
            {"id": 0, "source": "user", "action": "message", "args": {"content": "fix"}},
            {"id": 1, "source": "agent", "action": "run", "args": {"command": "x"}, "tool_call_metadata": called("c1")},
            {"id": 2, "source": "agent", "action": "run", "args": {"command": "y"}, "tool_call_metadata": called("c2")},
            {"id": 3, "source": "agent", "cause": 1, "observation": "run", "content": "one", "tool_call_metadata": called("c1")},
            {"id": 4, "source": "agent", "cause": 2, "observation": "error", "content": "two", "tool_call_metadata": called("c2")},
            {"id": 5, "source": "agent", "action": "condensation", "args": {"summary": "It was fixed.", "forgotten_events_start_id": 1, "forgotten_events_end_id": 4}},
            {"id": 6, "source": "agent", "action": "message", "args": {"content": "Done."}}]});
    let s = import(&row);
    let expected = [
        "user: fix",
        "model: Both. + bash[c1]{\"a\": 1} + bash[c2]{\"a\": 2}",
        "result[c1]: one",
        "result![c2]: two",
        "compaction: None None Some(\"It was fixed.\")",
        "model: Done.",
    ];
    assert_eq!(describe(&s), expected);
    assert_eq!((counted(&s)[0], trigger(&s)), (Some([10, 60, 30, 9]), Some(Trigger::Auto)));
}

#[test]
fn the_folder_of_a_conversation_is_a_session() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("a1b2");
    std::fs::create_dir_all(folder.join("events")).unwrap();
    let state = json!({"id": "a1b2", "agent": {"llm": {"model": "claude-sonnet-4-5"}}, "stats": {"usage_to_metrics": {
        "agent": {"token_usages": [{"response_id": "r1", "prompt_tokens": 50, "completion_tokens": 5, "cache_read_tokens": 20, "cache_write_tokens": 0}]},
        "condenser": {"token_usages": []}}}});
    std::fs::write(folder.join("base_state.json"), state.to_string()).unwrap();
    let action = |call: &str, thought: &str| {
        json!({"kind": "ActionEvent", "source": "agent", "timestamp": "2026-01-01T00:00:02.000000",
        "thought": [{"type": "text", "text": thought}], "thinking_blocks": [], "reasoning_content": null,
        "action": {"kind": "TerminalAction", "command": "ls"}, "tool_name": "terminal", "tool_call_id": call,
        "tool_call": {"id": call, "name": "terminal", "arguments": "{\"command\": \"ls\"}", "origin": "completion"}, "llm_response_id": "r1"})
    };
    let events = [
        json!({"kind": "SystemPromptEvent", "source": "agent", "timestamp": "2026-01-01T00:00:00", "system_prompt": {"type": "text", "text": "S"},
            "dynamic_context": {"type": "text", "text": "D"}, "tools": [{"name": "terminal", "description": "runs", "parameters": {"type": "object"}}]}),
        json!({"kind": "MessageEvent", "id": "m1", "source": "user", "timestamp": "2026-01-01T00:00:00", "llm_message": {"role": "user", "content": [
            {"type": "text", "text": "fix"}, {"type": "image", "image_urls": ["data:image/png;base64,QUJD"]}]},
            "extended_content": [{"type": "text", "text": "skill"}]}),
        json!({"kind": "ConversationStateUpdateEvent", "source": "environment", "key": "k", "value": 1}),
        action("c1", "I look."),
        action("c2", ""),
        json!({"kind": "ObservationEvent", "source": "environment", "tool_name": "terminal", "tool_call_id": "c1", "action_id": "x",
            "observation": {"kind": "TerminalObservation", "content": [{"type": "text", "text": "a.py"}], "is_error": false}}),
        json!({"kind": "AgentErrorEvent", "source": "agent", "tool_name": "terminal", "tool_call_id": "c2", "error": "no such tool"}),
        json!({"kind": "CondensationRequest", "source": "environment"}),
        json!({"kind": "Condensation", "source": "environment", "forgotten_event_ids": ["x"], "summary": "so far", "llm_response_id": "r2"}),
        json!({"kind": "MessageEvent", "source": "agent", "llm_message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}, "llm_response_id": "r3"}),
    ];
    for (n, event) in events.iter().enumerate() {
        let path = folder.join("events").join(format!("event-{n:05}-x.json"));
        std::fs::write(path, event.to_string()).unwrap();
    }
    std::fs::write(folder.join("events/event-00010-x.json"), "{\"kind\":").unwrap();
    let loaded = all(&Source::at(&folder)).remove(0);
    let s = &loaded.session;
    assert_eq!(s.header.id, "a1b2");
    let expected = [
        "system: S",
        "system: D",
        "tools: [{\"description\":\"runs\",\"input_schema\":{\"type\":\"object\"},\"name\":\"terminal\"}]",
        "user: skill + fix + <image/png 26>",
        "model: I look. + terminal[c1]{\"command\": \"ls\"} + terminal[c2]{\"command\": \"ls\"}",
        "result[c1]: a.py",
        "result![c2]: no such tool",
        "compaction: None None Some(\"so far\")",
        "model: Done.",
    ];
    assert_eq!(describe(s), expected);
    assert_eq!(s.header.model.as_deref(), Some("claude-sonnet-4-5"));
    assert_eq!((counted(s)[0], times(s)[..2].to_vec()), (Some([30, 20, 0, 5]), vec![0, 2_000]));
    assert_eq!(trigger(s), Some(Trigger::Manual));
    let told = &loaded.warnings[0];
    assert!(told.starts_with("event-00010-x.json:1: not an event"), "{told}");
    // The folder above is not a recording, but contains one.
    let found = crate::load_path(dir.path()).unwrap();
    assert_eq!(found.scenarios.iter().map(|s| &*s.id).collect::<Vec<_>>(), ["a1b2"]);
}
