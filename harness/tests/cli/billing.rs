//! Bills of recordings that repeat calls, name what changes a price, or count what cannot be. Expected
//! values are list prices times the counters in the files.

use std::path::Path;

use ctxbench_replay::billing::{SessionCalls, bill_once};
use serde_json::{Value, json};

use crate::common::{self, CommandFolder, Row, json_lines, jsonl};

fn data(folder: &str) -> String {
    common::data(folder).display().to_string()
}

/// Returns the rows of `list sessions`.
fn rows(folder: &str) -> Vec<Value> {
    let here = CommandFolder::new();
    json_lines(&here.run(&format!("list sessions {} --json", data(folder))).ok().stdout)
}

fn dollars(rows: &[Value]) -> f64 {
    rows.iter().map(|r| r["cost_usd"].as_f64().unwrap()).sum()
}

#[test]
fn each_call_is_billed_once_and_for_what_it_costs() {
    for (folder, sessions, usd) in [
        // Sonnet 4.6 at 3, 3.75, 0.30 and 15 USD per million: three calls of the session, one aside.
        ("billing/side-question", 1, 0.104_193),
        // Five files with the session's two calls, and with one call for a summary.
        ("billing/repeated-summaries", 1, 0.137_868),
        ("billing/joined-lines", 1, 0.088_56),
        ("billing/workflow", 1, 0.126_57),
        // Opus 4.6 at 5, 6.25 and 25: 0.13255, six times that, and five searches at 0.01.
        ("billing/terms", 3, 0.132_55 * 8.0 + 0.05),
        // 180,000 and 3,500 tokens of the compaction in either format.
        ("billing/inner-compaction", 2, 2.0 * 1.0513),
        // Opus 4.1 at 15 and 75, 10,000 and 300 tokens; GPT-5 mini at 0.25 and 2.
        ("billing/price-names", 2, 0.1725 + 0.0031),
        // Opus 4.5, as the program itself computed it.
        ("recordings/cline", 1, 0.0656),
    ] {
        let rows = rows(folder);
        let found = dollars(&rows);
        assert_eq!(rows.len(), sessions, "{folder}");
        assert!((found - usd).abs() < 0.01 * usd, "{folder}: {found} instead of {usd}");
    }
    for row in rows("billing/inner-compaction") {
        assert_eq!(row["compactions"], 1, "{row}");
    }
}

#[test]
fn databases_are_billed_by_their_counters_or_their_own_sums() {
    let here = CommandFolder::new();
    // Sonnet 4.5 at 3, 3.75, 0.30 and 15 USD per million, and Haiku 4.5 at 1 and 5.
    let goose = (10.0 + 9.0 + 29.0 + 9.0 + 1_000.0) * 3.0
        + (14_000.0 + 120.0 + 9_300.0 + 800.0) * 3.75
        + (14_000.0 + 14_120.0 + 400.0) * 0.3
        + (60.0 + 40.0 + 150.0 + 30.0 + 5.0) * 15.0
        + 300.0
        + 6.0 * 5.0;
    let zed = (57.0 + 3_000.0) * 3.0 + 23_420.0 * 3.75 + 28_120.0 * 0.3 + (280.0 + 5.0) * 15.0;
    for (recording, usd) in [
        // An older session without a ledger has its own sum.
        ("goose/port.sql", goose / 1e6 + 0.02),
        ("zed/threads.sql", zed / 1e6),
        ("crush/port.sql", 0.1094),
        ("crush/dbos-transact-golang.sql", 0.020_346_25),
        ("cursor/state.sql", 0.11),
    ] {
        let path = common::database(&here, recording);
        let listed = here.run("list sessions --json").arg(&path.display().to_string()).ok();
        let rows = json_lines(&listed.stdout);
        // A session without any call has no cost.
        let found: f64 = rows.iter().filter_map(|row| row["cost_usd"].as_f64()).sum();
        assert!((found - usd).abs() < 1e-6, "{recording}: {found} instead of {usd}");
    }
}

