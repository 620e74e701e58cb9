//! Cost of each model and each agent of a run.

use std::sync::Arc;

use crate::fmt;
use crate::group::grouped;
use crate::record::{RequestRecord, RequestStatus, RunRecord};
use crate::sheet::ByBlock;
use ctxbench_core::request::Purpose;

pub(crate) const SHEET: ByBlock = ByBlock {
    title: "Cost by model and agent",
    note: "Rows with several models or subagents; costs.csv has all. In: with cached and written. \
        × main: tokens of all windows ÷ those of the main one.",
    head: || {
        vec![
            "model", "who", "calls", "in", "cached", "written", "out", "cost $", "share %",
            "× main",
        ]
    },
    told: |_| None,
    rows,
};

/// Requests of one agent to one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ModelSpend {
    /// Subagent; `None` for the main conversation.
    pub(crate) agent: Option<Arc<str>>,
    pub(crate) model: Arc<str>,
    pub(crate) requests: u64,
    /// Number of refused requests.
    pub(crate) failed: u64,
    /// Number of requests for summaries.
    pub(crate) summaries: u64,
    pub(crate) input: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) output: u64,
    pub(crate) cost_usd: f64,
    /// Share of the cost of the run, per cent; `None` if the run cost nothing.
    pub(crate) share_pct: Option<f64>,
}

impl ModelSpend {
    fn add(&mut self, q: &RequestRecord) {
        self.requests += 1;
        self.failed += u64::from(q.status != RequestStatus::Ok);
        self.summaries += u64::from(q.purpose == Purpose::Summary);
        self.input += q.input_tokens;
        self.cache_read += q.cache_read;
        self.cache_write += q.cache_write;
        self.output += q.output_tokens;
        self.cost_usd += q.cost_usd;
    }

    /// Input tokens that were neither read from the cache nor written to it.
    pub(crate) fn uncached(&self) -> u64 {
        self.input.saturating_sub(self.cache_read + self.cache_write)
    }
}

/// One part per agent and model, in the order of their first requests.
pub(crate) fn parts(run: &RunRecord) -> Vec<ModelSpend> {
    by(run, |q| q.agent.clone())
}

fn by(run: &RunRecord, agent: impl Fn(&RequestRecord) -> Option<Arc<str>>) -> Vec<ModelSpend> {
    let sum = |requests: Vec<&RequestRecord>| {
        let model = requests[0].model.clone();
        let mut part = ModelSpend { agent: agent(requests[0]), model, ..ModelSpend::default() };
        requests.into_iter().for_each(|q| part.add(q));
        part
    };
    let groups = grouped(&run.requests, |q| (agent(q), q.model.clone()));
    let mut parts: Vec<ModelSpend> = groups.into_iter().map(sum).collect();
    let all: f64 = parts.iter().map(|p| p.cost_usd).sum();
    for p in &mut parts {
        p.share_pct = (all > 0.0).then(|| 100.0 * p.cost_usd / all);
    }
    parts
}

/// Rows of the table; subagents are combined by model.
pub(crate) fn rows(run: &RunRecord) -> Vec<Vec<String>> {
    if let Some(digest) = &run.digest {
        return digest.spend.clone();
    }
    let agents: std::collections::BTreeSet<&str> =
        run.requests.iter().filter_map(|q| q.agent.as_deref()).collect();
    let together: Arc<str> = fmt::pluralize(agents.len(), "subagent").into();
    let parts = by(run, |q| q.agent.as_ref().map(|_| together.clone()));
    if parts.len() < 2 {
        return vec![];
    }
    let tokens = |p: &ModelSpend| p.input + p.output;
    let all: u64 = parts.iter().map(tokens).sum();
    let main: u64 = parts.iter().filter(|p| p.agent.is_none()).map(tokens).sum();
    let times = match main {
        0 => "n/a".to_string(),
        _ => format!("{:.1}", all as f64 / main as f64),
    };
    let tokens = |n: u64| fmt::tokens(n as f64);
    parts
        .iter()
        .map(|p| {
            vec![
                p.model.to_string(),
                p.agent.as_deref().unwrap_or("main").to_string(),
                p.requests.to_string(),
                tokens(p.input),
                tokens(p.cache_read),
                tokens(p.cache_write),
                tokens(p.output),
                fmt::usd(p.cost_usd),
                fmt::known(p.share_pct, fmt::pct),
                p.agent.as_ref().map_or(String::new(), |_| times.clone()),
            ]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// Two calls of a large model at 1 USD each, a summary of a small one at 0.5, and two subagents
    /// at 0.75 each.
    fn run() -> RunRecord {
        let mut run = testing::run("s", "aider", 1);
        let first = run.requests[0].clone();
        let ask = |agent: Option<&str>, model: &str, purpose, usd| RequestRecord {
            agent: agent.map(Into::into),
            model: model.into(),
            purpose,
            input_tokens: 1_000,
            cache_read: 600,
            cache_write: 300,
            output_tokens: 50,
            cost_usd: usd,
            ..first.clone()
        };
        run.requests = vec![
            ask(None, "large", Purpose::Sample, 1.0),
            ask(None, "small", Purpose::Summary, 0.5),
            ask(None, "large", Purpose::Sample, 1.0),
            ask(Some("x"), "large", Purpose::Sample, 0.75),
            ask(Some("y"), "large", Purpose::Sample, 0.75),
        ];
        run
    }

    #[test]
    fn shares_by_hand() {
        let parts = parts(&run());
        let told: Vec<_> = parts
            .iter()
            .map(|p| (p.agent.as_deref(), &*p.model, p.requests, p.summaries, p.cost_usd))
            .collect();
        assert_eq!(
            told,
            [
                (None, "large", 2, 0, 2.0),
                (None, "small", 1, 1, 0.5),
                (Some("x"), "large", 1, 0, 0.75),
                (Some("y"), "large", 1, 0, 0.75)
            ]
        );
        assert_eq!((parts[0].input, parts[0].uncached(), parts[0].output), (2_000, 200, 100));
        assert_eq!(parts[0].share_pct, Some(50.0));
        let rows = rows(&run());
        assert_eq!(rows.len(), 3, "subagents stand together");
        assert_eq!(rows[2][..3], ["large", "2 subagents", "2"]);
        // Five windows of 1,050 tokens, of which the main conversation has three.
        assert_eq!(rows[2][8..], ["37.5", "1.7"]);
        assert_eq!(rows[0][9], "", "one figure per strategy");
    }

    #[test]
    fn one_model_without_subagents_needs_no_table_and_stands_in_the_file() {
        let mut run = run();
        run.requests.truncate(1);
        assert!(rows(&run).is_empty());
        run.requests[0].cost_usd = 0.0;
        let text = testing::csv_text("costs.csv", &testing::of(vec![run]));
        let line = text.lines().nth(1).unwrap();
        assert!(line.ends_with("n/a,large,1,0,0,1000,100,600,300,50,0,n/a,n/a"), "{line}");
    }
}
