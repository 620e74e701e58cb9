use ctxbench_core::prelude::*;

use crate::Spec;
use crate::testing::{
    Answer, Played, Script, back_to, calls, compact, failure, play, text_answer, too_long, user,
};

fn used(text: &str, input: u64, output: u64) -> Answer {
    crate::testing::used(text_answer(text), input, output)
}

fn broken() -> Answer {
    failure(ErrorKind::Stream, 0, "the stream broke off")
}

fn opaque(text: &str) -> Answer {
    Ok(Reply { parts: vec![Part::Compaction(Some(text.into()))], ..Reply::default() })
}

/// Plays with a limit of 5,000 tokens and these settings.
fn play_5000(settings: &str, script: Script) -> Played {
    play(&format!("codex:auto_compact_limit=5000{settings}"), script)
}

/// Builds two turns. The first one exceeds a limit of 5,000 tokens.
fn over_after_first() -> Script {
    Script::new(
        vec![user("1", "U1"), user("2", "U2"), user("3", "U3")],
        vec![used("r1", 5_200, 50), used("r2", 1_000, 50), used("r3", 1_100, 50)],
    )
    .memory(vec!["C"])
}

fn kinds(p: &Played, request: usize) -> String {
    let letter = |b: &std::sync::Arc<ctxbench_core::block::Block>| match b.kind {
        BlockKind::Base => "B".to_string(),
        BlockKind::Summary => "S".to_string(),
        BlockKind::SummaryPrompt => "P".to_string(),
        BlockKind::CompactionTrigger => "T".to_string(),
        BlockKind::Compaction => "O".to_string(),
        _ => b.text.to_string(),
    };
    p.requests[request].blocks.iter().map(letter).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_compaction_that_breaks_off_is_tried_as_often_as_set() {
    // docs/sources/codex.md §1.5: one attempt plus this number of retries; then the turn fails and
    // nothing is replaced.
    let tries = |setting: &str, failures: usize| {
        let p = play_5000(setting, over_after_first().summaries(vec![broken(); failures]));
        (p.summaries().len(), p.failures().len())
    };
    // The third turn tries again and gets an answer.
    assert_eq!(tries(",stream_retries=2", 3), (4, 1));
    assert_eq!(tries(",stream_retries=0", 1), (2, 1));
    assert_eq!(tries("", 5), (6, 0));
}

#[test]
fn a_normal_request_is_tried_again_too() {
    let requests = |spec: &str| {
        let replies = vec![broken(), broken(), used("r1", 100, 5)];
        let p = play(spec, Script::new(vec![user("1", "U1")], replies));
        (p.requests.len(), p.failures().len())
    };
    assert_eq!(requests("codex:stream_retries=2"), (3, 0));
    assert_eq!(requests("codex:stream_retries=1"), (2, 1));
    // The largest value is accepted unchanged.
    assert_eq!(requests("codex@described-002:stream_retries=4294967295"), (3, 0));
}

#[test]
fn the_size_of_the_base_decides_whether_the_next_turn_compacts_again() {
    // docs/sources/codex.md §1.1: with a limit of 5,000 and 20,903 bytes of base, which are 5,226
    // tokens, the session exceeds the limit even after the compaction.
    let summaries = |setting: &str| {
        let actions = vec![user("1", "U1"), compact(), user("2", "U2")];
        let replies = vec![used("r1", 1_000, 50), used("r2", 1_000, 50)];
        play_5000(setting, Script::new(actions, replies)).summaries().len()
    };
    assert_eq!(summaries(""), 1);
    assert_eq!(summaries(",base_estimate_bytes=20903"), 2);
}

#[test]
fn the_provider_keeps_as_many_user_messages_as_set() {
    let after = |setting: &str| {
        let script = Script::new(
            vec![user("1", "12345678"), user("2", "abcdefgh"), user("3", "U3")],
            vec![used("r1", 1_000, 50), used("r2", 5_200, 50), used("r3", 1_000, 50)],
        )
        .summaries(vec![opaque("X")]);
        kinds(&play_5000(&format!(",remote=true{setting}"), script), 3)
    };
    assert_eq!(after(""), "B 12345678 abcdefgh O U3");
    // Two tokens for each message.
    assert_eq!(after(",remote_user_tokens=3"), "B 12…1 tokens truncated…78 abcdefgh O U3");
    assert_eq!(after(",remote_user_tokens=2"), "B abcdefgh O U3");
}

#[test]
fn a_full_window_counts_what_the_session_had_not_used_of_it() {
    // docs/sources/codex.md §1.1: of a window of 200,000 the program uses 190,000. The refused
    // message adds one token.
    let said = || user("u", "U");
    let summaries = |before: &[Action], used_by: &[u64], summary: u64, after: &[Action]| {
        let (before, after) = (before.to_vec(), after.to_vec());
        let actions = [before, vec![said()], after, vec![said()]].concat();
        let mut replies: Vec<Answer> = used_by.iter().map(|n| used("r", *n, 0)).collect();
        replies.extend([too_long(9, 8), used("r", 10, 0)]);
        let summaries = vec![used("S", summary, 0)];
        let script = Script::new(actions, replies).summaries(summaries);
        let p = play("codex:auto_compact_limit=150000", script);
        assert_eq!(p.failures().len(), 1);
        p.summaries().len()
    };
    assert_eq!(summaries(&[said()], &[40_001], 0, &[]), 1);
    assert_eq!(summaries(&[said()], &[40_002], 0, &[]), 0);
    // More than a window in total: nothing is left.
    let two = [said(), said()];
    assert_eq!(summaries(&two, &[100_000, 100_000], 0, &[]), 0);
    // The summary of a manual compaction counts too: 10 + 39,990 leave 150,000. The view then has
    // no message of the model, so no message is counted in addition.
    let compacted = [said(), compact()];
    assert_eq!(summaries(&compacted, &[10], 39_990, &[]), 2);
    assert_eq!(summaries(&compacted, &[10], 39_991, &[]), 1);
    // The count belongs to the session and is kept after a restart.
    assert_eq!(summaries(&[said()], &[40_001], 0, &[Action::Restart]), 1);
    assert_eq!(summaries(&two, &[100_000, 100_000], 0, &[Action::Restart]), 0);
}

#[test]
fn the_provider_is_asked_three_times_at_most_and_a_refusal_is_final() {
    let summaries = |answers: Vec<Answer>| {
        let p = play_5000(",remote=true", over_after_first().summaries(answers));
        (p.summaries().len(), p.failures().len())
    };
    // docs/sources/codex.md §2: at most two stream retries, regardless of the settings. The third
    // turn sends another request.
    assert_eq!(summaries(vec![broken(), broken(), broken(), opaque("X")]), (4, 1));
    assert_eq!(summaries(vec![too_long(9, 8), opaque("X")]), (2, 1));
    // The answer contains a number of compactions other than one.
    assert_eq!(summaries(vec![text_answer("words"), opaque("X")]), (2, 1));
}

#[test]
fn the_limit_can_count_what_came_after_the_prefix() {
    // docs/sources/codex.md §1.2: active tokens minus the first input of the window; 95 % of the
    // window is a limit in any case.
    let compactions = |scope: &str, first: u64, second: u64| {
        let mut script = over_after_first();
        script.replies = vec![used("r1", first, 50), used("r2", second, 50), used("r3", 9, 1)];
        play_5000(&format!(",limit_scope={scope}"), script).compactions().len()
    };
    assert_eq!(compactions("total", 5_200, 5_300), 2);
    assert_eq!(compactions("body_after_prefix", 5_200, 5_300), 0);
    // 10,149 + 50 − 5,200 = 4,999.
    assert_eq!(compactions("body_after_prefix", 5_200, 10_149), 0);
    assert_eq!(compactions("body_after_prefix", 5_200, 10_150), 1);
    // 95 % of 200,000.
    assert_eq!(compactions("body_after_prefix", 188_000, 189_949), 0);
    assert_eq!(compactions("body_after_prefix", 188_000, 189_950), 1);
}

#[test]
fn another_prompt_can_be_set() {
    let p = play_5000(",compact_prompt=What now?", over_after_first());
    assert_eq!(&*p.summaries()[0].blocks.last().unwrap().text, "What now?");
}

#[test]
fn tool_output_is_cut_in_the_unit_of_the_policy() {
    let lines: String = (1..=4_000).map(|n| format!("line number {n}\n")).collect();
    let output = |spec: &str| {
        let replies = vec![calls("", "c", "exec", "{}"), used("r", 1_000, 50)];
        let script = Script::new(vec![user("1", "U1")], replies).outputs(vec![lines.clone()]);
        play(spec, script).requests[1].blocks.last().unwrap().text.to_string()
    };
    // docs/sources/codex.md §3: the marks of the 66,893-byte file.
    assert!(output("codex").contains("…6724 tokens truncated…"));
    assert!(output("codex:tool_output_tokens=500").contains("…16224 tokens truncated…"));
    assert!(output("codex:tool_output_policy=bytes").contains("…56893 chars truncated…"));
    // A configured limit counts four bytes per token.
    assert!(
        output("codex:tool_output_policy=bytes,tool_output_tokens=2500")
            .contains("…56893 chars truncated…")
    );
    assert!(output("codex@0.104").starts_with("Total output lines: 4000\n"));
    assert_eq!(output("codex:tool_output_tokens=0"), lines);
}

#[test]
fn an_empty_summary_after_a_turn_changes_nothing_and_elsewhere_takes_the_last_reply() {
    let empty = || Ok(Reply::default());
    let script = || {
        Script::new(
            vec![user("1", "U1"), user("2", "U2")],
            vec![used("r1", 30_000, 50), used("r2", 1_000, 50)],
        )
        .summaries(vec![empty()])
    };
    // docs/sources/codex.md §1.1: an error only in the compaction after the turn.
    let p = play("codex:post_turn_percent=15", script());
    assert_eq!(kinds(&p, 2), "B U1 r1 U2");
    assert!(p.failures().is_empty());
    let p = play("codex:auto_compact_limit=30000", script());
    assert_eq!(p.requests[2].blocks[2].kind, BlockKind::Summary);
    assert!(p.requests[2].blocks[2].text.ends_with("\nr1"));
    // The older versions have no such compaction and return an error.
    let refused = Spec::parse("codex@0.104:post_turn_percent=15").unwrap_err().to_string();
    assert!(refused.contains("belongs to 0.169"), "{refused}");
}

#[test]
fn a_message_whose_compaction_fails_is_kept_in_0_169_only() {
    let shown = |spec: &str| {
        let p = play(
            &format!("{spec}:auto_compact_limit=5000,stream_retries=0"),
            over_after_first().summaries(vec![broken()]),
        );
        assert_eq!(p.engine.history.messages().iter().filter(|m| &*m.key == "2").count(), 1);
        kinds(&p, 3)
    };
    assert_eq!(shown("codex"), "B U1 C U2 S U3");
    assert_eq!(shown("codex@0.104"), "B C U1 S U3");
}

#[test]
fn a_restart_shows_the_same_history() {
    for (spec, shown) in [
        ("codex:", " U3"),
        ("codex@0.104:", " C U3"),
        ("codex@0.63:", " U3"),
        ("codex:remote=true,", " U3"),
    ] {
        let last = |restart: &[Action]| {
            let said = [user("1", "U1 aaaa"), user("2", "U2 bbbb")];
            let actions = [&said[..], restart, &[user("3", "U3")]].concat();
            let replies = ["r1", "r2", "r3", "r4"].map(|text| used(text, 1_100, 50));
            let mut replies = Vec::from(replies);
            replies.splice(..1, [calls("", "c", "exec", "{}"), used("r1", 5_200, 50)]);
            let mut script = Script::new(actions, replies).memory(vec!["C"]);
            if spec.contains("remote") {
                script.summaries.push(opaque("X"));
            }
            // The budget cuts the first message, so the old versions must cut it again.
            let limits = "auto_compact_limit=5000,user_message_tokens=1,remote_user_tokens=1";
            let p = play(&format!("{spec}{limits}"), script);
            assert_eq!(p.compactions().len(), 1, "{spec}");
            kinds(&p, p.requests.len() - 1)
        };
        assert_eq!(last(&[Action::Restart]), last(&[]).replace(" U3", shown), "{spec}");
    }
}

#[test]
fn going_back_past_a_compaction_brings_the_old_history_back() {
    let mut script = over_after_first();
    script.actions = vec![user("1", "U1"), user("2", "U2"), back_to("1"), user("3", "U3")];
    let p = play_5000("", script);
    assert_eq!(kinds(&p, 2), "B C U1 S U2");
    // The session rewinds to the first message without its reply. The compaction of the second turn
    // is removed with that turn.
    assert_eq!(kinds(&p, 3), "B C U1 U3");
}

#[test]
fn a_cleared_session_starts_to_count_anew() {
    let mut script = over_after_first();
    script.actions.insert(1, Action::Clear);
    assert!(play_5000("", script).compactions().is_empty());
}
