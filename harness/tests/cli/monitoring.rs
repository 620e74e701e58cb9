//! `ctxbench run` with `--spend-limit`.

use crate::common::CommandFolder;

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
