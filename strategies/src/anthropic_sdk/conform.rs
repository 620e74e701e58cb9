//! Interprets recorded sessions of the Anthropic SDK: settings, constants and requests.

use ctxbench_core::model::Model;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::errors::Raised;
use super::settings::{Language, SdkSettings};
use super::words::SdkWords;
use super::{AnthropicSdk, SdkVersion};
use crate::conform::case::{Case, CaseError};
use crate::conform::text::filler;
use crate::conform::{Conformance, Replay, RequestView, SetUp, build, default_settings, followed};

pub(crate) const CONFORMANCE: Conformance = Conformance::Sessions(Replay {
    constants: &["summary_prompt_bytes"],
    ends: &["requests", "tool_calls_executed"],
    set_up,
    error_classes: |reason| Raised::parse(reason).map_or(&[], Raised::class_names),
    record: None,
});

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
    let unknown = || CaseError::Unknown { what: "version", name: case.version.clone() };
    let (language, version) = case.version.split_once('-').ok_or_else(unknown)?;
    let (language, version) = match language {
        "python" => (Language::Python, followed::<AnthropicSdk>(version)?),
        // TypeScript 0.124 has the rules of Python 0.125, except for the language.
        "typescript" => (Language::Typescript, SdkVersion::V0_125),
        _ => return Err(unknown()),
    };
    let newer = version == SdkVersion::V2_12;
    let defaults = default_settings::<AnthropicSdk>();
    let settings = SdkSettings {
        language,
        enabled: control.enabled,
        threshold: control.context_token_threshold.unwrap_or(defaults.threshold),
        model: control.model.map(Into::into),
        max_tokens: Some(given.max_tokens),
        max_iterations: given.max_iterations,
        // The events of a recorded session report when its caller asks for a compaction.
        compact_at: 0,
        threads: given.thread.unwrap_or(defaults.threads),
        ..defaults
    };
    let prompt = || filler("prompt", case.constant("summary_prompt_bytes"));
    let words = SdkWords { summary_prompt: control.summary_prompt.unwrap_or_else(prompt).into() };
    Ok(SetUp {
        strategy: build::<AnthropicSdk>(version, settings, words),
        model: Model { name: given.model.into(), ..model },
        view: RequestView {
            params: given.params,
            cache_beside_input: true,
            caller_acts: newer,
            numbered: Some("anthropic-messages"),
            compaction_is_parameter: true,
            ..RequestView::default()
        },
    })
}
