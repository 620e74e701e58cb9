//! Tests of pi's facts (docs/sources/pi.md), in a window of 200,000 tokens. 180,000 are reserved,
//! so prompts of more than 20,000 compact.

use ctxbench_core::block::BlockKind::{Assistant, Base, Output, Summary, SummaryPrompt, User};
use ctxbench_core::prelude::*;

use crate::testing::{
    Answer, Played, Script, back_to, calls, compact, failure, image, kinds, play, text_answer,
    texts, user,
};

const SPEC: &str = "pi:reserve=180k,keep_recent=100";

/// Sets the total tokens that a reply reports.
fn used(answer: Answer, total: u64) -> Answer {
    crate::testing::used(answer, total - 10, 10)
}

/// Builds a reply with nothing but a call.
fn called(arguments: &str, usage: Usage) -> Answer {
    let call = Part::Call(ToolCall::new("c1", "read", arguments));
    Ok(Reply { parts: vec![call], stop: StopReason::ToolUse, usage, ..Reply::default() })
}

fn failing(status: u16) -> Answer {
    failure(ErrorKind::Server, status, "mock error")
}

/// Returns a text of about `n` / 4 tokens.
fn long(n: usize) -> String {
    "x".repeat(n)
}

/// Returns the number of triggers without a compaction.
fn failed(p: &Played) -> usize {
    p.triggers().len() - p.compactions().len()
}

/// Builds two turns. The second one ends with `total` tokens.
fn two_turns(total: u64) -> Script {
    Script::new(
        vec![user("u1", "first"), user("u2", &long(400))],
        vec![used(text_answer("one"), 2_000), used(text_answer("two"), total)],
    )
}

