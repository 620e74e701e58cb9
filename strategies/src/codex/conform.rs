//! Recorded cases of Codex CLI: the settings, constants and requests of recorded sessions.

use ctxbench_core::model::Model;
use serde_json::{Map, Value};

use super::Codex;
use super::words::CodexWords;
use crate::conform::shape::MemberKind::{Count, Either, Filler, Flag, Text, Word};
use crate::conform::shape::{Shape, may, must, null};
use crate::conform::text::{expand, filler};
use crate::conform::{
    CaseSettings, Conformance, MemberError, RecordedProgram, Replay, RequestView, SetUp,
    SummaryForm, build, followed,
};

pub(crate) const CONFORMANCE: Conformance = Conformance::Sessions(Replay {
    settings: SETTINGS,
    parameters: false,
    constants: CONSTANTS,
    ends: &[],
    set_up,
    error_classes: |_| &[],
    record: Some(super::record::RECORDING),
});

const SETTINGS: Shape = &[
    must("context_window", Count),
    null("auto_compact_token_limit", Count),
    may("stream_max_retries", Count),
    may("request_max_retries", Count),
    may("tool_output_policy", Either(&[may("tokens", Count), may("bytes", Count)])),
    null("compact_prompt", Text),
    null("post_turn_threshold_percent", Count),
    may("limit_scope", Word),
    may("model", Word),
    may("remote", Flag),
    may("provider_name", Word),
];

const CONSTANTS: Shape =
    &[may("summary_prompt_bytes", Filler), may("summary_prefix_bytes", Filler)];

fn set_up(case: &RecordedProgram<'_>, model: Model) -> Result<SetUp, MemberError> {
    let summary_prompt = match case.setting("compact_prompt") {
        Some(prompt) => expand(prompt)?,
        None => filler("prompt", case.constant("summary_prompt_bytes")),
    };
    let prefix = filler("prefix", case.constant("summary_prefix_bytes"));
    let words = CodexWords {
        summary_prompt: summary_prompt.into(),
        summary_prefix: prefix.as_str().into(),
    };
    let mut given = CaseSettings::default();
    // The outputs of a case are already cut by the program.
    given.set("tool_output_tokens", 0);
    for (ours, theirs) in [
        ("remote", "remote"),
        ("auto_compact_limit", "auto_compact_token_limit"),
        ("stream_retries", "stream_max_retries"),
        ("post_turn_percent", "post_turn_threshold_percent"),
        ("limit_scope", "limit_scope"),
    ] {
        given.take(ours, case.setting(theirs));
    }
    let base = case.fixed.iter().find(|f| f["kind"] == "base");
    given.take("base_estimate_bytes", base.and_then(|b| b.get("estimate_bytes")));
    let version = followed::<Codex>(case.version)?;
    let window = case.setting("context_window").and_then(Value::as_u64).unwrap_or(0);
    Ok(SetUp {
        strategy: build::<Codex>("codex", version, &given, words)?,
        model: Model { name: "recorded".into(), window, ..model },
        params: Map::new(),
        cache_beside_input: false,
        caller_acts: false,
        view: RequestView {
            roleless_compaction: true,
            summary: SummaryForm { head: format!("{prefix}\n"), ..SummaryForm::default() },
            ..RequestView::default()
        },
    })
}
