use ctxbench_core::host::RewindStatus;
use ctxbench_core::model::find;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::{Loaded, Scenario};
use ctxbench_session::{AssistantEntry, Entry, Session, UserEntry};
use ctxbench_strategies::Spec;

use crate::options::Options;
use crate::replay::replay;

/// Runs five turns, with a manual compaction after the third if `compacted`, then a rewind to
/// message `to` and one more turn.
fn run(strategy: &str, to: &str, compacted: bool) -> RunRecord {
    let mut entries = Vec::new();
    let turn = |n: usize| {
        let said = |who: &str| format!("{who} {n}: {}", "words of this turn ".repeat(20));
        [
            Entry::User(UserEntry {
                id: format!("u{n}"),
                text: Some(said("user").into()),
                ..Default::default()
            }),
            Entry::Assistant(AssistantEntry {
                id: format!("a{n}"),
                text: Some(said("model").into()),
                ..Default::default()
            }),
        ]
    };
    for n in 1..=5 {
        entries.extend(turn(n));
        if n == 3 && compacted {
            entries.push(Entry::Compact { instructions: None, at: None });
        }
    }
    entries.push(Entry::Rewind { to: to.into(), mode: Default::default(), instructions: None });
    entries.extend(turn(6));
    let session = Session { entries, ..Session::default() };
    let scenario = Scenario::of_session(Loaded { session, ..Loaded::default() });
    let spec = Spec::parse(strategy).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let model = find("claude-sonnet-4-6").unwrap();
    runtime.block_on(replay(&scenario, &spec, model, &Options::default())).record
}

const MESSAGES: [&str; 10] = ["u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4", "u5", "a5"];

/// docs/sources/claude-code.md §1.5, docs/sources/opencode.md §7, docs/sources/codex.md §4: products show
/// what they showed at any message, and a rewind to a message before a compaction undoes it.
#[test]
fn products_go_back_to_any_message() {
    for strategy in ["claude-code", "codex", "opencode", "openoxide"] {
        for (to, compacted) in MESSAGES.iter().flat_map(|to| [(*to, false), (*to, true)]) {
            let record = run(strategy, to, compacted);
            assert!(!compacted || record.summary.compactions >= 1, "{strategy}");
            // The compaction came right after the third turn. Codex rewinds complete turns, so the
            // compaction remains unless that turn is removed too. In OpenOxide it remains unless a
            // message that it replaces is removed.
            let stays = matches!((strategy, to), ("codex", "u3" | "a3") | ("openoxide", "a3"));
            let equal = record.rewinds[0].context_equal;
            assert_eq!(equal, Some(!(compacted && stays)), "{strategy} to {to}: {record:?}");
        }
    }
}

#[test]
fn an_unknown_message_fails_and_changes_nothing() {
    let record = run("claude-code", "nobody", false);
    let r = &record.rewinds[0];
    assert_eq!(
        (r.status, r.context_before, r.context_equal),
        (RewindStatus::Failed, r.context_after, None)
    );
}
