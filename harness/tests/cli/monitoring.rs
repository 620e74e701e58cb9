//! `ctxbench run` with `--status` and `--spend-limit`.

use crate::common;

use common::CommandFolder;
use serde_json::Value;

#[test]
fn status_file_has_a_line_per_reply_with_figures_of_the_table() {
    let here = CommandFolder::new();
    here.run(
        "run login-bug --strategy opencode --strategy none --transport direct --status \
        status.jsonl",
    )
    .ok();
    let text = here.read("status.jsonl");
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let rows = here.csv("ctxbench-out/summary.csv");
    let requests = here.csv("ctxbench-out/requests.csv");
    for row in &rows {
        let name = format!("login-bug/{}/{}/extractive/1", row["strategy"], row["model"]);
        let own: Vec<&Value> = lines.iter().filter(|l| l["session_id"] == name.as_str()).collect();
        let samples = requests
            .iter()
            .filter(|r| r["strategy"] == row["strategy"] && r["purpose"] == "sample");
        assert_eq!(own.len(), samples.count(), "{name}");
        let last = own.last().unwrap();
        // Neither strategy requests a summary, so the last reply is the last request.
        let usd: f64 = row["cost_usd"].parse().unwrap();
        assert!((last["cost"]["total_cost_usd"].as_f64().unwrap() - usd).abs() < 1e-6, "{name}");
        assert_eq!(
            last["context_window"]["total_input_tokens"].to_string(),
            row["input_tokens"],
            "{name}"
        );
        let (size, used) = (
            &last["context_window"]["context_window_size"],
            last["context_window"]["used_percentage"].as_f64().unwrap(),
        );
        let u = &last["context_window"]["current_usage"];
        let prompt: u64 =
            ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
                .map(|k| u[k].as_u64().unwrap())
                .iter()
                .sum();
        assert!((used - 100.0 * prompt as f64 / size.as_f64().unwrap()).abs() < 1e-9, "{name}");
    }
}

#[test]
fn spend_limit_ends_row_and_prints_remaining_budget() {
    let here = CommandFolder::new();
    let out = here
        .run(
            "run login-bug --strategy opencode --transport direct --spend-limit 0.05 \
        --spend-limit 20/day",
        )
        .ok();
    out.prints(&["spend limit of 0.05 USD per session", "remain", "it was not sent"]);
    let row = here.csv("ctxbench-out/summary.csv").remove(0);
    assert_eq!(row["status"], "failed");
    let usd: f64 = row["cost_usd"].parse().unwrap();
    assert!(usd > 0.02 && usd < 0.06, "{usd}");
}
