//! Classification of the requests of a driven Codex CLI.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use ctxbench_core::block::BlockKind;
use serde_json::{Map, Value, json};

use crate::conform::record::{
    CasePiece, CaseRecording, Classification, RecordedRequest, RecordedSession, SessionReading,
    jsonl_in,
};

pub(super) const RECORDING: CaseRecording = CaseRecording { notes, read, texts_apart: false };

/// Name of the recorded size of the base instructions in the program's estimates, which may differ
/// from the size on the wire (docs/sources/codex.md §3).
const ESTIMATE: &str = "estimate_bytes";

/// Maximum length of the first line of a session file that is read, in bytes.
const MAX_META: u64 = 4 << 20;

/// Reads the size of the base instructions from the session file.
fn notes(scratch: &Path) -> Map<String, Value> {
    let found = jsonl_in(&scratch.join("codex/sessions")).iter().find_map(|log| base_bytes(log));
    found.map(|n| (ESTIMATE.to_string(), n.into())).into_iter().collect()
}

fn base_bytes(log: &Path) -> Option<usize> {
    let file = std::fs::File::open(log).ok()?;
    let mut line = String::new();
    BufReader::new(file.take(MAX_META)).read_line(&mut line).ok()?;
    let first: Value = serde_json::from_str(&line).ok()?;
    let base = first.get("payload")?.get("base_instructions")?;
    Some(base.get("text").unwrap_or(base).as_str()?.len())
}

fn read(heard: &RecordedSession<'_>) -> SessionReading {
    let triggers = |p: &CasePiece<'_>| p.kind == BlockKind::CompactionTrigger;
    let remote = heard.requests.iter().any(|r| r.pieces.iter().any(triggers));
    let mut out = SessionReading { base: heard.notes.clone(), ..SessionReading::default() };
    let prefix = summary_prefix(heard);
    let mut prompt = None;
    for r in heard.requests {
        let last = r.pieces.len().saturating_sub(1);
        let sort = |(i, p): (usize, &CasePiece<'_>)| {
            if r.summary && i == last && p.of_user() {
                return Classification::Constant(BlockKind::SummaryPrompt);
            }
            sorted(p, i == 0, prefix, heard.summaries)
        };
        let sorts: Vec<Classification> = r.pieces.iter().enumerate().map(sort).collect();
        if sorts.last() == Some(&Classification::Constant(BlockKind::SummaryPrompt)) {
            prompt = prompt.or(r.pieces.last().map(|p| p.text().len()));
        }
        out.requests.push((phase(r), sorts));
    }
    out.settings.insert("context_window".into(), heard.window.into());
    out.settings.insert("auto_compact_token_limit".into(), Value::Null);
    out.settings.insert("model".into(), heard.model.into());
    if remote {
        out.settings.insert("remote".into(), true.into());
    }
    let sizes = [
        ("summary_prompt_bytes", prompt),
        // The line break between prefix and body does not belong to the prefix.
        ("summary_prefix_bytes", prefix.map(|p| p.len() - 1)),
    ];
    out.constants.extend(sizes.into_iter().filter_map(|(k, n)| Some((k.to_string(), json!(n?)))));
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
        return Classification::Constant(if first { BlockKind::Base } else { BlockKind::Context });
    }
    if p.kind == BlockKind::CompactionTrigger {
        return Classification::Constant(p.kind);
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
        _ => Classification::Constant(BlockKind::Context),
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
    use crate::conform::record::testing::{new_request, new_session, piece};
    use ctxbench_core::block::Role;

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
        let notes = Map::from_iter([("estimate_bytes".to_string(), json!(9))]);
        let heard = RecordedSession {
            notes: &notes,
            ..new_session("openai-responses", &requests, &["S1"])
        };
        let out = read(&heard);
        let context = || Classification::Constant(BlockKind::Context);
        let start = || vec![Classification::Constant(BlockKind::Base), context(), context()];
        let want = |more: Vec<Classification>| start().into_iter().chain(more).collect::<Vec<_>>();
        let said = || Classification::Said(BlockKind::User);
        assert_eq!(out.requests[0], (None, want(vec![said()])));
        let prompt = Classification::Constant(BlockKind::SummaryPrompt);
        assert_eq!(out.requests[1], (Some("mid_turn".into()), want(vec![said(), prompt])));
        assert_eq!(
            out.requests[2],
            (None, want(vec![said(), Classification::Summary { body: 8..10 }]))
        );
        let sizes = json!({"summary_prompt_bytes": 10, "summary_prefix_bytes": 7});
        assert_eq!(Value::Object(out.constants), sizes);
        assert_eq!(out.base["estimate_bytes"], 9);
        assert_eq!(out.settings["context_window"], 30_000);
    }

    #[test]
    fn the_estimate_is_read_from_its_session_file() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(notes(scratch.path()).is_empty());
        let folder = scratch.path().join("codex/sessions/2026/01/02");
        std::fs::create_dir_all(&folder).unwrap();
        let meta = r#"{"type":"session_meta","payload":{"base_instructions":{"text":"0123456"}}}"#;
        std::fs::write(folder.join("rollout-1.jsonl"), format!("{meta}\n{{}}\n")).unwrap();
        assert_eq!(notes(scratch.path()), Map::from_iter([("estimate_bytes".into(), json!(7))]));
    }
}
