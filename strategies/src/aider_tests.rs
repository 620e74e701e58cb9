use std::collections::HashSet;

use ctxbench_core::engine::Action;
use ctxbench_core::request::{Purpose, Request};
use proptest::prelude::*;

use super::*;
use crate::testing::{Answer, Played, Script, calls, play, says, user};

const PATH: &str = r#"{"path":"a.rs"}"#;

/// Turns of a user message, an edit and a closing reply, each message of about `words` tokens.
fn edit_turns(turns: usize, words: usize) -> (Vec<Action>, Vec<Answer>) {
    let text = |who: &str, i: usize| format!("{who}{i}{}", " word".repeat(words));
    let actions = (0..turns).map(|i| user(&format!("m{i}"), &text("u", i))).collect();
    let replies = (0..turns).flat_map(|i| [calls(&text("a", i), &format!("c{i}"), "edit_file", PATH), says(&text("z", i))]).collect();
    (actions, replies)
}

fn outline(r: &Request) -> Vec<String> {
    Played::outline(r)
}

fn kinds(r: &Request) -> Vec<BlockKind> {
    r.blocks.iter().map(|b| b.kind).collect()
}

#[test]
fn the_prompt_stands_in_aiders_order_and_has_no_tools() {
    let (actions, replies) = edit_turns(2, 3);
    let p = play(
        "aider",
        1.0,
        Script { actions, replies, files: vec!["file"], memory: vec!["memory"], repo_map: vec!["map"], ..Script::default() },
    );
    let last = p.requests.last().unwrap();
    let expected = [
        "Base:base",
        "Context:memory",
        "Assistant:Ok.",
        "RepoMap:map",
        "Assistant:Ok.",
        "User:u0 word word word",
        "Assistant:a0 word word word",
        "Assistant:edit_file {\"path\":\"a.rs\"",
        "User:edit_file:\nout",
        "Assistant:z0 word word word",
        "User:The changes are written ",
        "Assistant:Ok.",
        "File:file",
        "Assistant:Ok.",
        "User:u1 word word word",
        "Assistant:a1 word word word",
        "Assistant:edit_file {\"path\":\"a.rs\"",
        "User:edit_file:\nout",
    ];
    assert_eq!(outline(last)[..expected.len()], expected);
    assert_eq!((last.blocks.len(), last.blocks.last().unwrap().kind), (expected.len() + 1, BlockKind::Reminder));
    assert!(p.requests.iter().all(|r| r.tools.is_none() && r.breakpoints.is_empty()));
    assert!(p.requests.iter().flat_map(|r| &r.blocks).all(|b| b.call.is_none()));
}

#[test]
fn without_an_edit_nothing_is_ever_shortened() {
    let actions = (0..30).map(|i| user(&format!("m{i}"), &"word ".repeat(100))).collect();
    let replies = (0..30).map(|_| says(&"word ".repeat(100))).collect();
    let p = play("aider:max_chat_history_tokens=200", 1.0, Script { actions, replies, ..Script::default() });
    assert_eq!((p.of(Purpose::Summary).len(), p.compactions().len()), (0, 0));
    assert_eq!(p.requests.last().unwrap().blocks.len(), 1 + 59 + 1);
}

#[test]
fn a_background_summary_replaces_what_it_covers() {
    // Three turns of about 250 tokens are over the budget; the summary is there at the first request of the fourth.
    let (actions, replies) = edit_turns(4, 60);
    let summaries = vec![says("short")];
    let p = play("aider:max_chat_history_tokens=700", 1.0, Script { actions, replies, summaries, ..Script::default() });
    let asked = p.of(Purpose::Summary);
    assert_eq!((&*asked[0].model, asked[0].phase, asked[0].tools.is_none()), ("claude-haiku-4-5", Some(Phase::Background), true));
    assert!(asked[0].blocks[1].text.starts_with("# USER\nu0 word") && asked[0].blocks[1].text.contains("# ASSISTANT\na0 word"));
    assert_eq!(p.compactions(), ["summary"]);
    let at = p.requests.iter().position(|r| kinds(r).contains(&BlockKind::Summary)).unwrap();
    let shown = outline(&p.requests[at]);
    assert_eq!(shown[..2], ["Base:base", "Summary:Before this we spoke abo"]);
    assert!(p.requests[at].blocks[1].text.ends_with("\nshort"));
    // Behind the summary: the tail, the two messages appended after the snapshot, then the new turn.
    let notice = shown.iter().rposition(|b| b.starts_with("User:The changes")).unwrap();
    assert_eq!(shown[notice + 1], "Assistant:Ok.");
    assert!(shown[notice + 2].starts_with("User:u"));
    let covered = &p.requests[at].blocks[1].origin;
    assert!(covered.iter().any(|o| o.message == MessageId(0)));
}

#[test]
fn as_shipped_the_summary_is_paid_for_and_thrown_away() {
    let (actions, replies) = edit_turns(5, 60);
    let p = play("aider:as_shipped=true,max_chat_history_tokens=700", 1.0, Script { actions, replies, ..Script::default() });
    assert!(p.of(Purpose::Summary).len() >= 2);
    assert!(p.compactions().is_empty());
    assert!(p.requests.iter().all(|r| !kinds(r).contains(&BlockKind::Summary)));
}

