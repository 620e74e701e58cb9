//! Conformance of pi with recorded sessions: settings, sizes of its constant texts, and the
//! structure of its prompts and summaries.

use ctxbench_core::block::Block;
use ctxbench_core::model::{Model, Provider};
use serde::{Deserialize, Serialize};

use super::Pi;
use super::settings::PiSettings;
use super::summary::FileLists;
use super::words::PiWords;
use crate::conform::case::{Case, CaseError, CaseModel, CaseWire};
use crate::conform::text::filler;
use crate::conform::{
    Conformance, PromptForm, PromptPiece, Replay, RequestView, SetUp, SummaryForm, build,
    default_settings, followed,
};
use crate::descriptor::PromptTexts;

pub(crate) const CONFORMANCE: Conformance = Conformance::Sessions(Replay {
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
    record: Some(super::record::RECORDING),
});

/// Settings of a case.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedSettings {
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
    let of = |name: &str, tags: usize| {
        filler(name, case.constant(name).saturating_sub(tags * TAG)).as_str().into()
    };
    let tag = |name: &str| filler(name, TAG).as_str().into();
    let words = PiWords {
        open: tag("open"),
        close: tag("close"),
        prior_open: tag("prior_open"),
        prior_close: tag("prior_close"),
        prefix_open: tag("prefix_open"),
        prefix_close: tag("prefix_close"),
        focus: tag("focus"),
        initial: of("prompt_initial", 2),
        update: of("prompt_update", 4),
        prefix: of("prompt_turn_prefix", 2),
        no_history: of("no_history", 0),
        split_join: of("split_join", 0),
        summary_head: of("summary_head", 0),
        summary_tail: of("summary_tail", 0),
        ..PiWords::blank()
    };
    let defaults = default_settings::<Pi>();
    let compaction = given.compaction.unwrap_or_default();
    let settings = PiSettings {
        auto: compaction.enabled.unwrap_or(defaults.auto),
        reserve: compaction.reserve_tokens.unwrap_or(defaults.reserve),
        keep_recent: compaction.keep_recent_tokens.unwrap_or(defaults.keep_recent),
        retries: given.retry.and_then(|r| r.max).unwrap_or(defaults.retries),
        base_estimate: case.base().and_then(|b| b.estimate_tokens),
    };
    let view = view(&words);
    Ok(SetUp {
        strategy: build::<Pi>(followed::<Pi>(&case.version)?, settings, words),
        model: given.model.over(model, Provider::Openai),
        view,
    })
}

fn view(w: &PiWords) -> RequestView {
    use PromptPiece::{Constant, Prior, Transcript};
    let constant = |words: &str| Constant(words.to_string());
    let history = [constant(&w.open), Transcript, constant(&w.close)];
    let update = [constant(&w.prior_open), Prior, constant(&w.prior_close), constant(&w.update)];
    let turn = [constant(&w.prefix_open), Transcript, constant(&w.prefix_close)];
    let form = |variant, pieces: Vec<PromptPiece>| PromptForm { variant: Some(variant), pieces };
    RequestView {
        numbered: Some("openai-chat"),
        // On this wire the system prompt is a message too.
        unnumbered: 1,
        prompts: vec![
            form("initial", [&history[..], &[constant(&w.initial)]].concat()),
            form("update", [&history[..], &update].concat()),
            form("turn_prefix", [&turn[..], &[constant(&w.prefix)]].concat()),
        ],
        summary: SummaryForm {
            constants: vec![
                ("no_history", w.no_history.to_string()),
                ("split_join", w.split_join.to_string()),
            ],
            head: w.summary_head.to_string(),
            tail: w.summary_tail.to_string(),
            files: Some((files_of, render)),
        },
        ..RequestView::default()
    }
}

/// Returns the read and the modified files that a summary lists.
fn files_of(summary: &Block) -> (Vec<String>, Vec<String>) {
    let FileLists { read, modified } = FileLists::found_in(&summary.text);
    (read.into_iter().collect(), modified.into_iter().collect())
}

/// Formats the file lists as they appear after a summary.
fn render(read: &[String], modified: &[String]) -> String {
    let set = |list: &[String]| list.iter().cloned().collect();
    FileLists { read: set(read), modified: set(modified) }.render()
}
