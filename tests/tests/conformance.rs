//! Recorded behaviour of the real programs: our requests must equal theirs, item by item.

use std::path::{Path, PathBuf};

use ctxbench_harness::conform::{Case, replay};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/conformance").join(name)
}

fn run(path: &Path) -> (usize, Option<String>) {
    let case = Case::read(path).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let v = runtime.block_on(replay(&case)).unwrap();
    (v.matched, v.difference.map(|d| format!("{d:#?}")))
}

#[test]
fn codex_compacts_in_the_middle_of_a_turn() {
    assert_eq!(run(&data("codex/0.169.0/a_midturn.json")), (6, None));
}

#[test]
fn opencode_keeps_the_newest_steps() {
    assert_eq!(run(&data("opencode/1.18.33/s1_toolloop.json")), (5, None));
}

#[test]
fn the_sdk_loses_the_turn_that_crosses_the_threshold() {
    assert_eq!(run(&data("anthropic-sdk/python-0.125.0/cross_on_tool_use.json")), (4, None));
}
