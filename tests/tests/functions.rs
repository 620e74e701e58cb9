//! Recorded results of single rules of the real programs. Our results must be the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ctxbench_harness::conform::{CaseError, FunctionVerdict, function_file};
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/conformance")
}

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for e in std::fs::read_dir(dir).unwrap() {
        let path = e.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "json") {
            out.push(path);
        }
    }
}

fn load(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(root().join(name)).unwrap()).unwrap()
}

fn run(file: &Value) -> Result<FunctionVerdict, CaseError> {
    function_file(&file.to_string(), "changed")
}

/// Returns the path and our value of the only failing case.
fn refused(file: &Value) -> (String, String) {
    let v = run(file).unwrap();
    assert_eq!((v.cases - v.passed, v.further.len()), (1, 0));
    let d = v.difference.unwrap();
    (d.at, d.got)
}

#[test]
fn every_recorded_result_is_reached() {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    let mut totals: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        if serde_json::from_str::<Value>(&text).unwrap()["kind"] != "function" {
            continue;
        }
        let v = function_file(&text, &path.display().to_string()).unwrap();
        assert_eq!(v.difference, None, "{}", path.display());
        let row = totals.entry(format!("{} {}", v.agent, v.version)).or_default();
        *row = (row.0 + v.passed, row.1 + v.cases);
    }
    let totals: Vec<(&str, (usize, usize))> =
        totals.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    let expected = [
        ("aider 0.86.2", 87),
        ("codex 0.104.0", 30),
        ("codex 0.169.0", 74),
        ("codex 0.63.0", 31),
        ("opencode 1.18.33", 74),
    ];
    assert_eq!(totals, expected.map(|(k, n)| (k, (n, n))));
}

/// A history within its limit starts no worker, so nothing changes, even if it ends with an answer
/// (docs/sources/aider.md §1.2, `summarize_start`).
#[test]
fn history_within_limit_is_unchanged() {
    let mut f = load("aider/0.86.2/turn_thread.json");
    let user = json!({"role": "user", "content": "u"});
    f["cases"] = json!([{
        "name": "within the limit",
        "input": {"done": [user], "cur": [user], "message": null, "max_tokens": 2, "count": "content", "snapshot": "before_append"},
        "expected": {"outcome": "no_summary_started", "summarizer_calls": 0, "done": [user, user]}
    }]);
    assert_eq!(run(&f).unwrap().difference, None);
    // The recordings have no name for this outcome, so any other name is accepted, except one with
    // another meaning.
    f["cases"][0]["expected"]["outcome"] = json!("not_started");
    assert_eq!(run(&f).unwrap().difference, None);
    for other in ["summary_discarded_full_history_kept", "summary_applied", "history_emptied"] {
        f["cases"][0]["expected"]["outcome"] = json!(other);
        assert_eq!(refused(&f).0, ".outcome", "{other}");
    }
    // One token over the limit, so both messages are merged into one.
    f["cases"][0]["input"]["max_tokens"] = json!(1);
    assert_eq!(refused(&f).0, ".done[0].content");
    f["cases"][0]["expected"]["outcome"] = json!("not_started");
    assert!(run(&f).unwrap().difference.is_some());
}

/// docs/sources/opencode.md §3.2.6: files by their media type and name, in one message with the
/// texts around them.
#[test]
fn files_of_a_stored_message_may_be_named_as_the_events_name_them() {
    let mut f = load("opencode/1.18.33/fn_transcript.json");
    let text = |t: &str| json!({"type": "text", "text": t});
    let shown = "[User]: a\n[User]: b\n[Attached image/png: pic.png]\n[User]: c";
    for file in [
        json!({"type": "file", "mime": "image/png", "filename": "pic.png"}),
        json!({"type": "file", "media": "image/png", "name": "pic.png", "url": "data:x"}),
        json!({"type": "media", "media": "image/png", "name": "pic.png"}),
        json!({"media": "image/png", "name": "pic.png", "url": "data:x"}),
    ] {
        f["cases"] = json!([{
            "name": "four parts",
            "input": {"role": "user", "parts": [text("a"), json!({"text": "b"}), file, text("c")]},
            "expected": {"text": shown},
        }]);
        assert_eq!(run(&f).unwrap().difference, None, "{file}");
    }
    // A file attached to a tool result.
    let tool = json!({"type": "tool", "name": "read", "arguments": "{}", "status": "completed",
        "output": "seen", "attachments": [{"media": "image/png", "name": "pic.png"}]});
    f["cases"][0]["input"] = json!({"role": "assistant", "parts": [tool]});
    f["cases"][0]["expected"]["text"] =
        "[Assistant tool call]: read({})\n[Tool result]: seen\n[Attached image/png: pic.png]"
            .into();
    assert_eq!(run(&f).unwrap().difference, None);
}

