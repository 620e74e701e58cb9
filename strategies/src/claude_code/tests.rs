use ctxbench_core::block::BlockKind::{
    Assistant, Base, Call, Context, File, Output, Summary, SummaryPrompt, User,
};
use ctxbench_core::prelude::*;
use ctxbench_core::usage::Ttl;

use crate::testing::{
    Answer, Played, Script, back_to, calls, cleared, compact, kinds, outline, play, text_answer,
    too_long, user,
};

/// Builds a turn of reads of `f0.rs`, `f1.rs`, … with outputs of these sizes in words, and a closing
/// reply.
pub(super) fn reading(sizes: &[usize]) -> Script {
    let path = |i: usize| format!(r#"{{"path":"f{i}.rs"}}"#);
    let read = |i: usize| calls("look", &format!("c{i}"), "read_file", &path(i));
    let output = |(i, n): (usize, &usize)| format!("{i}{}", " word".repeat(*n));
    go((0..sizes.len()).map(read).chain([text_answer("done")]).collect())
        .outputs(sizes.iter().enumerate().map(output).collect())
}

fn go(replies: Vec<Answer>) -> Script {
    Script::new(vec![user("m", "go")], replies)
}

/// Returns the texts of the restored blocks.
fn restored(p: &Played) -> Vec<String> {
    let files = p.last().blocks.iter().filter(|b| b.kind == File);
    files.map(|b| b.text.to_string()).collect()
}

fn is_prefix(a: &[Arc<Block>], b: &[Arc<Block>]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.hash == b.hash)
}

// At scale 0.01 the window is 2,000 tokens, the threshold 1,670 and the warning level 1,470.

#[test]
fn old_results_go_above_the_warning_level_if_it_is_worth_it() {
    let played = |spec: &str| play(spec, reading(&[400, 400, 300, 250, 20]).scaled(0.01));
    let p = played("claude-code:microcompact=count");
    assert_eq!(p.compactions(), ["microcompact"]);
    let last = p.last();
    assert_eq!(cleared(last), 1);
    let first = last.blocks.iter().find(|b| b.kind == Output).unwrap();
    assert_eq!(&*first.text, "[Old tool result content cleared]");
    // Without the setting, and with too little to save.
    for spec in
        ["claude-code:microcompact=off", "claude-code:microcompact=count,micro_minimum=900k"]
    {
        assert!(played(spec).requests.iter().all(|r| cleared(r) == 0), "{spec}");
    }
}

#[test]
fn a_long_pause_clears_in_time_mode_only() {
    let left = |spec: &str| {
        let again = [Action::Idle { ms: 3_700_000 }, user("n", "again")];
        cleared(play(spec, reading(&[10; 7]).then(again, [text_answer("ok")])).last())
    };
    assert_eq!(left("claude-code:microcompact=time"), 2);
    assert_eq!(left("claude-code"), 0);
    assert_eq!(left("claude-code:microcompact=time,micro_gap_keep=1"), 6);
    assert_eq!(left("claude-code:microcompact=time,micro_gap_ms=7200000"), 0);
}

#[test]
fn the_summary_rides_the_warm_prefix_and_files_come_back() {
    let answer = "<analysis>thinking</analysis>\n<summary>\nTHE SUMMARY\n</summary>";
    let script =
        reading(&[30, 900, 700]).summaries(vec![text_answer(answer)]).memory(vec!["CLAUDE.md"]);
    let p = play("claude-code@2.1", script.scaled(0.01));
    assert_eq!(p.compactions(), ["compact"]);
    let at = p.requests.iter().position(|r| r.purpose == Purpose::Summary).unwrap();
    let (before, asked, after) = (&p.requests[at - 1], &p.requests[at], &p.requests[at + 1]);
    // The prefix is the same, the instruction comes last, and the output is limited.
    assert!(is_prefix(&asked.blocks, &before.blocks));
    assert_eq!(
        (asked.blocks.last().unwrap().kind, asked.max_tokens),
        (BlockKind::SummaryPrompt, Some(200))
    );
    // The newest file comes first. The two large ones are paths, and the small one is whole.
    assert_eq!(kinds(after), [Base, Context, Summary, File, File, File]);
    assert!(
        after.blocks[2].text.contains("THE SUMMARY") && !after.blocks[2].text.contains("thinking")
    );
    assert!(
        after.blocks[3].text.starts_with("f2.rs was worked on")
            && after.blocks[4].text.starts_with("f1.rs was worked on")
    );
    assert!(
        after.blocks[5].text.starts_with("f0.rs as it was read before:\n0 word")
            && after.blocks[5].origin.iter().count() == 1
    );
    assert_eq!(after.blocks[2].origin.iter().count(), 1 + 3 * 2 + 3);
}

