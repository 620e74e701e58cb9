//! Import of recorded programs' summaries into a cassette. The same request in a run gets the same
//! answer.

use ctxbench_core::request::StopReason;
use ctxbench_scenarios::formats::exchanges::Summarised;
use serde_json::json;

use super::cassette::{Cassette, RecordedAnswer};
use super::wire::Question;
use ctxbench_os::redact::without_secrets;

/// Adds recorded summaries. Returns the number of new ones; summaries with an unreadable request
/// and duplicates do not count.
pub fn keep(cassette: &Cassette, summaries: &[Summarised]) -> Result<usize, String> {
    let mut new = 0;
    for summary in summaries {
        let Ok(prompt) = summary.wire.decode(&summary.path, summary.body.as_bytes()) else {
            continue;
        };
        let question = Question::new(&prompt, None);
        let hash = question.hash();
        cassette.answer(&hash, || {
            new += 1;
            Ok(RecordedAnswer {
                request: hash.clone(),
                model: question.model.clone(),
                max_tokens: question.max_tokens,
                reply: without_secrets(&summary.reply, None),
                stop: word(summary.stop).to_string(),
                usage: json!({"input_tokens": summary.input, "output_tokens": summary.output}),
            })
        })?;
    }
    Ok(new)
}

/// Returns the value that `wire::stop` parses to this stop reason.
fn word(stop: StopReason) -> &'static str {
    match stop {
        StopReason::MaxTokens | StopReason::WindowExceeded => "max_tokens",
        StopReason::Refusal => "refusal",
        StopReason::StopSequence => "stop_sequence",
        _ => "end_turn",
    }
}
