//! Conformance of pi with recorded sessions: settings, sizes of its constant texts, and the
//! structure of its prompts and summaries.

mod record;

use std::collections::BTreeMap;

use ctxbench_core::model::{Model, Provider};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::build;
use crate::case::{Case, CaseError, CaseModel, CaseWire};
use crate::prompt::{PRIOR, TRANSCRIPT, form};
use crate::text::filler;
use crate::{Replay, RequestView, SetUp, SummaryForm};

pub(super) const REPLAY: Replay = Replay {
    constants: &[
        "split_join",
        "no_history",
        "summary_head",
        "summary_tail",
        "prompt_initial",
        "prompt_update",
        "prompt_turn_prefix",
    ],
    ends: &["compactions", "failed"],
    set_up,
    error_classes: |_| &[],
    record: Some(record::RECORDING),
};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RecordedSettings {
    pub(super) model: CaseModel,
    pub(super) compaction: Option<RecordedCompaction>,
    pub(super) retry: Option<RecordedRetry>,
    pub(super) wire: CaseWire,
}

/// Named as in the program's settings file.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RecordedCompaction {
    enabled: Option<bool>,
    reserve_tokens: Option<u64>,
    keep_recent_tokens: Option<u64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedRetry {
    max: Option<u64>,
}

/// Size of a tag around a part of a prompt, in bytes. The cases only give the sum of a prompt's
/// constant texts.
const TAG: usize = 20;

fn set_up(case: &Case, model: Model) -> Result<SetUp, CaseError> {
    let given: RecordedSettings = case.settings()?;
    let of = |name: &str, tags: usize| filler(name, case.constant(name).saturating_sub(tags * TAG));
    let tags =
        ["open", "close", "prior_open", "prior_close", "prefix_open", "prefix_close", "focus"];
    let mut texts: BTreeMap<&str, String> = tags.into_iter().map(|t| (t, filler(t, TAG))).collect();
    texts.extend([
        ("initial", of("prompt_initial", 2)),
        ("update", of("prompt_update", 4)),
        ("prefix", of("prompt_turn_prefix", 2)),
        ("no_history", of("no_history", 0)),
        ("split_join", of("split_join", 0)),
        ("summary_head", of("summary_head", 0)),
        ("summary_tail", of("summary_tail", 0)),
    ]);
    let compaction = given.compaction.unwrap_or_default();
    let settings = json!({
        "auto": compaction.enabled,
        "reserve": compaction.reserve_tokens,
        "keep_recent": compaction.keep_recent_tokens,
        "retries": given.retry.and_then(|r| r.max),
        "base_estimate": case.base().and_then(|b| b.estimate_tokens),
    });
    Ok(SetUp {
        strategy: build("pi", &case.version, &settings, &json!(texts))?,
        model: given.model.over(model, Provider::Openai),
        view: view(&texts),
    })
}

fn view(texts: &BTreeMap<&str, String>) -> RequestView {
    let of = |name: &str| texts[name].as_str();
    let [open, close] = ["open", "close"].map(of);
    RequestView {
        numbered: Some("openai-chat"),
        // On this wire the system prompt is a message too.
        unnumbered: 1,
        prompts: vec![
            form(Some("initial"), &[open, TRANSCRIPT, close, of("initial")]),
            form(
                Some("update"),
                &[
                    open,
                    TRANSCRIPT,
                    close,
                    of("prior_open"),
                    PRIOR,
                    of("prior_close"),
                    of("update"),
                ],
            ),
            form(
                Some("turn_prefix"),
                &[of("prefix_open"), TRANSCRIPT, of("prefix_close"), of("prefix")],
            ),
        ],
        summary: SummaryForm {
            constants: vec![
                ("no_history", texts["no_history"].clone()),
                ("split_join", texts["split_join"].clone()),
            ],
            head: texts["summary_head"].clone(),
            tail: texts["summary_tail"].clone(),
            lists_files: true,
        },
        ..RequestView::default()
    }
}
