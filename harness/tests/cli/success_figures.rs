//! Success figures in the published descriptions, and the products that reach them.

use crate::common::CommandFolder;

const PRODUCTS: [&str; 4] = ["claude-code", "codex", "opencode", "openoxide"];

/// A figure of one row.
#[derive(Clone, Copy, Debug)]
enum Figure {
    /// A column of `summary.csv`.
    Column(&'static str),
    /// 95th percentile of the waiting time per compaction that caused any, in ms
    /// (`compactions.csv`).
    CompactionP95Ms,
    /// Share of the context that compactions removed, in percent (`compactions.csv`).
    FreedPct,
    /// Share of rewinds after which the context equals the earlier one, in percent (`rewind.csv`).
    RewindEqualPct,
}

impl Figure {
    /// Returns the figure of a product on a scenario. `None` if the results have no such figure.
    fn measure(self, here: &CommandFolder, scenario: &str, product: &str) -> Option<f64> {
        let rows = |file: &str| {
            let all = here.csv(&format!("out/{file}.csv")).into_iter();
            all.filter(|r| r["scenario"] == scenario && r["strategy"] == product)
        };
        let number = |cell: &str| cell.parse::<f64>().ok();
        match self {
            Figure::Column(name) => number(&rows("summary").next()?[name]),
            Figure::CompactionP95Ms => {
                let waited = rows("compactions").filter_map(|r| number(&r["blocked_ms"]));
                let mut waited: Vec<f64> = waited.filter(|ms| *ms > 0.0).collect();
                waited.sort_by(f64::total_cmp);
                waited.get((waited.len() * 95).div_ceil(100).max(1) - 1).copied()
            }
            Figure::FreedPct => {
                let sum = |name: &str| -> f64 {
                    rows("compactions").filter_map(|r| number(&r[name])).sum()
                };
                let before = sum("before_tokens");
                (before > 0.0).then(|| 100.0 * (1.0 - sum("after_tokens") / before))
            }
            Figure::RewindEqualPct => {
                let equal: Vec<bool> =
                    rows("rewind").filter_map(|r| r["context_equal"].parse().ok()).collect();
                let kept = equal.iter().filter(|e| **e).count();
                (!equal.is_empty()).then(|| 100.0 * kept as f64 / equal.len() as f64)
            }
        }
    }
}

/// A figure that a document requires.
struct Goal {
    /// Section of the document.
    source: &'static str,
    scenario: &'static str,
    figure: Figure,
    is_reached: fn(f64) -> bool,
    /// Products that reach the figure. The others miss it or do not have it.
    reached_by: &'static [&'static str],
}

const GOALS: [Goal; 8] = [
    Goal {
        source: "opencode-vs-claude-code.md#12-4: a compaction takes less than 5 s",
        scenario: "login-bug-marathon",
        figure: Figure::CompactionP95Ms,
        is_reached: |ms| ms < 5_000.0,
        reached_by: &[],
    },
    Goal {
        source: "opencode-vs-claude-code.md#2: from 92 % of the window to about half of it",
        scenario: "login-bug-marathon",
        figure: Figure::FreedPct,
        is_reached: |pct| pct >= 45.6,
        reached_by: &PRODUCTS,
    },
    Goal {
        source: "token-budgeting.md#7-7: an error of the provider is not the first sign of trouble",
        scenario: "login-bug-marathon",
        figure: Figure::Column("provider_overflows"),
        is_reached: |refusals| refusals == 0.0,
        reached_by: &PRODUCTS,
    },
    Goal {
        source: "token-budgeting.md#5-8: nine of ten developers stay below 12 USD a day",
        scenario: "login-bug-marathon",
        figure: Figure::Column("cost_usd"),
        is_reached: |usd| usd < 12.0,
        reached_by: &["openoxide"],
    },
    Goal {
        source: "login-bug.md#1: five tool results are 81 % of the session",
        scenario: "login-bug-tight",
        figure: Figure::FreedPct,
        is_reached: |pct| pct >= 81.0,
        reached_by: &["claude-code", "codex", "opencode"],
    },
    Goal {
        source: "opencode-vs-claude-code.md#12-2: sessions of more than 500 turns",
        scenario: "five-hundred-turns",
        figure: Figure::Column("steps_completed"),
        is_reached: |steps| steps >= 1_400.0,
        reached_by: &PRODUCTS,
    },
    Goal {
        source: "opencode-vs-claude-code.md#12-5: more than 95 % of restorations succeed",
        scenario: "rewind-plain",
        figure: Figure::RewindEqualPct,
        is_reached: |pct| pct > 95.0,
        reached_by: &PRODUCTS,
    },
    Goal {
        source: "chat-history.md#7-6: a resumed session keeps its user waiting less than 10 s",
        scenario: "resume-overnight",
        figure: Figure::Column("blocked_ms"),
        is_reached: |ms| ms < 10_000.0,
        reached_by: &PRODUCTS,
    },
];

#[test]
fn products_reach_the_success_figures_of_the_documents() {
    let here = CommandFolder::new();
    let strategies = PRODUCTS.map(|p| format!(" --strategy {p}")).concat();
    let mut scenarios = GOALS.map(|g| g.scenario).to_vec();
    scenarios.dedup();
    let line = format!("run {}{strategies} --transport direct --out out", scenarios.join(" "));
    here.run(&line).ok();
    for goal in GOALS {
        let reaches = |product: &&str| {
            goal.figure.measure(&here, goal.scenario, product).is_some_and(goal.is_reached)
        };
        let reached: Vec<&str> = PRODUCTS.into_iter().filter(reaches).collect();
        assert_eq!(reached, goal.reached_by, "{}, {:?}", goal.source, goal.figure);
    }
}
