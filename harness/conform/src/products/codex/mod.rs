//! Recorded cases of Codex CLI: the settings, constants and requests of recorded sessions.

mod record;

use ctxbench_core::model::Model;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::build;
use crate::case::{Case, CaseError};
use crate::text::filler;
use crate::{Replay, RequestView, SetUp, SummaryForm};

pub(super) const REPLAY: Replay = Replay {
    constants: &["summary_prompt_bytes", "summary_prefix_bytes"],
    ends: &[],
    set_up,
    error_classes: |_| &[],
    record: Some(record::RECORDING),
};

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RecordedSettings {
    pub(super) context_window: u64,
    pub(super) auto_compact_token_limit: Option<u64>,
    pub(super) model: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) remote: bool,
    pub(super) stream_max_retries: Option<u64>,
    pub(super) request_max_retries: Option<u64>,
    pub(super) tool_output_policy: Option<RecordedPolicy>,
    pub(super) compact_prompt: Option<String>,
    pub(super) post_turn_threshold_percent: Option<u64>,
    pub(super) provider_name: Option<String>,
}

/// Limit on tool output with its unit.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum RecordedPolicy {
    Bytes(u64),
    Tokens(u64),
}

fn set_up(case: &Case, model: Model) -> Result<SetUp, CaseError> {
    let given: RecordedSettings = case.settings()?;
    let prompt = || filler("prompt", case.constant("summary_prompt_bytes"));
    let prefix = filler("prefix", case.constant("summary_prefix_bytes"));
    let texts = json!({
        "summary_prompt": given.compact_prompt.unwrap_or_else(prompt),
        "summary_prefix": prefix,
    });
    let settings = json!({
        // The outputs of a case are already cut by the program.
        "tool_output_tokens": 0,
        "remote": given.remote,
        "auto_compact_limit": given.auto_compact_token_limit,
        "stream_retries": given.stream_max_retries,
        "post_turn_percent": given.post_turn_threshold_percent,
        "base_estimate_bytes": case.base().and_then(|b| b.estimate_bytes),
    });
    Ok(SetUp {
        strategy: build("codex", &case.version, &settings, &texts)?,
        model: Model { name: "recorded".into(), window: given.context_window, ..model },
        view: RequestView {
            roleless_compaction: true,
            summary: SummaryForm { head: format!("{prefix}\n"), ..SummaryForm::default() },
            ..RequestView::default()
        },
    })
}
