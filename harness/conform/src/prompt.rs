//! Summary prompts and summaries in the notation of cases: variable parts between constant texts.

use crate::case::Segment;
use crate::{PromptForm, PromptPiece, SummaryForm};

/// Variable parts between the constants of a prompt.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Filled<'a> {
    pub(super) variant: Option<&'static str>,
    pub(super) transcript: &'a str,
    pub(super) prior: Option<&'a str>,
}

/// Parses a prompt with the first form that matches.
pub(super) fn read<'a>(forms: &[PromptForm], text: &'a str) -> Option<Filled<'a>> {
    forms.iter().find_map(|f| in_form(f, text))
}

fn in_form<'a>(form: &PromptForm, text: &'a str) -> Option<Filled<'a>> {
    let mut out = Filled { variant: form.variant, ..Filled::default() };
    let mut rest = text;
    // A variable part that ends at the next constant.
    let mut open: Option<&PromptPiece> = None;
    let take = |out: &mut Filled<'a>, piece: &PromptPiece, found: &'a str| match piece {
        PromptPiece::Transcript => out.transcript = found,
        PromptPiece::Prior => out.prior = Some(found),
        PromptPiece::Constant(_) => {}
    };
    let mut pieces = form.pieces.iter().peekable();
    while let Some(piece) = pieces.next() {
        match (piece, open.take()) {
            (PromptPiece::Constant(words), None) => rest = rest.strip_prefix(words.as_str())?,
            (PromptPiece::Constant(words), Some(before)) => {
                // Several constants in a row end it together.
                let mut end = words.clone();
                while let Some(PromptPiece::Constant(more)) = pieces.peek() {
                    end.push_str(more);
                    pieces.next();
                }
                let (found, behind) = rest.split_once(end.as_str())?;
                take(&mut out, before, found);
                rest = behind;
            }
            (piece, None) => open = Some(piece),
            (_, Some(_)) => return None,
        }
    }
    if let Some(last) = open {
        take(&mut out, last, std::mem::take(&mut rest));
    }
    rest.is_empty().then_some(out)
}

/// Puts the segments of a summary together.
pub(super) fn body(segments: &[Segment], form: &SummaryForm) -> Result<String, String> {
    segments.iter().map(|s| segment(s, form)).collect()
}

fn segment(s: &Segment, form: &SummaryForm) -> Result<String, String> {
    let text = if let Some(name) = &s.constant {
        let known = form.constants.iter().find(|(n, _)| n == name);
        let unknown = || format!("`{name}` is not a constant of this program's summaries");
        known.ok_or_else(unknown)?.1.clone()
    } else if let Some(files) = &s.files {
        let (_, show) = form.files.ok_or("this program lists no files in its summaries")?;
        show(&files.read, &files.modified)
    } else {
        s.text.clone().unwrap_or_default()
    };
    match text.len() == s.bytes {
        true => Ok(text),
        false => Err(format!("{} bytes in place of {}", text.len(), s.bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn forms() -> Vec<PromptForm> {
        use PromptPiece::{Constant, Prior, Transcript};
        let c = |t: &str| Constant(t.to_string());
        vec![
            PromptForm {
                variant: Some("initial"),
                pieces: vec![c("<a>"), Transcript, c("<b>"), c("<first>")],
            },
            PromptForm {
                variant: Some("update"),
                pieces: vec![c("<a>"), Transcript, c("<b>"), c("<c>"), Prior, c("<d>")],
            },
        ]
    }

    #[test]
    fn forms_are_told_apart_by_their_constants() {
        let filled = |text| read(&forms(), text);
        let got = filled("<a>talk<b><first>").unwrap();
        assert_eq!((got.variant, got.transcript, got.prior), (Some("initial"), "talk", None));
        let got = filled("<a>talk<b><c>old<d>").unwrap();
        assert_eq!((got.variant, got.transcript, got.prior), (Some("update"), "talk", Some("old")));
        for odd in ["<a>talk<b>", "<a>talk<b><first>more", "talk<b><first>", "<a>talk<b><c>old"] {
            assert_eq!(filled(odd), None, "{odd}");
        }
    }

    #[test]
    fn segments_are_put_together() {
        let form = SummaryForm {
            constants: vec![("join", "--".into())],
            files: Some((
                |_| Default::default(),
                |r, m| format!("[{}|{}]", r.join(","), m.join(",")),
            )),
            ..SummaryForm::default()
        };
        let all: Vec<Segment> = serde_json::from_value(json!([
            {"text": "a", "bytes": 1}, {"constant": "join", "bytes": 2}, {"text": "bb", "bytes": 2},
            {"files": {"read": ["x", "y"], "modified": ["z"]}, "bytes": 7},
        ]))
        .unwrap();
        assert_eq!(body(&all, &form).unwrap(), "a--bb[x,y|z]");
        let other = Segment { constant: Some("other".into()), ..Segment::default() };
        assert!(body(&[other], &form).is_err());
        assert!(body(&all[3..], &SummaryForm::default()).is_err());
        let longer = Segment { bytes: 2, ..all[0].clone() };
        assert!(body(&[longer], &form).is_err());
    }
}
