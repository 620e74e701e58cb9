//! Summary prompts and summaries in the notation of cases: variable parts between constant texts.

use crate::case::Segment;
use crate::{PromptForm, SummaryForm};
use regex::Regex;

/// Variable parts between the constants of a prompt.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Filled<'a> {
    pub(super) variant: Option<&'static str>,
    pub(super) transcript: &'a str,
    pub(super) prior: Option<&'a str>,
}

/// Text of the conversation in a pattern, and of the previous summary.
pub(super) const TRANSCRIPT: &str = "(?<transcript>.*?)";
pub(super) const PRIOR: &str = "(?<prior>.*?)";

/// Creates a form of constant texts, and of [`TRANSCRIPT`] and [`PRIOR`] between them.
pub(super) fn form(variant: Option<&'static str>, pieces: &[&str]) -> PromptForm {
    let is_variable = |piece: &str| [TRANSCRIPT, PRIOR].contains(&piece);
    let piece = |p: &&str| if is_variable(p) { p.to_string() } else { regex::escape(p) };
    let pattern: String = pieces.iter().map(piece).collect();
    PromptForm { variant, pattern: Regex::new(&format!("(?s)^{pattern}$")).ok() }
}

/// Parses a prompt with the first form that matches.
pub(super) fn read<'a>(forms: &[PromptForm], text: &'a str) -> Option<Filled<'a>> {
    forms.iter().find_map(|f| {
        let found = f.pattern.as_ref()?.captures(text)?;
        let piece = |name| Some(found.name(name)?.as_str());
        let transcript = piece("transcript").unwrap_or_default();
        Some(Filled { variant: f.variant, transcript, prior: piece("prior") })
    })
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
        if !form.lists_files {
            return Err("this program lists no files in its summaries".into());
        }
        files.render()
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
        vec![
            form(Some("initial"), &["<a>", TRANSCRIPT, "<b>", "<first>"]),
            form(Some("update"), &["<a>", TRANSCRIPT, "<b>", "<c>", PRIOR, "<d>"]),
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
            lists_files: true,
            ..SummaryForm::default()
        };
        let all: Vec<Segment> = serde_json::from_value(json!([
            {"text": "a", "bytes": 1}, {"constant": "join", "bytes": 2}, {"text": "bb", "bytes": 2},
            {"files": {"read": ["x", "y"], "modified": ["z"]}, "bytes": 70},
        ]))
        .unwrap();
        let files =
            "\n\n<read-files>\nx\ny\n</read-files>\n\n<modified-files>\nz\n</modified-files>";
        assert_eq!(body(&all, &form).unwrap(), format!("a--bb{files}"));
        let other = Segment { constant: Some("other".into()), ..Segment::default() };
        assert!(body(&[other], &form).is_err());
        assert!(body(&all[3..], &SummaryForm::default()).is_err());
        let longer = Segment { bytes: 2, ..all[0].clone() };
        assert!(body(&[longer], &form).is_err());
    }
}
