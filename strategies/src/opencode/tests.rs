//! Small sessions driven through the agent's loop. At scale 0.01 claude-sonnet-4-5 has a window of
//! 2,000 tokens and replies of at most 320 (32,000 · 0.01), so 1,680 are usable; a tail may have
//! 150. A turn `one` / `done 1` is 31 tokens of JSON: 2 + 56 + 1 + 64 = 123 characters; its reply
//! alone is 17.

use ctxbench_core::prelude::*;

use crate::testing::{
    Answer, Played, Script, back_to, calls, compact, failure, image, kinds, text_answer, too_long,
    used, user,
};

use BlockKind::{
    Assistant, Base, Call, Continue, Marker, Output, ReplayedUser, Summary, SummaryPrompt, User,
};

pub(super) fn play(spec: &str, script: Script) -> Played {
    crate::testing::play(spec, script.scaled(0.01))
}

pub(super) fn using(answer: Answer, total: u64) -> Answer {
    let usage = Usage { reported_total: Some(total), ..Usage::default() };
    answer.map(|r| Reply { usage, ..r })
}

pub(super) fn last(p: &Played) -> &Request {
    p.samples().pop().unwrap()
}

fn failed(p: &Played) -> usize {
    p.events(|e| matches!(e, Event::CompactionFailed { dangling: true, .. }).then_some(())).len()
}

fn prompt(p: &Played, nth: usize) -> &str {
    &p.summaries()[nth].blocks.last().unwrap().text
}

/// Builds three short turns. The third one reports `total` tokens.
fn three_turns(total: u64) -> Script {
    one("one", vec![text_answer("done 1")])
        .then([user("2", "two")], [text_answer("done 2")])
        .then([user("3", "six")], [using(text_answer("done 3"), total), text_answer("going on")])
}

fn one(text: &str, replies: Vec<Answer>) -> Script {
    Script::new(vec![user("1", text)], replies)
}

/// Returns the blocks after the summary once three short turns have filled the window.
fn tail(settings: &str) -> Vec<BlockKind> {
    let p = play(&format!("opencode:{settings}"), three_turns(1_680));
    let shown = kinds(last(&p));
    assert_eq!(shown[..3], [Base, Marker, Summary]);
    assert_eq!(shown[shown.len() - 1], Continue);
    shown[3..shown.len() - 1].to_vec()
}

#[test]
fn tail_settings_choose_what_stays() {
    // docs/sources/opencode.md §3.2: everything fits, so nothing is kept; N newest turns; none.
    assert_eq!(tail(""), []);
    assert_eq!(tail("tail_turns=1"), [User, Assistant]);
    assert_eq!(tail("tail_turns=2"), [User, Assistant, User, Assistant]);
    assert_eq!(tail("tail_turns=0"), []);
    assert_eq!(tail("tail_turns=-1"), []);
    // A budget of 61 tokens keeps one turn and leaves 30 tokens, one too few for the whole previous
    // turn, so only its reply is kept. A budget of 62 keeps both turns.
    assert_eq!(tail("preserve_recent_tokens=6100"), [Assistant, User, Assistant]);
    assert_eq!(tail("preserve_recent_tokens=6200"), [User, Assistant, User, Assistant]);
    assert_eq!(tail("preserve_recent_tokens=0"), []);
    // The upper bound of the budget, 70 instead of 150 tokens.
    assert_eq!(tail("tail_most=7000"), [User, Assistant, User, Assistant]);
}

