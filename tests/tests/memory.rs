//! Memory files that each product still shows after a compaction, as in docs/memory.md.

use ctxbench_replay::Options;
use ctxbench_reports::record::{RunRecord, Status};

use crate::common::replayed::{MODEL, run_with};

fn run(spec: &str) -> RunRecord {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/memory/scenario.toml");
    let [scenario] = <[_; 1]>::try_from(ctxbench_scenarios::load(path).unwrap().scenarios).unwrap();
    run_with(MODEL, &scenario, spec, &Options::default())
}

/// Formats the place of each fact at each need as `fact@need=place`.
fn places(spec: &str) -> Vec<String> {
    let r = run(spec);
    assert_eq!(r.status, Status::Completed, "{spec}");
    assert!(r.summary.compactions > 0, "{spec}");
    r.facts.iter().map(|f| format!("{}@{}={:?}", f.fact, f.need, f.place).to_lowercase()).collect()
}

#[test]
fn claude_code_after_compaction_reloads_project_file_and_drops_scoped_files() {
    // docs/sources/claude-code.md §1.4: the project file and the notes are reloaded from disk;
    // scoped rules and subfolder files are dropped until a matching file is read (`c12` reads one
    // before `u5`). §1.5: 200 lines of the index are loaded.
    let expected = [
        "folder@u3=nowhere",
        "index-cut@u3=nowhere",
        "index-shown@u3=memory",
        "project@u2=memory",
        "rule@u2=nowhere",
        "rule@u5=memory",
    ];
    assert_eq!(places("claude-code"), expected);
    // Without scoped rules all files are reloaded.
    let all = places("claude-code:scoped_rules=false");
    assert_eq!(all.iter().filter(|p| p.ends_with("=memory")).count(), 5, "{all:?}");
}

#[test]
fn other_products_show_all_memory_files_in_every_request() {
    for spec in ["codex", "opencode", "claude-code-api", "sliding-window"] {
        assert!(places(spec).iter().all(|p| p.ends_with("=memory")), "{spec}");
    }
}

#[test]
fn openoxide_after_compaction_drops_scoped_files_like_claude_code() {
    // docs/sources/openoxide.md §1.7: the first 200 lines of the index; subfolder files and rules
    // once a matching file is read. `c12` reads one before `u5`. By then finished turns exceed the
    // history budget (8,192 tokens, here a twentieth of that) and are summarised, including the
    // rule.
    let mut expected = [
        "folder@u3=nowhere",
        "index-cut@u3=nowhere",
        "index-shown@u3=memory",
        "project@u2=memory",
        "rule@u2=nowhere",
        "rule@u5=nowhere",
    ];
    assert_eq!(places("openoxide"), expected);
    // A larger budget keeps that turn.
    expected[5] = "rule@u5=memory";
    assert_eq!(places("openoxide:chat_history_fraction=0.9,chat_history_max=180k"), expected);
}

#[test]
fn sdk_runner_summarises_memory_files() {
    // docs/sources/anthropic-sdk.md §2.2, step 6: the summary replaces the whole message list.
    assert!(places("anthropic-sdk").iter().all(|p| !p.ends_with("=memory")));
}
