//! The table: a row per column of `summary.csv`, in their order.

use ctxbench_core::fact::FactKind;

use super::Better::{Higher, Lower, Neither};
use super::Named::{Best, Worst};
use super::When::{Always, Finished};
use super::{
    Better, Cell, Gate, Kind, Metric, Named, Ranking, Score, Slack, Stored, ToCell, Unit, When,
};
use crate::record::{Fate, RunRecord};

/// A field of the summary, whose column has its name.
macro_rules! summary {
    ($field:ident, $unit:expr, $better:expr) => {
        number(stringify!($field), $unit, $better, |r| r.summary.$field.cell())
    };
}

/// Facts of one kind that were kept.
macro_rules! kept {
    ($column:expr, $at:expr, $head:expr, $kind:ident) => {
        number($column, Unit::Percent, Higher, |r| {
            r.summary.retention_by_kind.get(&FactKind::$kind).cell()
        })
        .says("(fact, need) pairs of this kind of fact whose fact is in the context at the need")
        .detail($at, $head)
    };
}

/// Background summaries that ended in one way.
macro_rules! races {
    ($column:expr, $fate:ident) => {
        number($column, Unit::Count("summaries"), Neither, |r| {
            (r.background.iter().filter(|b| b.fate == Fate::$fate).count() as u64).cell()
        })
        .replayed()
        .says("background summaries whose race with the user ended so")
    };
}

