//! Old tool results cleared by the provider.

use ctxbench_mock::summarise::{Summariser, SummaryScript};
use ctxbench_replay::Options;
use ctxbench_reports::record::{RunRecord, Status};
use ctxbench_scenarios::Scenario;

use super::sessions::{Talk, words};
use super::{Figure, Measure, Unit, Verdict, saved, single, span};
use crate::common::replayed::{MODEL, as_told, run, run_with};

pub const HUNDRED_TURNS: Figure = Figure {
    by: "Anthropic, Managing context on the Claude Developer Platform, 2025-09-29",
    link: "https://www.anthropic.com/news/context-management",
    claim: "in a web search task of 100 turns, context editing let agents finish that would have \
            run out of context otherwise, and saved 84 % of the tokens.",
    conditions: "100 turns; an evaluation in the house, of which neither sessions nor the size of \
                 a search's result, nor trigger and results kept, are published.",
    tried: "a question and 100 searches by rule, each a reply of 150 tokens; since the size of a \
            result is not published, results of 2,500, 5,000 and 10,000 tokens. \
            `claude-code-api:compact=off`: the API's defaults, clearing from 100,000 tokens on, \
            three results kept. Everything at a tenth of its size (`scale = 0.1`). Without editing \
            and with a window of 200,000 tokens: `none`.",
    trial: hundred_turns,
};

fn hundred_turns() -> Vec<Measure> {
    let search = |result: u64| {
        let talk = (0..100).fold(Talk::new("web-search").user(200), |t, _| t.step(15, &[result]));
        Scenario { scale: 0.1, ..talk.answer(100).scenario() }
    };
    let sessions = [250, 500, 1_000].map(search);
    let less = sessions.each_ref().map(|s| {
        let edited = run(s, "claude-code-api:compact=off");
        assert_eq!(edited.status, Status::Completed);
        saved(inputs(&edited), inputs(&run(s, "reference")))
    });
    let died = sessions.iter().filter(|s| run(s, "none").status == Status::Overflow).count();
    vec![
        Measure::new(Unit::Saved, "tokens saved", "84 %", (83.5, 84.5), span(&less)),
        Measure::exact(
            "sessions, of three, that run out of context without it",
            "all",
            3.0,
            died as f64,
        ),
    ]
}

fn inputs(record: &RunRecord) -> f64 {
    record.summary.input_tokens as f64
}

pub const RESEARCH_AGENT: Figure = Figure {
    by: "Anthropic, Claude cookbook: memory, compaction and tool clearing, 2026-03-20",
    link: "https://platform.claude.com/cookbook/\
           tool-use-context-engineering-context-engineering-tools",
    claim: "an agent that reads eight documents of 41,000 tokens in two batches of four parallel \
            calls reaches a prompt of 335,279 tokens, and stops after three turns where the window \
            has 200,000. Clearing keeps the largest prompt at 173,137, compaction at 169,164 with \
            one summary.",
    conditions: "claude-sonnet-4-6; clearing from 30,000 tokens on, four results kept, at least \
                 10,000 cleared at a time; compaction from 180,000 tokens on. The sizes of prompts \
                 and documents are printed.",
    tried: "the same prompts: three sessions with the message sizes of the printed runs without management, with clearing and with compaction. \
            `claude-code-api:compact=off,clear_trigger=30k,clear_keep=4,clear_at_least=10k` and \
            `claude-code-api:clear=false,compact_trigger=180k`; the summary has the printed size, \
            2,783 tokens. So sizes without management are given; the time and the extent of each reduction are ours.",
    trial: research_agent,
};

/// Size of the first prompt without the user's message: system and tools.
const HEAD: u64 = 700;

/// Printed sizes of the documents in the order read.
const DOCUMENTS: [[u64; 4]; 2] =
    [[41_260, 41_200, 41_101, 41_115], [41_155, 41_095, 41_017, 41_012]];

/// A session with prompts of these sizes if nothing is cleared: the first batch is read after the
/// first prompt, the second after the third; other calls are notes.
fn prompts(id: &'static str, sizes: &[u64]) -> Scenario {
    let talk = Talk::new(id).tools(HEAD).user(sizes[0] - HEAD);
    let talk = sizes.windows(2).enumerate().fold(talk, |talk, (i, pair)| {
        let (tool, results): (_, &[u64]) = match i {
            0 => ("Read", &DOCUMENTS[0]),
            2 => ("Read", &DOCUMENTS[1]),
            _ => ("note", &[12]),
        };
        let reply = pair[1] - pair[0] - results.iter().sum::<u64>();
        talk.calling(tool).step(reply, results)
    });
    talk.answer(900).scenario()
}

