//! Success figures of the described documents, and the products that reach them.

use crate::common::Folder;

const PRODUCTS: [&str; 4] = ["claude-code", "codex", "opencode", "openoxide"];

/// A figure that a document asks for.
struct Goal {
    /// Section of the document.
    source: &'static str,
    scenario: &'static str,
    /// Column of `summary.csv`.
    column: &'static str,
    is_reached: fn(f64) -> bool,
    /// Products that reach it. The others miss it or have no such figure.
    reached_by: &'static [&'static str],
}

const GOALS: [Goal; 8] = [
    Goal {
        source: "opencode-vs-claude-code.md#12-4: a compaction takes less than 5 s",
        scenario: "login-bug-marathon",
        column: "compaction_p95_ms",
        is_reached: |ms| ms < 5_000.0,
        reached_by: &[],
    },
    Goal {
        source: "opencode-vs-claude-code.md#2: from 92 % of the window to about half of it",
        scenario: "login-bug-marathon",
        column: "freed_pct",
        is_reached: |pct| pct >= 45.6,
        reached_by: &PRODUCTS,
    },
    Goal {
        source: "token-budgeting.md#7-7: an error of the provider is not the first sign of trouble",
        scenario: "login-bug-marathon",
        column: "provider_overflows",
        is_reached: |refusals| refusals == 0.0,
        reached_by: &PRODUCTS,
    },
    Goal {
        source: "token-budgeting.md#5-8: nine of ten developers stay below 12 USD a day",
        scenario: "login-bug-marathon",
        column: "cost_usd",
        is_reached: |usd| usd < 12.0,
        reached_by: &["openoxide"],
    },
    Goal {
        source: "login-bug.md#1: five tool results are 81 % of the session",
        scenario: "login-bug-tight",
        column: "freed_pct",
        is_reached: |pct| pct >= 81.0,
        reached_by: &["claude-code", "codex", "opencode"],
    },
    Goal {
        source: "opencode-vs-claude-code.md#12-2: sessions of more than 500 turns",
        scenario: "five-hundred-turns",
        column: "steps_completed",
        is_reached: |steps| steps >= 1_400.0,
        reached_by: &PRODUCTS,
    },
    Goal {
        source: "opencode-vs-claude-code.md#12-5: more than 95 % of restorations succeed",
        scenario: "rewind-plain",
        column: "rewind_equal_pct",
        is_reached: |pct| pct > 95.0,
        reached_by: &PRODUCTS,
    },
    Goal {
        source: "chat-history.md#7-6: a resumed session keeps its user waiting less than 10 s",
        scenario: "resume-overnight",
        column: "blocked_ms",
        is_reached: |ms| ms < 10_000.0,
        reached_by: &PRODUCTS,
    },
];

#[test]
fn products_reach_the_success_figures_of_the_documents() {
    let here = Folder::new();
    let strategies = PRODUCTS.map(|p| format!(" --strategy {p}")).concat();
    let mut scenarios = GOALS.map(|g| g.scenario).to_vec();
    scenarios.dedup();
    let line = format!("run {}{strategies} --transport direct --out out", scenarios.join(" "));
    here.run(&line).ok();
    let rows = here.csv("out/summary.csv");
    for goal in GOALS {
        let reaches = |product: &&str| {
            let row =
                rows.iter().find(|r| r["scenario"] == goal.scenario && r["strategy"] == **product);
            // `n/a` reaches nothing.
            row.unwrap()[goal.column].parse().is_ok_and(goal.is_reached)
        };
        let reached: Vec<&str> = PRODUCTS.into_iter().filter(|p| reaches(p)).collect();
        assert_eq!(reached, goal.reached_by, "{}, {}", goal.source, goal.column);
    }
}
