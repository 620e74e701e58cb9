use ctxbench_core::engine::Action;
use ctxbench_core::request::{Purpose, Request};

use super::*;
use crate::testing::{Answer, Played, Script, calls, play, says, too_long, user};

/// `n` reads of `a.rs`, `b.rs`, … in one turn, then a closing reply. Outputs come from the script.
fn reads(n: usize) -> Vec<Answer> {
    let path = |i: usize| format!(r#"{{"path":"f{i}.rs"}}"#);
    (0..n).map(|i| calls("look", &format!("c{i}"), "read_file", &path(i))).chain([says("done")]).collect()
}

fn outputs(sizes: &[usize]) -> Vec<String> {
    sizes.iter().enumerate().map(|(i, n)| format!("{i}{}", " word".repeat(*n))).collect()
}

fn kinds(r: &Request) -> Vec<BlockKind> {
    r.blocks.iter().map(|b| b.kind).collect()
}

fn cleared(r: &Request) -> usize {
    r.blocks.iter().filter(|b| b.form == Form::Cleared).count()
}

// At scale 0.01 the window is 2,000 tokens, the threshold 1,670 and the warning level 1,470.

#[test]
fn old_results_go_above_the_warning_level_if_it_is_worth_it() {
    let script = |sizes: &[usize]| Script {
        actions: vec![user("m", "go")],
        replies: reads(sizes.len()),
        outputs: outputs(sizes),
        ..Script::default()
    };
    let p = play("claude-code", 0.01, script(&[400, 400, 300, 250, 20]));
    assert_eq!(p.compactions(), ["microcompact"]);
    let last = p.requests.last().unwrap();
    assert_eq!(cleared(last), 1);
    let first = last.blocks.iter().find(|b| b.kind == BlockKind::Output).unwrap();
    assert_eq!(&*first.text, "[Old tool result content cleared]");
    // The same without it, and with too little to gain.
    let p = play("claude-code:microcompact=off", 0.01, script(&[400, 400, 300, 250, 20]));
    assert!(p.requests.iter().all(|r| cleared(r) == 0));
    let p = play("claude-code:micro_minimum=900k", 0.01, script(&[400, 400, 300, 250, 20]));
    assert!(p.requests.iter().all(|r| cleared(r) == 0));
}

#[test]
fn a_long_pause_clears_in_time_mode_only() {
    let actions = || vec![user("m", "go"), Action::Idle { ms: 3_700_000 }, user("n", "again")];
    let script = || {
        let mut replies = reads(7);
        replies.push(says("ok"));
        Script { actions: actions(), replies, outputs: outputs(&[10; 7]), ..Script::default() }
    };
    let p = play("claude-code:microcompact=time", 1.0, script());
    assert_eq!(cleared(p.requests.last().unwrap()), 2);
    let p = play("claude-code", 1.0, script());
    assert_eq!(cleared(p.requests.last().unwrap()), 0);
}

#[test]
fn the_summary_rides_the_warm_prefix_and_files_come_back() {
    let answer = "<analysis>thinking</analysis>\n<summary>\nTHE SUMMARY\n</summary>";
    let script = Script {
        actions: vec![user("m", "go")],
        replies: reads(3),
        outputs: outputs(&[30, 900, 700]),
        summaries: vec![says(answer)],
        memory: vec!["CLAUDE.md"],
        ..Script::default()
    };
    let p = play("claude-code", 0.01, script);
    assert_eq!(p.compactions(), ["compact"]);
    let at = p.requests.iter().position(|r| r.purpose == Purpose::Summary).unwrap();
    let (before, asked, after) = (&p.requests[at - 1], &p.requests[at], &p.requests[at + 1]);
    // Same prefix, the instruction last, output capped.
    assert!(asked.blocks.iter().zip(&before.blocks).all(|(a, b)| a.hash == b.hash));
    assert_eq!((asked.blocks.last().unwrap().kind, asked.max_tokens), (BlockKind::SummaryPrompt, Some(200)));
    // Newest file first; the two large ones as paths, the small one whole.
    assert_eq!(kinds(after), [BlockKind::Base, BlockKind::Context, BlockKind::Summary, BlockKind::File, BlockKind::File, BlockKind::File]);
    assert!(after.blocks[2].text.contains("THE SUMMARY") && !after.blocks[2].text.contains("thinking"));
    assert!(after.blocks[3].text.starts_with("f2.rs was worked on") && after.blocks[4].text.starts_with("f1.rs was worked on"));
    assert!(after.blocks[5].text.starts_with("f0.rs as it was read before:\n0 word") && after.blocks[5].origin.len() == 1);
    assert_eq!(after.blocks[2].origin.len(), 1 + 3 * 2 + 3);
}

#[test]
fn a_manual_compaction_takes_instructions() {
    let actions = vec![user("m", "go"), Action::Compact { instructions: Some("keep the port".into()) }, user("n", "on")];
    let p = play("claude-code:cache_ttl=1h", 1.0, Script { actions, replies: vec![says("a"), says("b")], ..Script::default() });
    let asked = p.of(Purpose::Summary);
    assert!(asked[0].blocks.last().unwrap().text.ends_with("keep the port"));
    assert_eq!((asked[0].phase, asked[0].ttl), (Some(Phase::StandaloneTurn), Ttl::OneHour));
    assert_eq!(kinds(p.requests.last().unwrap()), [BlockKind::Base, BlockKind::Summary, BlockKind::User]);
    // Nothing to compact, nothing asked.
    let p = play("claude-code", 1.0, Script { actions: vec![Action::Compact { instructions: None }], ..Script::default() });
    assert!(p.requests.is_empty());
}

#[test]
fn an_overflow_leaves_the_oldest_part_out() {
    let mut replies = reads(3);
    replies.insert(3, too_long(3_000, 2_900));
    let script = Script {
        actions: vec![user("m", "go")],
        replies,
        outputs: outputs(&[700, 700, 700]),
        summaries: vec![too_long(3_000, 2_900), says("S")],
        ..Script::default()
    };
    let p = play("claude-code", 1.0, script);
    assert_eq!(p.failures(), Vec::<&str>::new());
    let asked = p.of(Purpose::Summary);
    assert_eq!(asked.len(), 2);
    assert!(asked[0].blocks[1].text.starts_with("(The beginning"));
    assert!(asked[1].blocks.len() < asked[0].blocks.len());
    assert_eq!(p.compactions(), ["compact"]);
    // The origins of the part left out belong to the summary all the same.
    let last = p.requests.last().unwrap();
    assert!(last.blocks[1].origin.iter().any(|o| o.message == MessageId(0)));
}

#[test]
fn a_context_that_refills_at_once_stops_compacting() {
    let script = Script { actions: vec![user("m", "go")], replies: reads(9), outputs: outputs(&[1_700; 9]), ..Script::default() };
    let p = play("claude-code:microcompact=off", 0.01, script);
    assert_eq!((p.compactions().len(), p.failures().len()), (3, 1));
}

#[test]
fn three_failures_end_automatic_compaction_and_a_full_window_needs_the_user() {
    let failed = || says("<analysis>no summary</analysis>");
    let script = Script {
        actions: vec![user("m", "go"), user("n", "more")],
        replies: reads(5),
        outputs: outputs(&[1_690, 10, 10, 100, 10]),
        summaries: vec![failed(), failed(), failed()],
        ..Script::default()
    };
    let p = play("claude-code:microcompact=off", 0.01, script);
    assert_eq!(p.of(Purpose::Summary).len(), 3);
    assert!(p.compactions().is_empty() && p.interventions() >= 1);
}

#[test]
fn going_back_behind_a_compaction_brings_the_messages_back() {
    let actions = vec![
        user("m", "first"),
        user("n", "second"),
        Action::Compact { instructions: None },
        user("o", "third"),
        Action::Rewind { to: "n".into() },
        user("p", "fourth"),
    ];
    let replies = ["a", "b", "c", "d"].map(says).into();
    let p = play("claude-code", 1.0, Script { actions, replies, ..Script::default() });
    let shown: Vec<String> = Played::outline(p.requests.last().unwrap());
    assert_eq!(shown, ["Base:base", "User:first", "Assistant:a", "User:second", "User:fourth"]);
}

#[test]
fn large_output_goes_to_a_file() {
    let replies = vec![calls("run", "c", "bash", "{}"), says("done")];
    let script = Script { actions: vec![user("m", "go")], replies, outputs: vec!["x".repeat(60_000)], ..Script::default() };
    let p = play("claude-code", 1.0, script);
    let out = p.requests[1].blocks.last().unwrap();
    assert_eq!((out.form, &*out.text), (Form::Truncated, "[60000 bytes of output, too large to show; saved to a file]"));
}