#[test]
fn a_split_turn_without_whole_turns_before_it_keeps_the_summary_before() {
    let third = [
        used(calls("a", "c1", "read", r#"{"path":"z"}"#), 5_000),
        used(calls("b", "c2", "edit", r#"{"path":"y"}"#), 5_100),
        used(text_answer(&long(800)), 20_001),
        text_answer("end"),
    ];
    let script = two_turns(20_001)
        .then([user("u3", "again")], third)
        .outputs(vec![long(40), long(40)])
        .summaries(vec![text_answer("ONE"), text_answer("TWO"), text_answer("TURN")]);
    let p = play(SPEC, script);
    let summaries = p.summaries();
    assert_eq!(summaries.len(), 3, "an update and a turn's beginning");
    let update = &summaries[1].blocks[1].text;
    assert!(update.contains("<previous-summary>\nONE\n</previous-summary>"), "{update}");
    assert!(!summaries[2].blocks[1].text.contains("ONE"), "the turn's own frame knows no summary");
    let after =
        p.events(|e| if let Event::Compaction { after, .. } = e { Some(after) } else { None });
    let text = &after.last().unwrap()[1].text;
    assert!(text.contains("TWO\n\n---\n\n") && text.contains("TURN\n\n<read-files>\nz\n"));
    assert!(text.contains("<modified-files>\ny\n"), "{text}");
}

/// docs/sources/pi.md §10. The limit is 20,000 tokens, and the tail at least 100.
#[test]
fn version_0_14_keeps_whole_turns_and_forgets_the_tail_before() {
    let replies = [("one", 2_000), ("two", 19_950), ("three", 20_001), ("four", 20_050)];
    let replies = replies.map(|(text, total)| used(text_answer(text), total));
    let script = Script::new(["u1", "u2", "u3", "u4"].map(|u| user(u, u)).into(), replies.into())
        .then([user("u5", "u5")], [text_answer("five")])
        .summaries(vec![text_answer("ONE"), text_answer("TWO")]);
    let p = play("pi@0.14:reserve=180k,keep_recent=100", script);
    // The counters fall by more than 100 tokens before `two`. After the first compaction there is one
    // reply, which stays.
    let asked: Vec<_> = p.summaries().iter().map(|r| kinds(r)).collect();
    assert_eq!(asked, [vec![User, Assistant, SummaryPrompt], vec![Summary, SummaryPrompt]]);
    let shown = |n: usize| texts(&p.samples()[n].blocks).join("|");
    assert!(shown(3).contains("ONE") && shown(3).ends_with("|u2|two|u3|three|u4"), "{}", shown(3));
    assert!(shown(4).contains("TWO") && shown(4).ends_with("|u4|four|u5"), "{}", shown(4));
    assert!(!shown(4).contains("three"), "{}", shown(4));
}

#[test]
fn a_reply_cut_off_at_the_models_limit_stays() {
    let usage = Usage { input: 1_000, output: 64_000, ..Usage::default() };
    let cut_off = text_answer("half").map(|r| Reply { stop: StopReason::MaxTokens, usage, ..r });
    let replies = [cut_off, text_answer("whole")];
    let p = play(SPEC, two_turns(9_000).then([user("u3", &long(400))], replies));
    assert!(p.compactions().is_empty() || p.triggers()[0].0 == "threshold");
}

#[test]
fn a_reply_to_a_prompt_beyond_the_window_compacts_and_stands() {
    let over = used(text_answer("fine"), 200_011);
    let script = two_turns(9_000).then([user("u3", &long(400))], [over]);
    let p = play("pi:reserve=0,keep_recent=100", script);
    assert_eq!(p.triggers()[0].0, "overflow");
    assert_eq!(p.samples().len(), 3, "nothing is sent again");
}

#[test]
fn a_summary_that_fails_is_tried_again_at_the_next_check() {
    let length = text_answer("S").map(|r| Reply { stop: StopReason::MaxTokens, ..r });
    let call = calls("", "s1", "read", "{}");
    let error = failure(ErrorKind::Invalid, 400, "no");
    let with = |summaries| {
        let script = two_turns(20_001).then([user("u3", "on")], [text_answer("x")]);
        play(SPEC, script.summaries(summaries))
    };
    for bad in [length, call, error] {
        let p = with(vec![bad, text_answer("LATE")]);
        assert_eq!(failed(&p), 1);
        assert_eq!(p.summaries().len(), 2, "after the run and before the prompt");
        assert!(p.last().blocks[1].text.contains("LATE"));
    }
    // The request is repeated after a transient error, at most three times.
    let p = with(vec![failing(500); 8]);
    assert_eq!(p.summaries().len(), 8);
    assert_eq!(failed(&p), 2);
}

#[test]
fn a_failing_request_is_sent_again_as_often_as_set() {
    let failed = |n: usize| {
        let mut script = two_turns(9_000);
        script.replies.extend(vec![failing(503); n]);
        let more = [user("u3", "on"), user("u4", "off")];
        let script = script.then(more, ["x", "y"].map(text_answer));
        play(&format!("{SPEC},retries=2"), script).failures().len()
    };
    assert_eq!((failed(2), failed(3)), (0, 1));
}

#[test]
fn the_user_may_say_what_matters() {
    let with_instructions = Action::Compact { instructions: Some("names".into()) };
    let p = play(SPEC, two_turns(9_000).then([with_instructions.clone(), with_instructions], []));
    let summary = p.summaries();
    assert!(summary[0].blocks[1].text.ends_with("Give most room to: names"));
    assert_eq!(summary.len(), 1, "just after a compaction there is nothing to do");
    assert_eq!(failed(&p), 1);
    // Everything fits in the tail: a manual compaction reports a failure, and an automatic one does
    // nothing.
    let p = play("pi:reserve=180k", two_turns(20_001));
    assert_eq!((failed(&p), p.summaries().len()), (0, 0));
    let p = play("pi:reserve=180k", two_turns(20_001).then([compact()], []));
    assert_eq!((failed(&p), p.summaries().len()), (1, 0));
}

#[test]
fn without_counters_everything_is_estimated() {
    let parts = vec![Part::Text(long(79_201).into()), image(None)];
    let action = Action::User(Incoming { key: "u1".into(), parts });
    let silent = |text: &str| {
        // The simulated provider counts tokens only if a reply has no usage, so the usage has a
        // single token here.
        text_answer(text).map(|r| Reply { usage: Usage { reasoning: 1, ..Usage::default() }, ..r })
    };
    let script = Script::new(vec![user("u0", "hi"), action], vec![silent("done"), silent("done")]);
    // (79,201 + 4,800) / 4, rounded up, is 21,001; "base", "hi", "done", "done" are 1 each.
    let p = play(SPEC, script);
    assert_eq!(p.triggers()[0], ("threshold", 21_005));
}

#[test]
fn arguments_count_as_the_program_writes_them_again() {
    let believed = |arguments| {
        let call = called(arguments, Usage { reasoning: 1, ..Usage::default() });
        let script = Script::new(vec![user("u1", "go")], vec![call, text_answer("x")]);
        play(SPEC, script.outputs(vec![long(80_400)])).triggers()[0].1
    };
    assert_eq!(believed("{\"a\": 1,\n   \"b\": [1, 2]}"), believed("{\"a\":1,\"b\":[1,2]}"));
    assert_eq!(believed("no JSON at all"), believed("{}"));
}

#[test]
fn going_back_before_a_compaction_undoes_it() {
    let more = [back_to("u2"), user("u3", "other way")];
    let p = play(SPEC, two_turns(20_001).then(more, [text_answer("x")]));
    assert_eq!(p.compactions().len(), 1);
    let last = p.last();
    assert_eq!(kinds(last), [Base, User, Assistant, User, User]);
}

#[test]
fn an_empty_result_is_told_as_such() {
    let script = two_turns(9_000)
        .then([user("u3", "read")], [called("{}", Usage::default()), text_answer("x")])
        .then([Action::Restart, user("u4", "on")], [text_answer("y")]);
    let p = play(SPEC, script.outputs(vec![String::new()]));
    let outputs: Vec<&str> =
        p.last().blocks.iter().filter(|b| b.kind == Output).map(|b| &*b.text).collect();
    assert_eq!(outputs, ["(no tool output)"], "an empty result is told as such");
}
