//! Cost of the next message of a session: in the same context, after a compaction, or in a new
//! session.

use serde::Serialize;

use crate::table::wrap;
use crate::{fmt, grid};

/// Cost of one continuation, with a warm or a cold cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct NextCost {
    /// Cost of the compaction or of the handoff, USD.
    pub before_usd: f64,
    /// Cost of the first call for the next message, USD.
    pub call_usd: f64,
    /// Prompt of that call, tokens.
    pub prompt_tokens: u64,
    /// Cost of reading that prompt from the cache, which every later call pays, USD.
    pub later_call_usd: f64,
    /// Number of messages from which it costs less than to continue. `None` = it never does.
    pub pays_from: Option<u64>,
}

impl NextCost {
    /// Returns the cost of some calls without the growth by each call, which is the same everywhere,
    /// USD.
    pub fn of_calls(&self, calls: f64) -> f64 {
        self.before_usd + self.call_usd + (calls - 1.0).max(0.0) * self.later_call_usd
    }

    /// Sets the number of messages from which it costs less than to continue.
    pub fn compare(&mut self, continued: &NextCost, calls_per_message: f64) {
        let extra = self.before_usd + self.call_usd - continued.call_usd;
        let saved = continued.later_call_usd - self.later_call_usd;
        let calls = if extra <= 0.0 { 1.0 } else { 1.0 + (extra / saved).ceil() };
        let pays = extra <= 0.0 || saved > 0.0;
        self.pays_from = pays.then(|| (calls / calls_per_message.max(1.0)).ceil() as u64);
    }
}

/// A continuation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NextRow {
    pub label: String,
    pub warm: NextCost,
    pub cold: NextCost,
}

/// Continuations of a session at a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NextCosts {
    pub session: String,
    pub title: String,
    pub model: String,
    /// The point, such as `turn:3`; empty for the end.
    pub at: String,
    /// Mean number of calls per message of the user until then.
    pub calls_per_message: f64,
    /// Idle time after which the cache is cold, minutes.
    pub cold_minutes: u64,
    /// The first row continues in the same context.
    pub rows: Vec<NextRow>,
    /// Strategies without a row, with the reason.
    pub notes: Vec<String>,
}

const WIDTH: usize = 80;
const LABEL: usize = 30;

/// Number of messages that the recommendation compares, in addition to one.
const MANY: f64 = 10.0;

impl NextCosts {
    /// Formats a table of 80 characters with a recommendation.
    pub fn to_text(&self) -> String {
        let at = if self.at.is_empty() { "its end" } else { &self.at };
        let heading = format!(
            "{}: {} ({}) at {at}: {:.1} calls per message so far.",
            fmt::one_line(&self.session),
            fmt::elide(&fmt::one_line(&self.title), 40),
            self.model,
            self.calls_per_message
        );
        let mut lines = wrap(&heading, WIDTH, "  ");
        let cost = |c: &NextCost, first: bool| {
            let pays = match c.pays_from {
                _ if first => String::new(),
                None => "never".into(),
                Some(1) => "at once".into(),
                Some(n) => format!("{n}"),
            };
            let before = if c.before_usd == 0.0 { String::new() } else { usd(c.before_usd) };
            [before, usd(c.call_usd), pays]
        };
        let row = |(i, r): (usize, &NextRow)| {
            let label = fmt::elide(&r.label, LABEL);
            let tokens = fmt::tokens(r.warm.prompt_tokens as f64);
            let costs = [cost(&r.warm, i == 0), cost(&r.cold, i == 0)].concat();
            [vec![label, tokens], costs].concat()
        };
        let head = ["", "prompt", "now $", "next $", "pays", "now $", "next $", "pays"];
        let title = format!("{:46}warm cache{:14}cold cache", "", "");
        lines.push(title);
        let rows = self.rows.iter().enumerate().map(row);
        let head = head.map(String::from).to_vec();
        lines.extend(grid::draw(head, rows, |i| i > 0, |i| (0, u16::from(i < 7))));
        let best = |calls: f64, of: fn(&NextRow) -> &NextCost| {
            let cost = |r: &&NextRow| of(r).of_calls(calls);
            let best = self.rows.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
            best.map_or(String::new(), |r| r.label.clone())
        };
        let many = MANY * self.calls_per_message.max(1.0);
        let texts = [
            format!(
                "Cheapest for one call: {} (warm), {} (cold). For {MANY} messages: {} (warm), {} \
                 (cold).",
                best(1.0, |r| &r.warm),
                best(1.0, |r| &r.cold),
                best(many, |r| &r.warm),
                best(many, |r| &r.cold)
            ),
            format!(
                "now: the compaction or the handoff; next: the first call after it; pays: from \
                 which message on it costs less than to continue. Cold: idle for {} minutes.",
                self.cold_minutes
            ),
            "Dollars do not show what is forgotten: `ctxbench compact SESSION --at 100%` does."
                .to_string(),
        ];
        lines.extend(texts.iter().flat_map(|text| wrap(text, WIDTH, "  ")));
        lines.extend(self.notes.iter().take(3).flat_map(|note| wrap(note, WIDTH, "  ")));
        lines.join("\n") + "\n"
    }
}

fn usd(x: f64) -> String {
    format!("{x:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(before_usd: f64, call_usd: f64, later_call_usd: f64) -> NextCost {
        NextCost { before_usd, call_usd, later_call_usd, ..NextCost::default() }
    }

    #[test]
    fn break_even_counts_messages_of_several_calls() {
        let continued = cost(0.0, 0.10, 0.09);
        let pays = |mut c: NextCost, calls: f64| {
            c.compare(&continued, calls);
            c.pays_from
        };
        // 0.25 more, then 0.06 less per call: after five more calls.
        assert_eq!(pays(cost(0.20, 0.15, 0.03), 1.0), Some(6));
        assert_eq!(pays(cost(0.20, 0.15, 0.03), 4.0), Some(2));
        assert_eq!(pays(cost(0.02, 0.08, 0.03), 1.0), Some(1));
        assert_eq!(pays(cost(0.20, 0.15, 0.09), 1.0), None);
        // 0.20 + 0.15 + 5 · 0.03 is less than 0.10 + 5 · 0.09, and with four calls more is not.
        assert!(cost(0.20, 0.15, 0.03).of_calls(6.0) < continued.of_calls(6.0));
        assert!(cost(0.20, 0.15, 0.03).of_calls(5.0) > continued.of_calls(5.0));
    }
}
