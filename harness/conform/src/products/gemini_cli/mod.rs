//! Conformance of Gemini CLI with recorded sessions: settings, sizes of its constant texts, and the
//! classification of its requests.

mod record;

use ctxbench_core::model::{Model, Provider};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::build;
use crate::case::{Case, CaseError, CaseModel, CaseWire, Cut};
use crate::text::filler;
use crate::{Replay, RequestView, SetUp, prompt};
use ctxbench_strategies::evidence::{CutSizes, gemini_cli_phase};

pub(super) const REPLAY: Replay = Replay {
    constants: &["ack", "prompt_new", "prompt_anchored", "prompt_verify", "interrupted"],
    ends: &["prompts"],
    set_up,
    error_classes: |_| &[],
    record: Some(record::RECORDING),
};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RecordedSettings {
    pub(super) model: CaseModel,
    /// A share of the model's limit.
    pub(super) compression_threshold: Option<f64>,
    pub(super) wire: CaseWire,
    /// Whether one process gets all prompts.
    pub(super) process: RecordedProcess,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedProcess {
    One,
    OnePerPrompt,
}

/// Size of the note before a cut output, in bytes. Together with the figures and the file name it
/// has about the recorded size. The cases only give the sum, and the comparison ignores it.
const CUT_NOTE: usize = 80;

fn set_up(case: &Case, model: Model) -> Result<SetUp, CaseError> {
    let given: RecordedSettings = case.settings()?;
    let of = |name: &str| filler(name, case.constant(name));
    let [new, anchored, verify] = ["prompt_new", "prompt_anchored", "prompt_verify"].map(of);
    let texts = json!({
        "prompt_new": new,
        "prompt_anchored": anchored,
        "prompt_verify": verify,
        "ack": of("ack"),
        "interrupted": of("interrupted"),
        "cut_note": filler("cut", CUT_NOTE),
        "masked_note": filler("masked", 40),
    });
    let settings = json!({"threshold": given.compression_threshold});
    let form = |variant, words: &str| prompt::form(Some(variant), &[words]);
    Ok(SetUp {
        strategy: build("gemini-cli", &case.version, &settings, &texts)?,
        model: given.model.over(model, Provider::Gemini),
        view: RequestView {
            numbered: Some("gemini"),
            // Cases count messages from 0, and the instructions do not count as a message.
            unnumbered: 1,
            prompts: vec![form("new", &new), form("anchored", &anchored), form("verify", &verify)],
            phase: Some(gemini_cli_phase),
            cut: Some(cut_of),
            ..RequestView::default()
        },
    })
}

/// Returns the sizes of a cut output.
fn cut_of(text: &str) -> Option<Cut> {
    let CutSizes { head, tail, omitted } = CutSizes::found_in(text, &filler("cut", CUT_NOTE))?;
    Some(Cut { head_chars: head, tail_chars: tail, omitted_chars: omitted })
}
