//! Interprets recorded sessions of the Anthropic SDK: settings, constants and requests.

use serde_json::json;

use super::build;
use crate::case::{Case, CaseError};
use crate::{Replay, RequestView, SetUp};
use ctxbench_strategies::evidence::Raised;

pub(super) const REPLAY: Replay = Replay {
    constants: &["summary_prompt_bytes"],
    ends: &["requests", "tool_calls_executed"],
    set_up,
    error_classes,
    record: None,
};

/// Returns the names of the class of an error that the runner raises: the cause first, then the
/// exception, in the spellings of the cases and of the two languages.
fn error_classes(reason: &str) -> &'static [&'static str] {
    let is = |raised: Raised| raised.to_string() == reason;
    if is(Raised::SummaryNotText) {
        &["unexpected_summary_content", "value_error", "ValueError", "AnthropicError"]
    } else if is(Raised::SummaryEmpty) {
        &["empty_summary", "empty_summary_content", "index_error", "IndexError"]
    } else if is(Raised::CompactionBesideEdit)
        || is(Raised::CompactionOfEveryRequest)
        || is(Raised::ChangedWhileCompacted)
    {
        &["value_error", "ValueError"]
    } else {
        &[]
    }
}

fn set_up(case: &Case) -> Result<SetUp, CaseError> {
    let unknown = || CaseError::Unknown { what: "version", name: case.version.clone() };
    let (language, version) = case.version.split_once('-').ok_or_else(unknown)?;
    let version = match language {
        "python" => version,
        // TypeScript 0.124 has the rules of Python 0.125, except for the language.
        "typescript" => "0.125",
        _ => return Err(unknown()),
    };
    // The events of a recorded session report when its caller asks for a compaction.
    let settings = json!({"language": language, "compact_at": 0});
    let texts = json!({"summary_prompt": case.filler("summary_prompt_bytes")});
    Ok(SetUp {
        strategy: build(case, version, &settings, &texts)?,
        view: RequestView {
            cache_beside_input: true,
            caller_acts: version.starts_with("2."),
            numbered: Some("anthropic-messages"),
            compaction_is_parameter: true,
            ..RequestView::default()
        },
    })
}
