//! Old tool results cleared by the provider.

use ctxbench_harness::replay::Options;
use ctxbench_harness::summarise::{Summariser, SummaryScript};
use ctxbench_reports::record::{RunRecord, Status};
use ctxbench_scenarios::Scenario;

use super::sessions::{Talk, words};
use super::{Figure, Measure, Unit, Verdict, saved, span};
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
        Measure {
            what: "tokens saved",
            published: "84 %",
            band: (83.5, 84.5),
            ours: span(&less),
            unit: Unit::Saved,
            expected: Verdict::Agrees,
            why: "",
        },
        Measure {
            what: "sessions, of three, that run out of context without it",
            published: "all",
            band: (3.0, 3.0),
            ours: (died as f64, died as f64),
            unit: Unit::Count,
            expected: Verdict::Agrees,
            why: "",
        },
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
    let count = |n: u64| (n as f64, n as f64);
    let one = |x: f64| (x, x);
    let peak = |r: &RunRecord| one(saved(r.summary.peak_context_tokens as f64, 335_279.0));
    vec![
        Measure {
            what: "largest prompt without management",
            published: "335,279",
            band: (335_279.0, 335_279.0),
            ours: count(wide.summary.peak_context_tokens),
            unit: Unit::Count,
            expected: Verdict::Agrees,
            why: "",
        },
        Measure {
            what: "turns without management in a window of 200,000",
            published: "3",
            band: (3.0, 3.0),
            ours: count(narrow.summary.steps_completed),
            unit: Unit::Count,
            expected: Verdict::Agrees,
            why: "",
        },
        Measure {
            what: "clearing: smaller largest prompt",
            published: "48.4 %",
            band: (48.35, 48.45),
            ours: peak(&clearing),
            unit: Unit::Saved,
            expected: Verdict::Direction,
            why: COUNTED,
        },
        Measure {
            what: "clearing: tokens saved over the run",
            published: "39.3 %",
            band: (39.25, 39.35),
            ours: one(less(&clearing)),
            unit: Unit::Saved,
            expected: Verdict::Direction,
            why: COUNTED,
        },
        Measure {
            what: "the same, notes not counted (`clear_exclude`): smaller largest prompt",
            published: "48.4 %",
            band: (48.35, 48.45),
            ours: peak(&of_reads),
            unit: Unit::Saved,
            expected: Verdict::Agrees,
            why: "",
        },
        Measure {
            what: "and tokens saved over the run",
            published: "39.3 %",
            band: (39.25, 39.35),
            ours: one(less(&of_reads)),
            unit: Unit::Saved,
            expected: Verdict::Agrees,
            why: "",
        },
        Measure {
            what: "compaction: summaries",
            published: "1",
            band: (1.0, 1.0),
            ours: count(compaction.summary.compactions),
            unit: Unit::Count,
            expected: Verdict::Agrees,
            why: "",
        },
        Measure {
            what: "compaction: largest prompt",
            published: "169,164",
            band: (169_164.0, 169_164.0),
            ours: count(answered),
            unit: Unit::Count,
            expected: Verdict::Agrees,
            why: "",
        },
        Measure {
            what: "compaction: turn of the summary",
            published: "4",
            band: (4.0, 4.0),
            ours: count(summarised as u64),
            unit: Unit::Count,
            expected: Verdict::Agrees,
            why: "",
        },
    ]
}

/// Reason why our replay clears more than the API did.
const COUNTED: &str = "the API cleared nothing at the third turn and the same four documents at \
                       each later one, as if it did not count the notes between them; ours \
                       counts every tool use, as the documentation says";
