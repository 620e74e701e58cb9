//! The context after a compaction, compared with the documented layout of each program.

use ctxbench_core::block::{Block, BlockForm, BlockKind};
use ctxbench_core::host::Event;
use ctxbench_replay::Options;
use ctxbench_scenarios::{Scenario, builtin};
use ctxbench_session::Entry;
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

fn mechanisms(found: &[Compaction]) -> Vec<&str> {
    found.iter().map(|c| c.mechanism).collect()
}

fn compactions(scenario: &Scenario, strategy: &str) -> Vec<Compaction> {
    compactions_by(MODEL, scenario, strategy)
}

fn compactions_by(model: &str, scenario: &Scenario, strategy: &str) -> Vec<Compaction> {
    run_in_full(model, scenario, strategy, &Options::default())
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

fn compactions_of(scenario: &str, strategy: &str) -> Vec<Compaction> {
    compactions(&builtin::by_id(scenario).unwrap(), strategy)
}

fn user_texts(s: &Scenario) -> Vec<String> {
    s.session
        .entries
        .iter()
        .filter_map(|e| if let Entry::User(u) = e { u.text.as_deref() } else { None })
        .map(str::to_string)
        .collect()
}

#[test]
fn codex_keeps_both_user_messages_and_one_summary() {
    use BlockKind::{Base, Summary, User};
    let scenario = builtin::by_id("login-bug").unwrap();
    let found = compactions(&scenario, "codex");
    assert_eq!(found.len(), 1, "only the manual compaction");
    assert_eq!(found[0].kinds(), [Base, User, User, Summary]);
    let kept: Vec<String> = found[0].of_kind(User).iter().map(|b| b.text.to_string()).collect();
    assert_eq!(kept, user_texts(&scenario)[..2], "verbatim");
}

#[test]
fn opencode_with_fitting_tail_summarises_without_pruning() {
    // docs/sources/opencode.md §3.2: if the tail would begin at the first message, no tail is kept.
    use BlockKind::{Base, Marker, Summary};
    let found = compactions_of("login-bug", "opencode");
    assert_eq!(mechanisms(&found), ["summary"]);
    // A manual compaction adds no message that asks to continue.
    assert_eq!(found[0].kinds(), [Base, Marker, Summary]);
    // Even if it is enabled, pruning finds less than it protects: 12,500 tokens against 40,000.
    let found = compactions_of("login-bug", "opencode:prune=true");
    assert!(!mechanisms(&found).contains(&"prune"));
}

#[test]
fn claude_code_summary_has_nine_sections_and_restored_files() {
    let found = compactions_of("login-bug", "claude-code");
    assert_eq!(mechanisms(&found), ["compact"], "no clearing");
    let after = &found[0];
    use BlockKind::{Assistant, Call, Output, User};
    assert!(!after.kinds().iter().any(|k| matches!(k, User | Assistant | Call | Output)));
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
fn every_automatic_trigger_can_fire_in_the_tight_window() {
    for (strategy, mechanism) in [
        ("codex", "handoff"),
        ("opencode", "summary"),
        ("claude-code", "compact"),
        ("anthropic-sdk", "summary"),
        ("sliding-window", "slide"),
    ] {
        let found = compactions_of("login-bug-tight", strategy);
        let found = mechanisms(&found);
        assert!(found.contains(&mechanism), "{strategy}: {found:?}");
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
        let found = compactions_of("login-bug-marathon", strategy);
        let first = found.iter().find(|c| c.mechanism == mechanism).expect(strategy);
        assert!(cleared(first) > 0);
        // Clearing removes no message: same blocks, same order.
        let shape = |blocks: &[Arc<Block>]| {
            blocks.iter().map(|b| (b.kind, b.call.clone())).collect::<Vec<_>>()
        };
        assert_eq!(shape(&first.before), shape(&first.after), "{strategy}");
    }
}

#[test]
fn opencode_prunes_beyond_forty_thousand_tokens_and_leaves_two_turns() {
    let found = compactions_of("login-bug-marathon", "opencode:prune=true");
    let prune = found.iter().find(|c| c.mechanism == "prune").unwrap();
    let tokens = |b: &Arc<Block>| (b.text.encode_utf16().count() as u64 + 2) / 4;
    let pairs = prune.before.iter().zip(&prune.after);
    let gone: u64 = pairs.filter(|(b, a)| b.hash != a.hash).map(|(b, _)| tokens(b)).sum();
    assert!(gone > 20_000, "{gone}");
    let users: Vec<usize> =
        (0..prune.after.len()).filter(|&i| prune.after[i].kind == BlockKind::User).collect();
    let protected = users[users.len() - 2];
    assert!(prune.after[protected..].iter().all(|b| b.form != BlockForm::Cleared));
}

#[test]
fn codex_remote_compaction_keeps_user_messages() {
    use BlockKind::{Base, Compaction as Compacted, User};
    // docs/sources/codex.md §2: a trigger item instead of a prompt, one opaque item instead of the
    // summary, user messages stay.
    for model in ["claude-sonnet-4-6", "gpt-5.4"] {
        let scenario = builtin::by_id("login-bug").unwrap();
        let found = compactions_by(model, &scenario, "codex:remote=true");
        let remote =
            found.iter().find(|c| c.mechanism == "remote").expect("the provider compacted");
        assert_eq!(remote.kinds(), [Base, User, User, Compacted], "{model}");
    }
}
