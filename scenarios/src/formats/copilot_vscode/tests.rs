use super::*;

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