#[test]
fn the_summary_model_has_its_own_limits() {
    // docs/sources/opencode.md §3.2: 400 − 320 = 80 usable, a quarter is 20, which is also the
    // lower bound: the last reply alone.
    let model = "model=claude-haiku-4-5,model_context=40k,model_output=32k";
    assert_eq!(tail(model), [Assistant]);
    assert_eq!(tail(&format!("{model},tail_least=5k")), [Assistant, User, Assistant]);
    // 2,000 − 320 are usable again: a budget of 150 tokens for everything.
    assert_eq!(tail("model=claude-haiku-4-5,model_context=200k,model_output=64k"), []);
    // An input limit of 100 + 300 less the buffer of 200 leaves 200, and 50 for the tail.
    assert_eq!(
        tail("model=claude-haiku-4-5,model_context=200k,model_output=64k,model_input=40k"),
        [Assistant, User, Assistant]
    );
    let p = play(&format!("opencode:{model},model_output=20k"), three_turns(1_680));
    let asked = p.summaries()[0];
    assert_eq!((&*asked.model.name, asked.max_tokens), ("claude-haiku-4-5", Some(200)));
}

/// Builds a turn with `n` reads of 200 tokens, and then three turns without reads.
fn reads(tool: &str, n: usize) -> Script {
    let mut replies: Vec<Answer> =
        (0..n).map(|i| using(calls("", &i.to_string(), tool, "{}"), 100)).collect();
    replies.extend((0..3).map(|_| using(text_answer("done"), 100)));
    replies.push(using(text_answer("end"), 100));
    Script::new((0..4).map(|i| user(&i.to_string(), "go")).collect(), replies)
        .outputs(vec!["x".repeat(800); n])
}

fn cleared(spec: &str, tool: &str, n: usize) -> usize {
    last(&play(spec, reads(tool, n)))
        .blocks
        .iter()
        .filter(|b| b.text.starts_with("[Old tool"))
        .count()
}

#[test]
fn pruning_leaves_the_newest_results_and_needs_a_gain() {
    // docs/sources/opencode.md §1 at scale 0.01: 400 tokens are kept, and more than 200 must be
    // freed.
    assert_eq!(cleared("opencode:", "read", 5), 0, "off unless asked for");
    assert_eq!(cleared("opencode:prune=true", "read", 5), 3);
    assert_eq!(cleared("opencode:prune=true", "read", 3), 0, "exactly 200 is not more");
    assert_eq!(cleared("opencode:prune=true", "skill", 5), 0);
    assert_eq!(cleared("opencode:prune=true,prune_protect=20k", "read", 5), 4);
    assert_eq!(cleared("opencode:prune=true,prune_minimum=60k", "read", 5), 0);
    assert_eq!(cleared("opencode:", "read", 5), cleared("opencode:prune=false", "read", 5));
    // 800 letters are 200 tokens by their length, and at most half of that to a tokenizer.
    assert_eq!(cleared("opencode:prune=true,count=tokens", "read", 5), 0);
    assert_eq!(cleared("opencode@1.3", "read", 5), 3, "on in 1.3 (docs/sources/opencode.md §0)");
}

#[test]
fn pruning_follows_a_failed_turn_too() {
    // docs/sources/opencode.md §1: pruning follows every end of the loop.
    let mut script = reads("read", 5);
    script.replies[7] = failure(ErrorKind::Invalid, 400, "no such tool");
    assert_eq!(play("opencode:prune=true", script).compactions(), ["prune"]);
}

#[test]
fn a_proactive_share_looks_before_sending() {
    // docs/sources/opencode-vs-claude-code.md §10.5: more than 0.92 of the usable 1,680, which is
    // 1,545. 1,500 were counted; 45 and 46 tokens come after.
    let script = |chars: usize| {
        one(&"x".repeat(800), vec![using(text_answer("done 1"), 1_500)])
            .then([user("2", &"y".repeat(chars))], [using(text_answer("done 2"), 100)])
    };
    let compacted = |settings: &str, chars| {
        play(&format!("opencode:{settings}"), script(chars)).compactions().len()
    };
    assert_eq!(
        [compacted("proactive=0.92", 180), compacted("proactive=0.92", 184), compacted("", 184)],
        [0, 1, 0]
    );
    assert_eq!(compacted("proactive=0.92,auto=false", 184), 0);
    // The tail contains the new message and the reply of the previous turn, but not its request of
    // 200 tokens.
    let p = play("opencode:proactive=0.92", script(184));
    assert_eq!(kinds(last(&p)), [Base, Marker, Summary, Assistant, User, Continue]);
}

