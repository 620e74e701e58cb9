//! Interpretation of the requests of a recorded pi session.

use std::path::Path;

use ctxbench_core::block::BlockKind;
use ctxbench_core::tokens::utf16_len;
use serde_json::{Map, Value};

use super::RecordedSettings;
use crate::case::{CaseCompaction, CaseModel, CaseWire, Outcome, Segment};
use crate::record::{
    CasePiece, CaseRecording, Classification, ProgramNotes, RecordedRequest, RecordedSession,
    SessionReading, logged,
};

pub(super) const RECORDING: CaseRecording =
    CaseRecording { notes, read, texts_apart: false, limits_replies: true, context_chars: false };

/// Text around the conversation in a summary prompt (docs/sources/pi.md §3).
const CONVERSATION: [&str; 2] = ["<conversation>\n", "\n</conversation>\n\n"];
/// Text around the previous summary.
const PRIOR: [&str; 2] = ["<previous-summary>\n", "\n</previous-summary>\n\n"];
/// Tags around a summary (docs/sources/pi.md §3).
const SUMMARY: [&str; 2] = ["<summary>\n", "\n</summary>"];
/// Separator between the summary of the history and that of the beginning of a turn: a rule and a
/// bold heading with the program's text.
const JOIN: [&str; 2] = ["\n\n---\n\n**", "**\n\n"];

/// Texts around the beginning of a turn in a prompt that summarises only that.
const BEGINNING: [&str; 2] = ["# Conversation\n", "\n\n# Instructions\n"];

/// Reads the sizes of system prompt and tools from the first system message of the session file
/// (docs/sources/pi.md §1).
fn notes(scratch: &Path) -> ProgramNotes {
    let entries = logged(&scratch.join("sessions"));
    let mut messages = entries.filter_map(|mut entry| entry.get_mut("message").map(Value::take));
    let system = messages.find(|m| m["role"] == "system");
    system.map(|system| sizes(&system)).unwrap_or_default()
}

fn sizes(system: &Value) -> ProgramNotes {
    let sections = system["sections"].as_object().into_iter().flat_map(Map::values);
    let texts = sections.chain([&system["content"]]).filter_map(Value::as_str);
    let tools = system.get("toolsAdded").map_or(0, |t| utf16_len(&t.to_string()));
    let estimate = (texts.map(utf16_len).sum::<u64>() + tools).div_ceil(4);
    let (base_tokens, tools_utf16) = (Some(estimate), Some(tools as usize));
    ProgramNotes { base_bytes: None, base_tokens, tools_utf16 }
}

/// Lists the compactions that the program reported (docs/sources/pi.md §6): the completed ones, and
/// the reasons of the failed ones.
fn ends(told: &[Value]) -> Outcome {
    let (made, failed): (Vec<&Value>, Vec<&Value>) =
        told.iter().partition(|end| end.get("result").is_some_and(Value::is_object));
    let reason = |end: &Value| end["reason"].as_str().map(str::to_string);
    let files = |list: &Value| serde_json::from_value(list.clone()).ok();
    let one = |end: &Value| {
        let result = &end["result"];
        CaseCompaction {
            reason: reason(end),
            tokens_before: result["tokensBefore"].as_u64(),
            tokens_after: result["estimatedTokensAfter"].as_u64(),
            read_files: files(&result["details"]["readFiles"]),
            modified_files: files(&result["details"]["modifiedFiles"]),
        }
    };
    Outcome {
        compactions: Some(made.into_iter().map(one).collect()),
        failed: Some(failed.into_iter().filter_map(reason).collect()),
        ..Outcome::default()
    }
}

fn read(heard: &RecordedSession<'_>) -> SessionReading {
    // The system prompt is a message too.
    let mut out = SessionReading { numbered: Some(1), ..SessionReading::default() };
    for r in heard.requests {
        out.add(r, None, |i, _| sorted(r, i, heard.summaries));
    }
    let (context, output) = (heard.window, Some(heard.max_output));
    out.set(&RecordedSettings {
        model: CaseModel { name: None, context, output, input: None },
        compaction: None,
        retry: None,
        wire: CaseWire::OpenaiChat,
    });
    out.outcome = Some(ends(heard.told));
    out
}

