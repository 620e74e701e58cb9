//! Classification of the requests of a driven Codex CLI.

use std::path::Path;

use ctxbench_core::block::BlockKind;
use serde_json::Value;

use super::RecordedSettings;

use crate::record::{
    CasePiece, CaseRecording, Classification, ProgramNotes, RecordedRequest, RecordedSession,
    SessionReading, logged,
};

pub(super) const RECORDING: CaseRecording =
    CaseRecording { notes, read, texts_apart: false, limits_replies: false, context_chars: false };

/// Reads the size of the base instructions from the session file (docs/sources/codex.md §3).
fn notes(scratch: &Path) -> ProgramNotes {
    let base_bytes = |entry: Value| {
        let base = entry.get("payload")?.get("base_instructions")?;
        Some(base.get("text").unwrap_or(base).as_str()?.len() as u64)
    };
    let base_bytes = logged(&scratch.join("codex/sessions")).find_map(base_bytes);
    ProgramNotes { base_bytes, ..Default::default() }
}

fn read(heard: &RecordedSession<'_>) -> SessionReading {
    let mut out = SessionReading::default();
    let prefix = summary_prefix(heard);
    for r in heard.requests {
        let last = r.pieces.len().saturating_sub(1);
        out.add(r, phase(r).as_deref(), |i, p| {
            if r.summary && i == last && p.of_user() {
                return Classification::Constant(
                    BlockKind::SummaryPrompt,
                    Some("summary_prompt_bytes"),
                );
            }
            sorted(p, i == 0, prefix, heard.summaries)
        });
    }
    if let Some(prefix) = prefix {
        // The line break between prefix and body does not belong to the prefix.
        out.note("summary_prefix_bytes", prefix.len() - 1);
    }
    let triggers = |p: &CasePiece<'_>| p.kind == BlockKind::CompactionTrigger;
    out.set(&RecordedSettings {
        context_window: heard.window,
        model: Some(heard.model.into()),
        remote: heard.requests.iter().any(|r| r.pieces.iter().any(triggers)),
        ..RecordedSettings::default()
    });
    out
}

/// Returns the text before a summary with its line break, from the first message that contains one.
fn summary_prefix<'a>(heard: &RecordedSession<'a>) -> Option<&'a str> {
    let of_user = heard.requests.iter().flat_map(|r| &r.pieces).filter(|p| p.of_user());
    let mut texts = of_user.filter_map(|p| p.texts.first().copied());
    texts.find_map(|t| heard.summaries.iter().find_map(|s| before(t, s)))
}

/// Returns the lines before a summary at the end of a message.
fn before<'a>(text: &'a str, summary: &str) -> Option<&'a str> {
    let prefix = text.strip_suffix(summary).filter(|_| !summary.is_empty())?;
    prefix.ends_with('\n').then_some(prefix)
}

fn sorted(
    p: &CasePiece<'_>,
    first: bool,
    prefix: Option<&str>,
    summaries: &[&str],
) -> Classification {
    if p.instructs() {
        let kind = if first { BlockKind::Base } else { BlockKind::Context };
        return Classification::Constant(kind, None);
    }
    if p.kind == BlockKind::CompactionTrigger {
        return Classification::Constant(p.kind, None);
    }
    if !p.of_user() {
        return Classification::Said(p.kind);
    }
    let text = p.text();
    let begins = prefix.filter(|prefix| text.starts_with(prefix)).map(str::len);
    let body = begins.or_else(|| summaries.iter().find_map(|s| before(text, s)).map(str::len));
    match body {
        Some(begin) if p.texts.len() == 1 => Classification::Summary { body: begin..text.len() },
        _ if p.said => Classification::Said(BlockKind::User),
        _ => Classification::Constant(BlockKind::Context, None),
    }
}

/// Returns the phase of a compaction from the label of its request.
fn phase(r: &RecordedRequest<'_>) -> Option<String> {
    let label: Value = serde_json::from_str(r.label?).ok()?;
    Some(label.get("compaction")?.get("phase")?.as_str()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{new_request, new_session, piece};
    use ctxbench_core::block::Role;
    use serde_json::json;

    #[test]
    fn its_own_words_are_told_from_the_conversation_by_where_they_stand() {
        let head = || {
            vec![
                piece(Role::Developer, "be good", false),
                piece(Role::Developer, "permissions", false),
                piece(Role::User, "environment", false),
            ]
        };
        let with =
            |rest: Vec<CasePiece<'static>>| head().into_iter().chain(rest).collect::<Vec<_>>();
        let words = || piece(Role::User, "mend it", true);
        let label = r#"{"compaction":{"phase":"mid_turn"}}"#;
        let requests = [
            RecordedRequest { label: Some("{}"), ..new_request(false, with(vec![words()])) },
            RecordedRequest {
                label: Some(label),
                ..new_request(true, with(vec![words(), piece(Role::User, "now sum up", false)]))
            },
            new_request(false, with(vec![words(), piece(Role::User, "So far:\nS1", false)])),
        ];
        let out = read(&new_session("openai-responses", &requests, &["S1"]));
        let context = || Classification::Constant(BlockKind::Context, None);
        let start = || vec![Classification::Constant(BlockKind::Base, None), context(), context()];
        let want = |more: Vec<Classification>| start().into_iter().chain(more).collect::<Vec<_>>();
        let said = || Classification::Said(BlockKind::User);
        assert_eq!(out.requests[0], (None, want(vec![said()])));
        let prompt =
            Classification::Constant(BlockKind::SummaryPrompt, Some("summary_prompt_bytes"));
        assert_eq!(out.requests[1], (Some("mid_turn".into()), want(vec![said(), prompt])));
        assert_eq!(
            out.requests[2],
            (None, want(vec![said(), Classification::Summary { body: 8..10 }]))
        );
        let sizes = json!({"summary_prompt_bytes": 10, "summary_prefix_bytes": 7});
        assert_eq!(json!(out.constants), sizes);
        assert_eq!(out.settings["context_window"], 30_000);
    }

    #[test]
    fn the_estimate_is_read_from_its_session_file() {
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(notes(scratch.path()), ProgramNotes::default());
        let folder = scratch.path().join("codex/sessions/2026/01/02");
        std::fs::create_dir_all(&folder).unwrap();
        let meta = r#"{"type":"session_meta","payload":{"base_instructions":{"text":"0123456"}}}"#;
        std::fs::write(folder.join("rollout-1.jsonl"), format!("{meta}\n{{}}\n")).unwrap();
        assert_eq!(notes(scratch.path()).base_bytes, Some(7));
    }
}
