//! Success figures in the published descriptions, and the products that reach them.

use serde::Deserialize;

use crate::common::CommandFolder;

const PRODUCTS: [&str; 4] = ["claude-code", "codex", "opencode", "openoxide"];

#[derive(Deserialize)]
struct Goals {
    goal: Vec<Goal>,
}

/// A figure that a document requires. The file describes the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Goal {
    source: String,
    scenario: String,
    figure: String,
    wanted: String,
    reached_by: Vec<String>,
}

impl Goal {
    /// Returns the figure of a product. `None` if the results have no such figure.
    fn measure(&self, here: &CommandFolder, product: &str) -> Option<f64> {
        let rows = |file: &str| {
            let all = here.csv(&format!("out/{file}.csv")).into_iter();
            all.filter(|r| r["scenario"] == self.scenario && r["strategy"] == product)
        };
        let number = |cell: &str| cell.parse::<f64>().ok();
        match &*self.figure {
            "compaction_p95_ms" => {
                let waited = rows("compactions").filter_map(|r| number(&r["blocked_ms"]));
                let mut waited: Vec<f64> = waited.filter(|ms| *ms > 0.0).collect();
                waited.sort_by(f64::total_cmp);
                waited.get((waited.len() * 95).div_ceil(100).max(1) - 1).copied()
            }
            "freed_pct" => {
                let sum = |name: &str| -> f64 {
                    rows("compactions").filter_map(|r| number(&r[name])).sum()
                };
                let before = sum("before_tokens");
                (before > 0.0).then(|| 100.0 * (1.0 - sum("after_tokens") / before))
            }
            "rewind_equal_pct" => {
                let equal: Vec<bool> =
                    rows("rewind").filter_map(|r| r["context_equal"].parse().ok()).collect();
                let kept = equal.iter().filter(|e| **e).count();
                (!equal.is_empty()).then(|| 100.0 * kept as f64 / equal.len() as f64)
            }
            column => number(&rows("summary").next()?[column]),
        }
    }

    fn is_reached(&self, figure: f64) -> bool {
        let (comparison, bound) = self.wanted.split_once(' ').unwrap();
        let bound: f64 = bound.parse().unwrap();
        match comparison {
            "<" => figure < bound,
            "=" => figure == bound,
            ">" => figure > bound,
            ">=" => figure >= bound,
            _ => panic!("{}", self.wanted),
        }
    }
}

#[test]
fn products_reach_the_success_figures_of_the_documents() {
    let here = CommandFolder::new();
    let Goals { goal: goals } =
        toml::from_str(include_str!("../data/success-figures.toml")).unwrap();
    assert_eq!(goals.len(), 8);
    let strategies = PRODUCTS.map(|p| format!(" --strategy {p}")).concat();
    let mut scenarios: Vec<&str> = goals.iter().map(|g| &*g.scenario).collect();
    scenarios.dedup();
    let line = format!("run {}{strategies} --transport direct --out out", scenarios.join(" "));
    here.run(&line).ok();
    for goal in &goals {
        let reaches =
            |product: &&str| goal.measure(&here, product).is_some_and(|f| goal.is_reached(f));
        let reached: Vec<&str> = PRODUCTS.into_iter().filter(reaches).collect();
        assert_eq!(reached, goal.reached_by, "{}, {}", goal.source, goal.figure);
    }
}
