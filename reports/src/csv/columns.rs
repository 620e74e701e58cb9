//! The columns of every CSV file but `summary.csv`, in their order.

use super::Column;
use crate::metrics::Cell;
use crate::record::{
    CodeRewind, CompactionRecord, Delegation, FactRecord, RequestRecord, ResumeFile, ResumeRecord,
    RewindRecord, Status, word,
};

pub(super) const REQUESTS: &[Column<RequestRecord>] = &[
    ("seq", |q| q.seq.into()),
    ("purpose", |q| word(&q.purpose).into()),
    ("phase", |q| q.phase.map(|p| word(&p)).into()),
    ("request_model", |q| q.model.as_str().into()),
    ("step", |q| q.step.into()),
    ("extra", |q| q.extra.into()),
    ("input_tokens", |q| q.input_tokens.into()),
    ("cache_read_tokens", |q| q.cache_read.into()),
    ("cache_write_tokens", |q| q.cache_write.into()),
    ("output_tokens", |q| q.output_tokens.into()),
    ("context_tokens", |q| q.context_tokens.into()),
    ("cost_usd", |q| q.cost_usd.into()),
    ("at_ms", |q| q.at_ms.into()),
    ("latency_ms", |q| q.latency_ms.into()),
    ("common_prefix_tokens", |q| q.common_prefix_tokens.into()),
    ("invalidated_tokens", |q| q.invalidated_tokens.into()),
    ("status", |q| word(&q.status).into()),
    ("invalidated_expired_tokens", |q| q.invalidated_expired_tokens.into()),
    ("invalidated_changed_tokens", |q| q.invalidated_changed_tokens.into()),
    ("agent", |q| q.agent.as_deref().into()),
];

/// `retained_pct` is the drift curve; `break_even_calls` is `never` when a compaction cannot pay for
/// itself.
pub(super) const COMPACTIONS: &[Column<CompactionRecord>] = &[
    ("seq", |c| c.seq.into()),
    ("kind", |c| word(&c.kind).into()),
    ("mechanism", |c| c.mechanism.as_str().into()),
    ("phase", |c| word(&c.phase).into()),
    ("before_request", |c| c.before_request.into()),
    ("at_ms", |c| c.at_ms.into()),
    ("before_tokens", |c| c.before_tokens.into()),
    ("after_tokens", |c| c.after_tokens.into()),
    ("invalidated_tokens", |c| c.invalidated_tokens.into()),
    ("summary_tokens", |c| c.summary_tokens.into()),
    ("blocked_ms", |c| c.blocked_ms.into()),
    ("cost_usd", |c| c.cost_usd.into()),
    ("facts_lost_verbatim", |c| c.facts_lost_verbatim.into()),
    ("facts_carried", |c| c.facts_carried.into()),
    ("break_even_calls", |c| c.break_even_calls.map_or("never".into(), Cell::Real)),
    ("calls_after", |c| c.calls_after.into()),
    ("paid_off", |c| c.paid_off.into()),
    ("facts_needed_later", |c| c.facts_needed_later.into()),
    ("retained_pct", |c| c.retained_pct.into()),
    ("goal_kept", |c| c.goal_kept.into()),
];

/// `request` is `n/a` when the run did not get there, `recoverable` when nothing was lost.
pub(super) const FACTS: &[Column<FactRecord>] = &[
    ("fact", |f| f.fact.as_str().into()),
    ("kind", |f| f.kind.name().into()),
    ("need", |f| f.need.as_str().into()),
    ("request", |f| f.request.into()),
    ("found", |f| word(&f.found).into()),
    ("place", |f| word(&f.place).into()),
    ("stale", |f| f.stale.into()),
    ("compactions_before", |f| f.compactions_before.into()),
    ("both", |f| f.both.into()),
    ("contradicted", |f| f.contradicted.into()),
    ("drifted", |f| f.drifted.into()),
    ("recoverable", |f| f.recoverable.into()),
    ("undelivered", |f| f.undelivered.into()),
];

