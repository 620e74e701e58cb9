//! A summarisation of Aider's finished history in progress (docs/sources/aider.md §1.1): it returns
//! the next text to summarise and takes the answer.

use ctxbench_core::block::BlockKind;
use ctxbench_core::compaction::Transcript;

use super::rules::{ChatLine, SummaryPlan, SummaryRules, transcript};

/// The current history is `summary? + messages[from..]`.
#[derive(Clone, Debug)]
pub struct Job {
    messages: Vec<ChatLine>,
    rules: SummaryRules,
    summary: Option<ChatLine>,
    from: usize,
    next_from: usize,
    /// True if the current step covers everything, so that its answer is used in any case.
    whole: bool,
    depth: u32,
}

impl Job {
    /// Creates a job for a finished history.
    pub fn new(messages: Vec<ChatLine>, rules: SummaryRules) -> Self {
        Job { messages, rules, summary: None, from: 0, next_from: 0, whole: false, depth: 0 }
    }

    /// Plans the current level. Returns the text to summarise; `None` = finished.
    pub fn start(&mut self) -> Option<Transcript> {
        let list = self.list();
        let sizes: Vec<u64> = list.iter().map(self.rules.count.message).collect();
        let assistant: Vec<bool> = list.iter().map(|m| m.role == "assistant").collect();
        let plan = self.rules.plan(&sizes, &assistant, self.depth);
        self.whole = plan == SummaryPlan::All;
        let (keep, tail) = match plan {
            SummaryPlan::Keep => return None,
            SummaryPlan::All => (list.len(), list.len()),
            SummaryPlan::Split { keep, tail } => (keep, tail),
        };
        self.next_from = self.from + tail - usize::from(self.summary.is_some()).min(tail);
        Some(transcript(&list[..keep]))
    }

    /// Takes the answer to the last text (docs/sources/aider.md §1.1, steps 7-8). Returns the next
    /// text; `None` = finished.
    pub fn answer(&mut self, text: &str) -> Option<Transcript> {
        let text = format!("{}{text}", self.rules.prefix);
        let summary = ChatLine::new("user", Transcript::quoted(BlockKind::Summary, text));
        let tail = self.messages[self.next_from..].iter().map(self.rules.count.message);
        let tokens = (self.rules.count.list)(&summary) + tail.sum::<u64>();
        self.summary = Some(summary);
        self.from = self.next_from;
        if self.whole || self.rules.fits(tokens) {
            return None;
        }
        self.depth += 1;
        self.start()
    }

    /// Returns the newest summary with its prefix, or `None` if nothing was summarised.
    pub fn summary(&self) -> Option<&ChatLine> {
        self.summary.as_ref()
    }

    /// Returns the index of the first message that stays verbatim after the summary.
    pub fn tail(&self) -> usize {
        self.from
    }

    /// Returns the current history.
    fn list(&self) -> Vec<ChatLine> {
        self.summary.iter().chain(&self.messages[self.from..]).cloned().collect()
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
pub(crate) mod tests;
