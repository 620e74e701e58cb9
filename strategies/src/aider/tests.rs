use std::collections::HashSet;

use ctxbench_core::block::BlockKind::{self, Assistant, Base, Summary, User};
use ctxbench_core::prelude::*;
use proptest::prelude::*;

use crate::testing::{
    Script, back_to, calls, failure, kinds, outline, play, text_answer, too_long, user,
};

const PATH: &str = r#"{"path":"a.rs"}"#;

/// Messages in the place of the files while there are none.
const NO_FILES: [&str; 2] = ["User:So far no file is part o", "Assistant:Ok."];

/// Prompt of a restarted program without the history.
const FORGOTTEN: [&str; 4] =
    ["Base:base", NO_FILES[0], NO_FILES[1], "User:again\n\nShow every change"];

/// Returns the tokens of the messages in place of files: role, content and three more for each.
fn no_files_tokens() -> u64 {
    8 + cl100k("So far no file is part of the chat that you may change.") + cl100k("Ok.")
}

/// Returns turns of a user message, an edit and a closing reply. Each message has about `words`
/// tokens.
fn edit_turns(turns: usize, words: usize) -> Script {
    (0..turns).fold(Script::new(vec![], vec![]), |script, i| {
        let text = |who: &str| format!("{who}{i}{}", " word".repeat(words));
        let edit = calls(&text("a"), &format!("c{i}"), "edit_file", PATH);
        script.then([user(&format!("m{i}"), &text("u"))], [edit, text_answer(&text("z"))])
    })
}

/// Returns turns of a user message and a reply of 100 words each.
fn talk(turns: usize) -> Script {
    (0..turns).fold(Script::new(vec![], vec![]), |script, i| {
        let text = "word ".repeat(100);
        script.then([user(&format!("m{i}"), &text)], [text_answer(&text)])
    })
}

/// Returns a user message and a reply, at a scale.
fn one_turn(text: &str, scale: f64) -> Script {
    Script::new(vec![user("m", text)], vec![text_answer("x")]).scaled(scale)
}

/// Returns a text of `n` tokens.
fn words(n: usize) -> String {
    "word".to_string() + &" word".repeat(n - 1)
}

/// Restarts the program and sends another message.
fn restarted(script: Script) -> Script {
    script.then([Action::Restart, user("n", "again")], [text_answer("yes")])
}

fn without_summaries(script: Script) -> Script {
    script.summaries(vec![failure(ErrorKind::Server, 500, "no"); 9])
}

/// Returns the position of the editing rules: a separate message, the last message, or neither.
fn reminder(r: &Request) -> &'static str {
    let last = r.blocks.last().unwrap();
    match (last.kind, last.text.contains("Show every change as complete blocks")) {
        (BlockKind::Reminder, _) => "sys",
        (_, true) => "user",
        _ => "none",
    }
}

#[test]
fn the_prompt_stands_in_aiders_order_and_has_no_tools() {
    let script = edit_turns(2, 3).files(vec!["file"]).memory(vec!["memory"]);
    let p = play("aider", script.repo_map(vec!["map"]));
    let last = p.last();
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
        "User:The changes are committe",
        "Assistant:Ok.",
        "File:file",
        "Assistant:Ok.",
        "User:u1 word word word",
        "Assistant:a1 word word word",
        "Assistant:edit_file {\"path\":\"a.rs\"",
        "User:edit_file:\nout\n\nShow eve",
    ];
    assert_eq!((outline(last), reminder(last)), (expected.map(String::from).to_vec(), "user"));
    assert!(p.requests.iter().all(|r| r.tools.is_none() && r.breakpoints.is_empty()));
    assert!(p.requests.iter().flat_map(|r| &r.blocks).all(|b| b.call.is_none()));
}

#[test]
fn while_no_file_is_shared_the_prompt_says_so() {
    let shown = |spec: &str, map: Vec<&'static str>| {
        let write = r#"{"path":"new.rs","content":"fn a() {}"}"#;
        let p = play(
            spec,
            Script::new(
                vec![user("m", "do it"), user("n", "more")],
                vec![calls("so", "c", "write_file", write), text_answer("done"), text_answer("x")],
            )
            .repo_map(map),
        );
        let first = outline(&p.requests[0]);
        let words = outline(p.last());
        let file = words.iter().any(|b| b.starts_with("File:These files are *part"));
        (
            first[first.len() - 3..first.len() - 1].to_vec(),
            file && !words.contains(&first[first.len() - 3]),
        )
    };
    assert_eq!(shown("aider", vec![]), (NO_FILES.map(String::from).to_vec(), true));
    let map = ["User:No file is part of the c", "Assistant:Ok, I name the files tha"];
    assert_eq!(shown("aider", vec!["map"]), (map.map(String::from).to_vec(), true));
}

