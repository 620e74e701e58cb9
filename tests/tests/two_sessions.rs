//! What the sessions of a project leave to each other: the built-in scenario `two-sessions`, whose
//! second session needs five things that were said in the first. docs/memory.md gives the same table
//! in words.

use ctxbench_core::fact::Match;
use ctxbench_core::model;
use ctxbench_harness::replay::{Options, replay};
use ctxbench_reports::record::{RunRecord, Status};
use ctxbench_scenarios::builtin;
use ctxbench_strategies::Spec;

fn run(spec: &str) -> RunRecord {
    let scenario = builtin::by_id("two-sessions").unwrap();
    let model = model::find("claude-sonnet-4-6").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let spec = Spec::parse(spec).unwrap();
    runtime.block_on(replay(&scenario, &spec, model, &Options::default())).record
}

/// What the second session has of the first, with the kind of place, and the figure.
fn carried(spec: &str) -> (Vec<String>, f64) {
    let r = run(spec);
    assert_eq!(r.status, Status::Completed, "{spec}");
    assert!(r.facts.iter().all(|f| f.across), "{spec}: all five needs lie behind the border");
    let kept = r.facts.iter().filter(|f| f.found > Match::Absent);
    let kept = kept.map(|f| format!("{}={:?}", f.fact, f.place).to_lowercase()).collect();
    (kept, r.retention_pct(None).unwrap())
}

fn expect(spec: &str, kept: &[&str]) {
    let (found, pct) = carried(spec);
    assert_eq!(found, kept, "{spec}");
    assert!((pct - 100.0 * kept.len() as f64 / 5.0).abs() < 1e-9, "{spec}: {pct}");
}

#[test]
fn most_products_carry_over_nothing_of_what_was_said() {
    // Nothing in the facts of these products writes to disk what the next session would load by
    // itself (docs/memory.md). The hundred per cent row forgets nothing, whatever ends.
    assert_eq!(carried("reference").1, 100.0);
    for spec in
        ["claude-code", "codex", "opencode", "claude-code-api", "aider", "observation-masking"]
    {
        expect(spec, &[]);
    }
}

#[test]
fn openoxide_moves_wishes_decisions_and_open_tasks_at_the_compaction() {
    // The session summary of `/compact` has the wish of u1, the decision of a3 and the task of a8 in
    // sections that are merged into the file. The port is a value in a source file, which is none of
    // these; that invoices begin with KA-2027 is said after the compaction.
    let moved = ["amounts=memory", "branch=memory", "open-task=memory"];
    expect("openoxide", &moved);
    expect("openoxide:migration=false", &[]);
}

#[test]
fn a_summary_of_the_session_before_also_holds_what_was_said_after_the_compaction() {
    expect(
        "openoxide:cross_session=true,migration=false",
        &["amounts=summary", "branch=summary", "invoices=summary", "open-task=summary"],
    );
    let cost = |spec| run(spec).summary.cost_usd;
    let (with, without) = (cost("openoxide:cross_session=true"), cost("openoxide"));
    assert!(with > without, "it is a request more: {with} against {without}");
}

#[test]
fn the_described_compressor_moves_what_it_took_out() {
    // docs/sources/opencode-vs-claude-code.md §2: at 92 % all but the newest messages are
    // summarised, and what is critical goes to CLAUDE.md. u1 and a3 were taken out by then; a8 is
    // among the messages that stayed, and the session ends before the window is full again.
    expect("claude-code@described-001", &["amounts=memory", "branch=memory"]);
}

#[test]
fn aider_restores_its_history_file_where_it_is_asked_to() {
    // docs/sources/aider.md §1: with --restore-chat-history the file is read and summarised by the
    // weak model; without it a start is empty.
    let (kept, pct) = carried("aider:restore=true");
    assert!(kept.contains(&"invoices=summary".into()), "the newest word: {kept:?}");
    assert!(pct > carried("aider").1);
}