fn sorted(r: &RecordedRequest<'_>, i: usize, summaries: &[&str]) -> Classification {
    let p = &r.pieces[i];
    let first = r.pieces[..i].iter().all(CasePiece::instructs);
    if p.instructs() {
        return Classification::Constant(BlockKind::Base, None);
    }
    if p.of_user() && first {
        let own =
            if r.summary { prompt(p.text(), summaries) } else { summary(p.text(), summaries) };
        if let Some(own) = own {
            return own;
        }
    }
    Classification::Said(p.kind)
}

/// Parses the message that contains a summary of the removed messages.
fn summary(text: &str, summaries: &[&str]) -> Option<Classification> {
    let (head, rest) = text.split_once(SUMMARY[0])?;
    Some(Classification::Segments {
        around: [head.len() + SUMMARY[0].len(), SUMMARY[1].len()],
        segments: segments(rest.strip_suffix(SUMMARY[1])?, summaries),
    })
}

/// Splits a summary into its parts: the summary of the history and, after a split turn, the summary
/// of the turn's beginning.
fn segments(body: &str, summaries: &[&str]) -> Vec<Segment> {
    let said = Segment::written;
    let joined = body.rmatch_indices(JOIN[0]).find_map(|(at, open)| {
        let words = at + open.len();
        let end = words + body[words..].find(JOIN[1])? + JOIN[1].len();
        // A model may write the same separator, so the text after it must be a summary that was
        // requested.
        summaries.iter().any(|s| s.trim() == body[end..].trim()).then_some((at, end))
    });
    let Some((at, end)) = joined.filter(|_| !summaries.contains(&body)) else {
        return vec![said(body)];
    };
    let history = &body[..at];
    let history = match summaries.iter().any(|s| s.contains(history)) {
        true => said(history),
        false => Segment::constant("no_history", history.len()),
    };
    vec![history, Segment::constant("split_join", end - at), said(&body[end..])]
}

/// Splits a summary prompt into its parts.
fn prompt(text: &str, summaries: &[&str]) -> Option<Classification> {
    let taken =
        |[variant, name]: [_; 2], transcript: &str, prior: Option<&str>| Classification::Prompt {
            variant: Some(variant),
            transcript: transcript.to_string(),
            prior: prior.map(|p| segments(p, summaries)).unwrap_or_default(),
            constant: (name, text.len() - transcript.len() - prior.map_or(0, str::len)),
        };
    let [initial, update, turn] = [
        ["initial", "prompt_initial"],
        ["update", "prompt_update"],
        ["turn_prefix", "prompt_turn_prefix"],
    ];
    if let Some(rest) = text.strip_prefix(CONVERSATION[0]) {
        // The conversation may contain the closing tag too, so the last one counts.
        let between = format!("{}{}", CONVERSATION[1], PRIOR[0]);
        return match rest.rsplit_once(&between) {
            Some((transcript, rest)) => {
                let (prior, _) = rest.rsplit_once(PRIOR[1])?;
                Some(taken(update, transcript, Some(prior)))
            }
            None => Some(taken(initial, rest.rsplit_once(CONVERSATION[1])?.0, None)),
        };
    }
    let (transcript, _) = text.strip_prefix(BEGINNING[0])?.rsplit_once(BEGINNING[1])?;
    Some(taken(turn, transcript, None))
}

#[cfg(test)]
mod tests {
    use ctxbench_core::block::Role;

    use serde_json::json;

    use super::*;
    use crate::record::testing::{new_request, new_session, piece};

    fn model_text(text: &str) -> Segment {
        Segment::written(text)
    }

