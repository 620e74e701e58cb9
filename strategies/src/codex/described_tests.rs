use crate::testing::{Answer, Script, calls, compact, play, text_answer, texts, too_long, user};
use ctxbench_core::prelude::*;

/// Runs a turn with a call, a compaction by hand and another turn.
#[test]
fn a_note_of_the_assistant_replaces_all_but_the_users_messages() {
    let script = Script::new(
        vec![user("1", "U1"), compact(), user("2", "Thanks")],
        vec![calls("look", "c", "grep", "{}"), text_answer("found"), text_answer("ok")],
    );
    let p = play("codex@described-002", script.summaries(vec![text_answer("NOTE")]));
    // "hand the entire conversation to an LLM".
    let summary = p.summaries()[0];
    assert!(summary.tools.is_none());
    assert_eq!(summary.blocks.iter().filter(|b| b.kind == BlockKind::Output).count(), 1);
    let last = &p.last().blocks;
    assert_eq!(texts(last), ["base", "U1", "NOTE", "Thanks"]);
    // "a fabricated assistant message".
    let note = &last[2];
    assert_eq!((note.kind, note.role), (BlockKind::Summary, Role::Assistant));
}

fn used(text: &str, total: u64) -> Answer {
    crate::testing::used(text_answer(text), total, 0)
}

#[test]
fn a_note_that_leaves_too_little_room_is_followed_by_head_trimming() {
    // 40,000 bytes of the first message are about 10,000 tokens, above the limit of 9,000; the
    // second message is kept.
    let big = "x".repeat(40_000);
    let script = Script::new(
        vec![user("1", &big), user("2", "U2"), user("3", "U3")],
        vec![used("r1", 100), used("r2", 9_500), used("r3", 100)],
    )
    .summaries(vec![text_answer("NOTE")]);
    let p = play("codex@described-002:auto_compact_limit=9000", script);
    assert_eq!(p.compactions(), ["handoff_note", "trim_oldest"]);
    assert_eq!(texts(&p.requests[3].blocks), ["base", "U2", "NOTE", "U3"]);
}

#[test]
fn above_95_per_cent_the_oldest_go_without_a_summary() {
    // docs/sources/token-budgeting.md §3.2: 200,000 tokens become 190,000.
    let play = |total: u64| {
        let script = Script::new(
            vec![user("1", &"a".repeat(40_000)), user("2", "U2"), user("3", "U3")],
            vec![used("r1", 10_000), used("r2", total), used("r3", 100)],
        );
        play("codex@described-000", script)
    };
    // The third message's JSON form is 76 bytes, which are 19 tokens: at 189,981 it just fits.
    let json = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"U3"}]}"#;
    let third = (json.len() as u64).div_ceil(4);
    let fits = play(190_000 - third);
    assert!(fits.compactions().is_empty() && fits.summaries().is_empty());
    let p = play(190_001 - third);
    assert_eq!(p.compactions(), ["trim_oldest"]);
    assert!(p.summaries().is_empty());
    // The reply to the removed message would come first, which providers refuse.
    assert_eq!(texts(&p.requests[2].blocks), ["base", "U2", "r2", "U3"]);
}

#[test]
fn a_call_goes_together_with_its_result_and_the_newest_message_stays() {
    let call = |id: &str, total| {
        let call = Part::Call(ToolCall::new(id, "read", format!("{{\"{id}\":1}}")));
        let usage = Usage { input: total, ..Usage::default() };
        Ok(Reply { parts: vec![call], stop: StopReason::ToolUse, usage, ..Reply::default() })
    };
    let script = Script::new(
        vec![user("1", "U1")],
        vec![call("a", 6_000), call("b", 190_000), used("r", 100)],
    )
    .outputs(vec!["y".repeat(20_000), "z".into()]);
    let p = play("codex@described-000", script);
    assert_eq!(texts(&p.requests[2].blocks), ["base", "U1", "{\"b\":1}", "z"]);
}

#[test]
fn a_refused_request_loses_its_oldest_items_and_is_sent_again() {
    let script = Script::new(
        vec![user("1", "U1"), user("2", "U2")],
        vec![used("r1", 100), too_long(9, 8), too_long(9, 8)],
    );
    let p = play("codex@described-000", script);
    assert_eq!(texts(&p.requests[1].blocks), ["base", "U1", "r1", "U2"]);
    assert_eq!(texts(&p.requests[2].blocks), ["base", "U2"]);
    // Nothing more can be removed.
    assert_eq!((p.requests.len(), p.failures().len()), (3, 1));
}