#[test]
fn the_sdk_prompt_has_five_sections() {
    // docs/sources/opencode-vs-claude-code.md §10.1.
    let headings =
        "Task Overview,Current State,Important Discoveries,Next Steps,Context to Preserve";
    let five = |p: &Played| headings.split(',').filter(|h| prompt(p, 0).contains(h)).count();
    for version in ["", "@1.3", "@described-001", "@described-002"] {
        let p = play(&format!("opencode{version}:prompt=sdk"), three_turns(1_690));
        let all = || five(&p) == 5 && prompt(&p, 0).contains("<summary>");
        assert!(version == "@described-001" || all(), "{version}");
    }
    let p = play("opencode", three_turns(1_680));
    // docs/sources/opencode.md §0.
    let eight = "Objective,Important Details,Work State,Completed,Active,Blocked,Next Move,\
                 Relevant Files";
    assert!(eight.split(',').all(|h| prompt(&p, 0).contains(h)), "{}", prompt(&p, 0));
    assert_eq!((five(&p), prompt(&p, 0).contains("<summary>")), (0, false));
}

#[test]
fn passing_failures_are_tried_five_times_more() {
    // docs/sources/opencode.md §3.1: at most five retries, and none after permanent failures.
    let busy = || failure(ErrorKind::RateLimited, 429, "rate limit");
    let with_summaries =
        |summaries: Vec<Answer>| play("opencode", three_turns(1_680).summaries(summaries));
    let p = with_summaries(vec![busy(); 5]);
    assert_eq!((p.summaries().len(), failed(&p)), (6, 0));
    let p = with_summaries(vec![busy(); 9]);
    assert_eq!((p.summaries().len(), failed(&p)), (6, 1));
    let with_replies = |replies: Vec<Answer>| {
        let p = play("opencode", one("one", replies));
        (p.samples().len(), p.failures().len())
    };
    assert_eq!(with_replies(vec![busy(); 9]), (6, 1));
    assert_eq!(
        with_replies(vec![failure(ErrorKind::Invalid, 400, "bad"), text_answer("never")]),
        (1, 1)
    );
}

#[test]
fn refusals_for_length_are_known_by_their_words() {
    // docs/sources/opencode.md §3.1: length errors of several providers match, rate limit errors do
    // not.
    let answer = |message: &str| {
        let replies = vec![failure(ErrorKind::Invalid, 400, message), text_answer("on")];
        play("opencode", one("one", replies)).compactions().len()
    };
    assert_eq!(answer("Prompt is too long: 9 tokens"), 1);
    assert_eq!(answer("This model's maximum context length is 8192 tokens"), 1);
    assert_eq!(answer("Too many tokens per minute: rate limit"), 0);
    assert_eq!(answer("unknown parameter"), 0);
}

/// Builds a second user message with two texts and an image. Its request is refused.
fn picture() -> Script {
    let parts = vec![Part::Text("look".into()), Part::Text("here".into()), image(Some("a.png"))];
    Script::new(
        vec![user("1", "one"), Action::User(Incoming { key: "2".into(), parts }), user("3", "bye")],
        vec![
            text_answer("done 1"),
            too_long(2_100, 2_000),
            too_long(2_100, 2_000),
            text_answer("seen"),
            text_answer("bye"),
        ],
    )
}

#[test]
fn a_replayed_message_keeps_its_parts_through_a_second_refusal() {
    // docs/sources/opencode.md §3.3, s15.
    // If the tail has a turn, the repeated message is repeated again.
    let mut script = picture();
    script.actions.insert(1, user("1b", "two"));
    script.replies.insert(1, text_answer("done 2"));
    let p = play("opencode:tail_turns=1", script);
    for nth in [3, 4] {
        let shown = p.samples()[nth].blocks.last().unwrap();
        assert_eq!(shown.kind, ReplayedUser);
        assert_eq!(
            shown.parts().collect::<Vec<_>>(),
            ["look", "here", "[Attached image/png: a.png]"]
        );
    }
}