fn research_agent() -> Vec<Measure> {
    let plain = prompts("research-agent", &[1_058, 166_043, 168_242, 332_821, 335_279]);
    // The same four results were cleared from the fourth turn on, so that printed prompts grew as
    // they would have without clearing. The second batch is that of the baseline.
    let second_batch = 332_821 - 168_242;
    let shown = [1_058, 166_043, 169_211, 169_174, 169_255, 169_313, 173_137];
    let freed = 169_211 + second_batch - 169_174;
    let whole: [u64; 7] = std::array::from_fn(|i| shown[i] + if i < 3 { 0 } else { freed });
    let cleared = prompts("research-agent-clearing", &whole);
    // The fourth prompt and the later ones are not published.
    let fourth = 169_164 + second_batch;
    let sizes = [1_129, 166_103, 169_164, fourth, fourth + 2_000, fourth + 2_120, fourth + 2_200];
    let compacted = prompts("research-agent-compaction", &sizes);
    let sum = |sizes: &[u64]| sizes.iter().sum::<u64>() as f64;
    let less = |with: &RunRecord| saved(with.summary.input_tokens as f64, sum(&whole));
    debug_assert!((saved(sum(&shown), sum(&whole)) - 39.3).abs() < 0.05);

    let wide = run(&plain, "reference");
    let options = Options { window: Some(200_000), ..as_told() };
    let narrow = run_with(MODEL, &plain, "none", &options);
    let clears = "claude-code-api:compact=off,clear_trigger=30k,clear_keep=4,clear_at_least=10k";
    let clearing = run(&cleared, clears);
    let of_reads = run(&cleared, &format!("{clears},clear_exclude=note"));
    let summary = words(0, 2_783);
    let options = Options {
        summariser: Summariser::Scripted(SummaryScript::Texts(vec![summary])),
        window: Some(1_000_000),
        ..as_told()
    };
    let compaction = "claude-code-api:clear=false,compact_trigger=180k";
    let compaction = run_with(MODEL, &compacted, compaction, &options);
    // A request in which the provider compacts bills more than its view.
    let mut turns = compaction.requests.iter();
    let summarised = 1 + turns.position(|q| q.input_tokens > q.context_tokens).unwrap();
    // The API's own counters are printed. They exclude the prompt that the API summarised.
    let answered = compaction.requests.iter().map(|q| q.context_tokens).max().unwrap();
    let peak = |r: &RunRecord| single(saved(r.summary.peak_context_tokens as f64, 335_279.0));
    vec![
        Measure::exact(
            "largest prompt without management",
            "335,279",
            335_279.0,
            wide.summary.peak_context_tokens as f64,
        ),
        Measure::exact(
            "turns without management in a window of 200,000",
            "3",
            3.0,
            narrow.summary.steps_completed as f64,
        ),
        Measure::new(
            Unit::Saved,
            "clearing: smaller largest prompt",
            "48.4 %",
            (48.35, 48.45),
            peak(&clearing),
        )
        .but(Verdict::Direction, COUNTED),
        Measure::new(
            Unit::Saved,
            "clearing: tokens saved over the run",
            "39.3 %",
            (39.25, 39.35),
            single(less(&clearing)),
        )
        .but(Verdict::Direction, COUNTED),
        Measure::new(
            Unit::Saved,
            "the same, notes not counted (`clear_exclude`): smaller largest prompt",
            "48.4 %",
            (48.35, 48.45),
            peak(&of_reads),
        ),
        Measure::new(
            Unit::Saved,
            "and tokens saved over the run",
            "39.3 %",
            (39.25, 39.35),
            single(less(&of_reads)),
        ),
        Measure::exact("compaction: summaries", "1", 1.0, compaction.summary.compactions as f64),
        Measure::exact("compaction: largest prompt", "169,164", 169_164.0, answered as f64),
        Measure::exact("compaction: turn of the summary", "4", 4.0, summarised as f64),
    ]
}

/// Reason why our replay clears more than the API did.
const COUNTED: &str = "the API cleared nothing at the third turn and the same four documents at \
                       each later one, as if it did not count the notes between them; ours \
                       counts every tool use, as the documentation says";
