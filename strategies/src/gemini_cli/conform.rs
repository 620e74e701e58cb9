//! Conformance of Gemini CLI with recorded sessions: settings, sizes of its constant texts, and the
//! classification of its requests.

use ctxbench_core::model::{Model, Provider};
use serde_json::{Map, Value, json};

use super::GeminiCli;
use super::preview::CutSizes;
use super::program::phase;
use super::words::GeminiCliWords;
use crate::conform::shape::MemberKind::{Any, Count, Filler, One, OneOf, Word};
use crate::conform::shape::{Shape, may, must, null};
use crate::conform::text::filler;
use crate::conform::{
    CaseSettings, Conformance, MemberError, PromptForm, PromptPiece, RecordedProgram, Replay,
    RequestView, SetUp, build,
};
use crate::descriptor::PromptTexts;

pub(crate) const CONFORMANCE: Conformance = Conformance::Sessions(Replay {
    settings: SETTINGS,
    parameters: false,
    constants: CONSTANTS,
    ends: &["prompts"],
    set_up,
    error_classes: |_| &[],
    record: Some(super::record::RECORDING),
});

const MODEL: Shape = &[may("name", Word), must("context", Count), may("output", Count)];

const SETTINGS: Shape = &[
    must("model", One(MODEL)),
    // A share and not a count.
    null("compression_threshold", Any),
    must("wire", OneOf(&["gemini"])),
    must("process", OneOf(&["one", "one_per_prompt"])),
];

const CONSTANT: Shape = &[must("bytes", Filler)];

const CONSTANTS: Shape = &[
    may("ack", One(CONSTANT)),
    may("prompt_new", One(CONSTANT)),
    may("prompt_anchored", One(CONSTANT)),
    may("prompt_verify", One(CONSTANT)),
    may("interrupted", One(CONSTANT)),
];

/// Size of the note before a cut output, in bytes. Together with the figures and the file name it
/// has about the recorded size. The cases only give the sum, and the comparison ignores it.
const CUT_NOTE: usize = 80;

fn set_up(case: &RecordedProgram<'_>, model: Model) -> Result<SetUp, MemberError> {
    let m = case.settings.get("model").cloned().unwrap_or_default();
    let model = Model {
        name: m["name"].as_str().unwrap_or("mock-model").into(),
        window: m["context"].as_u64().unwrap_or(0),
        max_output: m["output"].as_u64().unwrap_or(model.max_output),
        input_limit: None,
        provider: Provider::Gemini,
        ..model
    };
    let of = |name: &str| filler(name, case.constant(name));
    let [new, anchored, verify] = ["prompt_new", "prompt_anchored", "prompt_verify"].map(of);
    let note = filler("cut", CUT_NOTE);
    let words = GeminiCliWords {
        prompt_new: new.as_str().into(),
        prompt_anchored: anchored.as_str().into(),
        prompt_verify: verify.as_str().into(),
        ack: of("ack").as_str().into(),
        interrupted: of("interrupted").as_str().into(),
        cut_note: note.as_str().into(),
        masked_note: filler("masked", 40).as_str().into(),
        ..GeminiCliWords::blank()
    };
    let mut given = CaseSettings::default();
    given.take("threshold", case.setting("compression_threshold"));
    let version = case.version.rsplit_once('.').map_or("", |(v, _)| v);
    let form = |variant, words: String| PromptForm {
        variant: Some(variant),
        pieces: vec![PromptPiece::Constant(words)],
    };
    Ok(SetUp {
        strategy: build::<GeminiCli>("gemini-cli", version, &given, words)?,
        model,
        params: Map::new(),
        cache_beside_input: false,
        caller_acts: false,
        view: RequestView {
            numbered: Some("gemini"),
            // Cases count messages from 0, and the instructions do not count as a message.
            unnumbered: 1,
            prompts: vec![form("new", new), form("anchored", anchored), form("verify", verify)],
            phase: Some(phase),
            cut: Some(cut_of),
            ..RequestView::default()
        },
    })
}

/// Returns the sizes of a cut output.
fn cut_of(text: &str) -> Option<Value> {
    let CutSizes { head, tail, omitted } = CutSizes::found_in(text, &filler("cut", CUT_NOTE))?;
    Some(json!({"head_chars": head, "tail_chars": tail, "omitted_chars": omitted}))
}
