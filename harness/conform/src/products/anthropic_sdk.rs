//! Interprets recorded sessions of the Anthropic SDK: settings, constants and requests.

use ctxbench_core::model::Model;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::build;
use crate::case::{Case, CaseError};
use crate::text::filler;
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

/// Settings of a case: those of the runner, and the parameters of its requests.
#[derive(Deserialize)]
struct RecordedSettings {
    model: String,
    max_tokens: u64,
    max_iterations: Option<u64>,
    /// Without it, nothing is compacted.
    #[serde(default)]
    compaction_control: RecordedControl,
    #[serde(rename = "betas")]
    _betas: Option<Vec<String>>,
    thread: Option<bool>,
    #[serde(flatten)]
    params: Map<String, Value>,
}

/// Named as in Python or TypeScript.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedControl {
    enabled: bool,
    #[serde(alias = "contextTokenThreshold")]
    context_token_threshold: Option<u64>,
    model: Option<String>,
    #[serde(alias = "summaryPrompt")]
    summary_prompt: Option<String>,
}

fn set_up(case: &Case, model: Model) -> Result<SetUp, CaseError> {
    let given: RecordedSettings = case.settings()?;
    let control = given.compaction_control;
    let unknown = || CaseError::unknown("version", &case.version);
    let (language, version) = case.version.split_once('-').ok_or_else(unknown)?;
    let version = match language {
        "python" => version,
        // TypeScript 0.124 has the rules of Python 0.125, except for the language.
        "typescript" => "0.125",
        _ => return Err(unknown()),
    };
    let settings = json!({
        "language": language,
        "enabled": control.enabled,
        "threshold": control.context_token_threshold,
        "model": control.model,
        "max_tokens": given.max_tokens,
        "max_iterations": given.max_iterations,
        // The events of a recorded session report when its caller asks for a compaction.
        "compact_at": 0,
        "threads": given.thread,
    });
    let prompt = || filler("prompt", case.constant("summary_prompt_bytes"));
    let texts = json!({"summary_prompt": control.summary_prompt.unwrap_or_else(prompt)});
    Ok(SetUp {
        strategy: build("anthropic-sdk", version, &settings, &texts)?,
        model: Model { name: given.model.into(), ..model },
        view: RequestView {
            params: given.params,
            cache_beside_input: true,
            caller_acts: !version.starts_with("0."),
            numbered: Some("anthropic-messages"),
            compaction_is_parameter: true,
            ..RequestView::default()
        },
    })
}
