//! The context after a compaction, compared with the documented layout of each program.

use ctxbench_core::block::{Block, BlockForm, BlockKind};
use ctxbench_core::host::Event;
use ctxbench_replay::Options;
use ctxbench_scenarios::builtin;
use std::sync::Arc;

use crate::common::replayed::{MODEL, run_in_full};

struct Compaction {
    mechanism: &'static str,
    before: Vec<Arc<Block>>,
    after: Vec<Arc<Block>>,
}

impl Compaction {
    fn kinds(&self) -> Vec<BlockKind> {
        self.after.iter().map(|b| b.kind).collect()
    }

    fn of_kind(&self, kind: BlockKind) -> Vec<&Arc<Block>> {
        self.after.iter().filter(|b| b.kind == kind).collect()
    }
}

fn compactions(scenario: &str, strategy: &str) -> Vec<Compaction> {
    run_in_full(MODEL, &builtin::by_id(scenario).unwrap(), strategy, &Options::default())
        .events
        .iter()
        .filter_map(|e| match &e.event {
            Event::Compaction { mechanism, before, after, .. } => {
                let (before, after) = (before.clone(), after.clone());
                Some(Compaction { mechanism, before, after })
            }
            _ => None,
        })
        .collect()
}

#[test]
fn claude_code_summary_has_nine_sections_and_restored_files() {
    let found = compactions("login-bug", "claude-code");
    assert_eq!(found.len(), 1, "no clearing");
    assert_eq!(found[0].mechanism, "compact");
    let after = &found[0];
    use BlockKind::{Assistant, Call, Output, User};
    let is_said = |k: &BlockKind| matches!(k, User | Assistant | Call | Output);
    let stays: Vec<BlockKind> = after.kinds().iter().copied().filter(is_said).collect();
    assert_eq!(stays, [Call, Output], "the newest reply (docs/sources/claude-code.md §1.3)");
    let summary = &after.of_kind(BlockKind::Summary)[0].text;
    for n in 1..=9 {
        let heading = format!("{n}.");
        let begins = |l: &str| l.trim_start_matches(['#', ' ', '*']).starts_with(&heading);
        assert!(summary.lines().any(begins), "section {n} in:\n{summary}");
    }
    let files = after.of_kind(BlockKind::File);
    assert!((1..=5).contains(&files.len()));
    // Limits of 5,000 tokens per file and 50,000 in total (docs/sources/claude-code.md §1.4),
    // counted as in the product, bytes / 4.
    assert!(files.iter().all(|f| f.bytes() / 4 <= 5_100));
    assert!(files.iter().map(|f| f.bytes() / 4).sum::<usize>() <= 50_000);
    for path in ["src/auth.ts", "src/middleware.ts"] {
        assert!(files.iter().any(|f| f.text.contains(path)), "{path} comes back");
    }
}

#[test]
fn the_lighter_tiers_fire_on_the_marathon() {
    let cleared = |c: &Compaction| c.after.iter().filter(|b| b.form == BlockForm::Cleared).count();
    for (strategy, mechanism) in [
        ("opencode:prune=true", "prune"),
        ("openoxide@provider-side", "clear_tool_uses"),
        ("observation-masking", "mask"),
    ] {
        let found = compactions("login-bug-marathon", strategy);
        let first = found.iter().find(|c| c.mechanism == mechanism).expect(strategy);
        assert!(cleared(first) > 0);
        // Clearing removes no message: same blocks, same order.
        let shape = |blocks: &[Arc<Block>]| {
            blocks.iter().map(|b| (b.kind, b.call.clone())).collect::<Vec<_>>()
        };
        assert_eq!(shape(&first.before), shape(&first.after), "{strategy}");
    }
}
