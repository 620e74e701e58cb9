//! Interpretation of the requests of a recorded Gemini CLI session.

use ctxbench_core::block::BlockKind;

use super::{RecordedProcess, RecordedSettings};
use crate::case::{CaseModel, CaseWire, Outcome};
use crate::record::{
    CasePiece, CaseRecording, Classification, ProgramNotes, RecordedRequest, RecordedSession,
    SessionReading,
};

pub(super) const RECORDING: CaseRecording = CaseRecording {
    notes: |_| ProgramNotes::default(),
    read,
    texts_apart: true,
    limits_replies: false,
    context_chars: true,
};

/// Start of a snapshot in a text (docs/sources/gemini-cli.md §2).
const SNAPSHOT: &str = "<state_snapshot>";

/// Limit that the program assumes for every model, in tokens (docs/sources/gemini-cli.md §1).
const LIMIT: u64 = 1_048_576;

/// Recorded sessions use half of the window as the threshold.
const SHARE: f64 = 0.5;

fn read(heard: &RecordedSession<'_>) -> SessionReading {
    let mut out = SessionReading { numbered: Some(1), ..SessionReading::default() };
    for r in heard.requests {
        let check = is_check(r, heard.summaries);
        let phase = r.summary.then_some(if check { "verify" } else { "summary" });
        out.add(r, phase, |i, _| sorted(r, i, heard.summaries));
    }
    out.set(&RecordedSettings {
        model: CaseModel {
            name: Some(heard.model.into()),
            context: LIMIT,
            output: Some(heard.max_output),
            input: None,
        },
        compression_threshold: Some(SHARE * heard.window as f64 / LIMIT as f64),
        wire: CaseWire::Gemini,
        process: RecordedProcess::One,
    });
    let prompts = heard.prompts.iter().map(|p| p.to_string()).collect();
    out.outcome = Some(Outcome { prompts: Some(prompts), ..Outcome::default() });
    out
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
        _ if p.instructs() => Classification::Constant(BlockKind::Base, None),
        BlockKind::User if r.summary && i + 1 == r.pieces.len() => {
            let name = match is_check(r, summaries) {
                true => "prompt_verify",
                false if is_anchored(r) => "prompt_anchored",
                false => "prompt_new",
            };
            Classification::Constant(BlockKind::SummaryPrompt, Some(name))
        }
        BlockKind::User if written(p) => Classification::Said(BlockKind::Summary),
        BlockKind::User if !p.said && before.instructs() => {
            Classification::Constant(BlockKind::Context, None)
        }
        BlockKind::Assistant if r.summary && i + 2 == r.pieces.len() && written(p) => {
            Classification::Said(BlockKind::Summary)
        }
        BlockKind::Assistant if i > 0 && before.of_user() && written(before) => {
            Classification::Constant(BlockKind::Ack, Some("ack"))
        }
        kind => Classification::Said(kind),
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_core::block::Role;

    use super::*;
    use crate::record::testing::{new_request, new_session, piece};

    #[test]
    fn draft_check_and_acknowledgement_are_known_by_where_they_stand() {
        let base = || piece(Role::Instructions, "be good", false);
        let own = |text| piece(Role::User, text, false);
        let said = |text| piece(Role::User, text, true);
        let reply = |text, said| piece(Role::Assistant, text, said);
        let context = || own("a \u{e9}\n");
        let after = vec![base(), own("FINAL"), reply("I see.", false), said("go on")];
        let draft = vec![base(), context(), reply("DRAFT", true), own("Is it all?")];
        let requests = [
            new_request(false, vec![base(), context(), said("mend it")]),
            new_request(true, vec![base(), context(), said("mend it"), own("Sum up.")]),
            new_request(true, draft),
            new_request(false, after),
        ];
        let heard = RecordedSession {
            window: LIMIT / 16,
            prompts: &["done", "error"],
            ..new_session("gemini", &requests, &["DRAFT", "FINAL"])
        };
        let out = read(&heard);
        let phases: Vec<Option<&str>> = out.requests.iter().map(|(p, _)| p.as_deref()).collect();
        assert_eq!(phases, [None, Some("summary"), Some("verify"), None]);
        let prompt = |name| Classification::Constant(BlockKind::SummaryPrompt, Some(name));
        assert_eq!(out.requests[1].1[3], prompt("prompt_new"));
        let said = Classification::Said(BlockKind::Summary);
        assert_eq!(out.requests[2].1[2..], [said, prompt("prompt_verify")]);
        assert_eq!(
            out.requests[3].1[1..],
            [
                Classification::Said(BlockKind::Summary),
                Classification::Constant(BlockKind::Ack, Some("ack")),
                Classification::Said(BlockKind::User)
            ]
        );
        let of = ["prompt_new", "prompt_verify", "ack"].map(|name| out.constants[name].bytes());
        assert_eq!(of, [7, 10, 6]);
        assert_eq!(out.settings["compression_threshold"], 0.5 / 16.0);
        let prompts = ["done", "error"].map(str::to_string);
        assert_eq!(out.outcome.unwrap().prompts.unwrap(), prompts);
    }
}
