//! Bills over several files: copies and continuations, archives, and what a report compares.

use serde_json::{Value, json};

use crate::billing_variants::{CALL_USD, SONNET};
use crate::common::{CommandFolder, REPLAY, data, gzip, json_lines, jsonl};

/// Returns a session of pi's first format, without ids, with this many questions and replies.
fn pi(id: &str, replies: u64) -> String {
    let time = |n: u64| format!("2026-10-02T09:{n:02}:00.000Z");
    let head = json!({"type": "session", "id": id, "timestamp": time(0), "cwd": "/w",
        "provider": "anthropic", "modelId": "claude-sonnet-4-6"});
    let turn = |n: u64| {
        let usage = json!({"input": 10_000, "output": 1_000, "cacheRead": 0, "cacheWrite": 0});
        let ask = json!({"role": "user", "content": [{"type": "text", "text": "Next?"}]});
        let reply = json!({"role": "assistant", "api": "anthropic-messages", "provider": "anthropic",
            "model": "claude-sonnet-4-6", "stopReason": "stop", "usage": usage,
            "content": [{"type": "text", "text": "Done."}]});
        [
            json!({"type": "message", "timestamp": time(2 * n), "message": ask}),
            json!({"type": "message", "timestamp": time(2 * n + 1), "message": reply}),
        ]
    };
    jsonl(&[vec![head], (1..=replies).flat_map(turn).collect()].concat())
}

/// Returns the dollars of `list sessions`, and of the rows as recorded of `run`.
fn bills(here: &CommandFolder) -> (f64, f64, String) {
    let listed = json_lines(&here.run("list sessions in --json").ok().stdout);
    let ran = here.run(&format!("run in {REPLAY}")).ok();
    let recorded = |r: &&Value| r["strategy"]["name"] == "as-recorded";
    let usd = |r: &Value| r["summary"]["cost_usd"].as_f64().unwrap();
    let run = here.runs("out").iter().filter(recorded).map(usd).sum();
    let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    (listed.iter().filter_map(|r| r["cost_usd"].as_f64()).sum(), run, told)
}

#[track_caller]
fn assert_close(found: f64, usd: f64) {
    assert!((found - usd).abs() < 1e-9, "{found} instead of {usd}");
}

#[test]
fn copies_and_continuations_without_ids_are_billed_once() {
    let usage = json!({"input_tokens": 10_000, "output_tokens": 1_000});
    let messages = json!([
        {"role": "user", "content": "Which port?"},
        {"role": "assistant", "content": "8443.", "usage": usage},
    ]);
    let talk = json!({"model": SONNET, "messages": messages}).to_string();
    let untimed = [("a.json", talk.clone()), ("b.json", talk)];
    let timed = [("a.jsonl", pi("a", 2)), ("b.jsonl", pi("b", 4)), ("c.jsonl", pi("c", 4))];
    for (files, calls) in [(&untimed[..], 1.0), (&timed[..], 4.0)] {
        let here = CommandFolder::new();
        files.iter().for_each(|(name, text)| here.write(&format!("in/{name}"), text));
        let (listed, run, told) = bills(&here);
        assert_close(listed, calls * CALL_USD);
        assert_close(run, calls * CALL_USD);
        assert!(told.contains("as recorded") && told.contains("in 1 session;"), "{told}");
    }
}