#[test]
fn the_old_release_wraps_what_it_repeats_until_it_has_answered() {
    // docs/sources/opencode.md §0, §10 (1.3.2): the whole list of messages, files as notes.
    let mut script = picture();
    drop(script.replies.remove(2));
    script.replies[2] = using(text_answer("seen"), 100);
    script.actions.push(user("4", "now"));
    script.replies[3] = using(text_answer("bye"), 1_680);
    script.replies.push(text_answer("on"));
    let p = play("opencode@1.3", script);
    let samples = p.samples();
    let repeated =
        |r: &Request| r.blocks.iter().find(|b| b.kind == ReplayedUser).unwrap().text.to_string();
    assert!(repeated(samples[2]).len() > repeated(samples[3]).len());
    assert!(repeated(samples[3]).starts_with("lookhere[Attached"));
    assert_eq!(kinds(p.summaries()[0])[1..], [User, Assistant, SummaryPrompt]);

    let mut script = picture();
    script.replies =
        vec![text_answer("done 1"), using(text_answer("seen"), 1_680), text_answer("on")];
    let p = play("opencode@1.3", script);
    let shown: Vec<&str> = p.summaries()[0].blocks.iter().map(|b| &*b.text).collect();
    assert!(shown.contains(&"[Attached image/png: a.png]"), "{shown:?}");
}

#[test]
fn a_compaction_left_over_from_a_refusal_repeats_what_was_refused() {
    // docs/sources/opencode.md §3.2.2: the nearest real user message before the parent, which here
    // is the new message.
    let script = Script::new(
        vec![user("1", "one"), user("2", "two"), user("3", "ten")],
        vec![text_answer("done 1"), too_long(2_100, 2_000), text_answer("on")],
    )
    .summaries(vec![calls("", "c", "read", "{}"), text_answer("S")]);
    let p = play("opencode", script);
    assert!(prompt(&p, 1).contains("[User]: one") && !prompt(&p, 1).contains("two"));
    assert_eq!(last(&p).blocks.last().unwrap().kind, ReplayedUser);
    assert_eq!(&*last(&p).blocks.last().unwrap().text, "two");
}

#[test]
fn a_manual_compaction_asks_for_nothing_afterwards() {
    // docs/sources/opencode.md §3.1: a failed compaction is repeated at the next prompt, which the
    // summary then answers.
    let script = one("one", vec![text_answer("done 1"), text_answer("done 2")])
        .then([compact(), user("2", "two")], [])
        .summaries(vec![failure(ErrorKind::Invalid, 400, "bad")]);
    let p = play("opencode", script);
    assert_eq!((p.summaries().len(), p.samples().len()), (2, 1));
}

#[test]
fn going_back_behind_a_compaction_undoes_it() {
    // docs/sources/opencode.md §7: marker and summary are removed too.
    let mut script = three_turns(1_680);
    script.actions.extend([back_to("2"), user("4", "ten")]);
    let p = play("opencode", script);
    assert_eq!(kinds(last(&p)), [Base, User, Assistant, User, User]);
    // A restored step that exceeds the window is compacted before the next one (§2b).
    let script = Script::new(
        vec![user("1", "one"), back_to("c1"), user("2", "two")],
        vec![using(calls("", "c1", "read", "{}"), 1_680), text_answer("on"), text_answer("end")],
    );
    assert_eq!(play("opencode", script).compactions(), ["summary", "summary"]);

    let mut script = three_turns(1_680);
    script.actions =
        vec![user("1", "one"), user("2", "two"), user("3", "six"), Action::Clear, user("4", "ten")];
    script.replies.push(text_answer("new"));
    assert_eq!(kinds(last(&play("opencode", script))), [Base, User]);
}

