//! Recorded cases as files: shared items, and versions that no case knows.

use std::collections::HashMap;

use crate::common::data;
use ctxbench_conform::{Case, replay};
use serde_json::{Value, json};

fn load(name: &str) -> Value {
    let text = std::fs::read_to_string(data("conformance").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Returns the failure of a case, or nothing if it passes.
fn failure_of(case: &Value) -> String {
    match Case::parse(&case.to_string(), "case").and_then(|case| replay(&case)) {
        Ok(v) => v.difference.map_or(String::new(), |d| format!("{d:?}")),
        Err(e) => e.to_string(),
    }
}

/// Returns the case with every item stored once. With `runs`, consecutive items are listed by the
/// first and the last one.
fn shared(mut case: Value, runs: bool) -> Value {
    let (mut items, mut known) = (Vec::new(), HashMap::new());
    for r in case["requests"].as_array_mut().unwrap() {
        let numbers: Vec<usize> = r["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| {
                *known.entry(item.to_string()).or_insert_with(|| {
                    items.push(item.clone());
                    items.len() - 1
                })
            })
            .collect();
        r["items"] = match runs {
            false => json!(numbers),
            true => numbers
                .chunk_by(|a, b| a + 1 == *b)
                .map(|run| json!([run[0], run[run.len() - 1]]))
                .collect(),
        };
    }
    case["items"] = items.into();
    case
}

const CODEX: &str = "codex/0.169.0/a_midturn.json";

#[test]
fn shared_items_equal_items_written_out() {
    for name in [CODEX, "opencode/1.18.33/s2_multiturn.json", "opencode/1.18.33/s7_anthropic.json"]
    {
        let case = load(name);
        for runs in [false, true] {
            let small = shared(case.clone(), runs);
            assert_eq!(failure_of(&small), "", "{name}");
            assert!(small.to_string().len() < case.to_string().len(), "{name}");
        }
    }
    // An error in an item is found in every request that has it.
    let mut wrong = shared(load(CODEX), true);
    let user = wrong["items"].as_array().unwrap().iter().position(|i| i["kind"] == "user").unwrap();
    wrong["items"][user]["text"] = "Second task".into();
    wrong["items"][user]["bytes"] = 11.into();
    let failure_of = failure_of(&wrong);
    for told in ["request: 0", "what: \"bytes\""] {
        assert!(failure_of.contains(told), "{failure_of}");
    }
}

#[test]
fn missing_items_are_refused_with_their_position() {
    let case = shared(load(CODEX), true);
    let refused = |start: &str, words: &str, change: &dyn Fn(&mut Value)| {
        let mut case = case.clone();
        change(&mut case);
        let failure = failure_of(&case);
        assert!(failure.starts_with(start) && failure.contains(words), "{failure}");
    };
    let items = case["items"].as_array().unwrap().len();
    for entry in [json!(items), json!([0, items]), json!([3, 1]), json!("0"), json!([1]), json!(-1)]
    {
        refused("requests[1]", "expected", &|c| c["requests"][1]["items"] = json!([entry]));
    }
    refused("items[0]: unknown field `bites`", "", &|c| c["items"][0]["bites"] = 1.into());
    refused("", "numbers below 0", &|c| c["items"] = json!([]));
    let invalid = "requests[0]: invalid type: map, expected a sequence";
    refused(invalid, "", &|c| c["requests"][0]["items"] = json!({}));
}

#[test]
fn unknown_release_runs_as_the_newest_older_one() {
    let failure = |version: &str| {
        let mut case = load(CODEX);
        case["version"] = version.into();
        failure_of(&case)
    };
    assert_eq!(["0.169.7", "0.200.0", "1.0.0-rc.1"].map(failure), [""; 3]);
    for version in ["0.1.0", "nightly"] {
        let failure = failure(version);
        assert!(failure.contains(&format!("unknown version `{version}`")), "{failure}");
    }
}

#[test]
fn next_release_of_every_product_runs_as_the_newest_known() {
    for (product, newest) in [
        ("codex", "0.169.0"),
        ("opencode", "1.18.33"),
        ("pi", "1.5.2"),
        ("gemini-cli", "0.61.0"),
        ("anthropic-sdk", "python-2.12.0"),
        ("anthropic-sdk", "typescript-0.124.0"),
    ] {
        let folder = data(&format!("conformance/{product}/{newest}"));
        let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
        files.sort_by_key(|f| f.file_name());
        let text = std::fs::read_to_string(files[0].path()).unwrap();
        let mut case: Value = serde_json::from_str(&text).unwrap();
        let (before, number) = newest.rsplit_once('-').unwrap_or(("", newest));
        let (major, _) = number.split_once('.').unwrap();
        let next = format!("{}.0.1", major.parse::<u64>().unwrap() + 1);
        let next = if before.is_empty() { next } else { format!("{before}-{next}") };
        case["version"] = next.clone().into();
        assert_eq!(failure_of(&case), "", "{product} {next}");
    }
}
