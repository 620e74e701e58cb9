use ctxbench_core::engine::{Action, RewindStatus};
use ctxbench_core::session::RewindMode;

use crate::testing::{Played, Script, back_to, outline, play, text_answer, user};

fn script(mode: RewindMode, to: &str, then: Vec<Action>) -> Script {
    let at = Action::Rewind { to: to.into(), mode, instructions: Some("keep the port".into()) };
    let actions =
        [vec![user("m", "first"), user("n", "second"), user("o", "third"), at], then].concat();
    Script::new(actions, ["a", "b", "c", "d", "e"].map(text_answer).into())
}

fn last(p: &Played) -> Vec<String> {
    outline(p.last()).into_iter().map(|l| l.chars().take(12).collect()).collect()
}

#[test]
fn from_here_keeps_what_stands_before() {
    let p = play("claude-code", script(RewindMode::SummarizeFrom, "n", vec![user("p", "fourth")]));
    assert_eq!(p.compactions(), ["summarize_from"]);
    let shown = last(&p);
    assert_eq!(shown[..4], ["Base:base", "User:first", "Assistant:a", "User:second"]);
    assert!(
        shown[4].starts_with("Summary:") && shown[5] == "User:fourth" && shown.len() == 6,
        "{shown:?}"
    );
    let asked = p.summaries()[0].blocks.last().unwrap().text.clone();
    assert!(asked.contains("begins with \"second\"") && asked.contains("keep the port"), "{asked}");
    assert_eq!(p.rewinds(), [RewindStatus::Done]);
}

#[test]
fn up_to_here_keeps_what_follows() {
    let p = play("claude-code", script(RewindMode::SummarizeTo, "n", vec![user("p", "fourth")]));
    assert_eq!(p.compactions(), ["summarize_to"]);
    let shown = last(&p);
    assert!(shown[1].starts_with("Summary:"), "{shown:?}");
    assert_eq!(shown[2..], ["Assistant:b", "User:third", "Assistant:c", "User:fourth"]);
    let request = p.summaries()[0].clone();
    assert!(request.blocks.iter().all(|b| &*b.text != "third"), "what stays is not summarised");
}

#[test]
fn going_back_before_the_seam_takes_the_summary_out() {
    let back = vec![back_to("m"), user("p", "fourth")];
    let p = play("claude-code", script(RewindMode::SummarizeTo, "n", back));
    assert_eq!(last(&p), ["Base:base", "User:first", "User:fourth"]);
}

#[test]
fn a_side_without_anything_and_a_product_without_the_command_change_nothing() {
    let p = play(
        "claude-code",
        script(RewindMode::SummarizeFrom, "unknown", vec![user("p", "fourth")]),
    );
    assert_eq!((p.rewinds(), p.compactions()), (vec![RewindStatus::Failed], vec![]));
    let p = play("opencode", script(RewindMode::SummarizeFrom, "n", vec![user("p", "fourth")]));
    assert_eq!(p.rewinds(), [RewindStatus::Unsupported]);
    assert!(p.summaries().is_empty());
}
