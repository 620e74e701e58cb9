//! Tests of the newer runner in the benchmark, with compactions requested by the simulated caller,
//! and of the description of the older runner.

use ctxbench_core::block::BlockKind::{
    Assistant, Base, Call, Compaction, CompactionTrigger, Output, Summary, SummaryPrompt, User,
};
use ctxbench_core::prelude::*;
use ctxbench_core::request::Thread;

use crate::testing::{Answer, Script, calls, compaction, failure, kinds, play, text_answer, user};

const MODEL: &str = "claude-sonnet-4-6";

fn named(answer: Answer, id: &str, used: u64) -> Answer {
    crate::testing::used(answer, used, 0).map(|r| Reply { id: Some(id.into()), ..r })
}

fn two_turns(replies: Vec<Answer>) -> Script {
    Script::new(vec![user("u1", "go"), user("u2", "next")], replies)
}

/// Builds two turns with a reply each. The first one reports `used` tokens.
fn two_replies(used: u64) -> Script {
    let done = named(text_answer("done"), "m0", used);
    two_turns(vec![done, named(text_answer("fine"), "m1", 10)])
}

fn after(r: &Request) -> Option<(Arc<str>, usize)> {
    match r.thread.clone() {
        Some(Thread::Continue { after, held }) => Some((after, held)),
        _ => None,
    }
}

#[test]
fn our_caller_asks_at_the_threshold_and_the_compaction_comes_before_the_next_request() {
    let script = two_turns(vec![
        named(calls("", "a", "read", "{}"), "m0", 999),
        named(calls("", "b", "read", "{}"), "m1", 1_000),
        named(text_answer("done"), "m2", 10),
        named(text_answer("fine"), "m3", 10),
    ])
    .summaries(vec![named(compaction("so far"), "c", 0)]);
    let p = play("anthropic-sdk@2.12:compact_at=1000", script.on(MODEL));
    let samples = p.samples();
    assert_eq!(
        (&samples[0].thread, after(samples[1])),
        (&Some(Thread::Create), Some(("m0".into(), 4)))
    );
    let summary = p.summaries()[0];
    // The results of the step that crossed the threshold are included, and the whole prefix was
    // cached before.
    assert_eq!(
        kinds(summary),
        [Base, User, Assistant, Call, Output, Assistant, Call, Output, CompactionTrigger]
    );
    assert_eq!(summary.thread, Some(Thread::Create));
    assert_eq!(
        (kinds(samples[2]), &samples[2].thread),
        (vec![Base, Compaction], &Some(Thread::Create))
    );
    // The next turn continues the thread and sends only the user's message.
    assert_eq!(kinds(samples[3]), [Base, Compaction, Assistant, User]);
    assert_eq!(
        (after(samples[3]), kinds(&samples[3].sent())),
        (Some(("m2".into(), 3)), vec![User])
    );
    assert_eq!(p.compactions(), ["compact_before_next_turn"]);
}

#[test]
fn behind_the_final_answer_it_compacts_too() {
    let script = two_replies(1_000).summaries(vec![named(compaction("so far"), "c", 0)]);
    let p = play("anthropic-sdk@2.12:compact_at=1000", script.on(MODEL));
    assert_eq!(kinds(p.summaries()[0]), [Base, User, Assistant, CompactionTrigger]);
    assert_eq!(kinds(p.samples()[1]), [Base, Compaction, User]);
}

#[test]
fn where_the_provider_cannot_compact_nobody_asks() {
    let script = || two_replies(500_000);
    for model in ["claude-sonnet-4-5", "gpt-5"] {
        let p = play("anthropic-sdk@2.12", script().on(model));
        assert!(p.summaries().is_empty(), "{model}");
    }
    assert_eq!(play("anthropic-sdk@2.12", script().on("gpt-5")).samples()[1].thread, None);
    let p = play("anthropic-sdk@2.12:threads=false,compact_at=0", script().on(MODEL));
    assert_eq!((p.requests.len(), &p.requests[1].thread), (2, &None));
}

#[test]
fn edits_are_passed_through_with_the_defaults_of_the_api() {
    let edits = |setting: &str| {
        let script = two_replies(500_000);
        let p = play(&format!("anthropic-sdk@2.12:edits={setting}"), script.on(MODEL).scaled(0.5));
        (p.samples()[0].server_edits.clone(), p.summaries().len())
    };
    let clear = ServerEdit::clear(ClearTrigger::InputTokens(50_000), 3, 0);
    assert_eq!(edits("clear_tool_uses"), (vec![clear], 1));
    // A compaction on demand and a compaction edit exclude each other.
    assert_eq!(edits("compact"), (vec![ServerEdit::compact(75_000)], 0));
}

#[test]
fn a_lost_thread_is_replayed_from_the_beginning() {
    let code = Some("thread_not_found".into());
    let lost = failure(ErrorKind::Invalid, 404, "gone").map_err(|e| ModelError { code, ..e });
    let script = two_turns(vec![
        named(text_answer("done"), "m0", 10),
        lost,
        named(text_answer("fine"), "m1", 10),
    ]);
    let p = play("anthropic-sdk@2.12", script.on(MODEL));
    assert_eq!(
        (after(&p.requests[1]), &p.requests[2].thread),
        (Some(("m0".into(), 3)), &Some(Thread::Create))
    );
    assert!(p.failures().is_empty());
}

#[test]
fn max_iterations_ends_a_turn() {
    let call = |id| calls("", id, "t", "{}");
    for version in ["", "@2.12", "@described-001"] {
        let script = two_turns(vec![call("a"), call("b"), text_answer("done")]);
        let p = play(&format!("anthropic-sdk{version}:max_iterations=2"), script.on(MODEL));
        assert_eq!(p.requests.len(), 3, "{version}");
        assert!(p.requests[2].blocks.iter().any(|b| &*b.text == "next"), "{version}");
    }
}

#[test]
fn as_described_nothing_is_lost_and_the_threshold_must_be_exceeded() {
    // Messages: "go" 1 + 4; call "{}" 1 + name 1 + 4 and an empty text 0 + 4; output "out" 1 + 4 =
    // 20 tokens.
    let p = |threshold: u64| {
        let script = Script::new(
            vec![user("u1", "go")],
            vec![calls("", "a", "read", "{}"), text_answer("done")],
        );
        play(&format!("anthropic-sdk@described-001:threshold={threshold}"), script.on(MODEL))
    };
    let kept = p(20);
    assert!(
        kept.compactions().is_empty() || kept.samples()[1].blocks.len() == 5,
        "{:?}",
        kept.compactions()
    );
    let done = p(19);
    assert_eq!(kinds(done.summaries()[0]), [User, Assistant, Call, Output, SummaryPrompt]);
    assert_eq!(kinds(done.samples()[1]), [Base, Summary]);
}
