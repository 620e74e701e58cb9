//! Conformance of pi with recorded sessions: settings, sizes of its constant texts, and the
//! structure of its prompts and summaries.

use ctxbench_core::block::Block;
use ctxbench_core::model::{Model, Provider};
use serde_json::Map;

use super::Pi;
use super::summary::FileLists;
use super::words::PiWords;
use crate::conform::shape::MemberKind::{Count, Filler, Flag, One, OneOf, Word};
use crate::conform::shape::{Shape, may, must};
use crate::conform::text::filler;
use crate::conform::{
    CaseSettings, Conformance, MemberError, PromptForm, PromptPiece, RecordedProgram, Replay,
    RequestView, SetUp, SummaryForm, build,
};
use crate::descriptor::PromptTexts;

pub(crate) const CONFORMANCE: Conformance = Conformance::Sessions(Replay {
    settings: SETTINGS,
    parameters: false,
    constants: CONSTANTS,
    ends: &["compactions", "failed"],
    set_up,
    error_classes: |_| &[],
    record: Some(super::record::RECORDING),
});

const MODEL: Shape = &[may("name", Word), must("context", Count), must("output", Count)];

const SETTINGS: Shape = &[
    must("model", One(MODEL)),
    may("compaction", One(COMPACTION)),
    may("retry", One(&[may("max", Count)])),
    must("wire", OneOf(&["openai-chat"])),
];

/// Named as in the program's settings file.
const COMPACTION: Shape =
    &[may("enabled", Flag), may("reserveTokens", Count), may("keepRecentTokens", Count)];

const CONSTANT: Shape = &[must("bytes", Filler)];

const CONSTANTS: Shape = &[
    may("split_join", One(CONSTANT)),
    may("no_history", One(CONSTANT)),
    may("summary_head", One(CONSTANT)),
    may("summary_tail", One(CONSTANT)),
    may("prompt_initial", One(CONSTANT)),
    may("prompt_update", One(CONSTANT)),
    may("prompt_turn_prefix", One(CONSTANT)),
];

/// Size of a tag around a part of a prompt, and of the text before a focus, in bytes. The cases
/// only give the sum of a prompt's constant texts.
const TAG: usize = 20;

fn set_up(case: &RecordedProgram<'_>, model: Model) -> Result<SetUp, MemberError> {
    let m = case.settings.get("model").cloned().unwrap_or_default();
    let model = Model {
        name: "mock-model".into(),
        window: m["context"].as_u64().unwrap_or(0),
        max_output: m["output"].as_u64().unwrap_or(0),
        input_limit: None,
        provider: Provider::Openai,
        ..model
    };
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
    let mut given = CaseSettings::default();
    let compaction = case.setting("compaction");
    for (ours, theirs) in
        [("auto", "enabled"), ("reserve", "reserveTokens"), ("keep_recent", "keepRecentTokens")]
    {
        given.take(ours, compaction.and_then(|c| c.get(theirs)));
    }
    given.take("retries", case.setting("retry").and_then(|r| r.get("max")));
    let base = case.fixed.iter().find(|f| f["kind"] == "base" && f["for"] != "summary");
    given.take("base_estimate", base.and_then(|b| b.get("estimate_tokens")));
    let version = case.version.rsplit_once('.').map_or("", |(v, _)| v);
    let view = view(&words);
    Ok(SetUp {
        strategy: build::<Pi>("pi", version, &given, words)?,
        model,
        params: Map::new(),
        cache_beside_input: false,
        caller_acts: false,
        view,
    })
}

fn view(w: &PiWords) -> RequestView {
    use PromptPiece::{Constant, Focus, Prior, Transcript};
    let constant = |words: &str| Constant(words.to_string());
    let focus = || Focus(w.focus.to_string());
    let history = [constant(&w.open), Transcript, constant(&w.close)];
    let update = [constant(&w.prior_open), Prior, constant(&w.prior_close), constant(&w.update)];
    let turn = [constant(&w.prefix_open), Transcript, constant(&w.prefix_close)];
    let form = |variant, pieces: Vec<PromptPiece>| PromptForm { variant: Some(variant), pieces };
    RequestView {
        numbered: Some("openai-chat"),
        // On this wire the system prompt is a message too.
        unnumbered: 1,
        prompts: vec![
            form("initial", [&history[..], &[constant(&w.initial), focus()]].concat()),
            form("update", [&history[..], &update, &[focus()]].concat()),
            form("turn_prefix", [&turn[..], &[constant(&w.prefix), focus()]].concat()),
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
