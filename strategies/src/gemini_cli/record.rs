//! Interpretation of the requests of a recorded Gemini CLI session.

use ctxbench_core::block::BlockKind;
use serde_json::{Map, Value, json};

use super::words::SNAPSHOT;
use crate::conform::record::{
    CasePiece, CaseRecording, Classification, RecordedRequest, RecordedSession, SessionReading,
    no_notes,
};

pub(super) const RECORDING: CaseRecording =
    CaseRecording { notes: no_notes, read, texts_apart: true };

/// Limit that the program assumes for every model, in tokens (docs/sources/gemini-cli.md §1).
const LIMIT: u64 = 1_048_576;

/// Recorded sessions use half of the window as the threshold.
const SHARE: f64 = 0.5;

fn read(heard: &RecordedSession<'_>) -> SessionReading {
    let mut out = SessionReading { numbered: Some(1), ..SessionReading::default() };
    for r in heard.requests {
        let sorts: Vec<Classification> =
            (0..r.pieces.len()).map(|i| sorted(r, i, heard.summaries)).collect();
        for (p, sort) in r.pieces.iter().zip(&sorts) {
            let name = match sort {
                Classification::Constant(BlockKind::Context) if out.context.is_empty() => {
                    out.context = alphabets(p.text());
                    continue;
                }
                Classification::Constant(BlockKind::Ack) => "ack",
                Classification::Constant(BlockKind::SummaryPrompt)
                    if is_check(r, heard.summaries) =>
                {
                    "prompt_verify"
                }
                Classification::Constant(BlockKind::SummaryPrompt) if is_anchored(r) => {
                    "prompt_anchored"
                }
                Classification::Constant(BlockKind::SummaryPrompt) => "prompt_new",
                _ => continue,
            };
            out.constants.entry(name).or_insert(json!({"bytes": p.text().len()}));
        }
        let phase =
            r.summary.then(|| if is_check(r, heard.summaries) { "verify" } else { "summary" });
        out.requests.push((phase.map(str::to_string), sorts));
    }
    let threshold = SHARE * heard.window as f64 / LIMIT as f64;
    let model = json!({"name": heard.model, "context": LIMIT, "output": heard.max_output});
    out.settings = Map::from_iter([
        ("model".to_string(), model),
        ("compression_threshold".to_string(), threshold.into()),
        ("wire".to_string(), heard.wire.into()),
        ("process".to_string(), "one".into()),
    ]);
    out.outcome = Map::from_iter([("prompts".to_string(), json!(heard.prompts))]);
    out
}

/// Counts the characters of a text as the program's estimates need them.
fn alphabets(text: &str) -> Map<String, Value> {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let utf16 = |t: &str| t.encode_utf16().count();
    Map::from_iter([
        ("ascii_chars".to_string(), ascii.into()),
        ("other_chars".to_string(), (utf16(text) - ascii).into()),
        ("json_utf16".to_string(), utf16(&Value::from(text).to_string()).into()),
    ])
}

fn is_written(p: &CasePiece<'_>, summaries: &[&str]) -> bool {
    summaries.iter().any(|s| s.trim() == p.text().trim())
}

/// Returns true if the request asks to check a draft: the draft precedes its last message.
fn is_check(r: &RecordedRequest<'_>, summaries: &[&str]) -> bool {
    let [.., draft, _] = r.pieces.as_slice() else { return false };
    r.summary && draft.kind == BlockKind::Assistant && is_written(draft, summaries)
}

/// Returns true if the history contains a snapshot.
fn is_anchored(r: &RecordedRequest<'_>) -> bool {
    let history = r.pieces.split_last().map_or(&[][..], |(_, history)| history);
    let said = |p: &&CasePiece<'_>| !p.instructs() && p.kind != BlockKind::Output;
    history.iter().filter(said).any(|p| p.text().contains(SNAPSHOT))
}

fn sorted(r: &RecordedRequest<'_>, i: usize, summaries: &[&str]) -> Classification {
    let p = &r.pieces[i];
    let written = |p: &CasePiece<'_>| is_written(p, summaries);
    let before = &r.pieces[i.saturating_sub(1)];
    match p.kind {
        _ if p.instructs() => Classification::Constant(BlockKind::Base),
        BlockKind::User if r.summary && i + 1 == r.pieces.len() => {
            Classification::Constant(BlockKind::SummaryPrompt)
        }
        BlockKind::User if written(p) => Classification::Said(BlockKind::Summary),
        BlockKind::User if !p.said && before.instructs() => {
            Classification::Constant(BlockKind::Context)
        }
        BlockKind::Assistant if r.summary && i + 2 == r.pieces.len() && written(p) => {
            Classification::Said(BlockKind::Summary)
        }
        BlockKind::Assistant if i > 0 && before.of_user() && written(before) => {
            Classification::Constant(BlockKind::Ack)
        }
        kind => Classification::Said(kind),
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_core::block::Role;

    use super::*;
    use crate::conform::record::testing::{new_request, new_session, piece};

    #[test]
    fn draft_check_and_acknowledgement_are_known_by_where_they_stand() {
        let base = || piece(Role::Instructions, "be good", false);
        let context = || piece(Role::User, "a \u{e9}\n", false);
        let draft = || piece(Role::Assistant, "DRAFT", true);
        let requests = [
            new_request(false, vec![base(), context(), piece(Role::User, "mend it", true)]),
            new_request(
                true,
                vec![
                    base(),
                    context(),
                    piece(Role::User, "mend it", true),
                    piece(Role::User, "Sum up.", false),
                ],
            ),
            new_request(
                true,
                vec![base(), context(), draft(), piece(Role::User, "Is it all?", false)],
            ),
            new_request(
                false,
                vec![
                    base(),
                    piece(Role::User, "FINAL", false),
                    piece(Role::Assistant, "I see.", false),
                    piece(Role::User, "go on", true),
                ],
            ),
        ];
        let heard = RecordedSession {
            window: LIMIT / 16,
            prompts: &["done", "error"],
            ..new_session("gemini", &requests, &["DRAFT", "FINAL"])
        };
        let out = read(&heard);
        let phases: Vec<Option<&str>> = out.requests.iter().map(|(p, _)| p.as_deref()).collect();
        assert_eq!(phases, [None, Some("summary"), Some("verify"), None]);
        let prompt = Classification::Constant(BlockKind::SummaryPrompt);
        assert_eq!(out.requests[1].1[3], prompt);
        assert_eq!(out.requests[2].1[2..], [Classification::Said(BlockKind::Summary), prompt]);
        assert_eq!(
            out.requests[3].1[1..],
            [
                Classification::Said(BlockKind::Summary),
                Classification::Constant(BlockKind::Ack),
                Classification::Said(BlockKind::User)
            ]
        );
        let sizes = |name: &str| out.constants[name]["bytes"].as_u64();
        let of = ["prompt_new", "prompt_verify", "ack"].map(sizes);
        assert_eq!(of, [Some(7), Some(10), Some(6)]);
        // A two-byte letter is one unit. In JSON the quotes count too, and the line break is two
        // units.
        let context = Value::Object(out.context);
        assert_eq!(context, json!({"ascii_chars": 3, "other_chars": 1, "json_utf16": 7}));
        assert_eq!(out.settings["compression_threshold"], 0.5 / 16.0);
        assert_eq!(Value::Object(out.outcome), json!({"prompts": ["done", "error"]}));
    }
}
