use ctxbench_core::block::BlockKind::{Assistant, Summary};
use ctxbench_core::prelude::*;

use crate::claude_code::tests::reading;
use crate::testing::{Answer, Played, play, text_answer};

/// Runs the session memory at a hundredth: notes from 100 tokens on, updated after 50. At least 100
/// tokens and 5 texts stay, and at most 400 tokens.
fn noted(spec: &str, outputs_of: &[usize], summaries: Vec<Answer>) -> Played {
    play(spec, reading(outputs_of).summaries(summaries).scaled(0.01))
}

#[test]
fn notes_take_the_place_of_a_summary_without_a_call() {
    let sizes = [300, 300, 300, 300, 300, 300, 10];
    let spec = "claude-code:microcompact=off,session_memory=true";
    let p = noted(spec, &sizes, (0..9).map(|i| text_answer(&format!("NOTES {i}"))).collect());
    assert_eq!(p.compactions(), ["session_memory"]);
    let asked = p.summaries();
    assert!(asked.iter().all(|r| r.phase == Some(Phase::Background)), "no summary was waited for");
    // The update uses the prefix of the previous request and shows the earlier notes before the
    // instruction.
    let (second, end) = (asked[1], asked[1].blocks.len());
    assert!(
        second.blocks[end - 2].text.ends_with("NOTES 0")
            && second.blocks[end - 1].kind == BlockKind::SummaryPrompt
    );
    let last = p.last();
    let at = last.blocks.iter().position(|b| b.kind == Summary).unwrap();
    assert!(last.blocks[at].text.contains("NOTES"));
    // A 300-word read has about 380 tokens, so a second one would exceed 400.
    assert_eq!(last.blocks[at + 1].kind, Assistant);
    assert!(ctxbench_core::context::orphans(&last.blocks).results.is_empty());
    // Off by default: the same session requests a summary.
    let off = noted("claude-code:microcompact=off", &sizes, vec![]);
    assert_eq!(
        (off.compactions(), off.summaries()[0].phase),
        (vec!["compact"], Some(Phase::MidTurn))
    );
}

#[test]
fn notes_that_leave_too_much_give_way_to_a_summary() {
    // The tail that the notes do not cover is larger than the threshold.
    let p = noted(
        "claude-code@2.1:microcompact=off,session_memory=true,memory_growth_tokens=900k",
        &[120, 1_700, 10],
        vec![],
    );
    assert_eq!(p.compactions(), ["compact"]);
    // Notes longer than the replaced blocks do not help either.
    let long = || text_answer(&"note ".repeat(2_000));
    let p = noted(
        "claude-code:microcompact=off,session_memory=true",
        &[300; 7],
        (0..9).map(|_| long()).collect(),
    );
    assert_eq!(p.compactions()[0], "compact");
}
