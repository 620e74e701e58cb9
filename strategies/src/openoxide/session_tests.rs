//! Tests of state that passes from one session to the next (docs/sources/opencode-vs-claude-code.md
//! §10.3, §10.9).

use ctxbench_core::block::BlockKind::{self, Context, Summary, User};
use ctxbench_core::host::Action;

use crate::testing::{Played, Script, compact, play, text_answer, user};

const MINE: &str = "# CLAUDE.md\n\nmine\n\n## Next steps\n- ask Ada";
const SUMMARY: &str = "## Goal\n- a till\n## Decisions and why\n- keep SQLite: it is there\n\
    ## Exact values to keep\n- 7443\n## Next steps\n- (none)\n- Ask  Ada";

/// Runs two compactions with the same summary, and then a new session with one message.
fn two_sessions(spec: &str) -> Played {
    let long = "word ".repeat(400);
    let script = Script::new(vec![], vec![])
        .then([user("u1", &long), compact()], [text_answer("yes")])
        .then([user("u2", &long), compact()], [text_answer("yes")])
        .then([Action::NewSession, user("u3", "and now?")], [text_answer("this")])
        .summaries([SUMMARY, SUMMARY, "told before"].map(text_answer).into());
    play(spec, script.memory(vec![MINE]))
}

/// Returns the kinds and texts of the blocks of the last normal request.
fn last(played: &Played) -> Vec<(BlockKind, String)> {
    let samples = played.samples();
    let blocks = samples.last().unwrap().blocks.iter().filter(|b| b.kind != BlockKind::Base);
    blocks.map(|b| (b.kind, b.text.to_string())).collect()
}

#[test]
fn lasting_facts_go_to_the_memory_file_and_stand_in_the_next_session() {
    let played = two_sessions("openoxide");
    let merged = "# CLAUDE.md\n\nmine\n\n## Next steps\n- ask Ada\n\n## Decisions and why\n\
        - keep SQLite: it is there";
    let expected = [(Context, merged.to_string()), (User, "and now?".to_string())];
    assert_eq!(last(&played), expected, "once each, what a person wrote as it was");
    // The session that wrote these facts has them in its summary, so its prefix does not change.
    let second = &played.samples()[1].blocks;
    assert!(second.iter().any(|b| &*b.text == MINE));
    assert_eq!(played.summaries().len(), 2, "no request more");
}

#[test]
fn a_new_session_is_told_of_the_one_before() {
    let played = two_sessions("openoxide:migration=false,cross_session=true");
    let told = "Summary of the session before this one:\ntold before".to_string();
    let expected = [(Context, MINE.to_string()), (Summary, told), (User, "and now?".to_string())];
    assert_eq!(last(&played), expected);
    assert_eq!(played.summaries().len(), 3, "written when the session ends");
}

#[test]
fn of_a_session_in_which_nothing_was_said_nothing_is_told() {
    let script =
        Script::new(vec![Action::NewSession, user("u1", "hello")], vec![text_answer("yes")]);
    let played = play("openoxide:cross_session=true", script);
    assert_eq!(last(&played), [(User, "hello".to_string())]);
    assert!(played.summaries().is_empty());
}
