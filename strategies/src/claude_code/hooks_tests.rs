use ctxbench_core::prelude::*;

use crate::testing::{Answer, Played, Script, calls, kinds, play, text_answer, too_long, user};

fn by_hand(instructions: Option<&str>) -> Action {
    Action::Compact { instructions: instructions.map(str::to_string) }
}

/// Runs a turn, a compaction by hand, a turn, another compaction, and a turn.
fn compacted_twice(spec: &str, instructions: Option<&str>) -> Played {
    let turns = ["go", "on", "and on"].map(|text| user(text, text));
    let [first, second, third] = turns;
    let actions = vec![first, by_hand(instructions), second, by_hand(None), third];
    play(spec, Script::new(actions, ["a", "b", "c"].map(text_answer).into()))
}

/// Runs three reads that exceed the threshold of 1,670 tokens at a scale of 0.01, and a closing
/// reply. With `refused`, the provider rejects all prompts after the third.
fn three_reads(spec: &str, refused: bool) -> Played {
    let read = |i: usize| calls("look", &format!("c{i}"), "read_file", r#"{"path":"a.rs"}"#);
    let last = if refused { too_long(2_100, 2_000) } else { text_answer("done") };
    let replies: Vec<Answer> = vec![read(0), read(1), read(2), last];
    let outputs = [600, 600, 700].map(|n| " word".repeat(n)).to_vec();
    let actions = vec![user("m", "go")];
    play(spec, Script::new(actions, replies).outputs(outputs).scaled(0.01))
}

#[test]
fn a_hook_before_adds_its_words_behind_those_of_the_user() {
    let p = compacted_twice("claude-code:hook_before=name the branch", Some("keep the port"));
    let ends: Vec<&str> = p
        .summaries()
        .iter()
        .map(|r| r.blocks.last().unwrap().text.split("summary:\n").nth(1).unwrap())
        .collect();
    assert_eq!(ends, ["keep the port\n\nname the branch", "name the branch"]);
    let asked = three_reads("claude-code:hook_before=name the branch", false);
    let asked = asked.summaries();
    assert!(asked[0].blocks.last().unwrap().text.ends_with("name the branch"));
}

#[test]
fn a_hook_after_is_shown_behind_each_summary_once() {
    let p = compacted_twice("claude-code:hook_after=the port is 8443", None);
    let last = p.last();
    assert_eq!(
        kinds(last),
        [
            BlockKind::Base,
            BlockKind::Summary,
            BlockKind::Marker,
            BlockKind::Assistant,
            BlockKind::User
        ]
    );
    assert_eq!(&*last.blocks[2].text, "the port is 8443");
    // The second summary request shows a context with the hook's text.
    let second = p.summaries()[1];
    assert_eq!(second.blocks.iter().filter(|b| b.kind == BlockKind::Marker).count(), 1);
}

#[test]
fn a_blocked_compaction_leaves_the_session_as_it_is() {
    let checks = |p: &Played| p.triggers().iter().map(|t| t.0).collect::<Vec<_>>();
    let p = compacted_twice("claude-code:hook_blocks=manual", None);
    assert!(p.summaries().is_empty() && p.compactions().is_empty());
    assert_eq!(checks(&p), ["blocked_by_hook", "blocked_by_hook"]);
    let p = compacted_twice("claude-code:hook_blocks=automatic", None);
    assert_eq!(p.summaries().len(), 2, "those of the user are not its business");

    let p = three_reads("claude-code:hook_blocks=automatic", false);
    assert!(p.summaries().is_empty() && p.failures().is_empty());
    assert_eq!(checks(&p), ["blocked_by_hook"]);
    assert_eq!(three_reads("claude-code:hook_blocks=manual", false).compactions(), ["compact"]);
}

#[test]
fn at_the_limit_a_blocked_compaction_fails_the_turn() {
    let p = three_reads("claude-code:hook_blocks=both", true);
    let [failure] = p.failures()[..] else { panic!("{:?}", p.failures()) };
    assert!(failure.contains("prompt is too long: 2100") && failure.contains("hook"), "{failure}");
    assert!(p.summaries().is_empty());
}

#[test]
fn a_summary_prepared_without_the_hooks_words_is_not_used() {
    let phases = |spec: &str| -> Vec<Option<Phase>> {
        three_reads(spec, false).summaries().iter().map(|r| r.phase).collect()
    };
    let background = Some(Phase::Background);
    assert_eq!(phases("claude-code:warning_distance=60k,precompute=true"), [background]);
    assert_eq!(
        phases("claude-code:warning_distance=60k,precompute=true,hook_before=name the branch"),
        [background, Some(Phase::MidTurn)]
    );
}