#[test]
fn a_manual_compaction_takes_instructions() {
    let compact_so = Action::Compact { instructions: Some("keep the port".into()) };
    let script = go(vec![text_answer("a")]).then([compact_so, user("n", "on")], [text_answer("b")]);
    let p = play("claude-code:cache_ttl=1h", script);
    let asked = p.summaries();
    assert!(asked[0].blocks.last().unwrap().text.ends_with("keep the port"));
    assert_eq!((asked[0].phase, asked[0].ttl), (Some(Phase::StandaloneTurn), Ttl::OneHour));
    assert_eq!(kinds(p.last()), [Base, Summary, Assistant, User]);
    // With nothing to compact, no request is sent.
    let p = play("claude-code", Script::new(vec![compact()], vec![]));
    assert!(p.requests.is_empty());
}

/// Builds three reads, after which the provider refuses the next request and the first summary.
fn refused_twice() -> Script {
    let refused = || too_long(3_000, 2_900);
    let mut script = reading(&[700; 3]).summaries(vec![refused(), text_answer("S")]);
    script.replies.insert(3, refused());
    script
}

#[test]
fn an_overflow_leaves_the_oldest_part_out() {
    let p = play("claude-code@2.1", refused_twice());
    assert_eq!(p.failures(), Vec::<&str>::new());
    let asked = p.summaries();
    assert_eq!(asked.len(), 2);
    let beginning = &asked[0].blocks[1];
    assert_eq!(beginning.kind, BlockKind::Marker);
    assert!(beginning.text.starts_with("(The beginning"));
    assert!(asked[1].blocks.len() < asked[0].blocks.len());
    assert_eq!(p.compactions(), ["compact"]);
    // The origins of the omitted part still belong to the summary.
    let last = p.last();
    assert!(last.blocks[1].origin.iter().any(|o| o.message == MessageId(0)));
}

#[test]
fn going_back_behind_a_compaction_brings_the_messages_back() {
    let script = Script::new(vec![], vec![])
        .then([user("m", "first"), user("n", "second")], ["a", "b"].map(text_answer))
        .then([compact(), user("o", "third")], [text_answer("c")])
        .then([back_to("n"), user("p", "fourth")], [text_answer("d")]);
    let shown = outline(play("claude-code", script).last());
    assert_eq!(shown, ["Base:base", "User:first", "Assistant:a", "User:second", "User:fourth"]);
}

