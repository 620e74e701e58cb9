//! Bills by facts next to the counters of the calls: tiers, hidden output, lost lines. Prices are USD per million tokens.

use serde_json::{Value, json};

use crate::billing_kinds::{TURN_USD, line, meta, turn};
use crate::billing_variants::{SONNET, assert_bill, talk};
use crate::common::{CommandFolder, REPLAY, data, jsonl};

/// GPT-5.4 costs twice as much with `priority`, which Codex also calls `fast`, and half with `flex`.
#[test]
fn the_tier_of_a_codex_thread_is_that_of_its_newest_settings() {
    let settings = |tier: &str| {
        let settings = json!({"model": "gpt-5.4", "service_tier": tier});
        let payload = json!({"type": "thread_settings_applied", "thread_settings": settings});
        vec![line("event_msg", payload)]
    };
    let tiers = ["priority", "fast", "flex", "default"];
    let turns = (2..).zip(tiers).flat_map(|(n, tier)| {
        [settings(tier), turn(n, &format!("{n}?"), &format!("{n}.")).to_vec()].concat()
    });
    let begin = [vec![meta("p", json!({}))], turn(1, "1?", "1.").to_vec()].concat();
    let all = [begin, turns.collect()].concat();
    assert_bill(&[("p.jsonl", jsonl(&all))], 1, (1.0 + 2.0 + 2.0 + 0.5 + 1.0) * TURN_USD);
}

/// Two models that gave the same answer to the same question, without ids: 2.5 and 15, and 0.25 and 2.
#[test]
fn calls_of_two_models_are_two() {
    let usage = json!({"prompt_tokens": 10_000, "completion_tokens": 1_000});
    let files = ["gpt-5.4", "gpt-5-mini"].map(|m| (m, talk(m, usage.clone())));
    let files = files.map(|(m, text)| (if m == "gpt-5.4" { "a.json" } else { "b.json" }, text));
    assert_bill(&files, 2, TURN_USD + 0.0025 + 0.002);
}

/// The reply shows a few tokens, and 3,000 were counted: thinking that the recording lacks. With a
/// model of another provider, its size is not known.
#[test]
fn output_beyond_the_visible_reply_is_billed_in_a_replay() {
    let usage = json!({"input": 10_000, "output": 3_000});
    let lines = [
        json!({"type": "session", "version": 1, "id": "s", "model": SONNET, "source": {"format": "claude-code"}}),
        json!({"type": "user", "id": "u", "text": "Which port?"}),
        json!({"type": "assistant", "id": "a", "text": "8443.", "usage": usage}),
    ];
    let here = CommandFolder::with("s.jsonl", jsonl(&lines));
    let output = |more: &str| -> u64 {
        here.run(&format!("run s.jsonl {REPLAY} {more}")).ok();
        here.row("out", "reference")["output_tokens"].parse().unwrap()
    };
    assert_eq!(output(""), 3_000);
    assert!(output("--model gpt-5.4") < 100);
    assert!(output("--calibrate off") < 100);
}

#[test]
fn a_lost_line_is_told_by_validate_and_costs_no_other_call() {
    let text = std::fs::read_to_string(data("validate/claude-code-thinking.jsonl")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(1, "\0\0 torn");
    let here = CommandFolder::with("whole.jsonl", &text);
    here.write("torn.jsonl", lines.join("\n"));
    let calls = |name: &str| -> Value {
        let all = here.run(&format!("validate --json {name}")).ok().json();
        all["files"][0]["compared"].clone()
    };
    assert_eq!(calls("torn.jsonl"), calls("whole.jsonl"));
    here.run("validate torn.jsonl").ok().stderr_contains(&["torn.jsonl:2: not a JSON object"]);
}

/// A session of OpenCode as a folder of files.
#[test]
fn validate_finds_a_folder_that_is_a_recording() {
    let here = CommandFolder::new();
    let tokens = json!({"input": 900, "output": 5, "cache": {"read": 0, "write": 0}});
    let write =
        |path: &str, value: Value| here.write(&format!("in/storage/{path}"), value.to_string());
    write("session/p/ses_1.json", json!({"id": "ses_1", "projectID": "p", "title": "t"}));
    for (id, role, text) in [("msg_1", "user", "go"), ("msg_2", "assistant", "done")] {
        let info = json!({"id": id, "sessionID": "ses_1", "role": role, "tokens": tokens});
        write(&format!("message/ses_1/{id}.json"), info);
        let part = json!({"id": "prt_1", "messageID": id, "type": "text", "text": text});
        write(&format!("part/{id}/prt_1.json"), part);
    }
    let all = here.run("validate --json in").ok().json();
    assert_eq!(all["files"].as_array().map(Vec::len), Some(1), "{all}");
}

/// `explain` has the remarks of `list` about a price.
#[test]
fn what_is_not_priced_is_told_by_explain_too() {
    let usage = json!({"input": 10_000, "output": 100, "tier": "flex"});
    let lines = [
        json!({"type": "session", "version": 1, "id": "s", "model": "gpt-5.3-codex", "source": {"format": "codex"}}),
        json!({"type": "user", "id": "u", "text": "Which port?"}),
        json!({"type": "assistant", "id": "a", "text": "8443.", "usage": usage}),
    ];
    let here = CommandFolder::with("s.jsonl", jsonl(&lines));
    let told = "list price, without service tier \"flex\"";
    here.run("explain s.jsonl --contents").ok().prints(&[told]);
}
