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

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, out);
        } else if !path.file_name().unwrap().to_string_lossy().starts_with("fn_")
            && !path.strip_prefix(data("")).unwrap().starts_with("aider")
        {
            out.push(path);
        }
    }
}

#[test]
fn every_recorded_session_is_replayed_request_for_request() {
    let mut all = Vec::new();
    files(&data(""), &mut all);
    all.sort();
    let wrong: Vec<String> =
        all.iter().filter_map(|f| run(f).1.map(|d| format!("{}: {d}", f.strip_prefix(data("")).unwrap().display()))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(all.len(), 74);
}

/// A case changed in one place, and what must be said of it.
fn corrupted(change: impl FnOnce(&mut serde_json::Value)) -> String {
    corrupted_case("codex/0.169.0/a_midturn.json", change)
}

#[test]
fn a_wrong_outcome_is_refused() {
    let case = "anthropic-sdk/python-0.125.0/cross_on_tool_use.json";
    assert_eq!(corrupted_case(case, |v| v["outcome"]["requests"] = 3.into()), "outcome: requests");
    assert_eq!(
        corrupted_case(case, |v| v["outcome"]["tool_calls_executed"] = serde_json::json!(["f2.txt"])),
        "outcome: tool_calls_executed"
    );
    assert_eq!(corrupted_case(case, |v| v["outcome"]["final"] = serde_json::json!(["Other words."])), "outcome: final");
    assert_eq!(corrupted_case(case, |v| v["outcome"]["error"] = "http_400".into()), "outcome: error");
    let case = "anthropic-sdk/python-0.125.0/summary_http_400.json";
    assert_eq!(corrupted_case(case, |v| v["outcome"]["error"] = "http_500".into()), "outcome: error");
    assert_eq!(corrupted_case(case, |v| drop(v["outcome"].as_object_mut().unwrap().remove("error"))), "outcome: error");
}

fn corrupted_case(name: &str, change: impl FnOnce(&mut serde_json::Value)) -> String {
    let text = std::fs::read_to_string(data(name)).unwrap();
    let mut v: serde_json::Value = serde_json::from_str(&text).unwrap();
    change(&mut v);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcome = Case::parse(&v.to_string(), "corrupted").and_then(|case| runtime.block_on(replay(&case)));
    match outcome {
        Ok(verdict) => verdict.difference.map(|d| d.what).expect("a corrupted case must not pass"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn a_corrupted_case_is_refused() {
    assert_eq!(corrupted(|v| v["requests"][0]["items"][3]["bytes"] = 27.into()), "bytes");
    assert_eq!(corrupted(|v| v["requests"][1]["items"][7]["sha256"] = "00".into()), "sha256");
    assert_eq!(corrupted(|v| v["requests"][0]["items"][3]["kind"] = "surprise".into()), "kind");
    assert_eq!(corrupted(|v| v["requests"][2]["phase"] = "pre_turn".into()), "phase");
    assert_eq!(corrupted(|v| v["requests"][2]["tokens_after"] = 1.into()), "tokens_after");
    assert_eq!(corrupted(|v| drop(v["requests"].as_array_mut().unwrap().pop())), "number of requests");
    assert_eq!(corrupted(|v| v["requests"].as_array_mut().unwrap().push(serde_json::json!({"purpose": "sample", "items": []}))), "request");
    assert_eq!(corrupted(|v| drop(v["requests"][0]["items"].as_array_mut().unwrap().pop())), "item");
    assert_eq!(corrupted(|v| v["events"].as_array_mut().unwrap().push(serde_json::json!({"type": "reply", "text": "x"}))), "events");
    assert_eq!(corrupted(|v| v["events"].as_array_mut().unwrap().push(serde_json::json!({"type": "surprise"}))), "events");
    assert!(corrupted(|v| v["settings"]["surprise"] = 1.into()).contains("surprise"), "an unknown setting");
}
