//! Old tool results cleared by the provider.

use ctxbench_mock::summarise::Summariser;
use ctxbench_replay::Options;
use ctxbench_reports::record::{RunRecord, Status};
use ctxbench_scenarios::Scenario;

use super::sessions::{Talk, words};
use super::{Span, saved, single, span};
use crate::common::replayed::{MODEL, as_told, run, run_with};

pub fn hundred_turns() -> Vec<Span> {
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
    vec![span(&less), single(died as f64)]
}

fn inputs(record: &RunRecord) -> f64 {
    record.summary.input_tokens as f64
}

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

pub fn research_agent() -> Vec<Span> {
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
        summariser: Summariser::Again([summary].into(), Box::default()),
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
        single(wide.summary.peak_context_tokens as f64),
        single(narrow.summary.steps_completed as f64),
        peak(&clearing),
        single(less(&clearing)),
        peak(&of_reads),
        single(less(&of_reads)),
        single(compaction.summary.compactions as f64),
        single(answered as f64),
        single(summarised as f64),
    ]
}
