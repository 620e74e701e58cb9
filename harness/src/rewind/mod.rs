//! Going back: what it restored of the conversation and of the files, per product.
//!
//! The conversation's half comes out of the replay. The files' half does not depend on the strategy but on the way in which a product
//! keeps files, so it is played once per session and way (`files.rs`) and laid beside the replay's half here.

mod apply;
mod files;
mod patch;

use std::collections::BTreeSet;

use ctxbench_core::record::{CodeRewind, RewindRecord, RunRecord, Status};
use ctxbench_core::session::{Entry, RewindMode, Session};
use ctxbench_strategies::{CodeWay, rewind_of};

pub use files::{Files, Played};

/// Every rewind of a session: where to, and what is asked for.
pub(crate) fn asked(session: &Session) -> impl Iterator<Item = (&str, RewindMode)> {
    session.entries.iter().filter_map(|e| match e {
        Entry::Rewind { to, mode, .. } => Some((to.as_str(), RewindMode::of(mode).unwrap_or(RewindMode::Conversation))),
        _ => None,
    })
}

/// Messages that are gone back to.
pub(crate) fn targets(session: &Session) -> BTreeSet<String> {
    asked(session).map(|(to, _)| to.to_string()).collect()
}

/// Completes the rewinds of a run: what the session asked for, what the product offers of it, and the files.
pub fn complete(record: &mut RunRecord, session: &Session, files: &Files) {
    if record.status == Status::NotApplicable {
        return;
    }
    record.scenario.warnings.extend(files.remarks.iter().cloned());
    let offer = rewind_of(&record.strategy.name);
    // The replay notes one for each that it reached, in order.
    for (i, ((to, mode), r)) in asked(session).zip(&mut record.rewinds).enumerate() {
        r.to = to.to_string();
        r.mode = mode.word().to_string();
        let kept = r.clone();
        *r = RewindRecord {
            seq: r.seq,
            to: kept.to,
            mode: kept.mode,
            before_request: r.before_request,
            at_ms: r.at_ms,
            ..Default::default()
        };
        r.status = "n/a".into();
        if kept.status == "n/a" || !offer.offers(mode) {
            continue;
        }
        r.status = kept.status;
        let conversation = mode == RewindMode::Code || mode.summarises() || offer.conversation;
        if conversation {
            (r.context_before, r.context_after) = (kept.context_before, kept.context_after);
            (r.context_then, r.context_equal) = (kept.context_then, kept.context_equal);
        }
        if mode.restores_code() {
            r.code = offer.code.and_then(|way| Some(code(files.restored(way, i)?, way, files, i)));
        }
    }
    let sum = |of: fn(&CodeRewind) -> u64| record.rewinds.iter().filter_map(|r| r.code.as_ref()).map(of).sum::<u64>();
    let (restored, changed) = (sum(|c| c.restored), sum(|c| c.changed));
    record.summary.restore_success_pct = (changed > 0).then(|| 100.0 * restored as f64 / changed as f64);
    let equal: Vec<bool> = record.rewinds.iter().filter_map(|r| r.context_equal).collect();
    let same = equal.iter().filter(|e| **e).count();
    record.summary.rewind_equal_pct = (!equal.is_empty()).then(|| 100.0 * same as f64 / equal.len() as f64);
}

fn code(played: &Played, way: CodeWay, files: &Files, i: usize) -> CodeRewind {
    let bytes = |way| files.restored(way, i).map(|p| p.stored_bytes);
    let changed = played.success.changed.len() as u64;
    CodeRewind {
        way: match way {
            CodeWay::EditTools => "edit tools".into(),
            CodeWay::ShadowGit => "shadow git".into(),
        },
        tracked: played.tracked,
        changed,
        restored: changed - played.success.missed.len() as u64,
        missed: played.success.missed.clone(),
        refused: played.refused,
        success_pct: played.success.pct(),
        edit_tools_bytes: bytes(CodeWay::EditTools).unwrap_or_default(),
        shadow_git_bytes: bytes(CodeWay::ShadowGit),
    }
}

#[cfg(test)]
mod tests;