/// Every column of `summary.csv`.
pub(crate) static METRICS: &[Metric] = &[
    key("scenario", |r| r.scenario.id.cell()),
    key("strategy", |r| r.strategy.label.cell()),
    key("model", |r| r.model.cell()),
    key("status", |r| r.status.word().cell()),
    summary!(steps_completed, Unit::Count("steps"), Higher).says("recorded replies of the main conversation that were made")
        .named("steps")
        .compared(20, 1e4)
        .bmf(Always)
        .github_benchmark(50, Always),
    summary!(steps_total, Unit::Count("steps"), Neither).says("recorded replies of the main conversation"),
    summary!(requests, Unit::Count("requests"), Neither).says("requests of every purpose, subagents too"),
    summary!(compactions, Unit::Count("compactions"), Neither).scored(
        20,
        ["compa-", "ctions"],
        "times the context was made smaller",
    ),
    summary!(summary_calls, Unit::Count("calls"), Neither).says("requests that wrote summaries, provider-side ones included"),
    summary!(input_tokens, Unit::Tokens, Lower).says("prompt tokens billed, cached ones included, of all requests")
        .named("tokens in")
        .detail(10, "input")
        .judged(20)
        .bmf(Finished)
        .github_benchmark(20, Finished),
    summary!(cache_read_tokens, Unit::Tokens, Neither).says("prompt tokens read from the prompt cache").detail(20, "cache read"),
    summary!(cache_write_tokens, Unit::Tokens, Neither).says("prompt tokens written to the prompt cache").detail(30, "cache write"),
    summary!(output_tokens, Unit::Tokens, Neither).says("reply tokens billed").detail(40, "output"),
    summary!(task_tokens, Unit::Tokens, Lower).says("input and output, if the session was finished").bmf(Finished),
    summary!(peak_context_tokens, Unit::Tokens, Lower)
        .named("peak")
        .scored(10, ["peak", "prompt"], "largest prompt, tokens")
        .compared(90, 0.2)
        .bmf(Finished)
        .github_benchmark(30, Finished),
    summary!(saved_pct, Unit::Percent, Higher)
        .signed()
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
    summary!(cost_usd, Unit::Usd, Lower)
        .named("cost")
        .scored(
            40,
            ["cost", "$"],
            "US dollars by price list, prompt cache and summary calls included",
        )
        .ranked(10, "cheapest", Best)
        .judged(10)
        .compared(40, 1.0)
        .gated(30, "cost", Slack::Percent(1.0))
        .stored(10, Stored::Always)
        .bmf(Finished)
        .github_benchmark(10, Finished),
    summary!(cost_saved_pct, Unit::Percent, Higher).signed().scored(
        50,
        ["cost", "saved%"],
        "dollars saved against the reference",
    ),
    summary!(prefix_stability, Unit::Ratio, Higher)
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
    summary!(invalidated_tokens, Unit::Tokens, Lower).replayed().says("tokens shown before that the cache nevertheless did not serve").detail(70, "invalidated"),
    summary!(cache_read_ratio, Unit::Share, Higher)
        .scored(70, ["cache", "read%"], "share of the input tokens read from the prompt cache")
        .bmf(Finished),
    // An agent that was driven did not wait.
    number("blocked_ms", Unit::Millis, Lower, |r| {
        (!r.strategy.driven).then_some(r.summary.blocked_ms).cell()
    })
    .replayed()
    .named("waited")
    .scored(80, ["waited", "s"], "seconds of waiting caused by compaction, modelled")
    .detail(50, "waited s")
    .ranked(30, "waits longest", Worst)
    .judged(40)
    .compared(80, 0.2)
    .bmf(Finished)
    .github_benchmark(40, Finished),
    summary!(total_ms, Unit::Millis, Lower).says("virtual length of the session"),
    summary!(step_p50_ms, Unit::Millis, Lower).says("modelled latency of a normal request, median"),
    summary!(step_p95_ms, Unit::Millis, Lower).says("modelled latency of a normal request, 95th percentile"),
    summary!(compaction_p50_ms, Unit::Millis, Lower).says("waiting per compaction that caused any, median, modelled"),
    summary!(compaction_p95_ms, Unit::Millis, Lower).says("waiting per compaction that caused any, 95th percentile, modelled"),
    summary!(retention_pct, Unit::Percent, Higher).says("(fact, need) pairs whose fact is in the context at the need")
        .named("pairs kept")
        .gated(20, "retention", Slack::By(0.5))
        .stored(30, Stored::WhereKnown)
        .bmf(Always)
        .github_benchmark(20, Finished),
    summary!(summary_retention_pct, Unit::Percent, Higher)
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
    kept!("retention_goal_pct", 1, "goal %", Goal),
    kept!("retention_constraint_pct", 2, "constraint %", Constraint),
    kept!("retention_artifact_pct", 3, "artifact %", Artifact),
    kept!("retention_decision_pct", 4, "decision %", Decision),
    kept!("retention_error_pct", 5, "error %", Error),
    kept!("retention_value_pct", 6, "value %", Value),
    kept!("retention_todo_pct", 7, "todo %", Todo),
    kept!("retention_superseded_pct", 8, "superseded %", Superseded),
    summary!(reread_tokens, Unit::Tokens, Lower).replayed().says("tokens of what was fetched again with a tool, as the product cut it").detail(60, "re-read"),
    summary!(extra_requests, Unit::Count("requests"), Lower).replayed().says("requests beyond the recorded path"),
    summary!(provider_overflows, Unit::Count("refusals"), Lower).replayed().says("prompts refused as too long"),
    summary!(user_interventions, Unit::Count("interventions"), Lower).replayed().says("times a person had to step in"),
    // A guess may be wrong in either direction.
    summary!(trigger_error_tokens, Unit::Tokens, Neither).signed().says("mean of believed − billed tokens where a strategy decided that the context was too \
             large"),
    summary!(integrity_failures, Unit::Count("failures"), Lower).replayed().says("broken rules")
        .named("integrity")
        .compared(10, 1e6)
        .bmf(Always)
        .github_benchmark(50, Always),
    summary!(reusable, Unit::Ratio, Higher).says("share of a prompt that the one before begins with, system part and tools left out"),
    summary!(cost_read_005_usd, Unit::Usd, Lower).says("cost with cache reads at 0.05 of the input price"),
    summary!(cost_read_0025_usd, Unit::Usd, Lower).says("cost with cache reads at 0.025 of the input price"),
    word("summariser", |r| r.summariser.cell()),
    number("steered_pct", Unit::Percent, Neither, |r| {
        r.steering.as_ref().map(|s| s.asked_with_pct).cell()
    })
    .says("retention of what the instructions of a manual compaction ask for"),
    number("unsteered_pct", Unit::Percent, Neither, |r| {
        r.steering.as_ref().map(|s| s.asked_without_pct).cell()
    })
    .says("retention of the same without these instructions"),
    summary!(stale_pct, Unit::Percent, Neither).says("pairs of which only an outdated value was in the context"),
    summary!(contradicted_pct, Unit::Percent, Neither).says("pairs at which a summary asserted something else in the fact's place"),
    summary!(drifted_pct, Unit::Percent, Neither).says("pairs whose fact was gone and stood in a summary in altered form"),
    summary!(recoverable_pct, Unit::Percent, Neither).says("of the pairs whose fact was gone, those that the product's own store could bring \
             back"),
    summary!(specificity_pct, Unit::Percent, Neither).says("of what was never said, the share that was never found"),
    summary!(goal_kept_pct, Unit::Percent, Neither).says("compactions that kept the user's first goal in the context"),
    summary!(drift_resistance, Unit::Ratio, Neither).says("1 = retention does not fall over the compactions, 0 = it falls to nothing; from five \
             on"),
    number("drift_cliff", Unit::Count("compactions"), Neither, cliff)
        .or_word(NO_CLIFF)
        .says("the first compaction, from 1, after which less than half was retained"),
    summary!(invalidated_expired_tokens, Unit::Tokens, Neither).replayed().says("of the invalidated tokens, because the lifetime of the cache was over"),
    summary!(invalidated_changed_tokens, Unit::Tokens, Neither).replayed().says("of the invalidated tokens, because something before them had changed"),
    number("background_summaries", Unit::Count("summaries"), Neither, |r| {
        (r.background.len() as u64).cell()
    })
    .replayed()
    .says("summaries written beside the conversation"),
    summary!(restore_success_pct, Unit::Percent, Neither).says("files that were brought back ÷ files that had changed, over all rewinds of files"),
    summary!(rewind_equal_pct, Unit::Percent, Neither).says("rewinds of the conversation after which the context is what it was at that message"),
    races!("background_in_time", InTime),
    races!("background_late_waited", LateWaited),
    races!("background_late_proceeded", LateProceeded),
    races!("background_cancelled", Cancelled),
    races!("background_stale", Stale),
    races!("background_failed", Failed),
    summary!(needs_kept_pct, Unit::Percent, Higher)
        .named("needs kept")
        .scored(
            90,
            ["needs", "kept%"],
            "needs whose fact, shown six replies before or earlier, is still in the context; an \
             upper bound on use",
        )
        .ranked(20, "keeps most facts", Best)
        .judged(30)
        .compared(30, 1.0),
    summary!(exposed_pct, Unit::Percent, Neither).says("needs before which a request had removed or changed what showed the fact last")
        .named("exposed")
        .detail(80, "exposed %")
        .compared(32, 0.1),
    summary!(kept_exposed_pct, Unit::Percent, Higher).says("of the exposed needs, those whose fact is in the context all the same")
        .named("exposed kept")
        .detail(90, "of these kept %")
        .compared(34, 0.2),
    word("trust", |r| r.trust().cell()),
    summary!(cost_estimate_usd, Unit::Usd, Neither).says("of the row `as-recorded`: dollars with the visible output where the counted one is a \
             stub"),
    // A summary may be larger than what it replaces.
    number("freed_pct", Unit::Percent, Neither, |r| freed_pct(r).cell())
        .signed()
        .says("share of the context that compactions took out"),
    summary!(across_pct, Unit::Percent, Higher).says("needs whose fact was said last in an earlier session of the project and is in the context \
             all the same")
        .named("kept across sessions")
        .detail(95, "kept across %")
        .compared(36, 0.5),
    number("summary_tokens", Unit::Tokens, Neither, |r| {
        r.summary_calls().tokens.cell()
    })
    .says("input and output of the requests that wrote summaries, the provider's own included"),
    number("summary_usd", Unit::Usd, Neither, |r| {
        let unbilled = r.compactions.iter().any(|c| c.cost_usd.is_none());
        (!unbilled).then_some(r.summary_calls().cost_usd).cell()
    })
    .says("what these cost"),
];

