//! Sessions that are closed and opened again, in the formats of each product: the restored context
//! and the behaviour of the product.

use ctxbench_core::model::DEFAULT_MODEL;
use ctxbench_replay::Options;
use ctxbench_reports::record::{ResumeFile, ResumeRecord};
use ctxbench_scenarios::builtin;
use ctxbench_strategies::built_in;

use crate::common::replayed::run_with;

/// Returns the restarts of a scenario, in the model's window or another one, and the number of
/// compactions in the whole run.
fn run(scenario: &str, strategy: &str, window: Option<u64>) -> (Vec<ResumeRecord>, usize) {
    let scenario = builtin::by_id(scenario).unwrap();
    let options = Options { window, ..Options::default() };
    let record = run_with(DEFAULT_MODEL, &scenario, strategy, &options);
    (record.resume, record.compactions.len())
}

fn resumed(scenario: &str, strategy: &str) -> Vec<ResumeRecord> {
    run(scenario, strategy, None).0
}

/// A window, before the scenario's scale, that is too small for the afternoon.
const SMALL: Option<u64> = Some(170_000);

fn file(r: &ResumeRecord) -> &ResumeFile {
    r.file.as_ref().unwrap_or_else(|| panic!("{r:?}"))
}

#[test]
fn formats_with_boundaries_restore_the_same_context() {
    for (strategy, formats) in [
        ("codex", &["codex-rollout"][..]),
        ("opencode", &["opencode-tables"]),
        ("pi", &["pi-jsonl"]),
        ("gemini-cli", &["gemini-cli-jsonl"]),
        // Masked results are marks on the parts.
        ("observation-masking", &["ctxbench-store"]),
        ("sliding-window", &["ctxbench-store"]),
        ("keep-nothing", &["ctxbench-store"]),
        ("openoxide", &["ctxbench-store"]),
        // The provider clears results in its own view; the program's messages do not change.
        ("claude-code-api", &["claude-code-jsonl"]),
    ] {
        let (all, compactions) = run("resume-overnight", strategy, SMALL);
        assert!(compactions > 0, "{strategy}: nothing to get wrong");
        let found: Vec<&str> = all.iter().map(|r| &*file(r).format).collect();
        assert_eq!(found, formats, "{strategy}");
        for r in &all {
            let f = file(r);
            let losses = (f.lost, f.garbled, f.surplus, f.context_equal);
            assert_eq!(losses, (0, 0, 0, true), "{strategy}");
            assert!(f.bytes_read > 0 && f.bytes_read <= f.stored_bytes, "{strategy}: {f:?}");
            // A log keeps everything, even what the context lost.
            assert_eq!(f.recoverable_pct, Some(100.0), "{strategy}");
            // Gemini CLI estimates a resumed session by its characters, with each tool result
            // counted twice, and compresses at once if the estimate is over its threshold
            // (docs/sources/gemini-cli.md).
            if strategy != "gemini-cli" {
                assert_eq!(r.resume_summary_calls, 0, "{strategy}");
            }
        }
    }
}

#[test]
fn unmarked_cleared_results_are_restored() {
    let (all, compactions) = run("resume-overnight", "claude-code:microcompact=count", SMALL);
    let f = file(&all[0]);
    assert!(compactions > 0 && !f.context_equal);
    assert!(f.surplus > 0 && f.surplus == f.lost, "for each placeholder the result itself: {f:?}");
}

#[test]
fn aider_restores_nothing_or_its_markdown_history() {
    // docs/sources/aider.md §1.2, §1.5: nothing is restored unless enabled.
    let plain = &resumed("markdown-breaking-replies", "aider:max_chat_history_tokens=10000000")[0];
    assert!(!plain.shown_equal && !file(plain).context_equal);
    // The scenario's replies have headings at the beginning of lines, and facts in them.
    assert!(file(plain).garbled > 0 && file(plain).recoverable_pct < Some(100.0), "{plain:?}");
    // With `restore`, the whole history is read, found too large and summarised
    // (docs/sources/chat-history.md §7.6). The summaries are ready before the user has typed a
    // message, so the user does not wait.
    let restored = &resumed("resume-overnight", "aider:restore=true")[0];
    assert!(restored.resume_summary_calls > 0 && restored.resume_blocked_ms == 0, "{restored:?}");
    // The whole file is read.
    assert_eq!(file(restored).bytes_read, file(restored).stored_bytes);
}

#[test]
fn strategies_without_storage_report_it() {
    let sdk = &resumed("resume-overnight", "anthropic-sdk")[0];
    assert!(sdk.file.is_none() && sdk.error.is_none() && sdk.messages > 0);
}

#[test]
fn every_strategy_has_a_row_per_restart() {
    for d in built_in() {
        let rows = resumed("resume-overnight", d.name);
        assert!(!rows.is_empty() && rows.iter().all(|r| r.error.is_none()), "{}: {rows:?}", d.name);
        assert!(resumed("login-bug", d.name).is_empty(), "{}: the session has no restart", d.name);
    }
}
