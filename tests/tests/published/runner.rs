//! Compaction by the tool runner of Anthropic's SDK.

use ctxbench_core::request::Purpose;
use ctxbench_mock::summarise::{Summariser, SummaryScript};
use ctxbench_replay::Options;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::Scenario;

use super::sessions::{Talk, words};
use super::{Figure, Measure, Unit, Verdict, saved, single};
use crate::common::replayed::{MODEL, as_told, run, run_with};

pub const TICKETS: Figure = Figure {
    by: "Anthropic, Claude cookbook: automatic context compaction",
    link: "https://platform.claude.com/cookbook/tool-use-automatic-context-compaction",
    claim: "five support tickets take 204,416 input tokens in 37 turns; with the tool runner's \
            compaction 82,171 in 26 turns and two compactions, 58.6 % less (output included).",
    conditions: "claude-sonnet-4-6, Python SDK, `context_token_threshold` 5,000. Input and output \
                 of every turn are printed; the summaries' own requests are not among them.",
    tried: "two sessions with the printed turn sizes, one for each run, the second with \
            summaries of the size that the printed prompts after them show: \
            `anthropic-sdk:threshold=5000,max_tokens=4096`. So sizes of messages are given; compactions, dropped messages and repeated requests are ours.",
    trial: tickets,
};

/// Assumed tokens of the tool definitions. With the user's message they are the first prompt.
const TOOLS: u64 = 1_240;

/// Input and output of each printed turn without compaction.
const PLAIN: [(u64, u64); 37] = [
    (1_537, 57),
    (1_760, 102),
    (1_905, 88),
    (2_237, 84),
    (2_385, 89),
    (2_537, 301),
    (2_888, 67),
    (3_079, 56),
    (3_316, 91),
    (3_450, 84),
    (3_777, 84),
    (3_925, 89),
    (4_077, 349),
    (4_476, 67),
    (4_668, 56),
    (4_894, 91),
    (5_028, 84),
    (5_333, 84),
    (5_481, 89),
    (5_633, 334),
    (6_017, 67),
    (6_209, 56),
    (6_435, 91),
    (6_569, 84),
    (6_896, 84),
    (7_044, 89),
    (7_196, 372),
    (7_618, 67),
    (7_808, 56),
    (8_040, 96),
    (8_179, 85),
    (8_508, 84),
    (8_656, 89),
    (8_808, 332),
    (9_190, 67),
    (9_382, 60),
    (9_475, 297),
];

/// Input and output of each printed turn with compaction: up to the first one, up to the second
/// one, and to the end.
const COMPACTED: [&[(u64, u64)]; 3] = [
    &[
        (1_537, 57),
        (1_755, 108),
        (1_906, 88),
        (2_216, 84),
        (2_364, 89),
        (2_516, 332),
        (2_898, 67),
        (3_090, 56),
        (3_325, 97),
        (3_465, 90),
        (3_801, 84),
        (3_949, 89),
        (4_101, 368),
        (4_519, 67),
        (4_711, 57),
        (4_934, 97),
    ],
    &[
        (1_774, 94),
        (1_906, 95),
        (2_365, 431),
        (3_164, 60),
        (3_383, 160),
        (3_872, 447),
        (4_687, 64),
        (4_914, 160),
    ],
    &[(2_077, 496), (2_942, 438)],
];

/// Adds the steps by which the prompt grows from each turn to the next. The caller adds the last
/// turn.
fn steps(talk: Talk, turns: &[(u64, u64)]) -> Talk {
    turns.windows(2).fold(talk, |talk, pair| {
        let [(before, reply), (after, _)] = [pair[0], pair[1]];
        talk.step(reply, &[after - before - reply])
    })
}

fn plain() -> Scenario {
    let talk = Talk::new("tickets").tools(TOOLS).user(PLAIN[0].0 - TOOLS);
    steps(talk, &PLAIN).answer(PLAIN[36].1).scenario()
}

/// Builds the session with compaction. A compaction drops the reply that crossed the threshold, and
/// the first turn after it requests that reply again.
fn compacted() -> Scenario {
    let mut talk = Talk::new("tickets-compacted").tools(TOOLS).user(PLAIN[0].0 - TOOLS);
    let mut again = None;
    for part in COMPACTED {
        let mut turns = part.to_vec();
        turns[0].1 = again.unwrap_or(turns[0].1);
        again = turns.last().map(|t| t.1);
        talk = steps(talk, &turns);
    }
    talk.answer(COMPACTED[2][1].1).scenario()
}

fn tickets() -> Vec<Measure> {
    let reference = run(&plain(), "reference");
    // A prompt after a compaction consists of the tools and the summary.
    let summaries = [1, 2].map(|i: usize| words(i, COMPACTED[i][0].0 - TOOLS)).to_vec();
    let options =
        Options { summariser: Summariser::Scripted(SummaryScript::Texts(summaries)), ..as_told() };
    let strategy = "anthropic-sdk:threshold=5000,max_tokens=4096";
    let compacted = run_with(MODEL, &compacted(), strategy, &options);
    let turns = |r: &RunRecord| -> Vec<u64> {
        let samples = r.requests.iter().filter(|q| q.purpose == Purpose::Sample);
        samples.map(|q| q.input_tokens).collect()
    };
    let (with, without) = (turns(&compacted), turns(&reference));
    let sum = |t: &[u64]| t.iter().sum::<u64>() as f64;
    let all = saved(compacted.summary.input_tokens as f64, sum(&without));
    vec![
        Measure::exact("input tokens without", "204,416", 204_416.0, sum(&without)),
        Measure::exact("turns with", "26", 26.0, with.len() as f64),
        Measure::exact("compactions", "2", 2.0, compacted.summary.compactions as f64),
        Measure::exact("turns before the first", "16", 16.0, {
            let first = compacted.requests.iter().position(|q| q.purpose == Purpose::Summary);
            first.unwrap_or_default() as f64
        }),
        Measure::exact("input tokens with", "82,171", 82_171.0, sum(&with)),
        Measure::new(
            Unit::Saved,
            "input tokens saved, the summaries' requests included",
            "59.8 %",
            (59.75, 59.85),
            single(all),
        )
        .but(
            Verdict::Direction,
            "the page adds up the turns and leaves out the two requests for summaries, which \
                  send nearly the whole history once more",
        ),
    ]
}
