//! The table: a row per column of `summary.csv`, in their order.

use ctxbench_core::fact::FactKind;

use super::Better::{Higher, Lower, Neither};
use super::Named::{Best, Worst};
use super::Over::{Mean, Sum};
use super::When::{Always, Finished};
use super::{
    Better, Cell, Gate, Kind, Metric, Named, Over, Ranking, Score, Slack, Stored, Unit, When,
};
use crate::record::{Fate, RunRecord};

/// Every column of `summary.csv`.
pub(crate) static METRICS: &[Metric] = &[
    key("scenario", |r| r.scenario.id.as_str().into()),
    key("strategy", |r| r.strategy.label.as_str().into()),
    key("model", |r| r.model.as_str().into()),
    key("status", |r| r.status.word().into()),
    number("steps_completed", Unit::Count("steps"), Higher, |r| r.summary.steps_completed.into())
        .named("steps")
        .compared(20, 1e4)
        .bmf(Always)
        .github_benchmark(50, Always),
    number("steps_total", Unit::Count("steps"), Neither, |r| r.summary.steps_total.into()),
    number("requests", Unit::Count("requests"), Neither, |r| r.summary.requests.into()),
    number("compactions", Unit::Count("compactions"), Neither, |r| r.summary.compactions.into())
        .scored(20, ["compa-", "ctions"], "times the context was made smaller"),
    number("summary_calls", Unit::Count("calls"), Neither, |r| r.summary.summary_calls.into()),
    number("input_tokens", Unit::Tokens, Lower, |r| r.summary.input_tokens.into())
        .named("tokens in")
        .detail(10, "input")
        .judged(20)
        .bmf(Finished)
        .github_benchmark(20, Finished),
    number("cache_read_tokens", Unit::Tokens, Neither, |r| r.summary.cache_read_tokens.into())
        .detail(20, "cache read"),
    number("cache_write_tokens", Unit::Tokens, Neither, |r| r.summary.cache_write_tokens.into())
        .detail(30, "cache write"),
    number("output_tokens", Unit::Tokens, Neither, |r| r.summary.output_tokens.into())
        .detail(40, "output"),
    number("task_tokens", Unit::Tokens, Lower, |r| r.summary.task_tokens.into()).bmf(Finished),
    number("peak_context_tokens", Unit::Tokens, Lower, |r| r.summary.peak_context_tokens.into())
        .named("peak")
        .scored(10, ["peak", "prompt"], "largest prompt, tokens")
        .compared(90, 0.2)
        .bmf(Finished)
        .github_benchmark(30, Finished),
    number("saved_pct", Unit::Percent, Higher, |r| r.summary.saved_pct.into())
        .named("tokens saved")
        .scored(
            30,
            ["tokens", "saved%"],
            "input tokens saved against the reference, summary calls and re-reads included",
        )
        .compared(50, 1.0)
        .gated(10, "tokens saved", Slack::By(0.5))
        .stored(20, Stored::WhereKnown)
        .bmf(Finished)
        .github_benchmark(10, Finished),
    number("cost_usd", Unit::Usd, Lower, |r| r.summary.cost_usd.into())
        .named("cost")
        .scored(
            40,
            ["cost", "$"],
            "US dollars by price list, prompt cache and summary calls included",
        )
        .ranked(10, "cheapest", Sum, Best)
        .judged(10)
        .compared(40, 1.0)
        .gated(30, "cost", Slack::Percent(1.0))
        .stored(10, Stored::Always)
        .bmf(Finished)
        .github_benchmark(10, Finished),
    number("cost_saved_pct", Unit::Percent, Higher, |r| r.summary.cost_saved_pct.into()).scored(
        50,
        ["cost", "saved%"],
        "dollars saved against the reference",
    ),
    number("prefix_stability", Unit::Ratio, Higher, |r| r.summary.prefix_stability.into())
        .named("prefix stable")
        .scored(
            60,
            ["prefix", "stable"],
            "share of each prompt that the next one repeats from its beginning; 1 = only appended \
             to",
        )
        .compared(60, 100.0)
        .gated(40, "prefix stability", Slack::By(0.005))
        .stored(50, Stored::WhereKnown)
        .bmf(Finished)
        .github_benchmark(40, Finished),
    number("invalidated_tokens", Unit::Tokens, Lower, |r| r.summary.invalidated_tokens.into())
        .detail(70, "invalidated"),
    number("cache_read_ratio", Unit::Share, Higher, |r| r.summary.cache_read_ratio.into())
        .scored(70, ["cache", "read%"], "share of the input tokens read from the prompt cache")
        .bmf(Finished),
    number("blocked_ms", Unit::Millis, Lower, |r| r.summary.blocked_ms.into())
        .named("waited")
        .scored(80, ["waited", "s"], "seconds of waiting caused by compaction, modelled")
        .detail(50, "waited s")
        .ranked(30, "waits longest", Sum, Worst)
        .judged(40)
        .compared(80, 0.2)
        .bmf(Finished)
        .github_benchmark(40, Finished),
    number("total_ms", Unit::Millis, Lower, |r| r.summary.total_ms.into()),
    number("step_p50_ms", Unit::Millis, Lower, |r| r.summary.step_p50_ms.into()),
    number("step_p95_ms", Unit::Millis, Lower, |r| r.summary.step_p95_ms.into()),
    number("compaction_p50_ms", Unit::Millis, Lower, |r| r.summary.compaction_p50_ms.into()),
    number("compaction_p95_ms", Unit::Millis, Lower, |r| r.summary.compaction_p95_ms.into()),
    number("retention_pct", Unit::Percent, Higher, |r| r.summary.retention_pct.into())
        .named("facts kept")
        .scored(
            90,
            ["facts", "kept%"],
            "facts still in the context when they were needed; an upper bound on use",
        )
        .ranked(20, "keeps most facts", Mean, Best)
        .judged(30)
        .compared(30, 1.0)
        .gated(20, "retention", Slack::By(0.5))
        .stored(30, Stored::WhereKnown)
        .bmf(Always)
        .github_benchmark(20, Finished),
    number("summary_retention_pct", Unit::Percent, Higher, |r| {
        r.summary.summary_retention_pct.into()
    })
    .named("in summary")
    .scored(
        100,
        ["in sum-", "mary%"],
        "of the facts that compactions took out, those that the summary carries",
    )
    .compared(70, 0.5)
    .noted_by_gate(50, "in summary", Slack::By(0.5))
    .stored(40, Stored::WhereKnown)
    .bmf(Finished)
    .github_benchmark(30, Finished),
    kept("retention_goal_pct", 1, "goal %", |r| kind(r, FactKind::Goal)),
    kept("retention_constraint_pct", 2, "constraint %", |r| kind(r, FactKind::Constraint)),
    kept("retention_artifact_pct", 3, "artifact %", |r| kind(r, FactKind::Artifact)),
    kept("retention_decision_pct", 4, "decision %", |r| kind(r, FactKind::Decision)),
    kept("retention_error_pct", 5, "error %", |r| kind(r, FactKind::Error)),
    kept("retention_value_pct", 6, "value %", |r| kind(r, FactKind::Value)),
    kept("retention_todo_pct", 7, "todo %", |r| kind(r, FactKind::Todo)),
    kept("retention_superseded_pct", 8, "superseded %", |r| kind(r, FactKind::Superseded)),
    number("reread_tokens", Unit::Tokens, Lower, |r| r.summary.reread_tokens.into())
        .detail(60, "re-read"),
    number("extra_requests", Unit::Count("requests"), Lower, |r| r.summary.extra_requests.into()),
    number("provider_overflows", Unit::Count("refusals"), Lower, |r| {
        r.summary.provider_overflows.into()
    }),
    number("user_interventions", Unit::Count("interventions"), Lower, |r| {
        r.summary.user_interventions.into()
    }),
    // A guess may be wrong in either direction.
    number("trigger_error_tokens", Unit::Tokens, Neither, |r| {
        r.summary.trigger_error_tokens.into()
    }),
    number("integrity_failures", Unit::Count("failures"), Lower, |r| {
        r.summary.integrity_failures.into()
    })
    .named("integrity")
    .compared(10, 1e6)
    .bmf(Always)
    .github_benchmark(50, Always),
    number("reusable", Unit::Ratio, Higher, |r| r.summary.reusable.into()),
    number("cost_read_005_usd", Unit::Usd, Lower, |r| r.summary.cost_read_005_usd.into()),
    number("cost_read_0025_usd", Unit::Usd, Lower, |r| r.summary.cost_read_0025_usd.into()),
    word("summariser", |r| r.summariser.as_deref().into()),
    number("steered_pct", Unit::Percent, Neither, |r| {
        r.steering.as_ref().map(|s| s.asked_with_pct).into()
    }),
    number("unsteered_pct", Unit::Percent, Neither, |r| {
        r.steering.as_ref().map(|s| s.asked_without_pct).into()
    }),
    number("stale_pct", Unit::Percent, Neither, |r| r.summary.stale_pct.into()),
    number("contradicted_pct", Unit::Percent, Neither, |r| r.summary.contradicted_pct.into()),
    number("drifted_pct", Unit::Percent, Neither, |r| r.summary.drifted_pct.into()),
    number("recoverable_pct", Unit::Percent, Neither, |r| r.summary.recoverable_pct.into()),
    number("specificity_pct", Unit::Percent, Neither, |r| r.summary.specificity_pct.into()),
    number("goal_kept_pct", Unit::Percent, Neither, |r| r.summary.goal_kept_pct.into()),
    number("drift_resistance", Unit::Ratio, Neither, |r| r.summary.drift_resistance.into()),
    number("drift_cliff", Unit::Count("compactions"), Neither, cliff),
    number("invalidated_expired_tokens", Unit::Tokens, Neither, |r| {
        r.summary.invalidated_expired_tokens.into()
    }),
    number("invalidated_changed_tokens", Unit::Tokens, Neither, |r| {
        r.summary.invalidated_changed_tokens.into()
    }),
    number("background_summaries", Unit::Count("summaries"), Neither, |r| {
        (r.background.len() as u64).into()
    }),
    number("restore_success_pct", Unit::Percent, Neither, |r| r.summary.restore_success_pct.into()),
    number("rewind_equal_pct", Unit::Percent, Neither, |r| r.summary.rewind_equal_pct.into()),
    races("background_in_time", |r| ended(r, Fate::InTime)),
    races("background_late_waited", |r| ended(r, Fate::LateWaited)),
    races("background_late_proceeded", |r| ended(r, Fate::LateProceeded)),
    races("background_cancelled", |r| ended(r, Fate::Cancelled)),
    races("background_stale", |r| ended(r, Fate::Stale)),
    races("background_failed", |r| ended(r, Fate::Failed)),
];

