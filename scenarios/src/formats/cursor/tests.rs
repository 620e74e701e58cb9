use ctxbench_session::Entry;

use super::*;

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