#[test]
fn without_an_edit_nothing_is_ever_shortened() {
    let p = play("aider:max_chat_history_tokens=200", talk(30));
    assert_eq!((p.summaries().len(), p.compactions().len()), (0, 0));
    // The system prompt, the two messages about files, and the turns.
    assert_eq!(p.last().blocks.len(), 1 + 2 + 59);
}

#[test]
fn a_background_summary_replaces_what_it_covers() {
    // Three turns of about 250 tokens exceed the budget. The summary is ready before the first
    // request of the fourth.
    let script = edit_turns(4, 60).summaries(vec![text_answer("short")]);
    let p = play("aider@intended:max_chat_history_tokens=700", script);
    let asked = p.summaries();
    assert_eq!(
        (&*asked[0].model.name, asked[0].phase, asked[0].tools.is_none()),
        ("claude-haiku-4-5", Some(Phase::Background), true)
    );
    assert!(
        asked[0].blocks[1].text.starts_with("# USER\nu0 word")
            && asked[0].blocks[1].text.contains("# ASSISTANT\na0 word")
    );
    assert_eq!(p.compactions(), ["summary"]);
    let at = p.requests.iter().position(|r| kinds(r).contains(&Summary)).unwrap();
    let shown = outline(&p.requests[at]);
    assert_eq!(shown[..2], ["Base:base", "Summary:Before this we spoke abo"]);
    assert!(p.requests[at].blocks[1].text.ends_with("\nshort"));
    // After the summary follow the tail, the two messages appended after the snapshot, and the new
    // turn.
    let notice = shown.iter().rposition(|b| b.starts_with("User:The changes")).unwrap();
    assert_eq!(shown[notice + 1], "Assistant:Ok.");
    assert_eq!(shown[notice + 2..notice + 4], NO_FILES);
    assert!(shown[notice + 4].starts_with("User:u"));
    let covered = &p.requests[at].blocks[1].origin;
    assert!(covered.iter().any(|o| o.message == MessageId(0)));
}

#[test]
fn the_main_model_answers_when_the_weak_one_fails() {
    let failed = failure(ErrorKind::Server, 500, "no");
    let script = edit_turns(4, 60).summaries(vec![failed, text_answer("by main")]);
    let p = play("aider@intended:max_chat_history_tokens=700", script);
    let asked = p.summaries();
    assert_eq!(
        (&*asked[0].model.name, &*asked[1].model.name),
        ("claude-haiku-4-5", "claude-sonnet-4-5")
    );
    assert_eq!(p.compactions().first(), Some(&"summary"));
}

#[test]
fn a_restart_forgets_unless_the_file_is_read_again() {
    let script = || restarted(edit_turns(1, 3));
    let p = play("aider", script());
    assert_eq!(outline(p.last()), FORGOTTEN);
    let p = play("aider:restore=true", script());
    let shown = outline(p.last());
    assert_eq!(shown[1], "User:u0 word word word  \n");
    assert_eq!(shown.last().unwrap(), "User:again\n\nShow every change");
}

#[test]
fn a_rewind_takes_later_messages_out_of_both_lists() {
    let script = edit_turns(2, 3).then([back_to("m0"), user("n", "other")], [text_answer("yes")]);
    let p = play("aider", script);
    assert_eq!(
        outline(p.last()),
        [
            "Base:base",
            "User:u0 word word word",
            NO_FILES[0],
            NO_FILES[1],
            "User:other\n\nShow every change"
        ]
    );
}

#[test]
fn restored_history_may_be_summarised_even_as_released() {
    let spec = "aider:restore=true,max_chat_history_tokens=300";
    let p = play(spec, restarted(edit_turns(3, 60)));
    assert_eq!(p.compactions(), ["summary"]);
    assert!(kinds(p.last()).contains(&Summary));
}

#[test]
fn the_map_is_cut_to_its_budget_and_doubled_without_files() {
    // At a scale of 0.05 the window is 10,000: an eighth is 1,250, the cap 4,096 becomes 205. 100
    // lines of `word word …` count 10 each.
    let line = words(9) + "\n";
    assert_eq!(cl100k(&line), 10);
    let map: &'static str = line.repeat(100).leak();
    let shown = |spec: &str, files: Vec<&'static str>| {
        let p = play(spec, one_turn("hi", 0.05).files(files).repo_map(vec![map]));
        let shown = p.requests[0].blocks.iter().find(|b| b.kind == BlockKind::RepoMap);
        shown.map(|b| b.text.lines().count())
    };
    // With files 205: the search starts at 205 / 25 = 8 lines = 80, then 9..=100 -> 54 = 540,
    // 9..=53 -> 31 = 310, 9..=30 -> 19 = 190, which is within fifteen per cent. Without files 410:
    // 16 = 160, 17..=100 -> 58 = 580, 17..=57 -> 37 = 370, within.
    assert_eq!(shown("aider", vec!["file"]), Some(19));
    assert_eq!(shown("aider", vec![]), Some(37));
    assert_eq!(shown("aider:map_multiplier_no_files=1", vec![]), Some(19));
    // 8 times 205 is 1,640, which exceeds the size of the map.
    assert_eq!(shown("aider:map_multiplier_no_files=8", vec![]), Some(100));
    assert_eq!(shown("aider:map_tokens=0", vec![]), None);
    assert_eq!(shown("aider:map_tokens=40k", vec!["file"]), Some(100));
}