#[test]
fn transcript_writes_arguments_as_json_stringify() {
    // The expected line is node's output for JSON.stringify(JSON.parse(arguments)).
    let arguments = r#"{ "path": "a\/b", "n": 1.0, "t": "\u0041", "l": [1, 2.50] }"#;
    let script = Script::new(
        vec![user("1", "one")],
        vec![using(calls("reading", "a", "read", arguments), 1_680), text_answer("on")],
    );
    let p = play("opencode", script);
    let line = r#"[Assistant tool call]: read({"path":"a/b","n":1,"t":"A","l":[1,2.5]})"#;
    assert!(prompt(&p, 0).contains(line), "{}", prompt(&p, 0));
}

#[test]
fn as_described_001() {
    // docs/sources/opencode-vs-claude-code.md §2: count > context − output, strictly; checked
    // before the next request; only the summary remains.
    let spec = "opencode@described-001";
    let with = |total| {
        let mut s = three_turns(total);
        s.actions.push(user("4", "ten"));
        // Input, cached input and output count; cache writes do not.
        s.replies[2] = used(text_answer("done 3"), total - 200, 100);
        let usage = &mut s.replies[2].as_mut().unwrap().usage;
        (usage.cache_read, usage.cache_write) = (100, 900);
        play(spec, s)
    };
    assert!(with(1_680).compactions().is_empty());
    let p = with(1_681);
    assert_eq!(p.compactions(), ["summary"]);
    assert_eq!(kinds(last(&p)), [Base, Marker, Summary]);
    // The messages themselves and a plain request, in a separate conversation without tools.
    let asked = p.summaries()[0];
    assert_eq!(
        kinds(asked),
        [Base, User, Assistant, User, Assistant, User, Assistant, User, SummaryPrompt]
    );
    assert!(asked.tools.is_none() && !prompt(&p, 0).contains("##"));
    // PRUNE_PROTECT 40,000, PRUNE_MINIMUM 20,000, last two user turns; no tool is exempt.
    let cases = [("read", 5), ("skill", 5), ("read", 3)];
    assert_eq!(cases.map(|(tool, n)| cleared(spec, tool, n)), [3, 3, 0]);
    assert_eq!(cleared("opencode@described-001:prune=false", "read", 5), 0);
    // The description does not mention refusals.
    let replies = vec![too_long(2_100, 2_000), text_answer("never")];
    let p = play(spec, one("one", replies));
    assert_eq!((p.failures().len(), p.requests.len()), (1, 1));
}

/// Builds five reads of 200 tokens in the first turn. The third turn fills the window.
fn filled(tool: &str, total: u64) -> Script {
    let mut s = reads(tool, 5);
    s.replies[7] = using(text_answer("full"), total);
    s.replies.push(text_answer("on"));
    s
}

#[test]
fn as_described_002() {
    // docs/sources/login-bug.md §4.1: more than 20,000 tokens freed, 40,000 kept, two user turns
    // and `skill` untouched; hidden, not replaced.
    let spec = "opencode@described-002";
    let p = play(spec, filled("read", 1_700));
    assert_eq!(p.compactions(), ["hide"]);
    let count = |r: &Request, kind| r.blocks.iter().filter(|b| b.kind == kind).count();
    assert_eq!((count(last(&p), Call), count(last(&p), Output)), (2, 2));
    // Step 2: hiding frees 600, and 2,280 less 600 are 1,680, which is still too large. The request
    // asks for five headings, then the last user message is sent again.
    let p = play(spec, filled("read", 2_280));
    assert_eq!(p.compactions(), ["hide", "summary"]);
    let after = p.samples()[8];
    assert_eq!(kinds(after), [Base, Summary, ReplayedUser]);
    assert_eq!(&*after.blocks[2].text, "go");
    assert_eq!(prompt(&p, 0).matches("## ").count(), 5);
    let system = &p.summaries()[0].blocks[0].text;
    assert!(system.contains("language"));
    assert_eq!(play(spec, filled("skill", 1_700)).compactions(), ["summary"]);
    assert_eq!(
        play("opencode@described-002:prune=false", filled("read", 1_700)).compactions(),
        ["summary"]
    );
}
