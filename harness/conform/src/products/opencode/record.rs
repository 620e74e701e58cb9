//! Classification of the requests of a driven OpenCode.

use std::collections::BTreeSet;

use ctxbench_core::block::{BlockKind, Role};

use super::{RecordedCompaction, RecordedSettings};
use crate::case::{CaseModel, CaseWire, Segment};
use crate::record::{
    CasePiece, CaseRecording, Classification, ProgramNotes, RecordedRequest, RecordedSession,
    SessionReading,
};

pub(super) const RECORDING: CaseRecording = CaseRecording {
    notes: |_| ProgramNotes::default(),
    read,
    texts_apart: false,
    limits_replies: true,
    context_chars: false,
};

/// Text around the conversation in a summary prompt (docs/sources/opencode.md §3.2.7).
const CONVERSATION: [&str; 2] = ["<conversation>\n", "\n</conversation>"];
/// Text around the previous summary.
const PRIOR: [&str; 2] = ["<prior-summary>\n", "\n</prior-summary>"];

/// The program's own user messages, by their text.
#[derive(Default)]
struct OwnMessages<'a> {
    /// Texts before a summary.
    markers: BTreeSet<&'a str>,
    /// Request to continue after a compaction.
    go_on: Option<&'a str>,
    /// Request to continue after a compaction of a prompt that was too large.
    go_on_overflow: Option<&'a str>,
}

impl<'a> OwnMessages<'a> {
    fn from_session(heard: &'a RecordedSession<'a>) -> OwnMessages<'a> {
        let mut own = OwnMessages::default();
        for r in heard.requests {
            let of_user = |p: &&CasePiece<'a>| p.of_user() && !p.said;
            for [a, b] in r.pieces.array_windows() {
                if of_user(&a) && is_summary(b, heard.summaries) {
                    own.markers.insert(a.texts[0]);
                }
            }
        }
        let mut overflowed = false;
        for r in heard.requests {
            if r.overflowed && !r.summary {
                overflowed = true;
            }
            if r.summary || r.overflowed {
                continue;
            }
            let mine =
                |p: &&CasePiece<'a>| p.of_user() && !p.said && !own.markers.contains(p.text());
            let Some(last) = r.pieces.iter().rev().find(mine) else { continue };
            let known = [own.go_on, own.go_on_overflow];
            if known.iter().flatten().all(|k| *k != last.text()) {
                let place = if overflowed { &mut own.go_on_overflow } else { &mut own.go_on };
                place.get_or_insert(last.texts[0]);
            }
            overflowed = false;
        }
        own
    }

    fn texts(&self) -> Vec<(&'static str, &'a str)> {
        let marker = self.markers.iter().next().copied();
        let all = [
            ("marker", marker),
            ("continue", self.go_on),
            ("continue_after_overflow", self.go_on_overflow),
        ];
        all.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }
}

fn is_summary(p: &CasePiece<'_>, summaries: &[&str]) -> bool {
    p.kind == BlockKind::Assistant && summaries.iter().any(|s| !s.is_empty() && *s == p.text())
}

fn read(heard: &RecordedSession<'_>) -> SessionReading {
    let anthropic = heard.wire == "anthropic-messages";
    let mut out = SessionReading {
        // On the chat wire the system prompt is a message too.
        numbered: Some(usize::from(!anthropic)),
        cache_beside_input: anthropic,
        ..SessionReading::default()
    };
    let own = OwnMessages::from_session(heard);
    let texts = own.texts().into_iter();
    let placeholders: Vec<(&str, String)> =
        texts.map(|(name, text)| (text, out.replace(name, text))).collect();
    for r in heard.requests {
        out.add(r, None, |i, p| sorted(r, i, p, &own, heard.summaries, &placeholders));
    }
    let (context, output) = (heard.window, Some(heard.max_output));
    out.set(&RecordedSettings {
        model: CaseModel { name: None, context, output, input: None },
        compaction: RecordedCompaction::default(),
        compaction_model: None,
        wire: if anthropic { CaseWire::Anthropic } else { CaseWire::OpenaiChat },
    });
    out
}

