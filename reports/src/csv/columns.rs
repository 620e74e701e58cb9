//! Columns of every CSV file except `summary.csv`, in order.

use crate::metrics::{Cell, ToCell};
use crate::record::{
    BreakEven, CompactionRecord, Delegation, FactRecord, RequestRecord, ResumeRecord, RewindRecord,
    Status, word,
};
use crate::sheet::Column;
use crate::spend::ModelSpend;

/// Columns, each made by a macro below: `own seq` by `own!(seq)`.
macro_rules! columns {
    ($($how:ident $what:tt),* $(,)?) => {
        &[$($how!($what)),*]
    };
}

/// A column as it is written: its name and its cell.
macro_rules! is {
    ($column:expr) => {
        $column
    };
}

/// A field with a column of this name.
macro_rules! own {
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
    own seq, named purpose, is ("phase", |q| q.phase.map(|phase| word(&phase)).cell()),
    is ("request_model", |q| q.model.cell()), own step, own extra, own input_tokens,
    is ("cache_read_tokens", |q| q.cache_read.cell()),
    is ("cache_write_tokens", |q| q.cache_write.cell()), own output_tokens, own context_tokens,
    own cost_usd, own at_ms, own latency_ms, own common_prefix_tokens, own invalidated_tokens,
    named status, own invalidated_expired_tokens, own invalidated_changed_tokens, own agent,
];

/// `retained_pct` is the drift curve. `break_even_calls` is `never` when a compaction cannot pay
/// for itself, and `n/a` when its cost is unknown.
pub(super) const COMPACTIONS: &[Column<CompactionRecord, Cell>] = columns![
    own seq, named kind, own mechanism, named phase, own before_request, own at_ms,
    own before_tokens, own after_tokens, own invalidated_tokens, own summary_tokens, own blocked_ms,
    own cost_usd, own facts_lost_verbatim, own facts_carried,
    is ("break_even_calls", |c| {
        let told = |even: BreakEven| even.calls().map_or("never".cell(), Cell::Real);
        c.break_even_calls.map_or(Cell::Na, told)
    }),
    own calls_after, own paid_off, own facts_needed_later, own retained_pct, own cost_is_estimate,
];

/// `request` is `n/a` if the run did not reach the need.
pub(super) const FACTS: &[Column<FactRecord, Cell>] = columns![
    own fact, named kind, own need, own request, named found, own share, named place, own stale,
    own compactions_before, own both, own undelivered, own gap, own counts, own exposed, own across,
];

/// `files_missed` is a list of paths, separated by `;`.
pub(super) const REWINDS: &[Column<RewindRecord, Cell>] = columns![
    own seq, own to, named mode, is ("rewind_status", |w| word(&w.status).cell()),
    own before_request, own at_ms, is ("context_before_tokens", |w| w.context_before.cell()),
    is ("context_after_tokens", |w| w.context_after.cell()),
    is ("context_then_tokens", |w| w.context_then.cell()), own context_equal,
    is ("way", |w| w.code.as_ref().map(|c| word(&c.way)).cell()), code ("files_tracked", tracked),
    code ("files_changed", changed), code ("files_restored", restored),
    is ("files_missed", |w| w.code.as_ref().map(|c| c.missed.join(";")).cell()),
    code ("files_refused", refused), code ("restore_success_pct", success_pct),
    code ("edit_tools_bytes", edit_tools_bytes), code ("shadow_git_bytes", shadow_git_bytes),
];

pub(super) const RESUME: &[Column<ResumeRecord, Cell>] = columns![
    own restart, file format, own messages, file stored_bytes, file bytes_read, file lost,
    file garbled, file surplus, file context_equal, shown shown_equal, shown resume_summary_calls,
    shown resume_blocked_ms, file recoverable_pct,
    is ("notes", |s| {
        let notes = || s.file.as_ref().map_or(String::new(), |f| f.notes.join("; "));
        s.error.clone().unwrap_or_else(notes).cell()
    }),
];

/// A subagent that was never called has a `status`, and its figures are `n/a`.
pub(super) const DELEGATION: &[Column<Delegation, Cell>] = columns![
    own agent, own call, own caller, own request, own waited, own status, ran steps, ran requests,
    ran compactions, ran input_tokens, ran cache_read_tokens, ran cache_write_tokens,
    ran output_tokens, ran cost_usd, ran started_ms, ran duration_ms, ran blocked_ms,
    ran peak_context_tokens, own result_tokens, own delegated_facts, own returned_facts,
    own needed_outside, own kept_outside,
];

pub(super) const COSTS: &[Column<ModelSpend, Cell>] = columns![
    own agent, is ("request_model", |p| p.model.cell()), own requests,
    is ("failed_requests", |p| p.failed.cell()), is ("summary_requests", |p| p.summaries.cell()),
    is ("input_tokens", |p| p.input.cell()), is ("uncached_tokens", |p| p.uncached().cell()),
    is ("cache_read_tokens", |p| p.cache_read.cell()),
    is ("cache_write_tokens", |p| p.cache_write.cell()), is ("output_tokens", |p| p.output.cell()),
    own cost_usd, own share_pct,
];
