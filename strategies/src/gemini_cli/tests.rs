//! Tests of Gemini CLI's facts (docs/sources/gemini-cli.md), in a window of 200,000 tokens. The
//! threshold is half of it.

use ctxbench_core::prelude::*;

use crate::testing::{
    Answer, Played, Script, calls, compact, failure, kinds, play, text_answer, used, user,
};

/// Sets the prompt tokens that a reply reports.
fn at(answer: Answer, prompt: u64) -> Answer {
    used(answer, prompt, 10)
}

fn reads(id: &str, prompt: u64) -> Answer {
    at(calls("Reading.", id, "read_file", r#"{"file_path":"a.txt"}"#), prompt)
}

fn long(n: usize) -> String {
    "x".repeat(n)
}

fn failing(status: u16) -> Answer {
    failure(ErrorKind::Invalid, status, "mock error")
}

/// Builds three turns, of which the last has a prompt of `prompt` tokens.
fn turns(prompt: u64) -> Script {
    let answers = vec![
        at(text_answer(&long(400)), 1_000),
        at(text_answer(&long(400)), 2_000),
        at(text_answer("x"), prompt),
    ];
    let said = ["one", "two", "three"].map(|t| user(t, &format!("{t} {}", long(40))));
    Script::new(said.to_vec(), answers)
}

/// Builds three turns and one more.
fn four_turns(prompt: u64) -> Script {
    turns(prompt).then([user("u4", "on")], [text_answer("y")])
}

/// Builds three turns and one more with these replies.
fn answered(replies: Vec<Answer>) -> Played {
    let mut script = turns(3_000).then([user("u4", "four")], []);
    script.replies.extend(replies);
    play("gemini-cli", script)
}

/// Builds a turn with five reads of 20,005 tokens.
fn five_reads() -> Script {
    let mut replies: Vec<Answer> = (0..5).map(|i| reads(&format!("c{i}"), 1_000)).collect();
    replies.push(text_answer("done"));
    Script::new(vec![user("u1", "read")], replies).outputs(vec![long(80_000); 5])
}

use BlockKind::{Ack, Assistant, Base, Output, Summary, User};

#[test]
fn the_threshold_itself_compresses_before_the_next_prompt() {
    for (prompt, requests) in [(99_999, 0), (100_000, 2)] {
        assert_eq!(play("gemini-cli", four_turns(prompt)).summaries().len(), requests, "{prompt}");
    }
}

#[test]
fn blanks_around_the_checked_draft_are_left_out() {
    let summaries = vec![text_answer("DRAFT"), text_answer(" FINAL \n")];
    let p = play("gemini-cli", four_turns(100_000).summaries(summaries));
    assert_eq!(&*p.last().blocks[1].text, "FINAL");
}

#[test]
fn in_a_loop_of_tools_every_request_is_preceded_by_another_summary() {
    // Without hysteresis, the prompt stays above the threshold, so the summary is summarised again.
    let done = at(text_answer("done"), 100_003);
    let replies = [reads("c1", 100_000), reads("c2", 100_001), reads("c3", 100_002), done];
    let p = play("gemini-cli", turns(1_000).then([user("u4", "read it")], replies));
    assert_eq!(p.summaries().len(), 6);
    let last = p.last();
    assert_eq!(kinds(last)[..4], [Base, Summary, Ack, User]);
    // Pending results are not part of the history that is split.
    assert_eq!(kinds(last).iter().filter(|k| **k == Output).count(), 3);
}

#[test]
fn a_larger_history_is_thrown_away_and_not_tried_again() {
    let y = || at(text_answer("y"), 100_000);
    let with_huge =
        |script: Script| play("gemini-cli", script.summaries(vec![text_answer(&long(400_100)); 2]));
    let more = [user("u4", "on"), user("u5", "on")];
    let p = with_huge(turns(100_000).then(more, [y(), text_answer("z")]));
    assert_eq!((p.failed_compactions(), p.summaries().len()), (1, 2));
    assert!(p.last().blocks.iter().all(|b| b.kind != Summary));
    // A manual compression tries again, and a success resets the failure.
    let more = [user("u4", "on"), compact(), user("u5", "on"), user("u6", "on")];
    let p = with_huge(turns(100_000).then(more, [y(), y(), text_answer("w")]));
    assert_eq!((p.failed_compactions(), p.summaries().len()), (1, 6));
}

#[test]
fn blank_answers_are_asked_for_again_and_an_error_ends_the_prompt() {
    let with = |summaries| {
        let more = [user("u4", "four"), user("u5", "five")];
        let script = turns(100_000).then(more, ["y", "z"].map(text_answer));
        play("gemini-cli", script.summaries(summaries))
    };
    let blank = || text_answer("  ");
    let p = with(vec![blank(), blank(), blank(), blank(), text_answer("D"), text_answer("F")]);
    assert_eq!((p.summaries().len(), p.failures().len()), (6, 0));

    for bad in [vec![blank(); 5], vec![failing(403)]] {
        let asked = bad.len();
        let p = with(bad);
        assert_eq!(p.failures().len(), 1);
        // The next prompt tries again, and the failed prompt is removed.
        assert_eq!(p.summaries().len(), asked + 2);
        let last = p.last();
        assert!(last.blocks.iter().all(|b| &*b.text != "four"));
        assert_eq!(kinds(last), [Base, Summary, Ack, User, Assistant, User]);
    }
}

#[test]
fn requests_are_repeated_after_failures_and_answers_without_a_word() {
    for (bad, most) in [(failing(503), 9), (text_answer(""), 3)] {
        let failures = |n| {
            let replies = [vec![bad.clone(); n], vec![text_answer("y")]].concat();
            answered(replies).failures().len()
        };
        assert_eq!((failures(most), failures(most + 1)), (0, 1));
    }
}

#[test]
fn old_results_become_previews() {
    let p = play("gemini-cli", five_reads().then([user("u2", "bye")], [text_answer("bye")]));
    let masked = |r: &Request| -> Vec<bool> {
        let outputs = r.blocks.iter().filter(|b: &&_| b.kind == Output);
        outputs.map(|b| b.text.starts_with("<tool_output_masked>\n")).collect()
    };
    // The last message of the history, a reply, is skipped. The
    // third newest result crosses the protected 50,000 tokens, but the minimum of 30,000 needs a
    // fourth.
    assert_eq!(masked(p.samples()[4]), [false, false, false, false]);
    assert_eq!(masked(p.samples()[5]), [true, true, false, false, false]);
    assert_eq!(p.compactions()[0], "mask_results");
    let off = play("gemini-cli:mask=false", five_reads());
    assert!(masked(off.last()).iter().all(|m| !m));
}

#[test]
fn a_compressed_history_stays_compressed_after_a_restart() {
    let restarted = [Action::Restart, user("u5", "on")];
    let p = play("gemini-cli", four_turns(100_000).then(restarted, [text_answer("z")]));
    assert_eq!(kinds(p.last())[..3], [Base, Summary, Ack]);
}

#[test]
fn what_does_not_fit_is_not_sent() {
    let more = [user("u4", &long(410_000)), user("u5", "five")];
    let p = play("gemini-cli", turns(99_000).then(more, [text_answer("z")]));
    assert_eq!(p.failures().len(), 1);
    assert_eq!(p.samples().len(), 4, "102,500 tokens, and 101,000 are left");
    let kept = |b: &Block| b.text.len() < 100_000;
    assert!(p.last().blocks.iter().all(|b| kept(b)));
}

#[test]
fn a_compression_by_hand_asks_for_no_size() {
    let p = play("gemini-cli", turns(3_000).then([compact()], []));
    let summary = p.summaries();
    assert_eq!(summary.len(), 2);
    assert_eq!(summary[0].phase, Some(Phase::StandaloneTurn));
}
