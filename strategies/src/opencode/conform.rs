//! Recorded cases of OpenCode: the settings, constants and requests of recorded sessions.

use ctxbench_core::model::{Model, Provider};
use serde_json::{Map, Value};

use super::OpenCode;
use super::words::OpenCodeWords;
use crate::conform::shape::MemberKind::{Bytes, Count, Filler, Flag, One, OneOf, Word};
use crate::conform::shape::{Shape, may, must, null};
use crate::conform::text::filler;
use crate::conform::{
    CaseSettings, Conformance, MemberError, PromptForm, PromptPiece, RecordedProgram, Replay,
    RequestView, SetUp, build, followed,
};
use crate::descriptor::PromptTexts;

pub(crate) const CONFORMANCE: Conformance = Conformance::Sessions(Replay {
    settings: SETTINGS,
    parameters: false,
    constants: CONSTANTS,
    ends: &[],
    set_up,
    error_classes: |_| &[],
    record: Some(super::record::RECORDING),
});

const MODEL: Shape =
    &[may("name", Word), must("context", Count), must("output", Count), null("input", Count)];

const SETTINGS: Shape = &[
    must("model", One(MODEL)),
    may("compaction", One(COMPACTION)),
    may("compaction_model", One(MODEL)),
    must("wire", OneOf(&["openai-chat", "anthropic"])),
];

/// Named as in the strategy's settings.
const COMPACTION: Shape = &[
    null("auto", Flag),
    null("prune", Flag),
    null("tail_turns", Count),
    null("preserve_recent_tokens", Count),
    null("reserved", Count),
];

const CONSTANTS: Shape = &[
    may("marker", One(CONSTANT)),
    may("continue", One(CONSTANT)),
    may("continue_after_overflow", One(CONSTANT)),
    may("summary_prompt_first", One(CONSTANT)),
    may("summary_prompt_with_prior", One(CONSTANT)),
];

const CONSTANT: Shape = &[
    must("bytes", Filler),
    may("utf16", Bytes),
    may("json_utf16", Bytes),
    may("placeholder", Word),
];

/// Size in bytes of the constant text around a message that 1.3 repeats. The cases state it only in
/// prose.
const WRAPPER_BYTES: usize = 133;

fn set_up(case: &RecordedProgram<'_>, model: Model) -> Result<SetUp, MemberError> {
    let anthropic = case.settings.get("wire").is_some_and(|w| w == "anthropic");
    let m = case.settings.get("model").cloned().unwrap_or_default();
    let model = Model {
        name: "mock-model".into(),
        window: m["context"].as_u64().unwrap_or(0),
        max_output: m["output"].as_u64().unwrap_or(0),
        input_limit: m["input"].as_u64(),
        provider: if anthropic { Provider::Anthropic } else { Provider::Openai },
        ..model
    };
    let first = filler("first", case.constant("summary_prompt_first").saturating_sub(40));
    let prior_close =
        filler("prior_close", case.constant("summary_prompt_with_prior").saturating_sub(60));
    let [intro, prior_open, template] = ["intro", "prior_open", "template"].map(|t| filler(t, 20));
    let constant = |name: &str| {
        let given = case.constants.get(name).and_then(|c| c.get("placeholder")?.as_str());
        given.map_or_else(|| filler(name, case.constant(name)), str::to_string).into()
    };
    let words = OpenCodeWords {
        intro: intro.as_str().into(),
        first: first.as_str().into(),
        prior_open: prior_open.as_str().into(),
        prior_close: prior_close.as_str().into(),
        template: template.as_str().into(),
        marker: constant("marker"),
        go_on: constant("continue"),
        go_on_overflow: constant("continue_after_overflow"),
        // 1.3: the recorded wrapper around a replayed message, and the prompt after the
        // conversation.
        wrapper_open: filler("wrapper", WRAPPER_BYTES).into(),
        old_prompt: filler("prompt", 1).into(),
        ..OpenCodeWords::blank()
    };
    let mut given = CaseSettings::default();
    if let Some(m) = case.settings.get("compaction_model") {
        for (ours, theirs) in [
            ("model", "name"),
            ("model_context", "context"),
            ("model_output", "output"),
            ("model_input", "input"),
        ] {
            given.take(ours, m.get(theirs));
        }
    }
    for (name, value) in case.setting("compaction").and_then(Value::as_object).into_iter().flatten()
    {
        given.take(name, Some(value));
    }
    let version = followed::<OpenCode>(case.version)?;
    Ok(SetUp {
        strategy: build::<OpenCode>("opencode", version, &given, words)?,
        model,
        params: Map::new(),
        cache_beside_input: anthropic,
        caller_acts: false,
        view: RequestView {
            numbered: Some(if anthropic { "anthropic-messages" } else { "openai-chat" }),
            // On this wire the system prompt is a message too.
            unnumbered: usize::from(!anthropic),
            prompts: prompts([intro, first, prior_open, prior_close, template]),
            ..RequestView::default()
        },
    })
}

/// Builds the prompts without and with a previous summary.
fn prompts([intro, first, prior_open, prior_close, template]: [String; 5]) -> Vec<PromptForm> {
    use PromptPiece::{Constant, Prior, Transcript};
    let form = |pieces| PromptForm { variant: None, pieces };
    let (intro, template) = (Constant(intro), Constant(template));
    vec![
        form(vec![intro.clone(), Transcript, Constant(first), template.clone()]),
        form(vec![intro, Transcript, Constant(prior_open), Prior, Constant(prior_close), template]),
    ]
}
