//! The metrics table: one entry per column of `summary.csv`, in order.

use super::Better::{Higher, Lower, Neither};
use super::{Better, Cell, ColumnKind, Gate, Metric, Slack, ToCell, Unit};
use crate::record::RunRecord;
use ctxbench_core::strategy::Standing;

/// A field of the summary with a column of this name.
macro_rules! summary {
    ($field:ident, $unit:expr, $better:expr) => {
        number(stringify!($field), $unit, $better, |r| r.summary.$field.cell())
    };
}

/// Every column of `summary.csv`.
pub(crate) static METRICS: &[Metric] = &[
    key("scenario", |r| r.scenario.id.cell()),
    key("strategy", |r| r.strategy.label.cell()),
    key("model", |r| r.model.cell()),
    word("summariser", |r| r.summariser.cell()),
    word("trust", |r| r.trust().cell()),
    key("status", |r| r.status.word().cell()),
    summary!(steps_completed, Unit::Count, Higher)
        .says("recorded replies of the main conversation that were made")
        .named("steps")
        .compared(20, 1e4),
    summary!(requests, Unit::Count, Neither)
        .says("requests of every purpose, including those of subagents"),
    summary!(compactions, Unit::Count, Neither).scored(
        20,
        "compactions",
        "times the context was made smaller",
    ),
    summary!(summary_calls, Unit::Count, Neither)
        .says("requests that wrote summaries, including those that the provider made itself"),
    number("summary_tokens", Unit::Tokens, Neither, |r| r.summary_calls().tokens.cell())
        .says("input and output of the requests that wrote summaries"),
    number("summary_usd", Unit::Usd, Neither, |r| {
        let told = match r.strategy.standing {
            Standing::Recorded => r.compactions.iter().map(|c| c.cost_usd).sum(),
            _ => Some(r.summary_calls().cost_usd),
        };
        told.cell()
    })
    .says("cost of the requests that wrote summaries"),
    summary!(input_tokens, Unit::Tokens, Lower)
        .says("prompt tokens billed, cached ones included, of all requests")
        .named("tokens in")
        .judged(20),
    summary!(cache_read_tokens, Unit::Tokens, Neither)
        .says("prompt tokens read from the prompt cache"),
    summary!(cache_write_tokens, Unit::Tokens, Neither)
        .says("prompt tokens written to the prompt cache"),
    summary!(output_tokens, Unit::Tokens, Neither).says("reply tokens billed"),
    summary!(peak_context_tokens, Unit::Tokens, Lower)
        .named("peak")
        .scored(10, "peak\nprompt", "largest prompt, tokens")
        .compared(90, 0.2),
    summary!(saved_pct, Unit::Percent, Higher)
        .signed()
        .named("tokens saved")
        .scored(
            30,
            "tokens\nsaved%",
            "input tokens saved against the reference, summary calls and re-reads included",
        )
        .compared(50, 1.0)
        .gated(10, "tokens saved", Slack::By(0.5)),
    summary!(cost_usd, Unit::Usd, Lower)
        .named("cost")
        .scored(40, "cost\n$", "US dollars by price list, prompt cache and summary calls included")
        .on_front()
        .headline()
        .judged(10)
        .compared(40, 1.0)
        .gated(30, "cost", Slack::Percent(1.0)),
    summary!(cost_saved_pct, Unit::Percent, Higher).signed().scored(
        50,
        "cost\nsaved%",
        "dollars saved against the reference",
    ),
    summary!(cost_estimate_usd, Unit::Usd, Neither).says(
        "of the row `as-recorded`: cost with the visible output where the counted one is a stub",
    ),
    summary!(prefix_stability, Unit::Ratio, Higher)
        .named("prefix stable")
        .scored(
            60,
            "prefix\nstable",
            "share of each prompt that the next one repeats from its beginning; 1 = only appended \
             to",
        )
        .compared(60, 100.0)
        .gated(40, "prefix stability", Slack::By(0.005)),
    summary!(invalidated_tokens, Unit::Tokens, Lower)
        .replayed()
        .says("tokens of earlier prompts that were sent again and not read from the cache"),
    summary!(cache_read_ratio, Unit::Share, Higher).scored(
        70,
        "cache\nread%",
        "share of the input tokens read from the prompt cache",
    ),
    // A real agent does not report its waiting.
    number("blocked_ms", Unit::Millis, Lower, |r| {
        (!r.strategy.driven).then_some(r.summary.blocked_ms).cell()
    })
    .replayed()
    .named("waited")
    .scored(80, "waited\ns", "seconds of waiting caused by compaction, modelled")
    .headline()
    .judged(40)
    .compared(80, 0.2),
    summary!(total_ms, Unit::Millis, Lower).says("virtual length of the session"),
    summary!(reread_tokens, Unit::Tokens, Lower)
        .replayed()
        .says("tokens that were fetched again with a tool, as the product truncated them"),
    summary!(extra_requests, Unit::Count, Lower)
        .replayed()
        .says("requests beyond the recorded path"),
    summary!(provider_overflows, Unit::Count, Lower).replayed().says("prompts refused as too long"),
    summary!(user_interventions, Unit::Count, Lower)
        .replayed()
        .says("times the user had to step in"),
    // An estimate may be wrong in either direction.
    summary!(trigger_error_tokens, Unit::Tokens, Neither).signed().says(
        "mean of believed − billed tokens where a strategy decided that the context was too large",
    ),
    summary!(integrity_failures, Unit::Count, Lower)
        .replayed()
        .says("broken rules")
        .named("integrity")
        .compared(10, 1e6),
    summary!(recall_at_risk_pct, Unit::Percent, Higher)
        .named("recall at risk")
        .scored(
            44,
            "recall at\nrisk %",
            "of what later messages need and compactions had removed or changed, or the agent \
             fetched again, the share still in the context; an upper bound on use",
        )
        .compared(34, 0.2)
        .gated(25, "recall at risk", Slack::By(0.5)),
    summary!(at_risk, Unit::Count, Neither).named("at risk").scored(
        46,
        "at\nrisk",
        "messages with such needs",
    ),
    summary!(recall_pct, Unit::Percent, Higher)
        .named("recall")
        .scored(42, "recall\n%", "recall over all needs, at risk or not")
        .on_front()
        .headline()
        .judged(30)
        .compared(30, 1.0)
        .gated(20, "recall", Slack::By(0.5)),
];

