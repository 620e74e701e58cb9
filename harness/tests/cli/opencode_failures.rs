//! A run that shows one of OpenCode's recorded failures reports it (docs/sources/opencode.md §3.4;
//! cases s17 and s4).

use crate::common::{CommandFolder, jsonl};
use serde_json::json;

/// A session with two short turns after a system prompt of `system` tokens and a first message of
/// `words` tokens, in a window of 20,000 tokens.
fn session(system: u64, words: usize) -> String {
    jsonl(&[
        json!({"type": "session", "version": 1, "id": "s", "title": "s", "context_window": 20_000, "max_output": 2_000, "prefix_tokens": system}),
        json!({"type": "user", "id": "u1", "text": "word ".repeat(words)}),
        json!({"type": "assistant", "id": "a1", "text": "hi there"}),
        json!({"type": "user", "id": "u2", "text": "more"}),
        json!({"type": "assistant", "id": "a2", "text": "yes"}),
    ])
}

/// Returns the broken rules of the only run.
fn broken(session: &str) -> Vec<String> {
    let here = CommandFolder::with("s.jsonl", session);
    let run = "run s.jsonl --strategy opencode --transport direct --calibrate off --out out";
    // The exit code does not matter here.
    here.run(run).output();
    let broken = here.runs("out")[0]["integrity"].clone();
    let broken = broken.as_array().unwrap().iter();
    broken.map(|f| f["rule"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_compaction_that_never_helps_is_a_loop() {
    // 18,000 tokens are usable, and the system prompt alone exceeds them.
    let rules = broken(&session(18_500, 1));
    assert!(rules.iter().any(|r| r == "compaction loop"), "{rules:?}");
}

#[test]
fn a_refused_summary_leaves_its_marker_and_the_whole_history() {
    // The request fits in the window, but with the instructions for a summary it does not.
    let rules = broken(&session(90, 19_880));
    for rule in ["dangling compaction marker", "history uncut after a failed compaction"] {
        assert!(rules.iter().any(|r| r == rule), "{rules:?}");
    }
}

#[test]
fn a_compaction_that_helps_breaks_no_rule() {
    assert!(broken(&session(90, 18_200)).is_empty());
}