#[test]
fn copies_count_as_one_session() {
    let mut all: Vec<_> = ["a", "b"]
        .map(|id| {
            let path = Path::new(&data("billing/workflow")).join("s1.jsonl");
            let mut found = ctxbench_scenarios::load_path(&path).unwrap().scenarios.remove(0);
            found.id = id.into();
            found
        })
        .into();
    let calls: Vec<SessionCalls> = all.iter().map(|s| SessionCalls::new(&s.session)).collect();
    bill_once(&mut all, &calls);
    assert_eq!((all[0].counted_as.as_deref(), all[1].counted_as.as_deref()), (None, Some("a")));
    assert_eq!(all[1].billed_elsewhere.len(), 4);
}

#[test]
fn the_reference_keeps_what_two_texts_of_a_message_tell() {
    let here = CommandFolder::new();
    let line = "--strategy reference --transport direct --out out --json";
    let all = here.run(&format!("run {} {line}", data("billing/two-parts"))).ok().json();
    for row in all["runs"].as_array().unwrap() {
        assert_eq!(row["summary"]["recall_pct"], 100.0, "{}", row["scenario"]["id"]);
    }
}

#[test]
fn impossible_counters_and_other_programs_are_told() {
    let here = CommandFolder::new();
    let counters = here.run(&format!("list sessions {}", data("billing/impossible-counters"))).ok();
    counters.lacks(&["4280000"]).stderr_contains(&["cannot be right and are left out"]);
    let other = here.run(&format!("list sessions {}", data("billing/other-program"))).ok();
    other.stderr_contains(&["a recording of Codex CLI (the output of `codex exec --json`"]);
}

/// Two replies of Opus 4.6 (5, 6.25, 0.50 and 25 USD per million) and two of Haiku 4.5 (1, 1.25, 0.10
/// and 5), which has a cache of its own.
#[test]
fn replies_are_billed_by_their_own_models() {
    let here = CommandFolder::new();
    let mut lines = vec![
        json!({"type": "session", "version": 1, "id": "s", "model": "claude-opus-4-6",
            "source": {"format": "claude-code"}, "prefix_tokens": 19_900}),
        json!({"type": "user", "id": "u", "text": "Read the files."}),
    ];
    for (i, (model, read, written)) in [
        ("claude-opus-4-6", 0, 20_000),
        ("claude-opus-4-6", 20_000, 2_000),
        ("claude-haiku-4-5", 0, 24_000),
        ("claude-haiku-4-5", 24_000, 2_000),
    ]
    .into_iter()
    .enumerate()
    {
        let (id, call) = (format!("a{i}"), format!("c{i}"));
        let usage = json!({"input": 0, "cache_read": read, "cache_write": written, "output": 50});
        lines.push(json!({"type": "assistant", "id": id, "model": model, "text": "Next.",
            "calls": [{"id": call, "name": "Read", "arguments": "{}"}], "usage": usage}));
        lines.push(json!({"type": "tool", "call_id": call, "output": "done"}));
    }
    here.write("s.jsonl", jsonl(&lines));
    let usd = (22.0 * 6.25 + 20.0 * 0.5 + 0.1 * 25.0 + 26.0 * 1.25 + 24.0 * 0.1 + 0.1 * 5.0) / 1e3;
    here.run("run s.jsonl --strategy reference --transport direct --out o").ok();
    for row in here.csv("o/summary.csv") {
        let cost: f64 = row["cost_usd"].parse().unwrap();
        assert!((cost - usd).abs() < 0.03 * usd, "{}: {cost} instead of {usd}", row["strategy"]);
    }
    let of_haiku = |r: &&Row| r["request_model"] == "claude-haiku-4-5";
    assert_eq!(here.csv("o/requests.csv").iter().filter(of_haiku).count(), 4, "two in each row");
}
