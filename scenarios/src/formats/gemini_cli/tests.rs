use serde_json::json;

use super::super::testing::{self, counted, describe, recorded, times};
use super::*;
use crate::Loaded;

fn all(source: &Source<'_>) -> Loaded {
    testing::import("gemini-cli", source).remove(0)
}

fn import(text: &str) -> Loaded {
    all(&Source::of_bytes(text.as_bytes(), "session-x.jsonl"))
}

#[test]
fn a_chat_becomes_a_session() {
    let path = recorded("gemini-cli/session-2026-01-16T11-01-37b7abef.json");
    let s = all(&Source::at(&path)).session;
    assert_eq!(s.header.title, "show tools");
    assert_eq!(s.header.model.as_deref(), Some("gemini-3-pro"));
    let told = describe(&s);
    assert_eq!((told[0].as_str(), times(&s)[0]), ("user: show tools", 0));
    // Output and thoughts: 292 + 240; input without cached tokens: 11,066 - 3,261.
    assert_eq!(counted(&s)[..2], [Some([4_749, 0, 0, 532]), Some([7_805, 3_261, 0, 101])]);
    let call = "write_file[write_file-1768566819675-5726cf966781a]";
    assert!(told[3].contains(call), "{}", told[3]);
    let result = "result[write_file-1768566819675-5726cf966781a]: Successfully created and wrote";
    assert!(told[4].starts_with(result), "{}", told[4]);
}

const HEAD: &str =
    r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","kind":"main"}"#;

#[test]
fn changes_in_lines_end_with_the_last_state() {
    let user = |id: &str, text: &str| {
        json!({"id": id, "timestamp": "2026-01-01T00:00:00.000Z", "type": "user", "content": [{"text": text}]}).to_string()
    };
    let model = |id: &str, text: &str| {
        json!({"id": id, "type": "gemini", "content": text, "model": "gemini-3-pro"}).to_string()
    };
    let lines = [
        HEAD.to_string(),
        user("1", "one"),
        model("2", "grow"),
        model("2", "grown"),
        json!({"$set": {"summary": "A talk", "lastUpdated": "x"}}).to_string(),
        user("3", "two"),
        model("4", "wrong"),
        json!({"$rewindTo": "3"}).to_string(),
        user("5", "three"),
        json!({"id": "6", "type": "info", "content": "note"}).to_string(),
        json!({"id": "7", "type": "gemini", "content": "", "toolCalls": [
            {"id": "c", "name": "ls", "args": {"p": 1}, "status": "error", "result": [{"functionResponse": {"response": {"error": "denied"}}}]},
            {"id": "d", "name": "ls", "args": {}, "status": "cancelled"}]}).to_string(),
    ];
    let loaded = import(&lines.join("\n"));
    assert_eq!(loaded.session.header.title, "A talk");
    let expected = [
        "user: one",
        "model: grown",
        "user: three",
        "model: ls[c]{\"p\":1} + ls[d]{}",
        "result![c]: denied",
    ];
    assert_eq!(describe(&loaded.session), expected);
    let compressed =
        json!({"$set": {"messages": [{"id": "8", "type": "user", "content": "summary"}]}});
    let loaded = import(&format!("{}\n{compressed}\n{}", lines.join("\n"), model("9", "ok")));
    let after = ["compaction: None None Some(\"summary\")", "model: ok"];
    assert_eq!(describe(&loaded.session), [&expected[..], &after].concat());
}

/// Three calls of 10,000, 10,100 and 10,200 tokens; the second is taken back. A compression keeps the
/// last turn, and a call of 4,000 tokens follows.
#[test]
fn calls_before_a_rewind_or_a_compression_are_billed() {
    let user = |id: &str, text: &str| json!({"id": id, "type": "user", "content": text});
    let model = |id: &str, tokens: u64| {
        let tokens = json!({"input": tokens, "output": 40, "cached": 0, "thoughts": 30});
        json!({"id": id, "type": "gemini", "content": id, "tokens": tokens, "model": "gemini-3-pro"})
    };
    let snapshot = user("s1", "<state_snapshot>8443</state_snapshot>");
    let thanks = json!({"id": "s2", "type": "gemini", "content": "Got it."});
    let kept = [snapshot, thanks, user("u3", "three"), model("m3", 10_200)];
    let lines = [
        user("u1", "one"),
        model("m1", 10_000),
        user("u2", "two"),
        model("m2", 10_100),
        json!({"$rewindTo": "u2"}),
        user("u3", "three"),
        model("m3", 10_200),
        json!({"$set": {"messages": kept}}),
        user("u4", "four"),
        model("m4", 4_000),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n");
    let expected = [
        "user: one",
        "model: m1",
        "user: three",
        "model: m3",
        "compaction: Some(10270) None Some(\"<state_snapshot>8443</state_snapshot>\")",
        "user: four",
        "model: m4",
        "call: 10100",
    ];
    assert_eq!(describe(&import(&format!("{HEAD}\n{lines}")).session), expected);
    // Clearing results replaces the messages as well, and keeps the replies.
    let masked = [user("u1", "one"), model("m1", 10_000), user("r", "")];
    let lines = [user("u1", "one"), model("m1", 10_000), json!({"$set": {"messages": masked}})];
    let lines = lines.map(|line| line.to_string()).join("\n");
    assert_eq!(describe(&import(&format!("{HEAD}\n{lines}")).session), ["user: one", "model: m1"]);
}

#[test]
fn thoughts_are_counters_like_others() {
    let read = |thoughts: Value| {
        let tokens = json!({"input": 10, "output": 5, "cached": 4, "thoughts": thoughts});
        let text = json!({"sessionId": "s", "projectHash": "p", "messages": [
            {"id": "a", "type": "user", "content": "hi"},
            {"id": "b", "type": "gemini", "content": "yes", "tokens": tokens},
        ]});
        let loaded = all(&Source::of_bytes(text.to_string().as_bytes(), "session-1.json"));
        (counted(&loaded.session)[0].map(|c| c[3]), loaded.warnings)
    };
    assert_eq!(read(json!(7.0)), (Some(12), vec![]));
    let told = "session-1.json:1: thoughts is \"7\", which is not a number of tokens; taken as 0";
    assert_eq!(read(json!("7")), (Some(5), vec![told.to_string()]));
}
