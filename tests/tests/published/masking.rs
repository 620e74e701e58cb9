//! Old observations hidden by the client.

use std::path::Path;

use ctxbench_core::model;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::{Scenario, load_path};

use super::sessions::Talk;
use super::{Figure, Measure, Unit, Verdict, saved, span};
use crate::common::replayed::{MODEL, run};

pub const SWE_BENCH: Figure = Figure {
    by: "Lindenbauer et al. (JetBrains Research), The Complexity Trap, 2025",
    link: "https://arxiv.org/abs/2508.21433",
    claim: "masking all but the newest observations about halves the cost of SWE-bench runs: \
            −52 % with Qwen3-Coder 480B, −57 and −57 % with Gemini 2.5 Flash without and with \
            thinking, −50 % with Qwen3-32B.",
    conditions: "SWE-agent on 500 instances of SWE-bench Verified, the ten newest observations \
                 kept, at most 250 turns; observations are about 84 % of the tokens of a turn. \
                 Dollars per instance, the runs' own; the fifth model (Qwen3-32B with thinking) \
                 saved 10 %, not significantly. The band is that of the 95 % intervals of the \
                 differences in the four significant pairs, divided by the cost without \
                 ([data](https://github.com/JetBrains-Research/the-complexity-trap), \
                 `auxiliary-data`).",
    tried: "scripted sessions of that shape and length: a system prompt and an issue of 3,000 \
            tokens, then 30, 60 or 100 turns of 1,000 tokens, 840 of them the observation. \
            `observation-masking`, once priced as if there \
            were no prompt cache, once with Anthropic's, where the client marks both ends of the \
            prompt (`breakpoints=ends`) or also the oldest observation shown \
            (`breakpoints=frontier`). Nothing is fetched again.",
    trial: swe_bench,
};

pub const RECORDED: Figure = Figure {
    by: SWE_BENCH.by,
    link: SWE_BENCH.link,
    claim: SWE_BENCH.claim,
    conditions: SWE_BENCH.conditions,
    tried: "the published trajectories of SWE-agent and OpenHands at hand that are longer than 20 \
            turns ([trajectories](../tests/data/trajectories/README.md)): one of 21, three of 23, \
            33 and 49. `observation-masking` as it is. Nothing is fetched again.",
    trial: recorded,
};

/// Returns the sessions of a file in `tests/data/trajectories`.
fn trajectories(name: &str) -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/trajectories");
    load_path(&folder.join(name)).unwrap().scenarios
}

fn recorded() -> Vec<Measure> {
    let sessions = trajectories("ctf__web__i_got_id_demo.traj.gz")
        .into_iter()
        .chain(trajectories("multi_swe_bench-examples-output.jsonl.gz"));
    let (mut short, mut long, mut cached) = (Vec::new(), Vec::new(), Vec::new());
    for session in sessions {
        let [raw, masked] = ["reference", "observation-masking"].map(|spec| run(&session, spec));
        let turns = raw.summary.steps_completed;
        let without = if turns > 40 { &mut long } else { &mut short };
        without.push(saved(uncached(&masked), uncached(&raw)));
        cached.push(saved(masked.summary.cost_usd, raw.summary.cost_usd));
    }
    vec![
        halves("cost saved, no prompt cache, 21 to 33 turns", &short).but(
            Verdict::Direction,
            "the ten newest observations are a third to a half of so short a session",
        ),
        halves("cost saved, no prompt cache, 49 turns", &long),
        halves("cost saved, prompt cache", &cached).but(
            Verdict::Differs,
            "the removed text was nearly free to read, and the text after it is written again",
        ),
    ]
}

fn issue(turns: usize) -> Scenario {
    let talk = Talk::new("swe-bench").system(1_500).user(1_500);
    (0..turns).fold(talk, |talk, _| talk.step(160, &[840])).answer(160).scenario()
}

/// Returns the cost without a cache in USD.
fn uncached(record: &RunRecord) -> f64 {
    let prices = &model::find(MODEL).unwrap().prices;
    let (input, output) = (record.summary.input_tokens, record.summary.output_tokens);
    (input as f64 * prices.input + output as f64 * prices.output) / 1e6
}

fn halves(what: &'static str, ours: &[f64]) -> Measure {
    Measure::new(Unit::Saved, what, "50 to 57 % [34, 77]", (34.2, 77.2), span(ours))
}

fn swe_bench() -> Vec<Measure> {
    let mut without = Vec::new();
    let mut ends = Vec::new();
    let mut frontier = Vec::new();
    for session in [30, 60, 100].map(issue) {
        let raw = run(&session, "reference");
        let [a, b] = ["ends", "frontier"]
            .map(|places| run(&session, &format!("observation-masking:breakpoints={places}")));
        without.push(saved(uncached(&a), uncached(&raw)));
        ends.push(saved(a.summary.cost_usd, raw.summary.cost_usd));
        frontier.push(saved(b.summary.cost_usd, raw.summary.cost_usd));
    }
    vec![
        halves("cost saved, no prompt cache", &without),
        halves("cost saved, prompt cache, `breakpoints=ends`", &ends).but(
            Verdict::Differs,
            "a new placeholder at every turn changes the prompt further back than the cache is \
             looked up, and a read costs a tenth: the removed text was nearly free, \
             and the text after it is written \
             again for 1.25",
        ),
        halves("cost saved, prompt cache, `breakpoints=frontier`", &frontier).but(
            Verdict::Differs,
            "the same, but only the ten observations shown are written again",
        ),
    ]
}