type Read = fn(&RunRecord) -> Cell;

const fn row(column: &'static str, kind: Kind, unit: Unit, better: Better, read: Read) -> Metric {
    Metric {
        column,
        kind,
        read,
        unit,
        signed: false,
        replayed: false,
        or_word: None,
        better,
        name: column,
        help: "",
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

impl Metric {
    const fn signed(self) -> Metric {
        Metric { signed: true, ..self }
    }

    const fn replayed(self) -> Metric {
        Metric { replayed: true, ..self }
    }

    const fn or_word(self, word: &'static str) -> Metric {
        Metric { or_word: Some(word), ..self }
    }

    const fn named(self, name: &'static str) -> Metric {
        Metric { name, ..self }
    }

    const fn says(self, help: &'static str) -> Metric {
        Metric { help, ..self }
    }

    const fn scored(self, at: u16, head: [&'static str; 2], help: &'static str) -> Metric {
        Metric { scored: Some((at, Score { head })), help, ..self }
    }

    const fn detail(self, at: u16, head: &'static str) -> Metric {
        Metric { detail: Some((at, head)), ..self }
    }

    const fn ranked(self, at: u16, what: &'static str, named: Named) -> Metric {
        Metric { ranked: Some((at, Ranking { what, named })), ..self }
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

/// Share of the context that compactions took out, all together.
fn freed_pct(r: &RunRecord) -> Option<f64> {
    let (before, after) = r.sizes_at_compactions();
    (before > 0).then(|| 100.0 * (1.0 - after as f64 / before as f64))
}

const NO_CLIFF: &str = "never";

/// [`NO_CLIFF`] when there is a curve that stays above the cliff.
fn cliff(r: &RunRecord) -> Cell {
    match r.summary.drift_cliff {
        None if r.has_curve() => NO_CLIFF.cell(),
        k => k.cell(),
    }
}