#[test]
fn the_reminder_needs_room_for_the_current_turns_twice() {
    // Window 200. Per message: role 1, content, 3; per list 3 more. Prompt 12 + n and the messages
    // on files, reminder 7 + r, current turns 7 + n.
    let r = cl100k(
        "Show every change as complete blocks of old and new lines, each under the path of its \
         file.",
    );
    let at =
        |spec: &str, n: u64| reminder(&play(spec, one_turn(&words(n as usize), 0.001)).requests[0]);
    let none = no_files_tokens();
    let most = (199 - 26 - none - r) / 2;
    assert_eq!([at("aider", most), at("aider", most + 1)], ["user", "none"]);
    assert_eq!(
        [at("aider:reminder=sys", most), at("aider:reminder=sys", most + 1)],
        ["sys", "none"]
    );
    assert!(19 + none + most + 1 + r < 200, "counted once there would be room");
}

#[test]
fn a_prompt_of_exactly_the_window_is_a_question() {
    // 12 + n and the messages on files against a window of 200; the description has no such messages
    // and asks only above it (docs/sources/token-budgeting.md §2.5).
    let asked = |spec: &str, n: usize| play(spec, one_turn(&words(n), 0.001)).interventions();
    let most = 187 - no_files_tokens() as usize;
    assert_eq!([asked("aider", most), asked("aider", most + 1)], [0, 1]);
    assert_eq!([asked("aider@described-003", 188), asked("aider@described-003", 189)], [0, 1]);
}

#[test]
fn a_declined_message_is_sent_with_the_next_one() {
    let actions =
        vec![user("m", &"word ".repeat(150)), user("n", &"word ".repeat(20)), user("o", "word")];
    // The first turn fits, also with the second. The third follows a 100-word reply and does not
    // fit, but is kept.
    let replies = vec![text_answer(&"word ".repeat(100))];
    let p = play("aider:oversize=decline", Script::new(actions, replies).scaled(0.001));
    assert_eq!((p.requests.len(), p.interventions(), p.failures().len()), (1, 2, 2));
    let shown: Vec<_> = p.engine.context.blocks().iter().map(|b| b.kind).collect();
    assert_eq!(shown, [Base, User, Assistant, User, Assistant, User, User]);
    assert_eq!(outline(&p.requests[0])[1..3], NO_FILES);
}

#[test]
fn a_refused_prompt_is_not_sent_again_and_leaves_a_note() {
    let actions = vec![user("m", "first"), user("n", "second")];
    let replies = vec![too_long(300_000, 200_000), text_answer("x")];
    let p = play("aider", Script::new(actions, replies));
    assert_eq!((p.requests.len(), p.failures().len()), (2, 1));
    assert_eq!(
        outline(&p.requests[1])[1..5],
        [NO_FILES[0], NO_FILES[1], "User:first", "Assistant:No answer: the request h"]
    );
}

#[test]
fn a_second_pass_begins_while_the_user_is_away() {
    let summaries = vec![text_answer(&"long ".repeat(690)), text_answer("second")];
    let script = edit_turns(3, 60)
        .then([Action::Idle { ms: 60_000 }, user("n", "on")], [text_answer("yes")])
        .summaries(summaries);
    let p = play("aider:max_chat_history_tokens=700", script);
    let purposes: Vec<_> = p.requests.iter().map(|r| r.purpose).collect();
    assert_eq!(purposes[6..], [Purpose::Summary, Purpose::Summary, Purpose::Sample]);
    // Checked one second after the request, and not when the user returns.
    let at = |i: usize| p.sent_at[i];
    assert!(at(7) <= at(6) + 2_000 && at(8) >= at(6) + 60_000, "{:?}", p.sent_at);
}

#[test]
fn a_restart_ends_keep_alive_requests() {
    let script = one_turn("a", 1.0).then(
        [Action::Restart, Action::Idle { ms: 1_200_000 }, user("n", "b")],
        [text_answer("y")],
    );
    let p = play("aider:cache_prompts=true,keepalive_pings=4", script);
    assert_eq!((p.requests.len(), p.with_purpose(Purpose::Ping).len()), (2, 0));
}

