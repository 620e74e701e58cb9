use ctxbench_session::Entry;

use super::super::testing::{counted, database, describe, import, recorded, times};
use super::*;

const ID: &str = "c0c0c0c0-0000-4000-8000-000000000003";

#[test]
fn a_database_gives_chats_with_their_subagents() {
    let (_folder, path) = database("cursor/state.sql");
    let all = import("cursor", &Source::at(&path));
    let [one] = all.as_slice() else { panic!("{} chats", all.len()) };
    let s = &one.session;
    let header = (&*s.header.id, &*s.header.title, s.header.model.as_deref());
    assert_eq!(header, (ID, "Port of server.ts", Some("claude-4.5-sonnet")));
    assert_eq!(s.header.context_window, Some(200_000));
    let expected = [
        "user: Which port does server.ts use?",
        "model: (The port is probably a constant in server.ts.) + \
         read_file_v2[toolu_1]{\"path\":\"server.ts\"}",
        "result[toolu_1]: {\"contents\":\"export const port = 8443;\\n\",\"totalLinesInFile\":1}",
        "model: task[toolu_2]{\"prompt\":\"Look for other ports\"}",
        "task-toolu_2\nfc_1/user: Look for other ports",
        "task-toolu_2\nfc_1/model: No other ports.",
        "result![toolu_2]: The subagent was stopped.",
        "model: server.ts listens on port 8443.",
        "user: And which file sets it in tests?",
        "compaction: None None Some(\"The user asked for the port of server.ts; it is 8443.\")",
        "model: test/setup.ts sets it.",
        "call: 0",
    ];
    assert_eq!(describe(s), expected);
    // The counters of one bubble lack the cached part.
    assert!(counted(s).iter().all(Option::is_none));
    let Some(Entry::RecordedCall(paid)) = s.entries.last() else { panic!("no cost") };
    assert_eq!(
        (paid.usage.billing.told_usd, paid.model.as_deref()),
        (Some(0.11), Some("claude-4.5-sonnet"))
    );
    assert_eq!(times(s)[..3], [0, 1_000, 2_000]);
    assert!(one.warnings.is_empty(), "{:?}", one.warnings);
}

#[test]
fn a_transcript_has_texts_and_calls_without_results() {
    let path = recorded(&format!("cursor/agent-transcripts/{ID}/{ID}.jsonl"));
    let loaded = import("cursor", &Source::at(&path)).remove(0);
    let s = &loaded.session;
    assert_eq!((&*s.header.id, &*s.header.title), (ID, "Which port does server.ts use?"));
    let expected = [
        "user: Which port does server.ts use?",
        "model: [Read: {\"path\":\"/repo/server.ts\"}]",
        "model: [Task: {\"description\":\"Look for other ports\",\"subagent_type\":\"explore\"}]",
        "model: server.ts listens on port 8443.",
        "user: And which file sets it in tests?",
        "model: test/setup.ts sets it.",
    ];
    assert_eq!(describe(s), expected);
    assert!(counted(s).iter().all(Option::is_none));
    let note = format!("{ID}.jsonl: 2 × tool_use, without their results in the recording");
    assert!(loaded.warnings[0].starts_with(&note), "{:?}", loaded.warnings);
}

#[test]
fn what_cursor_adds_to_a_question_is_not_typed() {
    let piece = MessagePart::text("<files>a</files>\n<user_query>\nGo on\n</user_query>");
    let [added, typed] = typed_by_user(piece).try_into().unwrap();
    assert!(matches!(added, MessagePart::Added(Part::Text(t), _) if &*t == "<files>a</files>"));
    assert!(matches!(typed, MessagePart::Said(Part::Text(t)) if &*t == "Go on"));
}

#[test]
fn each_model_of_a_chat_has_its_cost() {
    let chat = json!({"conversation": [{"type": 1, "text": "go"}],
        "usageData": {"a": {"costInCents": 4.5, "amount": 1}, "b": {"costInCents": 11, "amount": 1}}});
    let recording = chat_of("c", &chat, &HashMap::new());
    let s = super::super::session::put_together(recording, "cursor", "s").unwrap().session;
    let paid = s.entries.iter().filter_map(|e| match e {
        Entry::RecordedCall(c) => c.usage.billing.told_usd,
        _ => None,
    });
    assert_eq!(paid.collect::<Vec<_>>(), [0.045, 0.11]);
}
