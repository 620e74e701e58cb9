use ctxbench_core::engine::{Action, Event, RewindStatus};
use ctxbench_core::request::Purpose;
use ctxbench_core::session::RewindMode;

use crate::testing::{Played, Script, back_to, play, text_answer, user};

fn script(mode: RewindMode, to: &str, then: Vec<Action>) -> Script {
    let at = Action::Rewind { to: to.into(), mode, instructions: Some("keep the port".into()) };
    let actions =
        [vec![user("m", "first"), user("n", "second"), user("o", "third"), at], then].concat();
    Script {
        actions,
        replies: ["a", "b", "c", "d", "e"].map(text_answer).into(),
        ..Script::default()
    }
}

fn last(p: &Played) -> Vec<String> {
    Played::outline(p.requests.last().unwrap())
        .into_iter()
        .map(|l| l.chars().take(12).collect())
        .collect()
}

fn statuses(p: &Played) -> Vec<RewindStatus> {
    let of = |e: &Event| if let Event::Rewound { status, .. } = e { Some(*status) } else { None };
    p.engine.events.iter().filter_map(|e| of(&e.event)).collect()
}

#[test]
fn from_here_keeps_what_stands_before() {
    let p =
        play("claude-code", 1.0, script(RewindMode::SummarizeFrom, "n", vec![user("p", "fourth")]));
    assert_eq!(p.compactions(), ["summarize_from"]);
    let shown = last(&p);
    assert_eq!(shown[..4], ["Base:base", "User:first", "Assistant:a", "User:second"]);
    assert!(
        shown[4].starts_with("Summary:") && shown[5] == "User:fourth" && shown.len() == 6,
        "{shown:?}"
    );
    let asked = p.with_purpose(Purpose::Summary)[0].blocks.last().unwrap().text.clone();
    assert!(asked.contains("begins with \"second\"") && asked.contains("keep the port"), "{asked}");
    assert_eq!(statuses(&p), [RewindStatus::Done]);
}

#[test]
fn up_to_here_keeps_what_follows() {
    let p =
        play("claude-code", 1.0, script(RewindMode::SummarizeTo, "n", vec![user("p", "fourth")]));
    assert_eq!(p.compactions(), ["summarize_to"]);
    let shown = last(&p);
    assert!(shown[1].starts_with("Summary:"), "{shown:?}");
    assert_eq!(shown[2..], ["Assistant:b", "User:third", "Assistant:c", "User:fourth"]);
    let request = p.with_purpose(Purpose::Summary)[0].clone();
    assert!(request.blocks.iter().all(|b| &*b.text != "third"), "what stays is not summarised");
}

#[test]
fn going_back_before_the_seam_takes_the_summary_out() {
    let back = vec![back_to("m"), user("p", "fourth")];
    let p = play("claude-code", 1.0, script(RewindMode::SummarizeTo, "n", back));
    assert_eq!(last(&p), ["Base:base", "User:first", "User:fourth"]);
}

#[test]
fn a_side_without_anything_and_a_product_without_the_command_change_nothing() {
    let p = play(
        "claude-code",
        1.0,
        script(RewindMode::SummarizeFrom, "unknown", vec![user("p", "fourth")]),
    );
    assert_eq!((statuses(&p), p.compactions()), (vec![RewindStatus::Failed], vec![]));
    let p =
        play("opencode", 1.0, script(RewindMode::SummarizeFrom, "n", vec![user("p", "fourth")]));
    assert_eq!(statuses(&p), [RewindStatus::Unsupported]);
    assert!(p.with_purpose(Purpose::Summary).is_empty());
}
