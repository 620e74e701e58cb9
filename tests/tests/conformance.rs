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

/// A look at every case of the shared folder; never fails, because later work makes them pass one by one.
#[test]
fn survey_of_all_recorded_cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance");
    let Ok(agents) = std::fs::read_dir(&root) else {
        println!("skipped: ../shared/conformance is not there");
        return;
    };
    let mut files: Vec<PathBuf> = agents
        .flatten()
        .filter(|a| a.path().is_dir())
        .flat_map(|a| std::fs::read_dir(a.path()).into_iter().flatten().flatten())
        .flat_map(|v| std::fs::read_dir(v.path()).into_iter().flatten().flatten())
        .map(|f| f.path())
        .filter(|p| !p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("fn_")))
        .collect();
    files.sort();
    let (mut passed, mut all) = (0, 0);
    for f in files {
        let Ok(case) = Case::read(&f) else { continue };
        if case.kind != "replay" {
            continue;
        }
        all += 1;
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        match runtime.block_on(replay(&case)) {
            Ok(v) if v.difference.is_none() => passed += 1,
            Ok(v) => println!("{}/{}/{}: {}/{} {:?}", case.agent, case.version, case.name, v.matched, v.expected, v.difference),
            Err(e) => println!("{}/{}/{}: {e}", case.agent, case.version, case.name),
        }
    }
    println!("{passed} of {all} replay cases");
}
