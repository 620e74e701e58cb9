//! Small sessions driven through the agent's loop. At scale 0.01 the window is 2,000 tokens, the
//! gate 1,596, the history cap 82.

use ctxbench_core::context::{Orphans, orphans};
use ctxbench_core::prelude::*;
use proptest::prelude::*;

use crate::Spec;
use crate::testing::{
    Answer, Played, Script, back_to, calls, compaction, kinds, text_answer, too_long, user,
};

const GATE: u64 = 1_596;
const MODEL: &str = "claude-sonnet-4-6";

pub(super) fn play_with(spec: &str, script: Script) -> Played {
    crate::testing::play(spec, script.scaled(0.01))
}

fn play(settings: &str, script: Script) -> Played {
    play_with(&format!("openoxide:{settings}"), script.on(MODEL))
}

pub(super) fn turns(messages: &[&str], replies: &[&str]) -> Script {
    let said = messages.iter().zip(1..).map(|(text, i)| user(&format!("u{i}"), text));
    Script::new(said.collect(), replies.iter().map(|r| text_answer(r)).collect())
}

/// Builds a first turn of 100 words, and a second one.
fn long_and_next() -> Script {
    turns(&[&words(100), "next"], &["done", "fine"])
}

fn texts(all: &[&str]) -> Vec<Answer> {
    all.iter().map(|t| text_answer(t)).collect()
}

fn outputs(sizes: &[usize]) -> Vec<String> {
    sizes.iter().map(|n| words(*n)).collect()
}

fn read(id: &str) -> Answer {
    calls("", id, "read", "{}")
}

fn view(p: &Played) -> Vec<(BlockKind, String)> {
    let short = |text: &str| text.chars().take(5).collect();
    p.engine.context.blocks().iter().map(|b| (b.kind, short(&b.text))).collect()
}

pub(super) fn words(n: usize) -> String {
    "word ".repeat(n)
}

use BlockKind::{Assistant, Base, Call, Compaction, File, Output, RepoMap, Summary, User};

#[test]
fn finished_turns_over_their_budget_are_summarised_beside_the_conversation() {
    let p = play("", long_and_next().summaries(texts(&["asked for words"])));
    let s = p.summaries();
    assert_eq!(s.len(), 1);
    assert_eq!(
        (&*s[0].model.name, s[0].phase, s[0].max_tokens),
        ("claude-haiku-4-5", Some(Phase::Background), Some(82))
    );
    assert!(s[0].blocks[1].text.contains("# USER\nword"));
    // The newest half of the budget stays verbatim: the reply, but not the long message.
    assert_eq!(kinds(p.samples()[1]), [Base, Summary, Assistant, User]);
    assert_eq!(p.compacted(), [("history_summary", Phase::Background)]);
}

#[test]
fn a_summary_that_is_not_ready_holds_nobody_up() {
    let script = turns(&[&words(100), "next", "more"], &["done", "fine", "good"]);
    // The summary is polled before the second request and after its turn.
    let p = play("", script.summaries(texts(&["short"])).ready_after(2));
    assert_eq!(kinds(p.samples()[1]), [Base, User, Assistant, User]);
    assert_eq!(kinds(p.samples()[2]), [Base, Summary, Assistant, User, Assistant, User]);
}

#[test]
fn a_summary_of_what_has_changed_is_thrown_away() {
    let mut script = long_and_next();
    script.actions.insert(1, back_to("u1"));
    let p = play("", script);
    assert_eq!(kinds(p.samples()[1]), [Base, User, User]);
    assert!(p.compactions().is_empty());
}

#[test]
fn a_summary_that_saves_nothing_is_not_used() {
    let p = play("", long_and_next().summaries(texts(&[&words(300)])));
    assert!(p.compactions().is_empty());
}

#[test]
fn clearing_comes_first_and_needs_no_model() {
    let script = Script::new(vec![], vec![])
        .then([user("u1", "go")], [read("a"), read("b"), text_answer("1")])
        .then([user("u2", "go")], [text_answer("2")])
        .then([user("u3", "go")], [read("c"), text_answer("3")])
        .outputs(outputs(&[500, 400, 700]));
    // A history budget of 600 keeps the second tier inactive.
    let p = play("chat_history_max=600k,chat_history_fraction=1", script);
    assert_eq!(p.compacted(), [("prune", Phase::MidTurn)]);
    assert!(p.summaries().is_empty());
    let last = p.samples()[5];
    let cleared: Vec<bool> =
        last.blocks.iter().filter(|b| b.kind == Output).map(|b| b.text.starts_with('[')).collect();
    // The newest 400 tokens of old results are protected. The result that crosses this limit and
    // all older ones are cleared.
    assert_eq!(cleared, [true, true, false]);
    assert!(last.tokens() <= GATE);
}

