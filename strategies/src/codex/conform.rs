//! Recorded cases of Codex CLI: the settings, constants and requests of recorded sessions.

use ctxbench_core::model::Model;
use serde::{Deserialize, Serialize};

use super::Codex;
use super::rules::OutputPolicy;
use super::settings::CodexSettings;
use super::words::CodexWords;
use crate::conform::case::{Case, CaseError};
use crate::conform::text::filler;
use crate::conform::{
    Conformance, Replay, RequestView, SetUp, SummaryForm, build, default_settings, followed,
};

pub(crate) const CONFORMANCE: Conformance = Conformance::Sessions(Replay {
    constants: &["summary_prompt_bytes", "summary_prefix_bytes"],
    ends: &[],
    set_up,
    error_classes: |_| &[],
    record: Some(super::record::RECORDING),
});

/// Settings of a case.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedSettings {
    pub(super) context_window: u64,
    pub(super) auto_compact_token_limit: Option<u64>,
    pub(super) model: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) remote: bool,
    pub(super) stream_max_retries: Option<u64>,
    pub(super) request_max_retries: Option<u64>,
    pub(super) tool_output_policy: Option<OutputPolicy>,
    pub(super) compact_prompt: Option<String>,
    pub(super) post_turn_threshold_percent: Option<u64>,
    pub(super) provider_name: Option<String>,
}

fn set_up(case: &Case, model: Model) -> Result<SetUp, CaseError> {
    let given: RecordedSettings = case.settings()?;
    let prompt = || filler("prompt", case.constant("summary_prompt_bytes"));
    let prefix = filler("prefix", case.constant("summary_prefix_bytes"));
    let words = CodexWords {
        summary_prompt: given.compact_prompt.unwrap_or_else(prompt).into(),
        summary_prefix: prefix.as_str().into(),
    };
    let defaults = default_settings::<Codex>();
    let settings = CodexSettings {
        // The outputs of a case are already cut by the program.
        tool_output_tokens: Some(0),
        remote: given.remote,
        auto_compact_limit: given.auto_compact_token_limit,
        stream_retries: given.stream_max_retries.unwrap_or(defaults.stream_retries),
        post_turn_percent: given.post_turn_threshold_percent.unwrap_or(0),
        base_estimate_bytes: case.base().and_then(|b| b.estimate_bytes),
        ..defaults
    };
    Ok(SetUp {
        strategy: build::<Codex>(followed::<Codex>(&case.version)?, settings, words),
        model: Model { name: "recorded".into(), window: given.context_window, ..model },
        view: RequestView {
            roleless_compaction: true,
            summary: SummaryForm { head: format!("{prefix}\n"), ..SummaryForm::default() },
            ..RequestView::default()
        },
    })
}