/// `files_missed` are paths, `;` between them.
pub(super) const REWINDS: &[Column<RewindRecord>] = &[
    ("seq", |w| w.seq.into()),
    ("to", |w| w.to.as_str().into()),
    ("mode", |w| word(&w.mode).into()),
    ("rewind_status", |w| word(&w.status).into()),
    ("before_request", |w| w.before_request.into()),
    ("at_ms", |w| w.at_ms.into()),
    ("context_before_tokens", |w| w.context_before.into()),
    ("context_after_tokens", |w| w.context_after.into()),
    ("context_then_tokens", |w| w.context_then.into()),
    ("context_equal", |w| w.context_equal.into()),
    ("way", |w| code(w, |c| word(&c.way).into())),
    ("files_tracked", |w| code(w, |c| c.tracked.into())),
    ("files_changed", |w| code(w, |c| c.changed.into())),
    ("files_restored", |w| code(w, |c| c.restored.into())),
    ("files_missed", |w| code(w, |c| c.missed.join(";").into())),
    ("files_refused", |w| code(w, |c| c.refused.into())),
    ("restore_success_pct", |w| code(w, |c| c.success_pct.into())),
    ("edit_tools_bytes", |w| code(w, |c| c.edit_tools_bytes.into())),
    ("shadow_git_bytes", |w| code(w, |c| c.shadow_git_bytes.into())),
];

/// What a product that keeps nothing shows after a restart is the replay's, not the product's.
pub(super) const RESUME: &[Column<ResumeRecord>] = &[
    ("restart", |s| s.restart.into()),
    ("format", |s| file(s, |f| f.format.as_str().into())),
    ("messages", |s| s.messages.into()),
    ("stored_bytes", |s| file(s, |f| f.stored_bytes.into())),
    ("bytes_read", |s| file(s, |f| f.bytes_read.into())),
    ("lost", |s| file(s, |f| f.lost.into())),
    ("garbled", |s| file(s, |f| f.garbled.into())),
    ("surplus", |s| file(s, |f| f.surplus.into())),
    ("context_equal", |s| file(s, |f| f.context_equal.into())),
    ("shown_equal", |s| shown(s, s.shown_equal)),
    ("resume_summary_calls", |s| shown(s, s.resume_summary_calls)),
    ("resume_blocked_ms", |s| shown(s, s.resume_blocked_ms)),
    ("recoverable_pct", |s| file(s, |f| f.recoverable_pct.into())),
    ("notes", |s| {
        let notes = || s.file.as_ref().map_or(String::new(), |f| f.notes.join("; "));
        s.error.clone().unwrap_or_else(notes).into()
    }),
];

/// A subagent whose call was never made has `status` and figures `n/a`.
pub(super) const DELEGATION: &[Column<Delegation>] = &[
    ("agent", |d| d.agent.as_str().into()),
    ("call", |d| d.call.as_deref().into()),
    ("caller", |d| d.caller.as_deref().into()),
    ("request", |d| d.request.into()),
    ("waited", |d| d.waited.into()),
    ("status", |d| d.status.word().into()),
    ("steps", |d| ran(d, d.steps)),
    ("requests", |d| ran(d, d.requests)),
    ("compactions", |d| ran(d, d.compactions)),
    ("input_tokens", |d| ran(d, d.input_tokens)),
    ("cache_read_tokens", |d| ran(d, d.cache_read_tokens)),
    ("cache_write_tokens", |d| ran(d, d.cache_write_tokens)),
    ("output_tokens", |d| ran(d, d.output_tokens)),
    ("cost_usd", |d| ran(d, d.cost_usd)),
    ("started_ms", |d| ran(d, d.started_ms)),
    ("duration_ms", |d| ran(d, d.duration_ms)),
    ("blocked_ms", |d| ran(d, d.blocked_ms)),
    ("peak_context_tokens", |d| ran(d, d.peak_context_tokens)),
    ("result_tokens", |d| d.result_tokens.into()),
    ("delegated_facts", |d| d.delegated_facts.into()),
    ("returned_facts", |d| d.returned_facts.into()),
    ("needed_outside", |d| d.needed_outside.into()),
    ("kept_outside", |d| d.kept_outside.into()),
];

fn code(w: &RewindRecord, cell: fn(&CodeRewind) -> Cell) -> Cell {
    w.code.as_ref().map(cell).into()
}

fn file(s: &ResumeRecord, cell: fn(&ResumeFile) -> Cell) -> Cell {
    s.file.as_ref().map(cell).into()
}

fn shown(s: &ResumeRecord, value: impl Into<Cell>) -> Cell {
    Some(value).filter(|_| !s.keeps_nothing()).into()
}

fn ran(d: &Delegation, value: impl Into<Cell>) -> Cell {
    Some(value).filter(|_| d.status != Status::NotApplicable).into()
}
