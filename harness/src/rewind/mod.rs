//! Going back: what it restored of the conversation and of the files, per product.
//!
//! The conversation's half comes out of the replay. The files' half does not depend on the strategy
//! but on the way in which a product keeps files, so it is played once per session and way
//! (`files.rs`) and laid beside the replay's half here.

mod apply;
mod files;
mod patch;

use std::collections::BTreeSet;

use ctxbench_core::block::total_tokens;
use ctxbench_core::engine::{Event, RewindStatus, TimedEvent};
use ctxbench_core::model::Counting;
use ctxbench_core::session::{Entry, RewindMode, Session};
use ctxbench_reports::record::{CodeRewind, KeptBy, RewindRecord};
use ctxbench_strategies::Spec;
use ctxbench_strategies::descriptor::CodeWay;

use crate::replay::Compared;

pub use files::{Files, Played};

/// Every rewind of a session: where to, and what is asked for.
pub(crate) fn asked(session: &Session) -> impl Iterator<Item = (&str, RewindMode)> {
    session.entries.iter().filter_map(|e| match e {
        Entry::Rewind { to, mode, .. } => Some((to.as_str(), *mode)),
        _ => None,
    })
}

/// Messages that are gone back to.
pub(crate) fn targets(session: &Session) -> BTreeSet<String> {
    asked(session).map(|(to, _)| to.to_string()).collect()
}

/// The rewinds of a run: what the session asked for, what the product offers of it, what the replay
/// showed, and the files. The replay notes one for each that it reached, in order.
pub(crate) fn records<'a>(
    session: &Session,
    spec: &Spec,
    files: &Files,
    by: &Counting,
    reached: impl Iterator<Item = (&'a TimedEvent, Compared)>,
) -> Vec<RewindRecord> {
    let offer = spec.descriptor.rewind;
    let record = |(i, ((to, mode), (e, compared))): (usize, ((&str, RewindMode), _))| {
        let (e, compared): (&TimedEvent, Compared) = (e, compared);
        let Event::Rewound { status, before, after, .. } = &e.event else { return None };
        let base = RewindRecord {
            seq: i as u64,
            to: to.to_string(),
            mode,
            before_request: e.before_request,
            at_ms: e.at_ms,
            ..RewindRecord::default()
        };
        if *status == RewindStatus::Unsupported || !offer.offers(mode) {
            return Some(base);
        }
        let shows = mode == RewindMode::Code || mode.summarises() || offer.conversation;
        let back = shows && mode.restores_conversation();
        let way = offer.code.filter(|_| mode.restores_code());
        Some(RewindRecord {
            context_before: shows.then(|| total_tokens(by, before)),
            context_after: shows.then(|| total_tokens(by, after)),
            context_then: compared.then.filter(|_| back),
            context_equal: compared.equal.filter(|_| back && *status == RewindStatus::Done),
            code: way.and_then(|way| Some(code(files.restored(way, i)?, way, files, i))),
            status: *status,
            ..base
        })
    };
    asked(session).zip(reached).enumerate().filter_map(record).collect()
}

/// Files that equal their state at the prompt after going back ÷ files that had changed, over all
/// rewinds, per cent.
pub(crate) fn restore_success_pct(rewinds: &[RewindRecord]) -> Option<f64> {
    let files = || rewinds.iter().filter_map(|r| r.code.as_ref());
    let restored: u64 = files().map(|c| c.restored).sum();
    let changed: u64 = files().map(|c| c.changed).sum();
    (changed > 0).then(|| 100.0 * restored as f64 / changed as f64)
}

fn code(played: &Played, way: CodeWay, files: &Files, i: usize) -> CodeRewind {
    let bytes = |way| files.restored(way, i).map(|p| p.stored_bytes);
    let changed = played.success.changed.len() as u64;
    CodeRewind {
        way: match way {
            CodeWay::EditTools => KeptBy::EditTools,
            CodeWay::ShadowGit => KeptBy::ShadowGit,
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
