//! Recorded cases of Codex CLI: the settings, constants and requests of recorded sessions.

mod record;

use serde_json::json;

use super::build;
use crate::case::{Case, CaseError};
use crate::{Replay, RequestView, SetUp, SummaryForm};

pub(super) const REPLAY: Replay = Replay {
    constants: &["summary_prompt_bytes", "summary_prefix_bytes"],
    ends: &[],
    set_up,
    error_classes: |_| &[],
    record: Some(record::RECORDING),
};

fn set_up(case: &Case) -> Result<SetUp, CaseError> {
    let prefix = case.filler("summary_prefix_bytes");
    let texts = json!({
        "summary_prompt": case.filler("summary_prompt_bytes"),
        "summary_prefix": prefix,
    });
    let settings = json!({
        // The outputs of a case are already cut by the program.
        "tool_output_tokens": 0,
        "base_estimate_bytes": case.base().and_then(|b| b.estimate_bytes),
    });
    Ok(SetUp {
        strategy: build(case, &case.version, &settings, &texts)?,
        view: RequestView {
            roleless_compaction: true,
            summary: SummaryForm { head: format!("{prefix}\n"), ..SummaryForm::default() },
            ..RequestView::default()
        },
    })
}