#[test]
fn one_long_turn_becomes_the_request_and_a_session_summary() {
    let replies = vec![read("a"), read("b"), text_answer("done")];
    let script = Script::new(vec![user("u1", "fix it")], replies)
        .outputs(outputs(&[900, 700]))
        .summaries(texts(&["read two files"]));
    let p = play("", script);
    assert_eq!(kinds(p.samples()[2]), [Base, User, Summary]);
    assert_eq!(&*p.samples()[2].blocks[1].text, "fix it");
    assert_eq!(&*p.summaries()[0].model.name, "claude-sonnet-4-6");
    assert_eq!(p.compacted(), [("session_summary", Phase::MidTurn)]);
    assert!(p.failures().is_empty());
}

#[test]
fn old_history_is_waited_for_when_there_is_no_room() {
    let script = turns(&[&words(900), &words(900)], &["done", "fine"]);
    let p = play("", script.summaries(texts(&["short"])).ready_after(99));
    assert_eq!(p.compacted(), [("history_summary", Phase::PreTurn)]);
    assert_eq!(p.summaries().len(), 2, "one for the first turn, one after the second");
    assert_eq!(kinds(p.samples()[1]), [Base, Summary, Assistant, User]);
}

#[test]
fn a_summary_still_too_large_is_summarised_again() {
    let script = turns(&[&words(100), "next"], &[&words(20), "fine"]);
    let p = play("", script.summaries(texts(&[&words(80), "short"])));
    assert_eq!(p.compactions().len(), 2);
    assert_eq!(kinds(p.samples()[1]), [Base, Summary, User]);
    assert!(p.samples()[1].blocks[1].text.ends_with("short"));
}

#[test]
fn what_cannot_fit_fails_with_advice() {
    let p = play("", turns(&[&words(1_700)], &["never"]));
    let failures = p.failures();
    assert!(
        failures[0].contains("over its limit of 1596") && failures[0].contains("current turn 17"),
        "{failures:?}"
    );
    assert!(p.samples().is_empty());
    let p = play("phases=two,compaction_buffer=500k", turns(&["hi"], &["never"]));
    assert!(
        p.failures()[0].contains("window of 2000") && p.failures()[0].contains("smaller reserve"),
        "{:?}",
        p.failures()
    );
}

#[test]
fn the_provider_is_asked_where_it_can_and_its_compaction_becomes_the_beginning() {
    let call = Part::Call(ToolCall::new("a", "read", "{}"));
    let parts = vec![Part::Compaction(Some("so far".into())), call];
    let compacting = Reply { parts, stop: StopReason::ToolUse, ..Reply::default() };
    let mut script = turns(&[&words(300), &words(300), "next"], &["one", "two", "three"]);
    script.replies.insert(1, Ok(compacting));
    let script = script.repo_map(vec!["map"]).files(vec!["file"]).on(MODEL);
    let p = play_with("openoxide@provider-side", script);
    let samples = p.samples();
    let clear = ServerEdit::clear(ClearTrigger::InputTokens(1_000), 3, 0);
    assert_eq!(samples[0].server_edits, [clear, ServerEdit::compact(1_500)]);
    assert_eq!(kinds(samples[1]), [Base, RepoMap, User, Assistant, File, User]);
    assert_eq!(kinds(samples[2]), [Base, Compaction, Call, Output]);
    assert_eq!(kinds(samples[3]), [Base, Compaction, Call, Output, Assistant, RepoMap, File, User]);
    assert_eq!(p.compacted(), [("server_compaction", Phase::MidTurn)]);
    assert!(p.summaries().is_empty());
}

#[test]
fn a_pause_after_the_providers_compaction_goes_on() {
    let replies = vec![compaction("so far"), text_answer("done")];
    let script = Script::new(vec![user("u1", "go")], replies);
    let p = play_with("openoxide@provider-side", script.on(MODEL));
    assert_eq!(kinds(p.samples()[1]), [Base, Compaction]);
}