#[test]
fn a_changed_expectation_is_refused() {
    let mut f = load("codex/0.169.0/fn_trigger.json");
    f["cases"][2]["expected"]["active"] = json!(1);
    assert_eq!(refused(&f).0, ".active");
    let mut f = load("codex/0.169.0/fn_middle_cut.json");
    f["cases"][0]["expected"][1] = json!("…3 tokens truncated…");
    assert_eq!(refused(&f), ("[1]".into(), json!("…2 tokens truncated…").to_string()));
    let mut f = load("opencode/1.18.33/fn_transcript.json");
    f["cases"][3]["expected"]["bytes"] = json!(2_087);
    assert_eq!(refused(&f).0, "result");
    let mut f = load("opencode/1.18.33/fn_filter_compacted.json");
    f["cases"][0]["expected"].as_array_mut().unwrap().pop();
    assert_eq!(refused(&f).0, "result");
    let mut f = load("aider/0.86.2/summarize.json");
    f["cases"][0]["expected"]["extra"] = json!(0);
    assert_eq!(refused(&f), (".extra".into(), "nothing".into()));
}

#[test]
fn unknown_and_missing_members_are_refused() {
    for name in [
        "aider/0.86.2/summarize",
        "aider/0.86.2/turn_thread",
        "aider/0.86.2/split_markdown",
        "aider/0.86.2/markdown_roundtrip",
        "aider/0.86.2/cache_headers",
        "codex/0.104.0/fn_record_truncation",
        "codex/0.104.0/fn_retained_user_messages",
        "codex/0.169.0/fn_effective_limit",
        "codex/0.169.0/fn_history_estimate",
        "codex/0.169.0/fn_middle_cut",
        "codex/0.169.0/fn_trigger",
        "opencode/1.18.33/fn_overflow",
        "opencode/1.18.33/fn_prune",
        "opencode/1.18.33/fn_select_tail",
        "opencode/1.18.33/fn_tail_budget",
        "opencode/1.18.33/fn_transcript",
    ] {
        let whole = load(&format!("{name}.json"));
        let mut f = whole.clone();
        f["cases"][0]["input"]["unheard_of"] = json!(1);
        assert_eq!(refused(&f).0, "input", "{name}");
        let members: Vec<String> =
            whole["cases"][0]["input"].as_object().unwrap().keys().cloned().collect();
        for m in members.iter().filter(|m| *m != "models") {
            let mut f = whole.clone();
            f["cases"][0]["input"].as_object_mut().unwrap().remove(m);
            assert_eq!(refused(&f).0, "input", "{name} without {m}");
        }
    }
    for (name, list) in [("fn_filter_compacted", "/0/id"), ("fn_messages_estimate", "/0/role")] {
        let mut f = load(&format!("opencode/1.18.33/{name}.json"));
        let (at, member) = list.rsplit_once('/').unwrap();
        f["cases"][0]["input"].pointer_mut(at).unwrap().as_object_mut().unwrap().remove(member);
        assert_eq!(refused(&f).0, "input", "{name}");
    }
    let mut f = load("codex/0.169.0/fn_trigger.json");
    f["cases"][0]["input"]["point"] = json!("at_noon");
    assert_eq!(refused(&f).0, "input");
}

#[test]
fn unknown_functions_versions_and_facts_are_refused() {
    let whole = load("opencode/1.18.33/fn_estimate.json");
    for (member, value) in [
        ("function", "guess"),
        ("agent", "nobody"),
        ("version", "9.9.9"),
        ("version", "1.3.2"),
        ("kind", "replay"),
        ("stranger", "x"),
    ] {
        let mut f = whole.clone();
        f[member] = json!(value);
        assert!(run(&f).is_err(), "{member} = {value}");
    }
    let mut f = whole.clone();
    f["cases"][0].as_object_mut().unwrap().remove("expected");
    assert!(run(&f).is_err());
    let mut f = load("opencode/1.18.33/fn_prune.json");
    f["protect_tokens"] = json!(39_999);
    assert_eq!(run(&f).unwrap().passed, 0);
}
