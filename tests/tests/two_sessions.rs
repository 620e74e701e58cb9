//! Facts that move from one session of a project to the next: the built-in scenario `two-sessions`
//! needs five facts of the first session in the second. docs/memory.md has the same table as text.

use ctxbench_replay::Options;
use ctxbench_reports::record::{RunRecord, Status};
use ctxbench_scenarios::builtin;
use ctxbench_session::fact::Match;

use crate::common::replayed::{MODEL, run_with};

fn run(spec: &str) -> RunRecord {
    run_with(MODEL, &builtin::by_id("two-sessions").unwrap(), spec, &Options::default())
}

/// Returns the facts that the second session has from the first, with their source, and the share.
fn carried(spec: &str) -> (Vec<String>, f64) {
    let r = run(spec);
    assert_eq!(r.status, Status::Completed, "{spec}");
    assert!(r.facts.iter().all(|f| f.across), "{spec}: all five needs are in the second session");
    let kept = r.facts.iter().filter(|f| f.found > Match::Absent);
    let kept = kept.map(|f| format!("{}={:?}", f.fact, f.place).to_lowercase()).collect();
    (kept, r.pair_recall_pct(None).unwrap())
}

fn expect(spec: &str, kept: &[&str]) {
    let (found, pct) = carried(spec);
    assert_eq!(found, kept, "{spec}");
    assert!((pct - 100.0 * kept.len() as f64 / 5.0).abs() < 1e-9, "{spec}: {pct}");
}

#[test]
fn products_without_memory_lose_all_facts_of_the_first_session() {
    // These products write none of these facts to disk for the next session (docs/memory.md). The
    // reference keeps everything.
    assert_eq!(carried("reference").1, 100.0);
    for spec in
        ["claude-code", "codex", "opencode", "claude-code-api", "aider", "observation-masking"]
    {
        expect(spec, &[]);
    }
}

#[test]
fn openoxide_moves_wishes_decisions_and_open_tasks_at_the_compaction() {
    // The session summary of `/compact` has the wish of u1, the decision of a3 and the task of a8
    // in sections that are merged into the file. The port is a value in a source file and belongs
    // to none of these sections. The fact that invoices begin with KA-2027 is mentioned after the
    // compaction.
    let moved = ["amounts=memory", "branch=memory", "open-task=memory"];
    expect("openoxide", &moved);
    expect("openoxide:migration=false", &[]);
}

#[test]
fn summary_of_previous_session_includes_messages_after_compaction() {
    expect(
        "openoxide:cross_session=true,migration=false",
        &["amounts=summary", "branch=summary", "invoices=summary", "open-task=summary"],
    );
    let cost = |spec| run(spec).summary.cost_usd;
    let (with, without) = (cost("openoxide:cross_session=true"), cost("openoxide"));
    assert!(with > without, "it is a request more: {with} against {without}");
}

#[test]
fn described_compressor_moves_removed_facts() {
    // docs/sources/opencode-vs-claude-code.md §2: at 92 % all except the newest messages are
    // summarised, and critical facts are written to CLAUDE.md. u1 and a3 were summarised by then.
    // a8 is among the messages that were kept, and the session ends before the window is full
    // again.
    expect("claude-code@described-001", &["amounts=memory", "branch=memory"]);
}

#[test]
fn aider_restores_history_if_enabled() {
    // docs/sources/aider.md §1: with --restore-chat-history the weak model reads and summarises the
    // file. Without it a session starts empty.
    let (kept, pct) = carried("aider:restore=true");
    assert!(kept.contains(&"invoices=summary".into()), "the newest word: {kept:?}");
    assert!(pct > carried("aider").1);
}
