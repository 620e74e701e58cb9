//! Tests of a user's summary from a message on, or up to a message.

use ctxbench_core::engine::{Action, RewindStatus};
use ctxbench_core::session::RewindMode;

use crate::testing::{Played, Script, back_to, outline, play, text_answer, user};

/// Plays three turns, then a rewind to the second prompt, then `then`.
fn played(mode: RewindMode, then: Vec<Action>) -> Played {
    let at = Action::Rewind { to: "n".into(), mode, instructions: Some("keep the port".into()) };
    let long = |text: &str| format!("{text} {}", "word ".repeat(60));
    let turns = vec![user("m", "first"), user("n", &long("second")), user("o", "third"), at];
    let replies = ["a", "b", "c"].map(|r| text_answer(&long(r))).into_iter();
    let replies = replies.chain([text_answer("S"), text_answer("e"), text_answer("f")]).collect();
    play("openoxide", Script::new([turns, then].concat(), replies))
}

fn last(p: &Played) -> Vec<String> {
    let short = |l: String| l.chars().take(12).collect();
    outline(p.last()).into_iter().map(short).collect()
}

#[test]
fn from_here_keeps_what_stands_before_and_its_prefix() {
    let p = played(RewindMode::SummarizeFrom, vec![user("p", "fourth")]);
    assert_eq!(p.compactions(), ["summarize_from"]);
    let shown = last(&p);
    assert_eq!(shown[1..3], ["User:first", "Assistant:a "]);
    assert!(shown[3].starts_with("User:second"), "{shown:?}");
    assert!(shown[4].starts_with("Summary:"), "{shown:?}");
    assert_eq!((shown[5].as_str(), shown.len()), ("User:fourth", 6));
    let asked = p.summaries()[0].blocks.last().unwrap().text.clone();
    assert!(asked.contains("begins with \"b word") && asked.contains("keep the port"), "{asked}");
    assert_eq!(p.rewinds(), [RewindStatus::Done]);
}

#[test]
fn up_to_here_keeps_what_follows() {
    let p = played(RewindMode::SummarizeTo, vec![user("p", "fourth")]);
    assert_eq!(p.compactions(), ["summarize_to"]);
    let shown = last(&p);
    assert!(shown[1].starts_with("Summary:"), "{shown:?}");
    assert_eq!(shown[2..], ["Assistant:b ", "User:third", "Assistant:c ", "User:fourth"]);
    let request = p.summaries()[0].clone();
    assert!(request.blocks.iter().all(|b| &*b.text != "third"), "what stays is not summarised");
}

#[test]
fn going_back_before_the_seam_takes_the_summary_out() {
    let p = played(RewindMode::SummarizeTo, vec![back_to("m"), user("p", "fourth")]);
    assert_eq!(last(&p), ["Base:base", "User:first", "User:fourth"]);
}

#[test]
fn nothing_to_summarise_changes_nothing() {
    let at = |to: &str| Action::Rewind {
        to: to.into(),
        mode: RewindMode::SummarizeFrom,
        instructions: None,
    };
    let actions = vec![user("m", "first"), at("unknown"), user("p", "second")];
    let replies = ["a", "b"].map(text_answer).into();
    let p = play("openoxide", Script::new(actions, replies));
    assert!(p.compactions().is_empty() && p.summaries().is_empty());
    assert_ne!(p.rewinds(), [RewindStatus::Done]);
}
