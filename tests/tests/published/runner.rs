//! Compaction by the tool runner of Anthropic's SDK.

use ctxbench_core::request::Purpose;
use ctxbench_mock::summarise::Summariser;
use ctxbench_replay::Options;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::Scenario;
use serde::Deserialize;

use super::sessions::{Talk, words};
use super::{Span, saved, single};
use crate::common::replayed::{MODEL, as_told, run, run_with, samples};

/// Assumed tokens of the tool definitions. With the user's message they are the first prompt.
const TOOLS: u64 = 1_240;

/// Adds the steps by which the prompt grows from each turn to the next. The caller adds the last
/// turn.
fn steps(talk: Talk, turns: &[(u64, u64)]) -> Talk {
    turns.windows(2).fold(talk, |talk, pair| {
        let [(before, reply), (after, _)] = [pair[0], pair[1]];
        talk.step(reply, &[after - before - reply])
    })
}

/// Input and output of each printed turn.
#[derive(Deserialize)]
struct Printed {
    plain: Vec<(u64, u64)>,
    compacted: [Vec<(u64, u64)>; 3],
}

impl Printed {
    fn plain(&self) -> Scenario {
        let talk = Talk::new("tickets").tools(TOOLS).user(self.plain[0].0 - TOOLS);
        steps(talk, &self.plain).answer(self.plain[36].1).scenario()
    }

    /// Builds the session with compaction. A compaction drops the reply that crossed the threshold,
    /// and the first turn after it requests that reply again.
    fn compacted(&self) -> Scenario {
        let talk = Talk::new("tickets-compacted").tools(TOOLS);
        let mut talk = talk.user(self.compacted[0][0].0 - TOOLS);
        let mut again = None;
        for part in &self.compacted {
            let mut turns = part.clone();
            turns[0].1 = again.unwrap_or(turns[0].1);
            again = turns.last().map(|t| t.1);
            talk = steps(talk, &turns);
        }
        talk.answer(self.compacted[2][1].1).scenario()
    }
}

pub fn tickets() -> Vec<Span> {
    let printed: Printed =
        toml::from_str(include_str!("../../data/published/tickets.toml")).unwrap();
    let reference = run(&printed.plain(), "reference");
    // A prompt after a compaction consists of the tools and the summary.
    let summaries = [1, 2].map(|i| words(i, printed.compacted[i][0].0 - TOOLS)).to_vec();
    let options =
        Options { summariser: Summariser::Again(summaries.into(), Box::default()), ..as_told() };
    let strategy = "anthropic-sdk:threshold=5000,max_tokens=4096";
    let compacted = run_with(MODEL, &printed.compacted(), strategy, &options);
    let turns = |r: &RunRecord| -> Vec<u64> { samples(r).iter().map(|q| q.input_tokens).collect() };
    let (with, without) = (turns(&compacted), turns(&reference));
    let sum = |t: &[u64]| t.iter().sum::<u64>() as f64;
    let first = compacted.requests.iter().position(|q| q.purpose == Purpose::Summary);
    vec![
        single(sum(&without)),
        single(with.len() as f64),
        single(compacted.summary.compactions as f64),
        single(first.unwrap_or_default() as f64),
        single(sum(&with)),
        single(saved(compacted.summary.input_tokens as f64, sum(&without))),
    ]
}
