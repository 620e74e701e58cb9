//! Comparison of recorded compactions with ours: our Claude Code strategy replays the session in a
//! window that is never full, and compacts where the real program did.

use ctxbench_core::model::{self, DEFAULT_MODEL};
use ctxbench_scenarios::Scenario;
use ctxbench_session::{Entry, Session, Trigger};
use ctxbench_strategies::Spec;
use serde::Serialize;

use super::{Calls, Read};
use crate::inspect::layouts;
use crate::options::Options;

/// Strategy that is compared with the recorded program.
pub const STRATEGY: &str = "claude-code";

/// Window that no session fills, tokens. All compactions come from the recording.
const NEVER_FULL: u64 = 100_000_000;

/// A recorded compaction and ours, tokens.
#[derive(Clone, Debug, Serialize)]
pub struct CompactionPair {
    /// Line number of the boundary.
    pub line: usize,
    /// Prompt of the last call before the compaction, by the counters.
    pub recorded_before: Option<u64>,
    /// Size before the compaction, by the program's own count.
    pub recorded_pre_tokens: Option<u64>,
    /// Prompt of the first call after the compaction, by the counters.
    pub recorded_after: Option<u64>,
    /// Size of our context before the compaction.
    pub ours_before: Option<u64>,
    /// Size of our context after the compaction.
    pub ours_after: Option<u64>,
}

/// Compares the recorded compactions with ours. Replays nothing if there are none.
pub async fn compare_compactions(read: &Read) -> Vec<CompactionPair> {
    let Calls { calls, boundaries, .. } = &read.calls;
    let mut out: Vec<CompactionPair> = boundaries
        .iter()
        .enumerate()
        .map(|(n, b)| {
            let after = calls.iter().find(|c| c.boundary == Some(n));
            let before = after.and_then(|a| {
                calls.iter().rfind(|c| c.conversation == a.conversation && c.line < b.line)
            });
            CompactionPair {
                line: b.line,
                recorded_before: before.map(|c| c.counters.prompt()),
                recorded_pre_tokens: b.pre_tokens,
                recorded_after: after.map(|c| c.counters.prompt()),
                ours_before: None,
                ours_after: None,
            }
        })
        .collect();
    if out.is_empty() {
        return out;
    }
    let Some(session) = read.session().map(asked_to_compact) else { return out };
    let (Ok(spec), Ok(model)) = (Spec::parse(STRATEGY), model::find(DEFAULT_MODEL)) else {
        return out;
    };
    let scenario = Scenario { id: read.name(), session, scale: 1.0, ..Scenario::default() };
    let options = Options { window: Some(NEVER_FULL), ..Options::default() };
    let (ours, _) = layouts(&scenario, &spec, model, &options).await;
    if ours.len() == out.len() {
        for (b, l) in out.iter_mut().zip(&ours) {
            (b.ours_before, b.ours_after) = (Some(l.before_tokens), Some(l.after_tokens));
        }
    }
    out
}

/// Returns the session up to its last compaction, with each recorded compaction turned into a
/// command.
fn asked_to_compact(mut session: Session) -> Session {
    let is_recorded = |e: &Entry| matches!(e, Entry::RecordedCompaction(_));
    let end = session.entries.iter().rposition(is_recorded).map_or(0, |i| i + 1);
    session.entries.truncate(end);
    for e in &mut session.entries {
        if let Entry::RecordedCompaction(c) = e {
            (c.trigger, c.at) = (Some(Trigger::Manual), None);
        }
    }
    session
}
