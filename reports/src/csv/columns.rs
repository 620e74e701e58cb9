//! Columns of every CSV file except `summary.csv`, in order.

use crate::metrics::{Cell, ToCell};
use crate::record::{
    BreakEven, CompactionRecord, Delegation, FactRecord, RequestRecord, ResumeRecord, RewindRecord,
    Status, word,
};
use crate::sheet::Column;
use crate::spend::ModelSpend;

/// Columns, each made by a macro below: `field seq` by `field!(seq)`.
macro_rules! columns {
    ($($how:ident $what:tt),* $(,)?) => {
        &[$($how!($what)),*]
    };
}

/// A column as it is written: its name and its cell.
macro_rules! column {
    ($column:expr) => {
        $column
    };
}

/// A field with a column of this name.
macro_rules! field {
    ($field:ident) => {
        (stringify!($field), |x| x.$field.cell())
    };
}

/// A field with a variant that has a name in files, and a column of this name.
macro_rules! named {
    ($field:ident) => {
        (stringify!($field), |x| word(&x.$field).cell())
    };
}

/// A figure of the files restored by a rewind.
macro_rules! code {
    (($column:expr, $field:ident)) => {
        ($column, |w| w.code.as_ref().map(|c| c.$field.cell()).cell())
    };
}

/// A figure of the data restored from a file.
macro_rules! file {
    ($field:ident) => {
        (stringify!($field), |s| s.file.as_ref().map(|f| f.$field.cell()).cell())
    };
}

/// A figure after a restart. It is `n/a` if the product keeps nothing, because the figure would
/// then describe the replay and not the product.
macro_rules! shown {
    ($field:ident) => {
        (stringify!($field), |s| (!s.keeps_nothing()).then_some(s.$field).cell())
    };
}

/// A figure of a subagent that was started.
macro_rules! ran {
    ($field:ident) => {
        (stringify!($field), |d| (d.status != Status::NotApplicable).then_some(d.$field).cell())
    };
}

/// Columns of requests that a recording does not contain.
pub(super) const REPLAYED: &[&str] = &[
    "latency_ms",
    "common_prefix_tokens",
    "invalidated_tokens",
    "invalidated_expired_tokens",
    "invalidated_changed_tokens",
];

pub(super) const REQUESTS: &[Column<RequestRecord, Cell>] = columns![
    field seq, named purpose, column ("phase", |q| q.phase.map(|phase| word(&phase)).cell()),
    column ("request_model", |q| q.model.cell()), field step, field extra, field input_tokens,
    column ("cache_read_tokens", |q| q.cache_read.cell()),
    column ("cache_write_tokens", |q| q.cache_write.cell()), field output_tokens,
    field context_tokens, field cost_usd, field at_ms, field latency_ms, field common_prefix_tokens,
    field invalidated_tokens, named status, field invalidated_expired_tokens,
    field invalidated_changed_tokens, field agent,
];

/// `retained_pct` is the drift curve. `break_even_calls` is `never` when a compaction cannot pay
/// for itself, and `n/a` when its cost is unknown.
pub(super) const COMPACTIONS: &[Column<CompactionRecord, Cell>] = columns![
    field seq, named kind, field mechanism, named phase, field before_request, field at_ms,
    field before_tokens, field after_tokens, field invalidated_tokens, field summary_tokens,
    field blocked_ms, field cost_usd, field facts_lost_verbatim, field facts_carried,
    column ("break_even_calls", |c| {
        let told = |even: BreakEven| even.calls().map_or("never".cell(), Cell::Real);
        c.break_even_calls.map_or(Cell::Na, told)
    }),
    field calls_after, field paid_off, field facts_needed_later, field retained_pct,
    field cost_is_estimate,
];

/// `request` is `n/a` if the run did not reach the need.
pub(super) const FACTS: &[Column<FactRecord, Cell>] = columns![
    field fact, named kind, field need, field request, named found, field share, named place,
    field stale, field compactions_before, field both, field undelivered, field gap, field counts,
    field exposed, field across,
];

/// `files_missed` is a list of paths, separated by `;`.
pub(super) const REWINDS: &[Column<RewindRecord, Cell>] = columns![
    field seq, field to, named mode, column ("rewind_status", |w| word(&w.status).cell()),
    field before_request, field at_ms,
    column ("context_before_tokens", |w| w.context_before.cell()),
    column ("context_after_tokens", |w| w.context_after.cell()),
    column ("context_then_tokens", |w| w.context_then.cell()), field context_equal,
    column ("way", |w| w.code.as_ref().map(|c| word(&c.way)).cell()),
    code ("files_tracked", tracked), code ("files_changed", changed),
    code ("files_restored", restored),
    column ("files_missed", |w| w.code.as_ref().map(|c| c.missed.join(";")).cell()),
    code ("files_refused", refused), code ("restore_success_pct", success_pct),
    code ("edit_tools_bytes", edit_tools_bytes), code ("shadow_git_bytes", shadow_git_bytes),
];

pub(super) const RESUME: &[Column<ResumeRecord, Cell>] = columns![
    field restart, file format, field messages, file stored_bytes, file bytes_read, file lost,
    file garbled, file surplus, file context_equal, shown shown_equal, shown resume_summary_calls,
    shown resume_blocked_ms, file recoverable_pct,
    column ("notes", |s| {
        let notes = || s.file.as_ref().map_or(String::new(), |f| f.notes.join("; "));
        s.error.clone().unwrap_or_else(notes).cell()
    }),
];

/// A subagent that was never called has a `status`, and its figures are `n/a`.
pub(super) const DELEGATION: &[Column<Delegation, Cell>] = columns![
    field agent, field call, field caller, field request, field waited, field status, ran steps,
    ran requests, ran compactions, ran input_tokens, ran cache_read_tokens, ran cache_write_tokens,
    ran output_tokens, ran cost_usd, ran started_ms, ran duration_ms, ran blocked_ms,
    ran peak_context_tokens, field result_tokens, field delegated_facts, field returned_facts,
    field needed_outside, field kept_outside,
];

pub(super) const COSTS: &[Column<ModelSpend, Cell>] = columns![
    field agent, column ("request_model", |p| p.model.cell()), field requests,
    column ("failed_requests", |p| p.failed.cell()),
    column ("summary_requests", |p| p.summaries.cell()),
    column ("input_tokens", |p| p.input.cell()),
    column ("uncached_tokens", |p| p.uncached().cell()),
    column ("cache_read_tokens", |p| p.cache_read.cell()),
    column ("cache_write_tokens", |p| p.cache_write.cell()),
    column ("output_tokens", |p| p.output.cell()), field cost_usd, field share_pct,
];