type Read = fn(&RunRecord) -> Cell;

const fn row(
    column: &'static str,
    kind: ColumnKind,
    unit: Unit,
    better: Better,
    read: Read,
) -> Metric {
    Metric {
        column,
        kind,
        read,
        unit,
        signed: false,
        replayed: false,
        better,
        name: column,
        help: "",
        scored: None,
        on_front: false,
        headline: false,
        judged: None,
        compared: None,
        gated: None,
    }
}

const fn key(column: &'static str, read: Read) -> Metric {
    row(column, ColumnKind::Key, Unit::Count, Neither, read)
}

const fn word(column: &'static str, read: Read) -> Metric {
    row(column, ColumnKind::Word, Unit::Count, Neither, read)
}

const fn number(column: &'static str, unit: Unit, better: Better, read: Read) -> Metric {
    row(column, ColumnKind::Number, unit, better, read)
}

impl Metric {
    const fn signed(self) -> Metric {
        Metric { signed: true, ..self }
    }

    const fn replayed(self) -> Metric {
        Metric { replayed: true, ..self }
    }

    const fn named(self, name: &'static str) -> Metric {
        Metric { name, ..self }
    }

    const fn says(self, help: &'static str) -> Metric {
        Metric { help, ..self }
    }

    const fn scored(self, at: u16, head: &'static str, help: &'static str) -> Metric {
        Metric { scored: Some((at, head)), help, ..self }
    }

    const fn on_front(self) -> Metric {
        Metric { on_front: true, ..self }
    }

    const fn headline(self) -> Metric {
        Metric { headline: true, ..self }
    }

    const fn judged(self, at: u16) -> Metric {
        Metric { judged: Some((at, ())), ..self }
    }

    const fn compared(self, at: u16, weight: f64) -> Metric {
        Metric { compared: Some((at, weight)), ..self }
    }

    const fn gated(self, at: u16, name: &'static str, slack: Slack) -> Metric {
        Metric { gated: Some((at, Gate { name, slack })), ..self }
    }
}
