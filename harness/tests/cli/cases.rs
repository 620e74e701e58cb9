//! Recorded cases as files: shared items, and differences between versions.

use std::collections::HashMap;

use crate::common::{CommandFolder, data};
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

/// Puts a case into a folder of cases under a version and a name.
fn write_case(here: &CommandFolder, version: &str, name: &str, change: impl FnOnce(&mut Value)) {
    let mut case = load(CODEX);
    case["version"] = version.into();
    case["name"] = name.into();
    change(&mut case);
    here.write(&format!("cases/codex/{version}/{name}.json"), case.to_string());
}

#[test]
fn differences_between_versions_are_printed() {
    let here = CommandFolder::new();
    write_case(&here, "0.169.0", "one", |_| {});
    write_case(&here, "0.169.0", "two", |_| {});
    write_case(&here, "0.169.0", "gone", |_| {});
    // Ten comes after nine.
    for name in ["one", "two"] {
        write_case(&here, "0.1000.0", name, |c| {
            *c = shared(c.clone(), true);
            c["constants"]["summary_prompt_bytes"] = 512.into();
            c["fixed"][3]["count"] = 9.into();
            if name == "two" {
                c["settings"]["auto_compact_token_limit"] = 6000.into();
                c["requests"].as_array_mut().unwrap().truncate(2);
                c["requests"][1]["purpose"] = "summary".into();
            }
        });
    }
    write_case(&here, "0.1000.0", "new", |_| {});
    let out = here.run("conform cases").fails_with(1).stdout;
    let want = "\
codex 0.169.0 → 0.1000.0: 0 of 2 cases are the same
  in every session: constants.summary_prompt_bytes: 426 → 512
  in every session: fixed.tools[0]: 8 → 9
  two: settings.auto_compact_token_limit: 5000 → 6000
  two: requests: 6 → 2
  two: 1 of 2 requests differ: 2
  two: first, request 2: purpose: \"sample\" → \"summary\"
  only of 0.169.0: gone
  only of 0.1000.0: new
";
    assert!(out.contains(want), "{out}");
    // Text that did not change is not repeated, and the table comes last.
    let table = out.find("agent           version").unwrap();
    assert!(table > out.find(want).unwrap());
    let json = here.run("conform cases --json").fails_with(1).json();
    let changes = &json["changes"][0];
    assert_eq!((&changes["from"], &changes["to"]), (&json!("0.169.0"), &json!("0.1000.0")));
    assert_eq!(changes["everywhere"].as_array().unwrap().len(), 2);
    assert_eq!(changes["cases"]["two"].as_array().unwrap().len(), 4);
    // A single version has no changes.
    let alone = here.run("conform cases/codex/0.169.0").ok().stdout;
    assert!(!alone.contains('→'), "{alone}");
}

#[test]
fn recorded_codex_versions_differ_as_documented() {
    let here = CommandFolder::new();
    let out = here.run(&format!("conform {}", data("conformance/codex").display())).ok().stdout;
    let of = |from: &str| {
        let begin = out.find(&format!("codex {from} → ")).unwrap_or_else(|| panic!("{out}"));
        out[begin..].split("\ncodex ").next().unwrap().to_string()
    };
    assert!(of("0.63.0").contains("codex 0.63.0 → 0.104.0"), "{out}");
    let newest = of("0.104.0");
    assert!(newest.contains("0.104.0 → 0.169.0"), "{out}");
    // Tools, and the requests of a session that 0.169 compacts later.
    assert!(newest.contains("in every session: fixed.tools[0]: 5 → 8"), "{newest}");
    assert!(newest.contains("g_default_limit: requests: 5 → 4"), "{newest}");
    assert!(newest.contains("purpose: \"summary\" → \"sample\""), "{newest}");
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
