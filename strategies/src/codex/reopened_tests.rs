//! Tests with files in the format of the released program. The expected histories were derived by
//! hand (docs/sources/codex.md §4).

use super::*;

fn read(name: &str) -> Reopened {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    Reopened::read(&data.join(name)).unwrap()
}

fn outline(r: &Reopened) -> Vec<String> {
    let short = |t: &str| t.chars().take(16).collect::<String>();
    r.items.iter().map(|i| format!("{}: {}", i.kind, short(&i.text))).collect()
}

#[test]
fn a_session_of_0_169_goes_on_from_its_newest_history() {
    let r = read("rollouts/released-0.169.jsonl");
    assert_eq!((&*r.version, r.unreadable.len(), r.compactions), ("0.169.0", 0, 1));
    assert_eq!(r.base, Some(Base { line: 19, whole: true }));
    assert_eq!(
        outline(&r),
        [
            "developer: <permissions ins",
            "context: <environment_con",
            "user: Tides of Skagen ",
            "summary: Handoff from the",
            "assistant: The cause is tid",
            // The previous turn was taken back.
            "user: Undo that, I wan",
            "assistant: tide/table_test.",
        ]
    );
    // Start, message, call, output, reply and counters. A resume does not read the settings or the
    // copies for the screen.
    assert_eq!(r.taken_back, 6);
    // 272,000 less 10 %; the program reports 95 % of the window.
    assert_eq!((r.in_use, r.limit, r.compacts()), (Some(5_050), Some(244_800), Some(false)));
    assert_eq!((r.lines["world_state"], r.lines["turn_context"]), (2, 4));
}

#[test]
fn a_session_of_0_104_is_compacted_again() {
    let r = read("rollouts/released-0.104.jsonl");
    assert_eq!(r.base, Some(Base { line: 25, whole: false }));
    assert_eq!(
        outline(&r),
        [
            "developer: <permissions ins",
            "context: <environment_con",
            "user: Tides of Skagen ",
            "user: Write the test, ",
            // The first summary is not a message of the user, so the history omits it.
            "summary: Handoff from the",
            "user: Which file was t",
            "assistant: tide/zone.go.",
        ]
    );
    assert!(r.items[4].text.ends_with("the test is written."));
    assert_eq!((r.ghosts, r.compactions), (2, 2));
    // The newest counters reach the limit, so the first turn begins with a compaction.
    assert_eq!((r.in_use, r.compacts()), (Some(245_050), Some(true)));
}

/// An excerpt of a recording without a compaction, so all messages are restored.
#[test]
fn a_recorded_session_comes_back_whole() {
    let r = read("recordings/codex/codemie-rollout-019e1625.jsonl");
    assert_eq!((&*r.version, r.base.clone(), r.taken_back), ("0.125.0", None, 0));
    assert_eq!(r.items.len() as u64, r.lines["response_item"]);
    assert!(r.unreadable.is_empty() && r.tokens() > 0, "{:?}", r.unreadable);
}

#[test]
fn rules_go_by_the_version_and_no_window_is_no_limit() {
    let eras = ["0.63.0", "0.103.9", "0.104.0", "0.168.0", "0.169.0", "0.200.1", "1.2.0", ""];
    use Release::*;
    let expected = [V063, V063, V104, V104, V169, V169, V169, V169];
    assert_eq!(eras.map(release), expected);
    let none = Reopened::from_rollout(&Rollout::default());
    assert_eq!((none.limit, none.in_use, none.compacts()), (None, None, None));
    assert!(none.items.is_empty() && none.base.is_none());
}
