//! Bills of subagents with other models, and of sums that a program told.

use serde_json::{Value, json};

use crate::billing_variants::{CALL_USD, SONNET, assert_bill};
use crate::common::{CommandFolder, REPLAY, jsonl};

/// Twenty searches cost 0.2 with GPT-5.4 and 0.5 with GPT-4.1. Fast mode costs six times with Opus
/// 4.6 and twice with Opus 4.8.
#[test]
fn terms_of_a_subagents_reply_are_those_of_its_model() {
    let reference = |main: &str, of_agent: &str, terms: Value| -> f64 {
        let usage = |terms: &Value| {
            let mut usage =
                json!({"input": 10_000, "output": 1_000, "cache_read": 0, "cache_write": 0});
            usage.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
            usage
        };
        let call = json!([{"id": "c", "name": "Task", "arguments": "{}"}]);
        let lines = [
            json!({"type": "session", "version": 1, "id": "s", "model": main, "source": {"format": "codex"}}),
            json!({"type": "user", "id": "u", "text": "Go."}),
            json!({"type": "assistant", "id": "a", "model": main, "calls": call, "usage": usage(&json!({}))}),
            json!({"type": "user", "id": "v", "text": "Search.", "agent": "c"}),
            json!({"type": "assistant", "id": "b", "model": of_agent, "text": "Found.", "agent": "c", "usage": usage(&terms)}),
            json!({"type": "tool", "call_id": "c", "output": "Found."}),
            json!({"type": "assistant", "id": "d", "model": main, "text": "Done.", "usage": usage(&json!({}))}),
        ];
        let here = CommandFolder::with("s.jsonl", jsonl(&lines));
        here.run(&format!("run s.jsonl {REPLAY}")).ok();
        let rows = here.csv("out/costs.csv");
        let of = |r: &&crate::common::Row| r["strategy"] == "reference" && r["agent"] == "c";
        rows.iter().find(of).unwrap()["cost_usd"].parse().unwrap()
    };
    let none = json!({});
    let searches = reference("gpt-5.4", "gpt-4.1", json!({"web_searches": 20}));
    let added = searches - reference("gpt-5.4", "gpt-4.1", none.clone());
    assert!((added - 0.5).abs() < 1e-9, "{added}");
    let (main, of_agent) = ("claude-opus-4-8", "claude-opus-4-6");
    let fast = reference(main, of_agent, json!({"speed": "fast"}));
    let standard = reference(main, of_agent, none);
    assert!((fast / standard - 6.0).abs() < 1e-6, "{fast} {standard}");
}

/// Three replies; Aider counted the second and the third, and its sum contains the first.
#[test]
fn aiders_own_sum_covers_replies_without_counters() {
    let chat = |sum: &str| {
        let reply = |ask: &str, told: &str| format!("#### {ask}  \n\nIt is 8443.\n\n{told}");
        let begin = "\n# aider chat started at 2026-10-02 09:00:00\n\n";
        let model = format!("> Main model: {SONNET} with diff edit format  \n\n");
        let tokens = "> Tokens: 10,000 sent, 1,000 received. Cost: $0.045 message, $";
        [
            begin,
            &model,
            &reply("Which port?", ""),
            &reply("Sure?", &format!("{tokens}{sum} session.  \n\n")),
        ]
        .concat()
    };
    for (sum, usd) in [("0.045", CALL_USD), ("0.065", CALL_USD + 0.02)] {
        let files = [(".aider.chat.history.md", chat(sum))];
        let (rows, told) = assert_bill(&files, 1, usd);
        assert!(!told.contains("at least"), "{told}");
        assert_eq!(rows[0]["cost_is_minimum"], false, "{rows:?}");
        let here = CommandFolder::with(".aider.chat.history.md", chat(sum));
        let out = here.run(&format!("run .aider.chat.history.md {REPLAY}")).ok();
        out.lacks(&["session at least"]);
    }
}