/// Two sessions that continue a third: each replays its two calls and adds one or two.
#[test]
fn recorded_and_modelled_dollars_are_of_the_same_sessions() {
    let here = CommandFolder::new();
    let own = |id: &str, at: &str| {
        pi(id, 4)
            .replace("09:06", at)
            .replace("09:07", at)
            .replace("09:08", at)
            .replace("09:09", at)
    };
    here.write("in/a.jsonl", pi("a", 2));
    here.write("in/b.jsonl", pi("b", 4));
    here.write("in/c.jsonl", own("c", "19:08"));
    let (listed, run, told) = bills(&here);
    assert_close(listed, 6.0 * CALL_USD);
    assert_close(run, 6.0 * CALL_USD);
    let rows = here.csv("out/summary.csv");
    let cell = |id: &str, strategy: &str, column: &str| {
        let row = rows.iter().find(|r| r["scenario"] == id && r["strategy"] == strategy);
        row.unwrap()[column].parse::<f64>().unwrap()
    };
    let modelled = format!("never compacting ${:.4}", cell("b", "reference", "cost_usd"));
    for words in [
        "$0.180 in 1 session;",
        "2 other sessions, not compared, cost $0.0900",
        &modelled,
        "2 sessions repeating another one",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    for (id, calls) in [("a", 0.0), ("b", 4.0), ("c", 2.0)] {
        let of = |column: &str| cell(id, "as-recorded", column);
        assert_eq!((of("requests"), of("input_tokens")), (calls, calls * 10_000.0), "{id}");
    }
}

#[test]
fn files_of_an_archive_belong_together_as_on_disk() {
    let here = CommandFolder::new();
    here.write("in/joined.zip", std::fs::read(data("billing/joined.zip")).unwrap());
    let cline = |name: &str| std::fs::read(data("recordings/cline").join(name)).unwrap();
    for name in ["api_conversation_history.json", "ui_messages.json"] {
        here.write(&format!("gz/7/{name}.gz"), gzip(&cline(name)));
    }
    for (input, usd, sessions) in [("in", 0.137_867_5 + 0.0656, 2), ("gz", 0.0656, 1)] {
        let out = here.run(&format!("list sessions {input} --json")).ok();
        let rows = json_lines(&out.stdout);
        let all: f64 = rows.iter().map(|r| r["cost_usd"].as_f64().unwrap()).sum();
        assert!((all - usd).abs() < 1e-4, "{all} instead of {usd}: {rows:?}");
        assert_eq!(rows.len(), sessions, "{rows:?}");
    }
}

/// Returns a session of Claude Code with a reply of each usage; `None` is a reply without counters.
fn session(model: &str, usages: &[Option<Value>]) -> String {
    let head = json!({"type": "session", "version": 1, "id": "s", "model": model,
        "prefix_tokens": 9_990, "source": {"format": "claude-code"}});
    let turn = |(n, usage): (usize, &Option<Value>)| {
        let mut reply =
            json!({"type": "assistant", "id": format!("a{n}"), "text": "Done.", "model": model});
        if let Some(usage) = usage {
            reply["usage"] = usage.clone();
        }
        [json!({"type": "user", "id": format!("u{n}"), "text": "Next?"}), reply]
    };
    jsonl(&[vec![head], usages.iter().enumerate().flat_map(turn).collect()].concat())
}

#[test]
fn replies_without_counters_make_a_cost_a_lower_bound() {
    let usage = json!({"input": 10_000, "output": 1_000, "cache_read": 0, "cache_write": 0});
    let text = session("claude-sonnet-4-6", &[Some(usage), None]);
    let here = CommandFolder::with("s.jsonl", text);
    let listed = here.run("list sessions s.jsonl").ok();
    listed.prints(&["≥$0.04", "at least $0.04 as recorded"]);
    listed.stderr_contains(&["at least: replies without counters are not in the cost"]);
}

#[test]
fn a_model_without_a_price_has_the_row_that_its_program_tells() {
    let usage = json!({"input": 10_000, "output": 1_000, "cache_read": 0, "cache_write": 0, "told_usd": 0.09});
    let here = CommandFolder::with("s.jsonl", session("acme/odd-7b", &[Some(usage)]));
    let listed = json_lines(&here.run("list sessions s.jsonl --json").ok().stdout);
    let told = "acme/odd-7b has no price here: its calls cost what the program itself computed";
    assert_eq!(listed[0]["cost_notes"], json!([told]));
    let ran = here.run(&format!("run s.jsonl {REPLAY}")).ok();
    ran.prints(&["as recorded: $0.0900 in 1 session;"]);
    let row = here.row("out", "as-recorded");
    assert_eq!((&*row["cost_usd"], &*row["cost_saved_pct"]), ("0.09", "n/a"));
}

/// Twenty searches at 0.01 USD, beside 10,000 tokens of input and 1,000 of output.
#[test]
fn searches_cost_the_same_under_every_policy() {
    let usage = json!({"input": 10_000, "output": 1_000, "cache_read": 0, "cache_write": 0, "web_searches": 20});
    let here = CommandFolder::with("s.jsonl", session("claude-sonnet-4-6", &[Some(usage)]));
    here.run(&format!("run s.jsonl {REPLAY}")).ok();
    let usd = |strategy: &str| here.row("out", strategy)["cost_usd"].parse::<f64>().unwrap();
    assert!((usd("as-recorded") - CALL_USD - 0.2).abs() < 1e-9);
    // The prompt is written at 3.75, and the output is the recorded one.
    assert!((usd("reference") - 0.2 - 0.0375 - 0.015).abs() < 0.001, "{}", usd("reference"));
}

/// A gateway without a cache: nothing was compacted, and no policy saved or cost anything.
#[test]
fn another_cache_is_no_saving_of_a_policy() {
    let usages: Vec<Option<Value>> = (0..4)
        .map(|n| {
            Some(json!({"input": 10_000 + 12 * n, "output": 3, "cache_read": 0, "cache_write": 0}))
        })
        .collect();
    let here = CommandFolder::with("s.jsonl", session("claude-sonnet-4-6", &usages));
    let out = here.run(&format!("run s.jsonl {REPLAY}")).env("COLUMNS", "160").ok();
    out.prints(&["served 0 % of the prompts in 1 session, where the simulated one serves 75 %"]);
    out.prints(&[", not $0.120"]);
    assert_eq!(here.row("out", "as-recorded")["cost_saved_pct"], "n/a");
}
