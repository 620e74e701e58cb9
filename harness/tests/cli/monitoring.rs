//! `ctxbench run` with `--status` and `--spend-limit`.

use crate::common::{CommandFolder, json_lines};
use serde_json::Value;

#[test]
fn status_file_has_a_line_per_reply_with_figures_of_the_table() {
    let here = CommandFolder::new();
    let both = "--strategy opencode --strategy none";
    here.run(&format!("run login-bug {both} --transport direct --status status.jsonl")).ok();
    let lines = json_lines(&here.read("status.jsonl"));
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
        let window = &last["context_window"];
        assert_eq!(window["total_input_tokens"].to_string(), row["input_tokens"], "{name}");
        let number = |v: &Value| v.as_f64().unwrap();
        let prompt: f64 =
            ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
                .map(|key| number(&window["current_usage"][key]))
                .iter()
                .sum();
        let used = 100.0 * prompt / number(&window["context_window_size"]);
        assert!((number(&window["used_percentage"]) - used).abs() < 1e-9, "{name}");
    }
}

#[test]
fn spend_limit_ends_row_and_prints_remaining_budget() {
    let here = CommandFolder::new();
    let limits = "--spend-limit 0.05 --spend-limit 20/day";
    let out = here.run(&format!("run login-bug --strategy opencode --transport direct {limits}"));
    let out = out.env("COLUMNS", "160").ok();
    out.prints(&["spend limit of 0.05 USD per session", "remain", "it was not sent"]);
    let row = here.row("ctxbench-out", "opencode");
    assert_eq!(row["status"], "failed");
    let usd: f64 = row["cost_usd"].parse().unwrap();
    assert!(usd > 0.02 && usd < 0.06, "{usd}");
}
