//! The columns that people compare strategies by; tables, Markdown and HTML share them.

use ctxbench_core::record::{RunRecord, Status};

use crate::direction::{Better, better};
use crate::{fmt, view};

/// One figure of a row.
pub(crate) struct Score {
    /// Two lines of heading.
    pub(crate) head: [&'static str; 2],
    /// What it means, for a reader who meets it for the first time.
    pub(crate) help: &'static str,
    /// Column of `summary.csv`, which decides the direction.
    pub(crate) column: &'static str,
    value: fn(&RunRecord) -> Option<f64>,
    show: fn(f64) -> String,
}

impl Score {
    /// The number, `None` = not applicable or unknown.
    pub(crate) fn value(&self, r: &RunRecord) -> Option<f64> {
        if r.status == Status::NotApplicable { None } else { (self.value)(r).filter(|x| x.is_finite()) }
    }

    /// A number of this kind as text.
    pub(crate) fn show(&self, x: f64) -> String {
        (self.show)(x)
    }

    /// The number as text, `n/a` when there is none.
    pub(crate) fn text(&self, r: &RunRecord) -> String {
        self.value(r).map_or("n/a".into(), self.show)
    }

    /// The heading in one line.
    pub(crate) fn title(&self) -> String {
        match self.head[0].strip_suffix('-') {
            Some(part) => format!("{part}{}", self.head[1]),
            None => self.head.join(" "),
        }
    }

    /// The text of the best value among the rows in competition; `None` when fewer than two compete or all are alike.
    pub(crate) fn best(&self, runs: &[&RunRecord]) -> Option<String> {
        let mut values: Vec<f64> = runs.iter().filter(|r| view::in_competition(r)).filter_map(|r| self.value(r)).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        if (self.show)(low) == (self.show)(high) {
            return None;
        }
        match better(self.column) {
            Better::Lower => Some((self.show)(low)),
            Better::Higher => Some((self.show)(high)),
            Better::Neither => None,
        }
    }
}

/// The figures in reading order.
pub(crate) const SCORES: [Score; 10] = [
    Score {
        head: ["peak", "prompt"],
        help: "largest prompt, tokens",
        column: "peak_context_tokens",
        value: |r| Some(r.summary.peak_context_tokens as f64),
        show: fmt::tokens,
    },
    Score {
        head: ["compa-", "ctions"],
        help: "times the context was made smaller",
        column: "compactions",
        value: |r| Some(r.summary.compactions as f64),
        show: fmt::count,
    },
    Score {
        head: ["tokens", "saved%"],
        help: "input tokens saved against the reference, summary calls and re-reads included",
        column: "saved_pct",
        value: |r| r.summary.saved_pct,
        show: fmt::pct,
    },
    Score {
        head: ["cost", "$"],
        help: "US dollars by price list, prompt cache and summary calls included",
        column: "cost_usd",
        value: |r| Some(r.summary.cost_usd),
        show: fmt::usd,
    },
    Score {
        head: ["cost", "saved%"],
        help: "dollars saved against the reference",
        column: "cost_saved_pct",
        value: |r| r.summary.cost_saved_pct,
        show: fmt::pct,
    },
    Score {
        head: ["prefix", "stable"],
        help: "share of each prompt that the next one repeats from its beginning; 1 = only appended to",
        column: "prefix_stability",
        value: |r| r.summary.prefix_stability,
        show: fmt::ratio,
    },
    Score {
        head: ["cache", "read%"],
        help: "share of the input tokens read from the prompt cache",
        column: "cache_read_ratio",
        value: |r| r.summary.cache_read_ratio.map(|x| x * 100.0),
        show: fmt::pct,
    },
    Score {
        head: ["waited", "s"],
        help: "seconds of waiting caused by compaction, modelled",
        column: "blocked_ms",
        value: |r| Some(r.summary.blocked_ms as f64 / 1000.0),
        show: fmt::seconds,
    },
    Score {
        head: ["facts", "kept%"],
        help: "facts still in the context when they were needed; an upper bound on use",
        column: "retention_pct",
        value: |r| r.summary.retention_pct,
        show: fmt::pct,
    },
    Score {
        head: ["in sum-", "mary%"],
        help: "of the facts that compactions took out, those that the summary carries",
        column: "summary_retention_pct",
        value: |r| r.summary.summary_retention_pct,
        show: fmt::pct,
    },
];