#[test]
fn a_long_summary_is_summarised_with_its_tail() {
    let (actions, replies) = edit_turns(4, 60);
    let summaries = vec![says(&"long ".repeat(690)), says("second")];
    let p = play("aider:max_chat_history_tokens=700", 1.0, Script { actions, replies, summaries, ..Script::default() });
    let asked = p.of(Purpose::Summary);
    assert!(asked.len() >= 2 && asked[1].blocks[1].text.starts_with("# USER\nBefore this we spoke about several things, in short:\nlong"));
}

#[test]
fn the_main_model_answers_when_the_weak_one_fails() {
    let (actions, replies) = edit_turns(4, 60);
    let failed = Err(ModelError { kind: ErrorKind::Server, status: 500, code: None, message: "no".into() });
    let p = play(
        "aider:max_chat_history_tokens=700",
        1.0,
        Script { actions, replies, summaries: vec![failed, says("by main")], ..Script::default() },
    );
    let asked = p.of(Purpose::Summary);
    assert_eq!((&*asked[0].model, &*asked[1].model), ("claude-haiku-4-5", "claude-sonnet-4-5"));
    assert_eq!(p.compactions().first(), Some(&"summary"));
}

#[test]
fn breakpoints_only_when_asked_for() {
    let (actions, replies) = edit_turns(1, 3);
    let script = Script { actions, replies, files: vec!["file"], repo_map: vec!["map"], ..Script::default() };
    let p = play("aider:cache_prompts=true", 1.0, script);
    let r = &p.requests[0];
    let marked: Vec<String> = r.breakpoints.iter().map(|&i| outline(r)[i].clone()).collect();
    assert_eq!((r.breakpoints.clone(), marked.len()), (vec![0, 2, 4], 3));
}

#[test]
fn an_oversize_prompt_is_a_question_to_the_user() {
    let actions = || vec![user("m", &"word ".repeat(300))];
    let p = play("aider:oversize=decline", 0.001, Script { actions: actions(), replies: vec![says("x")], ..Script::default() });
    assert_eq!((p.requests.len(), p.interventions(), p.failures().len()), (0, 1, 1));
    // The message stays where it is.
    assert_eq!(p.engine.context.blocks().len(), 2);
    let p = play("aider", 0.001, Script { actions: actions(), replies: vec![says("x")], ..Script::default() });
    assert_eq!((p.requests.len(), p.interventions()), (1, 1));
    assert_ne!(p.requests[0].blocks.last().unwrap().kind, BlockKind::Reminder, "no room for it");
}

#[test]
fn a_restart_forgets_unless_the_file_is_read_again() {
    let script = || {
        let (mut actions, mut replies) = edit_turns(1, 3);
        actions.extend([Action::Restart, user("n", "again")]);
        replies.push(says("yes"));
        Script { actions, replies, ..Script::default() }
    };
    let p = play("aider", 1.0, script());
    assert_eq!(outline(p.requests.last().unwrap())[..2], ["Base:base", "User:again"]);
    let p = play("aider:restore=true", 1.0, script());
    let shown = outline(p.requests.last().unwrap());
    assert_eq!(shown[1], "User:u0 word word word  \n");
    assert_eq!(shown[shown.len() - 2], "User:again");
}

#[test]
fn a_rewind_takes_later_messages_out_of_both_lists() {
    let (mut actions, mut replies) = edit_turns(2, 3);
    actions.extend([Action::Rewind { to: "m0".into() }, user("n", "other")]);
    replies.push(says("yes"));
    let p = play("aider", 1.0, Script { actions, replies, ..Script::default() });
    assert_eq!(outline(p.requests.last().unwrap())[..3], ["Base:base", "User:u0 word word word", "User:other"]);
}

#[test]
fn restored_history_may_be_summarised_even_as_shipped() {
    let (mut actions, mut replies) = edit_turns(3, 60);
    actions.extend([Action::Restart, user("n", "again")]);
    replies.push(says("yes"));
    let p = play("aider:as_shipped=true,restore=true,max_chat_history_tokens=300", 1.0, Script { actions, replies, ..Script::default() });
    assert_eq!(p.compactions(), ["summary"]);
    assert!(kinds(p.requests.last().unwrap()).contains(&BlockKind::Summary));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn everything_said_is_shown_or_stands_in_a_summary(turns in prop::collection::vec((any::<bool>(), 1usize..120), 1..12)) {
        let actions = turns.iter().enumerate().map(|(i, (_, n))| user(&format!("m{i}"), &"word ".repeat(*n))).collect();
        let reply = |i: usize, edit: bool, n: usize| {
            let tool = if edit { "edit_file" } else { "read_file" };
            [calls(&"said ".repeat(n), &format!("c{i}"), tool, PATH), says("done")]
        };
        let replies = turns.iter().enumerate().flat_map(|(i, (edit, n))| reply(i, *edit, *n)).collect();
        let p = play("aider:max_chat_history_tokens=300", 1.0, Script { actions, replies, ..Script::default() });
        prop_assert!(p.failures().is_empty());
        let covered: HashSet<_> = p.engine.context.blocks().iter().flat_map(|b| b.origin.iter().copied()).collect();
        let said = p.engine.history.messages().iter().filter(|m| !m.synthetic);
        let parts: usize = said.map(|m| m.parts.len()).sum();
        prop_assert_eq!(covered.len(), parts);
        // A shortened history is asked for by an edit and by nothing else.
        prop_assert!(turns.iter().any(|(edit, _)| *edit) || p.requests.iter().all(|r| r.purpose == Purpose::Sample));
    }
}