    #[test]
    fn summaries_and_prompts_come_apart() {
        let join = "\n\n---\n\n**Begun:**\n\n";
        let whole = format!("Before:\n\n<summary>\nH{join}T\n</summary>");
        let first = "<conversation>\n[User]: mend it\n</conversation>\n\nSum up.";
        let turn = "# Conversation\n[User]: more\n\n# Instructions\nSum up.";
        let update = format!(
            "<conversation>\n[User]: on\n</conversation>\n\n\
             <previous-summary>\nH{join}T\n</previous-summary>\n\nAdd."
        );
        let system = || piece(Role::System, "be good", false);
        let sent =
            |summary, text| new_request(summary, vec![system(), piece(Role::User, text, true)]);
        let requests =
            [sent(true, first), sent(true, turn), sent(false, &whole), sent(true, &update)];
        let heard = new_session("openai-chat", &requests, &["H", "T", "U"]);
        let out = read(&heard);
        let of = |i: usize| &out.requests[i].1[1];
        let prompt = |[variant, name]: [_; 2], transcript: &str, prior, bytes| {
            let (variant, transcript) = (Some(variant), transcript.into());
            Classification::Prompt { variant, transcript, prior, constant: (name, bytes) }
        };
        let both =
            vec![model_text("H"), Segment::constant("split_join", join.len()), model_text("T")];
        assert_eq!(
            *of(0),
            prompt(["initial", "prompt_initial"], "[User]: mend it", vec![], first.len() - 15)
        );
        assert_eq!(
            *of(1),
            prompt(["turn_prefix", "prompt_turn_prefix"], "[User]: more", vec![], turn.len() - 12)
        );
        let around = ["Before:\n\n<summary>\n".len(), "\n</summary>".len()];
        assert_eq!(*of(2), Classification::Segments { around, segments: both.clone() });
        let words = update.len() - 10 - "HT".len() - join.len();
        assert_eq!(*of(3), prompt(["update", "prompt_update"], "[User]: on", both, words));
        assert_eq!(out.constants["summary_head"].bytes(), around[0]);
        assert_eq!(out.constants["split_join"].bytes(), join.len());
    }

    #[test]
    fn sizes_are_read_from_its_session_file() {
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(notes(scratch.path()), ProgramNotes::default());
        let folder = scratch.path().join("sessions");
        std::fs::create_dir(&folder).unwrap();
        // Sections of 4 and 5 units (the dash is one), and tools of 15 as JSON: 24 units are 6
        // tokens.
        let system = r#"{"type":"message","message":{"role":"system","content":"",
            "sections":{"preamble":"four","rules":"five\u2014"},"toolsAdded":[{"name":"sh"}]}}"#;
        let lines = format!("{{\"type\":\"session\"}}\n{}\n", system.replace('\n', ""));
        std::fs::write(folder.join("one.jsonl"), lines).unwrap();
        let sizes = ProgramNotes { base_bytes: None, base_tokens: Some(6), tools_utf16: Some(15) };
        assert_eq!(notes(scratch.path()), sizes);
    }

    #[test]
    fn compactions_end_as_it_says() {
        let result = json!({
            "summary": "S", "firstKeptEntryId": "e1", "tokensBefore": 16520,
            "estimatedTokensAfter": 2910,
            "details": {"readFiles": ["a.txt"], "modifiedFiles": []},
        });
        let end = |reason: &str, result: Value| json!({"type": "compaction_end", "reason": reason, "result": result, "aborted": false});
        let failed = json!({
            "type": "compaction_end", "reason": "overflow", "aborted": false, "errorMessage": "no"
        });
        let told = [end("threshold", Value::Null), end("threshold", result), failed];
        let outcome = ends(&told);
        let compaction = CaseCompaction {
            reason: Some("threshold".into()),
            tokens_before: Some(16_520),
            tokens_after: Some(2_910),
            read_files: Some(vec!["a.txt".into()]),
            modified_files: Some(vec![]),
        };
        assert_eq!(outcome.compactions, Some(vec![compaction]));
        assert_eq!(outcome.failed.unwrap(), ["threshold", "overflow"]);
        let (compactions, failed) = (Some(vec![]), Some(vec![]));
        assert_eq!(ends(&[]), Outcome { compactions, failed, ..Outcome::default() });
    }

    #[test]
    fn a_history_of_nothing_is_told_in_its_words() {
        let nothing = "None.\n\n---\n\n**Begun:**\n\nT";
        let words = [
            Segment::constant("no_history", 5),
            Segment::constant("split_join", nothing.len() - 6),
            model_text("T"),
        ];
        assert_eq!(segments(nothing, &["T"]), words);
        // A summary that contains the separator itself is one segment.
        assert_eq!(segments(nothing, &[nothing]), [model_text(nothing)]);
        assert_eq!(segments("plain", &[]), [model_text("plain")]);
    }
}
