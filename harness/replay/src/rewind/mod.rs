//! Rewinds: how much of the conversation and the files each product restores.
//!
//! The replay measures the conversation. The files depend only on a product's kind of checkpoints,
//! so `files.rs` measures them once per session and kind. This module combines both.

mod apply;
mod files;

use ctxbench_core::host::{RewindMode, RewindStatus};
use ctxbench_reports::record::{CodeRewind, KeptBy, RewindRecord};
use ctxbench_session::{Entry, Session};
use ctxbench_strategies::Spec;
use ctxbench_strategies::descriptor::SnapshotKind;

pub use files::{FileRewinds, RestoreMeasurement};

/// Returns the target and mode of each rewind in a session.
fn rewinds(session: &Session) -> impl Iterator<Item = (&str, RewindMode)> {
    session.entries.iter().filter_map(|e| match e {
        Entry::Rewind { to, mode, .. } => Some((to.as_str(), *mode)),
        _ => None,
    })
}

/// Returns the record of each rewind that the replay reached, in order: the session's request, the
/// product's support, and the results for conversation and files. `reached` = measured contexts.
pub(crate) fn records(
    session: &Session,
    spec: &Spec,
    files: &FileRewinds,
    reached: &[RewindRecord],
) -> Vec<RewindRecord> {
    let offer = spec.descriptor.rewind;
    let record = |(i, ((to, mode), e)): (usize, ((&str, RewindMode), &RewindRecord))| {
        let base = RewindRecord {
            seq: i as u64,
            to: to.to_string(),
            mode,
            before_request: e.before_request,
            at_ms: e.at_ms,
            ..RewindRecord::default()
        };
        if e.status == RewindStatus::Unsupported || !offer.offers(mode) {
            return base;
        }
        let measures_context = mode == RewindMode::Code || mode.summarises() || offer.conversation;
        let restores_context = measures_context && mode.restores_conversation();
        let way = offer.code.filter(|_| mode.restores_code());
        let is_equal = e.context_equal.filter(|_| restores_context);
        RewindRecord {
            context_before: e.context_before.filter(|_| measures_context),
            context_after: e.context_after.filter(|_| measures_context),
            context_then: e.context_then.filter(|_| restores_context),
            context_equal: is_equal.filter(|_| e.status == RewindStatus::Done),
            code: way.and_then(|way| Some(code(files.restored(way, i)?, way, files, i))),
            status: e.status,
            ..base
        }
    };
    rewinds(session).zip(reached).enumerate().map(record).collect()
}

fn code(
    restore: &RestoreMeasurement,
    way: SnapshotKind,
    files: &FileRewinds,
    i: usize,
) -> CodeRewind {
    let bytes = |way| files.restored(way, i).map(|p| p.stored_bytes);
    let changed = restore.success.changed.len() as u64;
    CodeRewind {
        way: match way {
            SnapshotKind::EditTools => KeptBy::EditTools,
            SnapshotKind::ShadowGit => KeptBy::ShadowGit,
        },
        tracked: restore.tracked,
        changed,
        restored: changed - restore.success.missed.len() as u64,
        missed: restore.success.missed.clone(),
        refused: restore.refused,
        success_pct: restore.success.pct(),
        edit_tools_bytes: bytes(SnapshotKind::EditTools).unwrap_or_default(),
        shadow_git_bytes: bytes(SnapshotKind::ShadowGit),
    }
}

#[cfg(test)]
mod tests;