#[test]
fn the_provider_is_asked_only_by_its_version_and_only_for_what_it_can() {
    let edits = |spec: &str, model| {
        play_with(spec, turns(&["x"], &["done"]).on(model)).samples()[0].server_edits.len()
    };
    assert_eq!(edits("openoxide", "claude-sonnet-4-6"), 0);
    assert_eq!(edits("openoxide@provider-side", "claude-sonnet-4-6"), 2);
    // This model's provider clears but does not compact.
    assert_eq!(edits("openoxide@provider-side", "claude-sonnet-4-5"), 1);
    let unfit = |spec: &str, model: &str| {
        Spec::parse(spec).unwrap().unfit(ctxbench_core::model::find(model).unwrap())
    };
    assert!(unfit("openoxide@provider-side", "gpt-5").unwrap().contains("Anthropic API only"));
    assert_eq!(unfit("openoxide", "gpt-5"), None);
}

#[test]
fn a_refused_prompt_is_made_smaller_and_sent_again() {
    let mut script = turns(&[&words(400), "next"], &["done", "fine"]).summaries(texts(&["short"]));
    script.replies.insert(1, too_long(2_100, 2_000));
    let p = play("chat_history_max=600k,chat_history_fraction=1", script);
    assert_eq!(p.compacted(), [("session_summary", Phase::MidTurn)]);
    assert_eq!(kinds(p.samples()[2]), [Base, Summary, User]);
    assert!(p.failures().is_empty());
}

#[test]
fn the_user_may_ask_and_say_what_for() {
    let mut script =
        turns(&[&words(60), "next"], &[&words(60), "fine"]).summaries(texts(&["short"]));
    let wish = Some("keep the colours".into());
    script.actions.insert(1, Action::Compact { instructions: wish });
    let p = play("chat_history_max=600k,chat_history_fraction=1", script);
    assert!(p.summaries()[0].blocks.last().unwrap().text.ends_with("keep the colours"));
    assert_eq!(kinds(p.samples()[1]), [Base, User, Summary, User]);
    assert_eq!(p.compacted(), [("session_summary", Phase::StandaloneTurn)]);
}

#[test]
fn going_back_behind_a_compaction_brings_the_history_back() {
    let back = |to: &str| {
        let mut script = long_and_next();
        script.actions.push(back_to(to));
        view(&play("", script))
    };
    assert_eq!(back("u1"), [(Base, "base".into()), (User, "word ".into())]);
    // The compaction was made with this message in the view, so it is kept.
    let kinds: Vec<_> = back("u2").into_iter().map(|v| v.0).collect();
    assert_eq!(kinds, [Base, Summary, Assistant, User]);
}

#[test]
fn two_phases_clear_after_a_turn() {
    let mut script = turns(&["go"; 4], &["1", "2", "3", "4"]).outputs(outputs(&[500, 450]));
    script.replies.splice(0..0, [read("a"), read("b")]);
    let p = play("phases=two", script);
    assert_eq!(p.compacted(), [("prune", Phase::PostTurn)]);
}

#[test]
fn two_phases_summarise_the_session_over_the_buffer_and_have_no_third() {
    // 900 words far exceed the budget of finished turns and fit in the window less the buffer.
    let two = |reply: &str| turns(&[&words(900), "next"], &[reply, "fine"]);
    assert_eq!(play("", two("done")).compactions(), ["history_summary"]);
    assert_eq!(play("phases=two", two("done")).compactions(), [""; 0]);
    // The session's own model writes the summary, not the weak model.
    let p = play("phases=two", two(&words(1_000)));
    assert_eq!(p.compacted(), [("session_summary", Phase::Background)]);
    assert_eq!(kinds(p.samples()[1]), [Base, Summary, User]);
    assert_eq!(p.summaries()[0].model.name, p.samples()[0].model.name);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_request_is_over_the_gate_and_none_is_torn(
        outputs in prop::collection::vec(0usize..1_200, 1..14),
        per_turn in 1usize..5,
        looks in 0u32..3,
        two in any::<bool>(),
    ) {
        let mut replies = Vec::new();
        let mut turns = Vec::new();
        for (i, chunk) in outputs.chunks(per_turn).enumerate() {
            turns.push(user(&format!("u{i}"), "do it"));
            replies.extend((0..chunk.len()).map(|k| calls("look", &format!("{i}-{k}"), "read", "{}")));
            replies.push(text_answer("done"));
        }
        let texts = super::tests::outputs(&outputs);
        let script = Script::new(turns, replies).outputs(texts).ready_after(looks);
        let p = play(if two { "phases=two" } else { "" }, script);
        let gate = if two { 1_800 } else { GATE };
        for r in p.samples() {
            prop_assert!(r.tokens() <= gate, "{} tokens", r.tokens());
            prop_assert_eq!(orphans(&r.blocks), Orphans::default());
            prop_assert!(r.blocks.iter().any(|b| b.kind == User));
        }
        prop_assert!(p.failures().is_empty());
    }
}
