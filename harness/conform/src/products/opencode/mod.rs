//! Recorded cases of OpenCode: the settings, constants and requests of recorded sessions.

mod record;

use ctxbench_core::model::{Model, Provider};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::build;
use crate::case::{Case, CaseError, CaseModel, CaseWire, Constant};
use crate::prompt::{PRIOR, TRANSCRIPT, form};
use crate::text::filler;
use crate::{Replay, RequestView, SetUp};

pub(super) const REPLAY: Replay = Replay {
    constants: &[
        "marker",
        "continue",
        "continue_after_overflow",
        "summary_prompt_first",
        "summary_prompt_with_prior",
    ],
    ends: &[],
    set_up,
    error_classes: |_| &[],
    record: Some(record::RECORDING),
};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RecordedSettings {
    pub(super) model: CaseModel,
    #[serde(default)]
    pub(super) compaction: RecordedCompaction,
    pub(super) compaction_model: Option<CaseModel>,
    pub(super) wire: CaseWire,
}

/// Named as in the strategy's settings.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedCompaction {
    auto: Option<bool>,
    prune: Option<bool>,
    tail_turns: Option<u64>,
    preserve_recent_tokens: Option<u64>,
    reserved: Option<u64>,
}

/// Size in bytes of the constant text around a message that 1.3 repeats. The cases state it only in
/// prose.
const WRAPPER_BYTES: usize = 133;

fn set_up(case: &Case, model: Model) -> Result<SetUp, CaseError> {
    let given: RecordedSettings = case.settings()?;
    let anthropic = given.wire == CaseWire::Anthropic;
    let provider = if anthropic { Provider::Anthropic } else { Provider::Openai };
    let first = filler("first", case.constant("summary_prompt_first").saturating_sub(40));
    let prior_close =
        filler("prior_close", case.constant("summary_prompt_with_prior").saturating_sub(60));
    let [intro, prior_open, template] = ["intro", "prior_open", "template"].map(|t| filler(t, 20));
    let constant = |name: &str| {
        let given = case.constants.get(name).and_then(Constant::placeholder);
        given.map_or_else(|| filler(name, case.constant(name)), str::to_string)
    };
    let with_prior = [&intro, TRANSCRIPT, &prior_open, PRIOR, &prior_close, &template];
    let prompts =
        vec![form(None, &[&intro, TRANSCRIPT, &first, &template]), form(None, &with_prior)];
    let texts = json!({
        "intro": intro,
        "first": first,
        "prior_open": prior_open,
        "prior_close": prior_close,
        "template": template,
        "marker": constant("marker"),
        "go_on": constant("continue"),
        "go_on_overflow": constant("continue_after_overflow"),
        // 1.3: the recorded wrapper around a replayed message, and the prompt after the
        // conversation.
        "wrapper_open": filler("wrapper", WRAPPER_BYTES),
        "old_prompt": filler("prompt", 1),
    });
    let mut settings = json!(given.compaction);
    if let Some(own) = given.compaction_model {
        settings["model_context"] = json!(own.context);
        settings["model_output"] = json!(own.output);
        settings["model_input"] = json!(own.input);
        settings["model"] = json!(own.name);
    }
    Ok(SetUp {
        strategy: build("opencode", &case.version, &settings, &texts)?,
        model: given.model.over(model, provider),
        view: RequestView {
            cache_beside_input: anthropic,
            numbered: Some(if anthropic { "anthropic-messages" } else { "openai-chat" }),
            // On this wire the system prompt is a message too.
            unnumbered: usize::from(!anthropic),
            prompts,
            ..RequestView::default()
        },
    })
}
