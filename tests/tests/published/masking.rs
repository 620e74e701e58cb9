//! Old observations hidden by the client.

use ctxbench_core::model;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::Scenario;

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
    tried: "scripted sessions of that shape, since trajectories of SWE-agent are not imported yet: \
            a system prompt and an issue of 3,000 tokens, then 30, 60 or 100 turns of 1,000 \
            tokens, 840 of them the observation. `observation-masking`, once priced as if there \
            were no prompt cache, once with Anthropic's, where the client marks both ends of the \
            prompt (`breakpoints=ends`) or also the oldest observation shown \
            (`breakpoints=frontier`). Nothing is fetched again.",
    trial: swe_bench,
};

fn issue(turns: usize) -> Scenario {
    let talk = Talk::new("swe-bench").system(1_500).user(1_500);
    (0..turns).fold(talk, |talk, _| talk.step(160, &[840])).answer(160).scenario()
}

/// USD where every prompt is read anew.
fn uncached(record: &RunRecord) -> f64 {
    let prices = &model::find(MODEL).unwrap().prices;
    let (input, output) = (record.summary.input_tokens, record.summary.output_tokens);
    (input as f64 * prices.input + output as f64 * prices.output) / 1e6
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
    let halves = |what, ours: &[f64], expected, why| Measure {
        what,
        published: "50 to 57 % [34, 77]",
        band: (34.2, 77.2),
        ours: span(ours),
        unit: Unit::Saved,
        expected,
        why,
    };
    vec![
        halves("cost saved, no prompt cache", &without, Verdict::Agrees, ""),
        halves(
            "cost saved, prompt cache, `breakpoints=ends`",
            &ends,
            Verdict::Differs,
            "a new placeholder at every turn changes the prompt further back than the cache is \
             looked up, and a read costs a tenth: what masking removes was nearly free, and what \
             it makes the client write again costs 1.25",
        ),
        halves(
            "cost saved, prompt cache, `breakpoints=frontier`",
            &frontier,
            Verdict::Differs,
            "the same, but only the ten observations shown are written again",
        ),
    ]
}
