use super::*;
use crate::claude_code::tests::reading;
use crate::testing::{
    Answer, Played, Script, cleared, compact, kinds, play, text_answer, too_long, user,
};

fn script(sizes: &[usize], summaries: Vec<Answer>) -> Script {
    reading(sizes).summaries(summaries)
}

const ANSWER: &str = "## Goal\n- the goal\n\n## Project Memory\n- the port is 8443\n- root\n\n## \
    Next Steps\n- go on";

// Window 2,000 at a hundredth: 001 compacts at 1,840, the actual program at 1,670.

#[test]
fn wu2_acts_at_92_percent_and_moves_facts_to_the_memory_file() {
    let mut s = script(&[700, 700, 250, 250, 10], vec![text_answer(ANSWER)]);
    s.memory = vec!["# CLAUDE.md\n\n- root"];
    let p = play("claude-code@described-001", s.scaled(0.01));
    assert_eq!(p.compactions(), ["wU2"]);
    let after =
        p.requests.iter().find(|r| r.blocks.iter().any(|b| b.kind == BlockKind::Summary)).unwrap();
    assert_eq!(kinds(after)[..3], [BlockKind::Base, BlockKind::Context, BlockKind::Summary]);
    // Each fact appears once: the memory file does not repeat its text, and the summary omits the
    // section.
    assert_eq!(
        &*after.blocks[1].text,
        "# CLAUDE.md\n\n- root\n\n## Project Memory\n- the port is 8443"
    );
    assert!(after.blocks[2].text.contains("the goal") && after.blocks[2].text.contains("go on"));
    assert!(!after.blocks[2].text.contains("8443"));
    // At most half of the window is full.
    assert!(estimate(&after.blocks) <= 1_000, "{}", estimate(&after.blocks));
    assert!(after.blocks.len() > 3, "messages stay");
}

#[test]
fn wu2_keeps_the_last_ten_messages_where_they_fit() {
    // Large steps first, then small ones. Ten messages are five steps of text + call and result.
    let p = play(
        "claude-code@described-001",
        script(&[1_400, 20, 20, 20, 20, 300, 10], vec![]).scaled(0.01),
    );
    assert_eq!(p.compactions(), ["wU2"]);
    let at = p.requests.iter().position(|r| r.purpose == Purpose::Summary).unwrap();
    let (asked, after) = (&p.requests[at], &p.requests[at + 1]);
    assert_eq!(after.blocks.iter().filter(|b| b.kind == BlockKind::Output).count(), 5);
    assert_eq!(after.blocks.len(), 2 + 5 * 3);
    // The actual program would have compacted earlier and kept none of these messages.
    assert!(asked.tokens() > 1_670);
}

#[test]
fn what_moved_to_memory_survives_every_later_compaction() {
    let answers = [ANSWER, "## Project Memory\n- the host is db1\n- the port is 8443"]
        .map(text_answer)
        .to_vec();
    let p =
        play("claude-code@described-001", script(&[900, 900, 900, 900, 10], answers).scaled(0.01));
    assert_eq!(p.compactions(), ["wU2", "wU2"]);
    let memory = &p.last().blocks[1];
    assert_eq!((memory.kind, memory.text.matches("8443").count()), (BlockKind::Context, 1));
    assert!(memory.text.ends_with("- the host is db1"));
}

#[test]
fn wu2_neither_compacts_on_command_nor_answers_an_overflow() {
    let actions = vec![user("m", "go"), compact(), user("n", "on")];
    let replies = vec![text_answer("a"), too_long(9, 8)];
    let p = play("claude-code@described-001", Script::new(actions, replies));
    assert!(p.summaries().is_empty() && p.failures().len() == 1);
}

#[test]
fn the_first_tier_clears_before_every_request() {
    let p = play("claude-code@described-002", script(&[10; 6], vec![]));
    let samples: Vec<usize> = p.samples().into_iter().map(cleared).collect();
    assert_eq!(samples, [0, 0, 0, 0, 1, 2, 3]);
    let facts = play("claude-code", script(&[10; 6], vec![]));
    assert!(facts.requests.iter().all(|r| cleared(r) == 0), "below the warning level nothing goes");
}

#[test]
fn the_second_tier_cuts_the_unsent_end_only() {
    // Two 900-word results make about 2,300 tokens of four bytes, over a threshold of 1,670.
    let p = play("claude-code@described-002", script(&[900, 900, 10], vec![]).scaled(0.01));
    assert!(p.compactions().contains(&"tail_cut"));
    let samples = p.samples();
    let (before, cut) = (samples[1], samples[2]);
    assert!(
        before.blocks.iter().zip(&cut.blocks).all(|(a, b)| a.hash == b.hash),
        "what was sent stays"
    );
    let end = cut.blocks.last().unwrap();
    assert!(end.form == BlockForm::Truncated && end.text.contains("cut to keep"));
    assert!(end.text.len() < 4_500 && end.text.len() > 450);
}

#[test]
fn the_third_tier_uses_notes_before_it_calls_for_a_summary() {
    // 260-word results: cutting the newest one does not free enough, so the third tier runs.
    let p: Played =
        play("claude-code@described-002:micro_keep=99", script(&[260; 9], vec![]).scaled(0.01));
    assert!(p.compactions().contains(&"session_memory"), "{:?}", p.compactions());
    assert!(p.summaries().iter().all(|r| r.phase == Some(Phase::Background)));
}
