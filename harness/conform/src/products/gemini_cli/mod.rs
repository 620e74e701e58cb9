//! Conformance of Gemini CLI with recorded sessions: settings, sizes of its constant texts, and the
//! classification of its requests.

mod record;

use serde_json::json;

use super::build;
use crate::case::{Case, CaseError, Cut};
use crate::text::filler;
use crate::{PromptForm, PromptPiece, Replay, RequestView, SetUp};
use ctxbench_strategies::evidence::{CutSizes, gemini_cli_phase};

pub(super) const REPLAY: Replay = Replay {
    constants: &["ack", "prompt_new", "prompt_anchored", "prompt_verify", "interrupted"],
    ends: &["prompts"],
    set_up,
    error_classes: |_| &[],
    record: Some(record::RECORDING),
};

/// Size of the note before a cut output, in bytes. Together with the figures and the file name it
/// has about the recorded size. The cases only give the sum, and the comparison ignores it.
const CUT_NOTE: usize = 80;

fn set_up(case: &Case) -> Result<SetUp, CaseError> {
    let prompts = ["prompt_new", "prompt_anchored", "prompt_verify"];
    let [new, anchored, verify] = prompts.map(|name| case.filler(name));
    let texts = json!({
        "prompt_new": new,
        "prompt_anchored": anchored,
        "prompt_verify": verify,
        "ack": case.filler("ack"),
        "interrupted": case.filler("interrupted"),
        "cut_note": filler("cut", CUT_NOTE),
        "masked_note": filler("masked", 40),
    });
    let form = |variant, words: String| PromptForm {
        variant: Some(variant),
        pieces: vec![PromptPiece::Constant(words)],
    };
    Ok(SetUp {
        strategy: build(case, &case.version, &json!({}), &texts)?,
        view: RequestView {
            numbered: Some("gemini"),
            // Cases count messages from 0, and the instructions do not count as a message.
            unnumbered: 1,
            prompts: vec![form("new", new), form("anchored", anchored), form("verify", verify)],
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
