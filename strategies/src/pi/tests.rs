//! Tests of pi's facts (docs/sources/pi.md), in a window of 200,000 tokens. 180,000 are reserved,
//! so prompts of more than 20,000 compact.

use ctxbench_core::block::{BlockKind, Media};
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::engine::{Action, Event, Incoming};
use ctxbench_core::request::{ErrorKind, Reply, StopReason, Usage};

use crate::testing::{
    Answer, Played, Script, back_to, calls, failure, kinds, play, text_answer, too_long, user,
};

const SPEC: &str = "pi:reserve=180k,keep_recent=100";

/// Sets the total tokens that a reply reports.
fn used(answer: Answer, total: u64) -> Answer {
    answer
        .map(|r| Reply { usage: Usage { input: total - 10, output: 10, ..Usage::default() }, ..r })
}

fn cut_off(text: &str, output: u64) -> Answer {
    let usage = Usage { input: 1_000, output, ..Usage::default() };
    text_answer(text).map(|r| Reply { stop: StopReason::MaxTokens, usage, ..r })
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
fn two_turns(
    total: u64,
    more: Vec<Action>,
    replies: Vec<Answer>,
    summaries: Vec<Answer>,
) -> Script {
    let actions = [vec![user("u1", "first"), user("u2", &long(400))], more].concat();
    let replies =
        [vec![used(text_answer("one"), 2_000), used(text_answer("two"), total)], replies].concat();
    Script::new(actions, replies).summaries(summaries)
}

#[test]
fn the_threshold_itself_does_not_compact() {
    for (total, compactions) in [(20_000, 0), (20_001, 1)] {
        let p = play(SPEC, two_turns(total, vec![], vec![], vec![]));
        assert_eq!(p.compactions().len(), compactions, "{total}");
    }
    let off = play(&format!("{SPEC},auto=false"), two_turns(90_000, vec![], vec![], vec![]));
    assert!(off.compactions().is_empty());
}

#[test]
fn a_cut_between_turns_takes_one_request() {
    let p =
        play(SPEC, two_turns(20_001, vec![user("u3", "go on")], vec![text_answer("x")], vec![]));
    let summary = p.summaries();
    assert_eq!(summary.len(), 1);
    let prompt = &summary[0].blocks[1].text;
    assert!(prompt.contains("[User]: first\n\n[Assistant]: one\n</conversation>"), "{prompt}");
    assert!(summary[0].tools.is_none() && summary[0].breakpoints.is_empty());
    let last = p.last();
    use BlockKind::{Assistant, Base, Summary, User};
    assert_eq!(kinds(last), [Base, Summary, User, Assistant, User]);
    assert!(last.blocks[1].text.contains("\nS\n"), "{}", last.blocks[1].text);
}

#[test]
fn a_turn_is_cut_between_its_steps_before_the_next_request() {
    let script = Script::new(
        vec![user("u1", "compare")],
        vec![
            used(calls("a", "c1", "read", r#"{"path":"a"}"#), 5_000),
            used(calls("b", "c2", "read", r#"{"path": "b"}"#), 19_990),
            text_answer("done"),
        ],
    )
    .outputs(vec![long(80), long(400)]);
    let p = play(SPEC, script);
    // 19,990 and 100 for the newest result.
    assert_eq!(p.triggers(), [("threshold", 20_090)]);
    let summary = p.summaries();
    assert_eq!(summary.len(), 1, "nothing lies before the turn");
    let prompt = &summary[0].blocks[1].text;
    assert!(prompt.contains("[Assistant tool calls]: read(path=\"a\")\n\n[Tool result]: xxx"));
    let shown = &p.last().blocks;
    let text = &shown[1].text;
    assert!(text.contains("Nothing before it\n\n---\n\n") && text.contains("<read-files>\na\n"));
    assert!(!text.contains("\nb\n"), "its call is in the tail");
    assert_eq!(shown.len(), 5, "summary, then the newest step: {:?}", Played::outline(p.last()));
}

#[test]
fn a_split_turn_without_whole_turns_before_it_keeps_the_summary_before() {
    let p = play(
        "pi:reserve=180k,keep_recent=100",
        Script::new(
            vec![user("u1", "first"), user("u2", &long(400)), user("u3", "again")],
            vec![
                used(text_answer("one"), 2_000),
                used(text_answer("two"), 20_001),
                used(calls("a", "c1", "read", r#"{"path":"z"}"#), 5_000),
                used(calls("b", "c2", "edit", r#"{"path":"y"}"#), 5_100),
                used(text_answer(&long(800)), 20_001),
                text_answer("end"),
            ],
        )
        .outputs(vec![long(40), long(40)])
        .summaries(vec![text_answer("ONE"), text_answer("TWO"), text_answer("TURN")]),
    );
    let summaries = p.summaries();
    assert_eq!(summaries.len(), 3, "an update and a turn's beginning");
    let update = &summaries[1].blocks[1].text;
    assert!(update.contains("<previous-summary>\nONE\n</previous-summary>"), "{update}");
    assert!(!summaries[2].blocks[1].text.contains("ONE"), "the turn's own frame knows no summary");
    let events = &p.engine.events;
    let after = events.iter().rev().find_map(|e| match &e.event {
        Event::Compaction { after, .. } => Some(after),
        _ => None,
    });
    let text = &after.unwrap()[1].text;
    assert!(text.contains("TWO\n\n---\n\n") && text.contains("TURN\n\n<read-files>\nz\n"));
    assert!(text.contains("<modified-files>\ny\n"), "{text}");
}

#[test]
fn a_refusal_for_length_is_hidden_and_the_run_goes_on_once() {
    let replies = vec![too_long(210_000, 200_000), text_answer("whole"), text_answer("bye")];
    let more = vec![user("u3", &long(400)), user("u4", "bye")];
    let p = play(SPEC, two_turns(9_000, more.clone(), replies, vec![]));
    assert_eq!(p.compactions().len(), 1);
    assert!(p.failures().is_empty());
    assert_eq!(p.triggers()[0].0, "overflow");
    // The refused prompt is summarised too, because it has no answer.
    let retried = p.samples()[3];
    assert_eq!(kinds(retried), [BlockKind::Base, BlockKind::Summary]);

    let replies = vec![too_long(210_000, 200_000), too_long(210_000, 200_000), text_answer("bye")];
    let p = play(SPEC, two_turns(9_000, more, replies, vec![]));
    assert_eq!(p.compactions().len(), 1);
    assert_eq!(p.failures().len(), 1);
    // Reported when the run ends and again before the next prompt.
    assert_eq!(failed(&p), 2);
    assert_eq!(kinds(p.last()).len(), 3, "the session keeps the compaction");
}

#[test]
fn a_reply_cut_off_below_its_limit_is_left_out() {
    let more = vec![user("u3", &long(400))];
    let p = play(
        SPEC,
        two_turns(9_000, more.clone(), vec![cut_off("half", 700), text_answer("whole")], vec![]),
    );
    assert_eq!(p.compactions().len(), 1);
    let last = p.last();
    assert!(last.blocks.iter().all(|b| !b.text.contains("half")));
    // A reply at the model's limit is kept.
    let p = play(SPEC, two_turns(9_000, more, vec![cut_off("half", 64_000)], vec![]));
    assert!(p.compactions().is_empty() || p.triggers()[0].0 == "threshold");
}

#[test]
fn a_reply_to_a_prompt_beyond_the_window_compacts_and_stands() {
    let usage = Usage { input: 200_001, output: 10, ..Usage::default() };
    let over = text_answer("fine").map(|r| Reply { usage, ..r });
    let p = play(
        "pi:reserve=0,keep_recent=100",
        two_turns(9_000, vec![user("u3", &long(400))], vec![over], vec![]),
    );
    assert_eq!(p.triggers()[0].0, "overflow");
    assert_eq!(p.samples().len(), 3, "nothing is sent again");
}

#[test]
fn a_summary_that_fails_is_tried_again_at_the_next_check() {
    let length = text_answer("S").map(|r| Reply { stop: StopReason::MaxTokens, ..r });
    let call = calls("", "s1", "read", "{}");
    let error = failure(ErrorKind::Invalid, 400, "no");
    for bad in [length, call, error] {
        let more = vec![user("u3", "on")];
        let p = play(
            SPEC,
            two_turns(20_001, more, vec![text_answer("x")], vec![bad, text_answer("LATE")]),
        );
        assert_eq!(failed(&p), 1);
        assert_eq!(p.summaries().len(), 2, "after the run and before the prompt");
        assert!(p.last().blocks[1].text.contains("LATE"));
    }
    // The request is repeated after a transient error, at most three times.
    let bad: Vec<Answer> = (0..8).map(|_| failing(500)).collect();
    let p = play(SPEC, two_turns(20_001, vec![user("u3", "on")], vec![text_answer("x")], bad));
    assert_eq!(p.summaries().len(), 8);
    assert_eq!(failed(&p), 2);
    // An empty text is a summary.
    let p = play(SPEC, two_turns(20_001, vec![], vec![], vec![text_answer("")]));
    assert_eq!((failed(&p), p.compactions().len()), (0, 1));
}

#[test]
fn a_failing_request_is_sent_again_as_often_as_set() {
    let script = |n: usize| {
        let replies =
            (0..n).map(|_| failing(503)).chain([text_answer("x"), text_answer("y")]).collect();
        two_turns(9_000, vec![user("u3", "on"), user("u4", "off")], replies, vec![])
    };
    let p = play(&format!("{SPEC},retries=2"), script(2));
    assert!(p.failures().is_empty());
    let p = play(&format!("{SPEC},retries=2"), script(3));
    assert_eq!(p.failures().len(), 1);
}

#[test]
fn the_user_may_say_what_matters() {
    let compact = Action::Compact { instructions: Some("names".into()) };
    let more = vec![compact.clone(), compact];
    let p = play(SPEC, two_turns(9_000, more, vec![], vec![]));
    let summary = p.summaries();
    assert!(summary[0].blocks[1].text.ends_with("Give most room to: names"));
    assert_eq!(summary.len(), 1, "just after a compaction there is nothing to do");
    assert_eq!(failed(&p), 1);
    // Everything fits in the tail: a manual compaction reports a failure, and an automatic one does
    // nothing.
    let small = |more| two_turns(20_001, more, vec![], vec![]);
    let p = play("pi:reserve=180k", small(vec![]));
    assert_eq!((failed(&p), p.summaries().len()), (0, 0));
    let p = play("pi:reserve=180k", small(vec![Action::Compact { instructions: None }]));
    assert_eq!((failed(&p), p.summaries().len()), (1, 0));
}

#[test]
fn without_counters_everything_is_estimated() {
    let image = Part::Image(Media {
        media_type: "image/png".into(),
        url: "data:image/png;base64,AAAA".into(),
        name: None,
    });
    let action = Action::User(Incoming {
        key: "u1".into(),
        parts: vec![Part::Text(long(79_201).into()), image.clone()],
    });
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
    let call = |arguments: &str| {
        Script::new(
            vec![user("u1", "go")],
            vec![
                Ok(Reply {
                    parts: vec![Part::Call(ToolCall::new("c1", "edit", arguments))],
                    stop: StopReason::ToolUse,
                    usage: Usage { reasoning: 1, ..Usage::default() },
                    ..Reply::default()
                }),
                text_answer("x"),
            ],
        )
        .outputs(vec![long(80_400)])
    };
    let believed = |arguments| play(SPEC, call(arguments)).triggers()[0].1;
    assert_eq!(believed("{\"a\": 1,\n   \"b\": [1, 2]}"), believed("{\"a\":1,\"b\":[1,2]}"));
    assert_eq!(believed("no JSON at all"), believed("{}"));
}

#[test]
fn going_back_before_a_compaction_undoes_it() {
    let more = vec![back_to("u2"), user("u3", "other way")];
    let p = play(SPEC, two_turns(20_001, more, vec![text_answer("x")], vec![]));
    assert_eq!(p.compactions().len(), 1);
    let last = p.last();
    use BlockKind::{Assistant, Base, User};
    assert_eq!(kinds(last), [Base, User, Assistant, User, User]);
}

#[test]
fn an_empty_result_is_told_as_such() {
    let mut script = two_turns(9_000, vec![], vec![], vec![]);
    script.actions.push(user("u3", "read"));
    script.actions.push(Action::Restart);
    script.actions.push(user("u4", "on"));
    script.replies.push(Ok(Reply {
        parts: vec![Part::Call(ToolCall::new("c1", "read", "{}"))],
        stop: StopReason::ToolUse,
        ..Reply::default()
    }));
    script.replies.push(text_answer("x"));
    script.replies.push(text_answer("y"));
    script.outputs = vec![String::new()];
    let p = play(SPEC, script);
    let outputs: Vec<&str> =
        p.last().blocks.iter().filter(|b| b.kind == BlockKind::Output).map(|b| &*b.text).collect();
    assert_eq!(outputs, ["(no tool output)"], "an empty result is told as such");
}
