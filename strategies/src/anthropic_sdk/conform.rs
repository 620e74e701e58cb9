//! Interprets recorded sessions of the Anthropic SDK: settings, constants and requests.

use ctxbench_core::model::Model;
use serde_json::{Map, Value};

use super::AnthropicSdk;
use super::errors::Raised;
use super::words::SdkWords;
use crate::conform::shape::MemberKind::{Any, Count, Filler, Flag, One, Text, Word, Words};
use crate::conform::shape::{Shape, may, must, null};
use crate::conform::text::{expand, filler};
use crate::conform::{
    CaseSettings, Conformance, MemberError, RecordedProgram, Replay, RequestView, SetUp, build,
};

pub(crate) const CONFORMANCE: Conformance = Conformance::Sessions(Replay {
    settings: SETTINGS,
    parameters: true,
    constants: &[may("summary_prompt_bytes", Filler)],
    ends: &["requests", "tool_calls_executed"],
    set_up,
    error_classes: |reason| Raised::parse(reason).map_or(&[], Raised::class_names),
    record: None,
});

/// Members of the settings. In addition, any request parameter is allowed.
const SETTINGS: Shape = &[
    must("model", Word),
    must("max_tokens", Count),
    null("max_iterations", Count),
    may("compaction_control", One(CONTROL)),
    may("betas", Words),
    may("thread", Flag),
    may("temperature", Any),
];

const CONTROL: Shape = &[
    must("enabled", Flag),
    null("context_token_threshold", Count),
    null("contextTokenThreshold", Count),
    null("model", Word),
    null("summary_prompt", Text),
    null("summaryPrompt", Text),
];

/// Settings of the runner; all others are parameters of its requests.
const OF_RUNNER: [&str; 6] =
    ["model", "max_tokens", "max_iterations", "compaction_control", "betas", "thread"];
fn set_up(case: &RecordedProgram<'_>, model: Model) -> Result<SetUp, MemberError> {
    let control = case.settings.get("compaction_control").cloned().unwrap_or_default();
    let one_of = |python: &str, typescript: &str| {
        let given = |name: &str| control.get(name).filter(|v| !v.is_null());
        given(python).or(given(typescript))
    };
    let mut given = CaseSettings::default();
    given.take("max_tokens", case.setting("max_tokens"));
    given.take("max_iterations", case.setting("max_iterations"));
    let (language, version) = case
        .version
        .split_once('-')
        .and_then(|(language, v)| Some((language, v.rsplit_once('.')?.0)))
        .ok_or_else(|| MemberError::Version(case.version.into()))?;
    let newer = version.starts_with("2.");
    if newer {
        // The events of a recorded session report when its caller asks for a compaction.
        given.set("compact_at", 0);
    } else {
        given.set("language", language);
        // Without `compaction_control`, nothing is compacted.
        given.set("enabled", control["enabled"] == true);
        given.take("threshold", one_of("context_token_threshold", "contextTokenThreshold"));
    }
    given.take("model", one_of("model", "model"));
    given.take("threads", case.setting("thread"));
    // TypeScript 0.124 has the rules of Python 0.125, except for the language.
    let version = if language == "typescript" { "0.125" } else { version };
    let summary_prompt = match one_of("summary_prompt", "summaryPrompt") {
        Some(prompt) => expand(prompt)?,
        None => filler("prompt", case.constant("summary_prompt_bytes")),
    };
    let words = SdkWords { summary_prompt: summary_prompt.into() };
    let name = case.settings.get("model").and_then(Value::as_str).unwrap_or_default();
    let params: Map<String, Value> = case
        .settings
        .iter()
        .filter(|(k, _)| !OF_RUNNER.contains(&k.as_str()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    Ok(SetUp {
        strategy: build::<AnthropicSdk>("anthropic-sdk", version, &given, words)?,
        model: Model { name: name.into(), ..model },
        params,
        cache_beside_input: true,
        caller_acts: newer,
        view: RequestView {
            numbered: Some("anthropic-messages"),
            compaction_is_parameter: true,
            ..RequestView::default()
        },
    })
}
