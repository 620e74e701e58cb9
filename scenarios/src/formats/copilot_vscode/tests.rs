use ctxbench_session::Entry;

use super::super::testing::{counted, describe, import, recorded, times};
use super::*;

#[test]
fn a_chat_and_its_journal_are_the_same_session() {
    for name in ["chat.json", "chat.jsonl"] {
        let path = recorded("copilot-vscode").join(name);
        let loaded = import("copilot-vscode", &Source::at(&path)).remove(0);
        let s = &loaded.session;
        let header = (&*s.header.id, &*s.header.title, s.header.model.as_deref());
        let id = "5a1c0b7e-0000-4000-8000-000000000001";
        assert_eq!(header, (id, "Port of server.ts", Some("gpt-4.1-2025-04-14")), "{name}");
        let expected = [
            "user: <userRequest>\n + \n</userRequest> + Which port does server.ts use?",
            "model: (The port is probably a constant in server.ts.) + I will read server.ts. + \
             read_file[call_1]{\"filePath\":\"/repo/server.ts\",\"startLine\":1,\"endLine\":20}",
            "result[call_1]: export const port = 8443;\n",
            "model: server.ts listens on port 8443.",
            "compaction: Some(12600) None \
             Some(\"The user asked for the port of server.ts; it is 8443.\")",
            "user: <userRequest>\n + \n</userRequest> + And which file sets it in tests?",
            "model: test/setup.ts sets it.",
        ];
        assert_eq!(describe(s), expected, "{name}");
        // The cached part of a prompt is not known, so the counters of a call are not.
        assert_eq!(counted(s), [None; 3], "{name}");
        let usage = s.entries.iter().find_map(|e| match e {
            Entry::RecordedCompaction(c) => c.usage.clone(),
            _ => None,
        });
        let usage = usage.unwrap();
        assert_eq!([usage.input, usage.cache_read, usage.output], [1_600, 11_000, 120]);
        let call = format!("{id} request_2 round_2 1600+11000+0");
        assert_eq!(usage.billing.call_id.as_deref(), Some(&*call));
        // The prompt of 12,400 tokens shows less than 100 of the conversation.
        let prefix = s.header.prefix_tokens.unwrap();
        assert!((12_300..12_400).contains(&prefix), "{prefix}");
        // Asked at 0 and 60 s, answered after 4 s; the compaction has the time of the question.
        assert_eq!(times(s), [0, 4_000, 60_000, 60_000, 64_000], "{name}");
        assert_eq!(loaded.warnings, Vec::<String>::new());
    }
}

#[test]
fn a_journal_cuts_and_removes() {
    let lines = [
        json!({"kind": 0, "v": {"requests": [], "draft": 1}}),
        json!({"kind": 2, "k": ["requests"], "v": [{"requestId": "a", "response": [1, 2, 3]}]}),
        json!({"kind": 2, "k": ["requests", 0, "response"], "v": [4], "i": 1}),
        json!({"kind": 1, "k": ["requests", 0, "result", "ok"], "v": true}),
        json!({"kind": 1, "k": ["requests", 9, "result"], "v": "lost"}),
        json!({"kind": 3, "k": ["draft"]}),
    ];
    let lines = (1..)
        .zip(lines)
        .map(|(number, line)| RecordedLine { number, object: line.as_object().unwrap().clone() });
    let (chat, requests) = journal::replayed(lines.collect());
    assert_eq!(chat, json!({"requests": null, "draft": null}));
    let expected = json!({"requestId": "a", "response": [1, 4], "result": {"ok": true}});
    assert_eq!((requests[0].number, Value::from(requests[0].object.clone())), (2, expected));
}

#[test]
fn what_the_user_saw_stands_in_for_missing_rounds_and_results_are_trees() {
    let turn = json!({"response": [
        {"kind": "thinking", "value": "hm"},
        {"kind": "toolInvocationSerialized", "toolId": "x"},
        {"value": "It is 8443."},
    ]});
    let visible = Value::from(visible_texts(turn.as_object().unwrap()));
    let expected =
        json!([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "It is 8443."}]);
    assert_eq!(visible, expected);
    let tree =
        json!([{"value": {"node": {"children": [{"text": "a"}, {"children": [{"text": "b"}]}]}}}]);
    assert_eq!(texts(&tree), "ab");
}
