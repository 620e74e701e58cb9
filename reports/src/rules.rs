//! Rules of a session, and which of them each strategy keeps in the context.

use serde::Serialize;

use crate::table::wrap;
use crate::{fmt, grid};

/// A sentence with a demand on the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    pub text: String,
    /// Path of the memory file, or id of the user's message.
    pub from: String,
    pub is_memory: bool,
}

/// Where a rule is at a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleState {
    Gone,
    /// A summary or a reply paraphrases it.
    Reworded,
    Kept,
}

/// A request, with the state of each rule that an earlier request or this one shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleRequest {
    /// Number of compactions before it.
    pub compactions: u64,
    /// State of each rule; `None` before it was first shown.
    pub states: Vec<Option<RuleState>>,
}

impl RuleRequest {
    fn count(&self, state: RuleState) -> u64 {
        self.states.iter().filter(|s| **s == Some(state)).count() as u64
    }
}

/// Requests of the main conversation under one strategy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleRow {
    pub strategy: String,
    pub requests: Vec<RuleRequest>,
    /// Reason why the run ended early.
    pub note: Option<String>,
}

impl RuleRow {
    /// Returns the share of the pairs of a request and a rule that show the rule, in per cent, and of
    /// those that show it verbatim.
    pub fn shares(&self) -> Option<(f64, f64)> {
        let all: Vec<RuleState> =
            self.requests.iter().flat_map(|r| r.states.iter().flatten().copied()).collect();
        let share =
            |least| 100.0 * all.iter().filter(|s| **s >= least).count() as f64 / all.len() as f64;
        (!all.is_empty()).then(|| (share(RuleState::Reworded), share(RuleState::Kept)))
    }

    /// Returns the numbers of the first requests after a compaction, from 1.
    fn after_compactions(&self) -> impl Iterator<Item = (u64, &RuleRequest)> {
        let mut before = 0;
        (1..).zip(&self.requests).filter(move |(_, r)| {
            let is_new = r.compactions > before;
            before = r.compactions;
            is_new
        })
    }

    /// Returns the number of the request from which a rule is gone to the end, from 1.
    fn gone_from(&self, rule: usize) -> Option<usize> {
        let is_gone = |r: &&RuleRequest| r.states[rule] == Some(RuleState::Gone);
        let gone = self.requests.iter().rev().take_while(is_gone).count();
        (gone > 0).then(|| self.requests.len() - gone + 1)
    }
}

/// Rules of a session with a row for each strategy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleSurvival {
    pub session: String,
    pub title: String,
    pub rules: Vec<Rule>,
    pub rows: Vec<RuleRow>,
}

const WIDTH: usize = 80;

/// Largest number of compactions, and of lost rules, in the terminal.
const COMPACTIONS: usize = 4;
const LOST: usize = 6;

const NO_RULES: &str = "A rule is a sentence with a demand, such as “Never edit generated files”, in a \
    memory file or a message of the user.";

impl RuleSurvival {
    /// Formats a table of 80 characters, and the rules that the first row with a compaction lost.
    pub fn to_text(&self) -> String {
        let of_memory = self.rules.iter().filter(|r| r.is_memory).count();
        let heading = format!(
            "{}: {}: {}, {of_memory} of them in memory files.",
            fmt::one_line(&self.session),
            fmt::elide(&fmt::one_line(&self.title), 40),
            fmt::pluralize(self.rules.len(), "rule")
        );
        let mut lines = wrap(&heading, WIDTH, "  ");
        if self.rules.is_empty() {
            lines.extend(wrap(NO_RULES, WIDTH, "  "));
            return lines.join("\n") + "\n";
        }
        let row = |row: &RuleRow| {
            let last = row.requests.last();
            let count = |state| last.map_or(String::new(), |r| r.count(state).to_string());
            let pct = |of: fn((f64, f64)) -> f64| fmt::known(row.shares().map(of), fmt::pct);
            vec![
                fmt::elide(&row.strategy, 26),
                row.requests.len().to_string(),
                last.map_or(0, |r| r.compactions).to_string(),
                pct(|(shown, _)| shown),
                pct(|(_, kept)| kept),
                count(RuleState::Kept),
                count(RuleState::Reworded),
                count(RuleState::Gone),
            ]
        };
        let head =
            ["", "requests", "compacted", "shown %", "verbatim %", "kept", "reworded", "gone"];
        let rows = self.rows.iter().map(row);
        let head = head.map(String::from).to_vec();
        lines.extend(grid::draw(head, rows, |i| i > 0, |i| (0, u16::from(i < 7))));
        let text = "shown, verbatim: of all pairs of a request and a rule stated before it. kept, \
                    reworded (by a summary or a reply), gone: at the last request.";
        lines.extend(wrap(text, WIDTH, "  "));
        let compacted = |r: &&RuleRow| r.requests.last().is_some_and(|r| r.compactions > 0);
        if let Some(row) = self.rows.iter().find(compacted) {
            lines.push(String::new());
            lines.extend(self.lost(row).iter().flat_map(|text| wrap(text, WIDTH, "    ")));
        }
        let notes =
            self.rows.iter().filter_map(|r| Some(format!("{}: {}", r.strategy, r.note.as_ref()?)));
        lines.extend(notes.flat_map(|text| wrap(&text, WIDTH, "  ")));
        lines.join("\n") + "\n"
    }

    fn lost(&self, row: &RuleRow) -> Vec<String> {
        let after = |(request, r): (u64, &RuleRequest)| {
            format!(
                "  after compaction {}, request {request}: {} kept, {} reworded, {} gone",
                r.compactions,
                r.count(RuleState::Kept),
                r.count(RuleState::Reworded),
                r.count(RuleState::Gone)
            )
        };
        let mut all = vec![format!("{}:", row.strategy)];
        all.extend(row.after_compactions().take(COMPACTIONS).map(after));
        let lost: Vec<(usize, &Rule)> = (0..)
            .zip(&self.rules)
            .filter_map(|(i, rule)| Some((row.gone_from(i)?, rule)))
            .collect();
        all.extend(lost.iter().take(LOST).map(|(request, rule)| {
            let text = fmt::elide(&fmt::one_line(&rule.text), 100);
            format!("  gone from request {request}: “{text}” ({})", fmt::one_line(&rule.from))
        }));
        if lost.len() > LOST {
            all.push(format!("  {} more with --json", lost.len() - LOST));
        }
        all
    }
}