type Read = fn(&RunRecord) -> Cell;

const fn row(column: &'static str, kind: Kind, unit: Unit, better: Better, read: Read) -> Metric {
    Metric {
        column,
        kind,
        read,
        unit,
        better,
        name: column,
        scored: None,
        detail: None,
        ranked: None,
        judged: None,
        compared: None,
        gated: None,
        stored: None,
        bmf: None,
        github_benchmark: None,
    }
}

const fn key(column: &'static str, read: Read) -> Metric {
    row(column, Kind::Key, Unit::Count(""), Neither, read)
}

const fn word(column: &'static str, read: Read) -> Metric {
    row(column, Kind::Word, Unit::Count(""), Neither, read)
}

const fn number(column: &'static str, unit: Unit, better: Better, read: Read) -> Metric {
    row(column, Kind::Number, unit, better, read)
}

/// Facts of one kind that were kept.
const fn kept(column: &'static str, at: u16, head: &'static str, read: Read) -> Metric {
    number(column, Unit::Percent, Higher, read).detail(at, head)
}

/// Background summaries that ended in one way.
const fn races(column: &'static str, read: Read) -> Metric {
    number(column, Unit::Count("summaries"), Neither, read)
}

impl Metric {
    const fn named(self, name: &'static str) -> Metric {
        Metric { name, ..self }
    }