fn sorted(
    r: &RecordedRequest<'_>,
    i: usize,
    p: &CasePiece<'_>,
    own: &OwnMessages<'_>,
    summaries: &[&str],
    placeholders: &[(&str, String)],
) -> Classification {
    if p.instructs() {
        return Classification::Constant(BlockKind::Base, None);
    }
    if p.of_user() {
        let whole = r.summary && r.pieces[..i].iter().all(CasePiece::instructs);
        if whole && let Some(prompt) = prompt(p.text(), placeholders) {
            return prompt;
        }
        return match p.text() {
            _ if r.summary && i + 1 == r.pieces.len() => {
                Classification::Constant(BlockKind::SummaryPrompt, None)
            }
            text if own.markers.contains(text) => Classification::Constant(BlockKind::Marker, None),
            _ if p.said => Classification::Said(BlockKind::User),
            _ => Classification::Constant(BlockKind::Continue, None),
        };
    }
    let behind_marker = i > 0 && own.markers.contains(r.pieces[i - 1].text());
    if p.role == Role::Assistant && behind_marker && is_summary(p, summaries) {
        return Classification::Said(BlockKind::Summary);
    }
    Classification::Said(p.kind)
}

/// Splits a summary prompt into its parts, with fillers for the program's own messages.
fn prompt(text: &str, placeholders: &[(&str, String)]) -> Option<Classification> {
    let [open, close] = CONVERSATION;
    let (_, rest) = text.split_once(open)?;
    // The conversation may contain the same text; the closing tag is the last one.
    let (conversation, rest) = rest.rsplit_once(close)?;
    let [open, close] = PRIOR;
    let prior = rest.split_once(open).and_then(|(_, r)| r.rsplit_once(close)).map(|(p, _)| p);
    let constant_bytes = text.len() - conversation.len() - prior.map_or(0, str::len);
    let put = |t: String, (from, to): &(&str, String)| t.replace(from, to);
    let transcript = placeholders.iter().fold(conversation.to_string(), put);
    let name = if prior.is_none() { "summary_prompt_first" } else { "summary_prompt_with_prior" };
    let prior = prior.map(Segment::written).into_iter().collect();
    let constant = (name, constant_bytes);
    Some(Classification::Prompt { variant: None, transcript, prior, constant })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{new_request, new_session, piece};

    #[test]
    fn marker_summary_and_go_on_are_known_by_their_order() {
        let system = || piece(Role::System, "be good", false);
        let first = "Sum up <conversation>\n[User]: mend it\n</conversation> now.";
        let second = "Sum up <conversation>\n[User]: Go on!\n</conversation> with \
                      <prior-summary>\nS1\n</prior-summary> now.";
        let user = |text, said| piece(Role::User, text, said);
        let reply = piece(Role::Assistant, "S1", true);
        let requests = [
            new_request(false, vec![system(), user("mend it", true)]),
            new_request(true, vec![system(), user(first, true)]),
            new_request(
                false,
                vec![system(), user("What now?", false), reply, user("Go on!", false)],
            ),
            new_request(true, vec![system(), user(second, true)]),
        ];
        let heard = new_session("openai-chat", &requests, &["S1"]);
        let out = read(&heard);
        let base = || Classification::Constant(BlockKind::Base, None);
        assert_eq!(out.requests[0].1, [base(), Classification::Said(BlockKind::User)]);
        let Classification::Prompt { transcript, prior, constant, .. } = &out.requests[1].1[1]
        else {
            panic!("{:?}", out.requests[1])
        };
        assert_eq!((transcript.as_str(), prior), ("[User]: mend it", &vec![]));
        assert_eq!(constant.1, first.len() - "[User]: mend it".len());
        assert_eq!(
            out.requests[2].1[1..],
            [
                Classification::Constant(BlockKind::Marker, None),
                Classification::Said(BlockKind::Summary),
                Classification::Constant(BlockKind::Continue, None)
            ]
        );
        let Classification::Prompt { transcript, prior, .. } = &out.requests[3].1[1] else {
            panic!()
        };
        // The transcript contains only the size of the program's message.
        let s1 = vec![Segment::written("S1")];
        assert_eq!((transcript.as_str(), prior), ("[User]: <conti", &s1));
        assert_eq!(out.constants["continue"].bytes(), 6);
        assert_eq!(out.constants["summary_prompt_first"].bytes(), first.len() - 15);
        assert_eq!(out.numbered, Some(1));
    }
}
