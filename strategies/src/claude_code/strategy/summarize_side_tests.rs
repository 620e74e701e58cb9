//! Tests of a user's summary from a message on, or up to a message, in every product that has one.

use ctxbench_core::host::RewindStatus;
use ctxbench_core::prelude::*;

use crate::testing::{Played, Script, back_to, outline, play, text_answer, user};

const PRODUCTS: [&str; 2] = ["claude-code", "openoxide"];

/// Plays three turns, then a rewind to a prompt, then `then`.
fn played(spec: &str, mode: RewindMode, to: &str, then: Vec<Action>) -> Played {
    let at = Action::Rewind { to: to.into(), mode, instructions: Some("keep the port".into()) };
    let long = |text: &str| format!("{text} {}", "word ".repeat(60));
    let turns = vec![user("m", "first"), user("n", &long("second")), user("o", "third"), at];
    let replies = ["a", "b", "c"].map(|r| text_answer(&long(r))).into_iter();
    let replies = replies.chain(["d", "e"].map(text_answer)).collect();
    play(spec, Script::new([turns, then].concat(), replies))
}

fn last(p: &Played) -> Vec<String> {
    outline(p.last()).into_iter().map(|l| l.chars().take(12).collect()).collect()
}

fn fourth() -> Action {
    user("p", "fourth")
}

#[test]
fn from_here_keeps_what_stands_before_and_its_prefix() {
    for (spec, begins) in PRODUCTS.into_iter().zip(["second word", "b word"]) {
        let p = played(spec, RewindMode::SummarizeFrom, "n", vec![fourth()]);
        assert_eq!(p.compactions(), ["summarize_from"]);
        let shown = last(&p);
        assert_eq!(shown[..4], ["Base:base", "User:first", "Assistant:a ", "User:second "]);
        assert!(shown[4].starts_with("Summary:"), "{shown:?}");
        assert_eq!(shown[5..], ["User:fourth"]);
        let asked = &p.summaries()[0].blocks.last().unwrap().text;
        let begins = format!("begins with \"{begins}");
        assert!(asked.contains(&begins) && asked.contains("keep the port"), "{asked}");
        assert_eq!(p.rewinds(), [RewindStatus::Done]);
    }
}

#[test]
fn up_to_here_keeps_what_follows() {
    for spec in PRODUCTS {
        let p = played(spec, RewindMode::SummarizeTo, "n", vec![fourth()]);
        assert_eq!(p.compactions(), ["summarize_to"]);
        let shown = last(&p);
        assert!(shown[1].starts_with("Summary:"), "{shown:?}");
        assert_eq!(shown[2..], ["Assistant:b ", "User:third", "Assistant:c ", "User:fourth"]);
        let asked = &p.summaries()[0].blocks;
        assert!(asked.iter().all(|b| &*b.text != "third"), "what stays is not summarised");
    }
}

#[test]
fn going_back_before_the_seam_takes_the_summary_out() {
    for spec in PRODUCTS {
        let p = played(spec, RewindMode::SummarizeTo, "n", vec![back_to("m"), fourth()]);
        assert_eq!(last(&p), ["Base:base", "User:first", "User:fourth"]);
    }
}

#[test]
fn a_side_without_anything_and_a_product_without_the_command_change_nothing() {
    for (spec, to, status) in [
        ("claude-code", "unknown", RewindStatus::Failed),
        ("openoxide", "unknown", RewindStatus::Failed),
        ("opencode", "n", RewindStatus::Unsupported),
    ] {
        let p = played(spec, RewindMode::SummarizeFrom, to, vec![fourth()]);
        assert_eq!(p.rewinds(), [status], "{spec}");
        assert!(p.compactions().is_empty() && p.summaries().is_empty(), "{spec}");
    }
}
