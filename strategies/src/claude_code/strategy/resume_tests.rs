use ctxbench_core::prelude::*;

use crate::testing::{Played, Script, kinds, outline, play, text_answer, user};

const HOUR_MS: u64 = 3_600_000;

/// Runs two turns, a pause, a restart and a third turn. At a scale of 0.01 the dialog appears from
/// 1,000 tokens on. `words` = size of the first message in tokens.
fn resumed(spec: &str, words: usize, ms: u64) -> Played {
    let first = "word ".repeat(words);
    let actions = vec![
        user("m", &first),
        user("n", "second"),
        Action::Idle { ms },
        Action::Restart,
        user("o", "third"),
    ];
    let replies = ["a", "b", "c"].map(text_answer).into();
    play(spec, Script::new(actions, replies).scaled(0.01))
}

fn summaries(spec: &str, words: usize, ms: u64) -> usize {
    resumed(spec, words, ms).summaries().len()
}

#[test]
fn a_summary_and_the_newest_exchange_are_what_a_resumed_session_goes_on_with() {
    let p = resumed("claude-code:resume=summary", 1_100, HOUR_MS + 1);
    let asked = p.summaries();
    assert_eq!((asked.len(), asked[0].phase), (1, Some(Phase::StandaloneTurn)));
    assert_eq!(outline(p.last())[2..], ["User:second", "Assistant:b", "User:third"]);
    assert_eq!(p.last().blocks[1].kind, BlockKind::Summary);
    // With a value of zero, no message stays.
    let p = resumed("claude-code:resume=summary,resume_keep_messages=0", 1_100, HOUR_MS + 1);
    assert_eq!(kinds(p.last()), [BlockKind::Base, BlockKind::Summary, BlockKind::User]);
}

#[test]
fn only_a_large_session_after_a_long_pause_is_offered_one() {
    // docs/sources/claude-code.md §1.5: about an hour, 100,000 tokens.
    assert_eq!(summaries("claude-code:resume=summary", 1_100, HOUR_MS / 2), 0);
    assert_eq!(summaries("claude-code:resume=summary", 900, HOUR_MS + 1), 0);
    assert_eq!(summaries("claude-code", 1_100, HOUR_MS + 1), 0, "the user takes the whole");
    assert_eq!(summaries("claude-code:resume=summary,hook_blocks=manual", 1_100, HOUR_MS + 1), 0);
}