#[test]
fn a_ping_is_the_marked_prefix_with_one_token_of_output() {
    let script = one_turn("a", 1.0).files(vec!["file"]);
    let script = script.then([Action::Idle { ms: 300_000 }], []);
    let p = play("aider:cache_prompts=true,keepalive_pings=4", script);
    let [ping] = p.with_purpose(Purpose::Ping)[..] else { panic!("one ping") };
    assert_eq!((ping.max_tokens, ping.tools.is_none()), (Some(1), true));
    assert_eq!(outline(ping), ["Base:base", "File:file", "Assistant:Ok."]);
}

#[test]
fn bounds_of_the_history_budget_decide_when_to_summarise() {
    // Scale 0.01: a sixteenth of the window is 125 tokens, the bounds 1,024 and 8,192 become 10 and
    // 82. Two turns are over 100 each.
    let asked = |spec: &str| play(spec, edit_turns(3, 30).scaled(0.01)).summaries().len();
    assert!(asked("aider") > 0);
    // Between 125 and 1,000: only the lower bound keeps the three turns whole, if the upper bound
    // is larger.
    assert!(asked("aider:history_most=200k") > 0);
    assert_eq!(asked("aider:history_most=200k,history_least=100k"), 0);
    assert_eq!(
        asked("aider:history_least=100k") > 0,
        asked("aider") > 0,
        "the upper bound is the last word"
    );
}

#[test]
fn a_failed_summary_of_a_restored_history_empties_it_as_released() {
    let script = || without_summaries(restarted(edit_turns(3, 60)));
    let spec = "restore=true,max_chat_history_tokens=300";
    let p = play(&format!("aider:{spec}"), script());
    assert_eq!(p.compactions(), ["emptied"]);
    assert_eq!(outline(p.last()), FORGOTTEN);
    // The intended and the described version keep the whole history.
    for variant in ["aider@intended", "aider@described-003"] {
        let p = play(&format!("{variant}:{spec}"), script());
        assert!(p.compactions().is_empty());
        assert!(outline(p.samples().last().unwrap())[1].starts_with("User:u0 word"), "{variant}");
    }
}

#[test]
fn as_described_every_turn_is_history_and_the_swap_is_atomic() {
    // Turns without an edit, with 100-word messages and a budget of 500. Five or more messages
    // exceed the budget, and two are kept.
    let script = talk(5).summaries(vec![text_answer("short")]);
    let p = play("aider@described-003:max_chat_history_tokens=500", script);
    let asked = p.summaries();
    // After the third turn there are slightly over 600 tokens. The tail fits into 250 with two
    // messages, and the head is the four before.
    assert_eq!(asked[0].blocks[1].text.matches("# USER\n").count(), 2);
    assert_eq!(asked[0].blocks[1].text.matches("# ASSISTANT\n").count(), 2);
    assert_eq!(&*asked[0].model.name, "claude-haiku-4-5");
    let fourth = p.samples()[3];
    let shown = outline(fourth);
    assert_eq!(shown[1], "Summary:[chat summary] short");
    // Summary, the two newest messages and the new one, without `Ok.` and notice.
    assert_eq!(kinds(fourth)[1..], [Summary, User, Assistant, User]);
    assert_eq!(p.compactions().first(), Some(&"summary"));
}

#[test]
fn as_described_a_failure_is_not_passed_to_the_main_model() {
    let script = without_summaries(edit_turns(3, 100));
    let p = play("aider@described-003:max_chat_history_tokens=300", script);
    assert!(!p.summaries().is_empty());
    assert!(p.summaries().iter().all(|r| &*r.model.name == "claude-haiku-4-5"));
    assert!(p.compactions().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn everything_said_is_shown_or_stands_in_a_summary(turns in prop::collection::vec((any::<bool>(), 1usize..120), 1..12)) {
        let actions = turns.iter().enumerate().map(|(i, (_, n))| user(&format!("m{i}"), &"word ".repeat(*n))).collect();
        let reply = |i: usize, edit: bool, n: usize| {
            let tool = if edit { "edit_file" } else { "read_file" };
            [calls(&"said ".repeat(n), &format!("c{i}"), tool, PATH), text_answer("done")]
        };
        let replies = turns.iter().enumerate().flat_map(|(i, (edit, n))| reply(i, *edit, *n)).collect();
        let p = play("aider@intended:max_chat_history_tokens=300", Script::new(actions, replies));
        prop_assert!(p.failures().is_empty());
        let covered: HashSet<_> = p.engine.context.blocks().iter().flat_map(|b| b.origin.iter().copied()).collect();
        let said = p.engine.history.messages().iter().filter(|m| !m.synthetic);
        let parts: usize = said.map(|m| m.parts.len()).sum();
        prop_assert_eq!(covered.len(), parts);
        // Only an edit starts the summarisation of a history.
        prop_assert!(turns.iter().any(|(edit, _)| *edit) || p.requests.iter().all(|r| r.purpose == Purpose::Sample));
    }
}