    const fn scored(self, at: u16, head: [&'static str; 2], help: &'static str) -> Metric {
        Metric { scored: Some((at, Score { head, help })), ..self }
    }

    const fn detail(self, at: u16, head: &'static str) -> Metric {
        Metric { detail: Some((at, head)), ..self }
    }

    const fn ranked(self, at: u16, what: &'static str, over: Over, named: Named) -> Metric {
        Metric { ranked: Some((at, Ranking { what, over, named })), ..self }
    }

    const fn judged(self, at: u16) -> Metric {
        Metric { judged: Some((at, ())), ..self }
    }

    const fn compared(self, at: u16, weight: f64) -> Metric {
        Metric { compared: Some((at, weight)), ..self }
    }

    const fn gated(self, at: u16, name: &'static str, slack: Slack) -> Metric {
        Metric { gated: Some((at, Gate { name, slack, decides: true })), ..self }
    }

    const fn noted_by_gate(self, at: u16, name: &'static str, slack: Slack) -> Metric {
        Metric { gated: Some((at, Gate { name, slack, decides: false })), ..self }
    }

    const fn stored(self, at: u16, stored: Stored) -> Metric {
        Metric { stored: Some((at, stored)), ..self }
    }

    const fn bmf(self, when: When) -> Metric {
        Metric { bmf: Some(when), ..self }
    }

    const fn github_benchmark(self, at: u16, when: When) -> Metric {
        Metric { github_benchmark: Some((at, when)), ..self }
    }
}

fn kind(r: &RunRecord, kind: FactKind) -> Cell {
    r.summary.retention_by_kind.get(&kind).copied().into()
}

fn ended(r: &RunRecord, fate: Fate) -> Cell {
    (r.background.iter().filter(|b| b.fate == fate).count() as u64).into()
}

/// `never` when there is a curve that stays above the cliff.
fn cliff(r: &RunRecord) -> Cell {
    match r.summary.drift_cliff {
        None if r.compactions.iter().any(|c| c.retained_pct.is_some()) => "never".into(),
        k => k.into(),
    }
}
