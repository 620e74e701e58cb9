//! Sweeps of a setting: the rows and the table.

use crate::common::CommandFolder;

#[test]
fn a_sweep_makes_a_row_for_each_value_and_a_table() {
    let here = CommandFolder::new();
    let out = here
        .run(
            "run login-bug --strategy reference --strategy codex \
             --strategy codex:auto_compact_limit=[100k,9k..12k/3k,50%] --transport direct --details",
        )
        .ok();
    out.stderr_contains(&["note: 6 strategies, 6 runs"]);
    let at = out.stdout.find("codex: auto_compact_limit (").expect("a table of the setting");
    let values: Vec<&str> = out.stdout[at..]
        .lines()
        .filter_map(|l| l.split_whitespace().next())
        .filter(|w| ["default", "9000", "12000", "100000", "50%"].contains(w))
        .collect();
    assert_eq!(values, ["default", "9000", "12000", "100000", "50%"]);

    // 50 % of the model's window of 200,000 tokens, regardless of the session's scale.
    let of = |value: &str| {
        let row = here.row("ctxbench-out", &format!("codex:auto_compact_limit={value}"));
        ["cost_usd", "compactions", "peak_context_tokens"].map(|column| row[column].clone())
    };
    assert_eq!(of("50%"), of("100000"));
    assert_ne!(of("9000"), of("100000"));
    let mut order = here.column("ctxbench-out", "strategy");
    order.retain(|s| !s.ends_with('%'));
    let want = "codex codex:auto_compact_limit=9000 codex:auto_compact_limit=12000 \
        codex:auto_compact_limit=100000 reference";
    assert_eq!(order.join(" "), want);
}

/// Percentages of a share setting are that share. A text is a single value regardless of its form.
#[test]
fn shares_take_per_cent_and_texts_are_not_swept() {
    let here = CommandFolder::new();
    let labels = |strategy: &str| {
        let line = format!("run login-bug --strategy {strategy} --transport direct --out out");
        here.run(&line).ok();
        here.column("out", "strategy")
    };
    assert_eq!(
        labels("sliding-window:high=[85%,95%]"),
        ["sliding-window", "sliding-window:high=0.85", "sliding-window:high=0.95"]
    );
    assert_eq!(labels("claude-code:hook_before=0..3/1"), ["claude-code:hook_before=0..3/1"]);
}