#[test]
fn definitions_of_tools_that_were_looked_up_come_back() {
    let look_up = |id: &str| calls("look", id, "ToolSearch", r#"{"query":"select:x"}"#);
    let script = go(vec![look_up("c0"), look_up("c1"), look_up("c2"), text_answer("done")])
        .then([compact(), user("n", "on")], [text_answer("on")])
        .outputs(["TOOL-A", "TOOL-B", "TOOL-A"].map(String::from).to_vec());
    let p = play("claude-code", script);
    // Each once, the newest first.
    let of = |t: &str| format!("Tools that were looked up:\n{t}");
    assert_eq!(restored(&p), [of("TOOL-A"), of("TOOL-B")]);
}

#[test]
fn results_of_one_reply_that_are_too_much_together_go_to_files_the_largest_first() {
    // At a scale of 0.01, a reply's results may have 2,000 characters and a shell's 300. The results
    // of another reply are ten characters each.
    let truncated = |spec: &str, sizes: [usize; 7]| {
        let seven = |from: usize| {
            let call = |i| Part::Call(ToolCall::new(format!("c{i}"), "bash", "{}"));
            let parts = (from..from + 7).map(call).collect();
            Ok(Reply { parts, stop: StopReason::ToolUse, ..Reply::default() })
        };
        let script = go(vec![seven(0), seven(7), text_answer("done")])
            .outputs(sizes.iter().chain(&[10; 7]).map(|n| "x".repeat(*n)).collect());
        let p = play(spec, script.scaled(0.01));
        assert_eq!(p.compactions(), [""; 0]);
        let gone = |r: &Request| -> Vec<(usize, String)> {
            let outputs = r.blocks.iter().filter(|b| b.kind == Output).enumerate();
            let gone = outputs.filter(|(_, b)| b.form == BlockForm::Truncated);
            gone.map(|(i, b)| (i, b.text.to_string())).collect()
        };
        assert_eq!(gone(&p.requests[1]), gone(&p.requests[2]));
        gone(&p.requests[1])
    };
    let note = |n| format!("[{n} bytes of output, too large to show; saved to a file]");
    // 7 × 286 = 2,002 characters.
    assert_eq!(truncated("claude-code", [286; 7]), [(0, note(286))]);
    // 2,000 characters fit, and without the limit everything fits.
    assert!(truncated("claude-code", [286, 286, 286, 286, 286, 286, 284]).is_empty());
    assert!(truncated("claude-code:results_chars=0", [286; 7]).is_empty());
    // The largest is saved first: 2,010 less 300 is enough.
    let sizes = [290, 280, 280, 280, 300, 290, 290];
    assert_eq!(truncated("claude-code", sizes), [(4, note(300))]);
}

/// Builds a first turn of reads, and a second turn with the replies in `again`.
fn two_turns<const N: usize>(sizes: &[usize], again: [Answer; N]) -> Script {
    reading(sizes).then([user("n", "more")], again)
}

fn deleted(r: &Request) -> Vec<&str> {
    r.server_edits
        .iter()
        .flat_map(ctxbench_core::context_editing::deleted_results)
        .map(|id| &**id)
        .collect()
}

#[test]
fn the_provider_deletes_what_exceeds_twelve_results_and_the_prefix_goes_out_as_it_was() {
    // docs/sources/claude-code.md §1.2, path 2: twelve active results.
    let script = || reading(&[5; 14]);
    let p = play("claude-code:microcompact=cache-edits", script());
    assert_eq!(p.compactions(), ["cache_edits", "cache_edits"]);
    let [.., before, last] = &p.requests[..] else { panic!("several requests") };
    assert_eq!((deleted(before), deleted(last)), (vec!["c0"], vec!["c0", "c1"]));
    assert_eq!(cleared(last), 0, "what is sent stays as it was");
    assert!(is_prefix(&before.blocks, &last.blocks));
    assert_eq!(
        p.engine.context.blocks().iter().filter(|b| b.form == BlockForm::Cleared).count(),
        2,
        "what the model sees does not"
    );
    let fewer = play("claude-code:microcompact=cache-edits,micro_active=20", script());
    assert!(fewer.requests.iter().all(|r| r.server_edits.is_empty()));
}

#[test]
fn a_summary_request_names_the_deleted_results_too() {
    let script = reading(&[5; 13]).then([compact()], []);
    let p = play("claude-code:microcompact=cache-edits", script);
    let asked = p.last();
    assert_eq!((asked.purpose, deleted(asked)), (Purpose::Summary, vec!["c0"]));
    let before = &p.requests[p.requests.len() - 2];
    assert!(is_prefix(&before.blocks, &asked.blocks));
}

#[test]
fn trimming_the_tail_keeps_prefix_and_last_request() {
    let p = play("claude-code@2.1:trim=tail", refused_twice());
    let asked = p.summaries();
    let refused = &p.requests[3];
    for a in &asked {
        let shown = a.blocks.len() - 1;
        assert!(shown < refused.blocks.len() && is_prefix(&a.blocks[..shown], &refused.blocks));
    }
    // The second attempt leaves out another read. The base, the user and one step of text, call and
    // result stay.
    assert_eq!(
        asked.iter().map(|a| a.blocks.len()).collect::<Vec<_>>(),
        [2 + 2 * 3 + 1, 2 + 3 + 1]
    );
    // The omitted groups are verbatim after the summary; the file still in view is not restored.
    let last = p.last();
    let tail = &last.blocks[last.blocks.len() - 6..];
    assert!(is_prefix(tail, &refused.blocks[5..]));
    let shown_again: Vec<&str> =
        last.blocks.iter().filter(|b| b.kind == File).map(|b| &b.text[..5]).collect();
    assert_eq!(shown_again, ["f0.rs"]);
}

#[test]
fn overflow_retries_bound_the_attempts() {
    let script = || two_turns(&[600; 9], [too_long(9, 8)]).summaries(vec![too_long(9, 8); 9]);
    let attempts = |spec: &str| play(spec, script()).summaries().len();
    // The first attempt and at most the given number of retries. With 0, none is made.
    assert_eq!(attempts("claude-code"), 4);
    assert_eq!(attempts("claude-code:overflow_retries=1"), 2);
    assert_eq!(attempts("claude-code:overflow_retries=0"), 0);
    // The largest value is not limited.
    assert!(attempts("claude-code:overflow_retries=4294967295") > 4);
}

#[test]
fn the_blocking_limit_stops_the_user_where_nothing_compacts() {
    // Window 2,000, effective 1,800, blocked from 1,770 by default and from 1,300 with a buffer of
    // 500.
    let script = || two_turns(&[1_300], [text_answer("ok")]);
    let sent = |spec: &str| play(spec, script().scaled(0.01));
    let free = sent("claude-code:auto=false");
    assert!(free.failures().is_empty() && free.interventions() == 0);
    let blocked = sent("claude-code:auto=false,blocking_buffer=50k");
    assert_eq!(blocked.interventions(), 2);
    assert!(blocked.failures()[0].contains("blocked from 1300"), "{:?}", blocked.failures());
    assert!(blocked.requests.len() < free.requests.len());
    assert!(
        sent("claude-code:blocking_buffer=50k").interventions() == 0,
        "what compacts by itself is not blocked"
    );
}

#[test]
fn guards_count_to_their_settings() {
    let failing = |more: &str| {
        let summaries = vec![text_answer("<analysis>none</analysis>"); 9];
        let script = reading(&[1_690, 1, 1, 1, 1, 1]).summaries(summaries);
        let p = play(&format!("claude-code{more}"), script.scaled(0.01));
        assert!(p.compactions().is_empty());
        p.summaries().len()
    };
    // docs/sources/claude-code.md §1.5: three failures in a row. The largest value is not limited.
    assert_eq!([failing(""), failing(":max_failures=2")], [3, 2]);
    assert!(failing(":max_failures=4294967295") > 3);
    let refilled = |more: &str| {
        let p = play(&format!("claude-code{more}"), reading(&[1_700; 9]).scaled(0.01));
        let failures = p.failures().iter().map(|f| f.to_string()).collect::<Vec<_>>();
        (p.compactions().len(), failures)
    };
    // docs/sources/claude-code.md §1.5: full again right after three compactions, which the user is
    // shown.
    let (compactions, failures) = refilled("");
    assert_eq!((compactions, failures.len()), (3, 1));
    let told = ["last 3 compactions", "/compact or /clear"];
    assert!(told.iter().all(|t| failures[0].contains(t)), "{failures:?}");
    assert_eq!(refilled(":max_refills=2").0, 2);
    assert!(refilled(":max_refills=4294967295").0 > 3);
}

#[test]
fn at_the_limit_only_the_provider_starts_a_compaction() {
    // The second read reaches the threshold of 1,670.
    let compactions = |settings: &str, refused: bool| {
        let mut script = reading(&[900, 800, 10]);
        if refused {
            script.replies.insert(3, too_long(2_100, 2_000));
        }
        let spec = format!("claude-code:microcompact=off{settings}");
        play(&spec, script.scaled(0.01)).compactions()
    };
    assert_eq!(compactions("", false), ["compact"]);
    assert!(compactions(",trigger=limit", false).is_empty());
    assert_eq!(compactions(",trigger=limit", true), ["compact"]);
}

#[test]
fn five_files_come_back_within_each_limit() {
    // The limits of docs/sources/claude-code.md §1.4 at a hundredth: five files, 50 tokens each,
    // 500 in total. The session has seven 30-word reads, about 38 tokens of four bytes each.
    let restored = |spec: &str| {
        let script = reading(&[30; 7]).then([compact(), user("n", "on")], [text_answer("ok")]);
        let p = play(spec, script.scaled(0.01));
        let files = p.last().blocks.iter().filter(|b| b.kind == File);
        files.map(|b| (b.text[..5].to_string(), b.origin.iter().count())).collect::<Vec<_>>()
    };
    let named = |names: &[&str]| names.iter().map(|n| (n.to_string(), 1)).collect::<Vec<_>>();
    assert_eq!(restored("claude-code"), named(&["f6.rs", "f5.rs", "f4.rs", "f3.rs", "f2.rs"]));
    assert_eq!(restored("claude-code:restore_files=2"), named(&["f6.rs", "f5.rs"]));
    // 100 tokens have room for two files of 38. Paths of larger files do not count.
    assert_eq!(restored("claude-code:restore_total_tokens=10k"), named(&["f6.rs", "f5.rs"]));
    assert_eq!(
        restored("claude-code:restore_file_tokens=2k").iter().map(|f| f.1).collect::<Vec<_>>(),
        [0; 5]
    );
}

#[test]
fn skills_and_the_plan_come_back() {
    let shown = |spec: &str| {
        let skill =
            |id: &str, name: &str| calls("use", id, "Skill", &format!(r#"{{"skill":"{name}"}}"#));
        let plan = calls("plan", "p", "ExitPlanMode", r#"{"plan":"first a, then b"}"#);
        let script = go(vec![skill("a", "old"), skill("b", "long"), plan, text_answer("ok")])
            .then([compact(), user("n", "on")], [text_answer("on")])
            .outputs(vec!["OLD".repeat(40), "LONG".repeat(100), "approved".into()]);
        restored(&play(spec, script.scaled(0.01)))
    };
    // docs/sources/claude-code.md §1.4 at a hundredth: 50 tokens or 200 bytes of each skill, newest
    // first.
    let all = shown("claude-code");
    assert_eq!(all.len(), 3);
    assert!(all[0].ends_with(&"LONG".repeat(50)) && !all[0].contains(&"LONG".repeat(51)));
    assert!(all[1].ends_with(&"OLD".repeat(40)) && all[2].ends_with("first a, then b"));
    assert!(
        shown("claude-code:restore_skill_tokens=1k")[0]
            .ends_with(&format!("\n{}", "LONG".repeat(10)))
    );
    // 250 tokens in total. 60 have room for the newest skill and ten tokens of the other.
    assert!(
        shown("claude-code:restore_skills_tokens=6k")[1]
            .ends_with(&format!("\n{}O", "OLD".repeat(13)))
    );
    assert_eq!(shown("claude-code:restore_plan=false").len(), 2);
}

#[test]
fn messages_stay_behind_the_summary_if_told() {
    let last = |spec: &str| {
        let actions = vec![user("m", "first"), user("n", "second"), compact(), user("o", "third")];
        let p = play(spec, Script::new(actions, ["a", "b", "c"].map(text_answer).into()));
        outline(p.last()).split_off(2)
    };
    assert_eq!(last("claude-code"), ["Assistant:b", "User:third"]);
    assert_eq!(last("claude-code@2.1"), ["User:third"]);
    let two = last("claude-code@2.1:keep_messages=2");
    assert_eq!(two, ["User:second", "Assistant:b", "User:third"]);
}

/// Returns the summary request, and the one before and after it.
fn around(p: &Played) -> [&Request; 3] {
    let at = p.requests.iter().position(|r| r.purpose == Purpose::Summary).unwrap();
    [at - 1, at, at + 1].map(|i| &p.requests[i])
}

#[test]
fn from_the_second_reply_of_a_turn_on_the_newest_is_not_summarised() {
    // docs/sources/claude-code.md §1.3: the previous request and the instruction.
    let p = play("claude-code", reading(&[30, 900, 700]).scaled(0.01));
    let [before, asked, after] = around(&p);
    assert_eq!(asked.blocks.len(), before.blocks.len() + 1);
    assert!(is_prefix(&before.blocks, &asked.blocks));
    assert_eq!(kinds(after)[after.blocks.len() - 3..], [Assistant, Call, Output]);
    // The marker is on the last message but one: the call before the results and the instruction.
    let marked = |r: &Request| r.breakpoints.iter().map(|&i| r.blocks[i].kind).collect::<Vec<_>>();
    assert_eq!(marked(asked), [Base, Call]);
    assert_eq!(marked(before), [Base, Output], "a request of the work marks its end only");
    let p = play("claude-code@2.1", reading(&[30, 900, 700]).scaled(0.01));
    assert_eq!(kinds(around(&p)[1]).iter().filter(|k| **k == Output).count(), 3, "all of it");
}

#[test]
fn at_the_beginning_of_a_turn_the_newest_reply_is_summarised_and_stays() {
    // docs/sources/claude-code.md §1.3: without a new message of the user.
    let first = play("claude-code", reading(&[1_700, 10]).scaled(0.01));
    let long = user("n", &"word ".repeat(1_700));
    let script = go(vec![text_answer("a")]).then([long], [text_answer("b")]);
    let next = play("claude-code", script.scaled(0.01));
    for (p, sees, stays) in [
        (&first, [Call, Output, SummaryPrompt], vec![Assistant, Call, Output]),
        (&next, [User, Assistant, SummaryPrompt], vec![Assistant, User]),
    ] {
        let [_, asked, after] = around(p);
        assert_eq!(kinds(asked)[asked.blocks.len() - 3..], sees);
        assert_eq!(kinds(after)[after.blocks.len() - stays.len()..], stays);
    }
}

#[test]
fn a_summary_prepared_in_the_background_is_used_and_what_came_since_stays() {
    // Warning level 1,470, threshold 1,670. The second read exceeds the first, and the third the
    // second.
    let p = |spec: &str| {
        let script = reading(&[600, 730, 230, 10])
            .summaries(vec![text_answer("EARLY"), text_answer("LATE")]);
        play(spec, script.scaled(0.01))
    };
    let early = p("claude-code:microcompact=off,precompute=true");
    assert_eq!(early.compactions(), ["compact"]);
    let asked = early.summaries();
    assert_eq!(asked.iter().map(|r| r.phase).collect::<Vec<_>>(), [Some(Phase::Background)]);
    let after = early.requests.iter().find(|r| r.blocks.iter().any(|b| b.kind == Summary)).unwrap();
    assert!(after.blocks.iter().any(|b| b.text.contains("EARLY")));
    // The third read is newer than the notes, so text, call and result are verbatim.
    assert_eq!(kinds(after)[after.blocks.len() - 3..], [Assistant, Call, Output]);
    let foreground = p("claude-code:microcompact=off");
    assert_eq!(foreground.summaries()[0].phase, Some(Phase::MidTurn));
}
