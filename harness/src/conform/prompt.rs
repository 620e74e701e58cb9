//! Summary prompts and summaries in the notation of cases: variable parts between constant texts.

use ctxbench_strategies::conform::text::expand;
use ctxbench_strategies::conform::{PromptForm, PromptPiece, SummaryForm};
use serde_json::Value;

/// Variable parts between the constants of a prompt.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Filled<'a> {
    pub(super) variant: Option<&'static str>,
    pub(super) transcript: &'a str,
    pub(super) prior: Option<&'a str>,
    pub(super) focus: Option<&'a str>,
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
        PromptPiece::Constant(_) | PromptPiece::Focus(_) => {}
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
            (PromptPiece::Focus(_), None) if rest.is_empty() => {}
            (PromptPiece::Focus(words), None) => {
                out.focus = Some(rest.strip_prefix(words.as_str())?);
                rest = "";
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

/// Writes a text of a case: plain text, a recipe, or an object with its size and a text or the
/// segments of a summary.
pub(super) fn body(v: &Value, form: &SummaryForm) -> Result<String, String> {
    if let Some(text) = v.get("text") {
        return expand(text).map_err(|e| e.to_string());
    }
    let Some(segments) = v.get("segments").and_then(Value::as_array) else {
        return expand(v).map_err(|e| e.to_string());
    };
    segments.iter().map(|s| segment(s, form)).collect()
}

fn segment(s: &Value, form: &SummaryForm) -> Result<String, String> {
    if let Some(name) = s.get("constant").and_then(Value::as_str) {
        let known = form.constants.iter().find(|(n, _)| *n == name);
        return known
            .map(|(_, words)| words.clone())
            .ok_or_else(|| format!("`{name}` is not a constant of this program's summaries"));
    }
    if let Some(files) = s.get("files") {
        let (_, show) = form.files.ok_or("this program lists no files in its summaries")?;
        return Ok(show(&names(&files["read"]), &names(&files["modified"])));
    }
    expand(&s["text"]).map_err(|e| e.to_string())
}

fn names(list: &Value) -> Vec<String> {
    let names = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn forms() -> Vec<PromptForm> {
        use PromptPiece::{Constant, Focus, Prior, Transcript};
        let c = |t: &str| Constant(t.to_string());
        let focus = || Focus("<focus>".into());
        vec![
            PromptForm {
                variant: Some("initial"),
                pieces: vec![c("<a>"), Transcript, c("<b>"), c("<first>"), focus()],
            },
            PromptForm {
                variant: Some("update"),
                pieces: vec![c("<a>"), Transcript, c("<b>"), c("<c>"), Prior, c("<d>"), focus()],
            },
        ]
    }

    #[test]
    fn forms_are_told_apart_by_their_constants() {
        let filled = |text| read(&forms(), text);
        let got = filled("<a>talk<b><first>").unwrap();
        assert_eq!((got.variant, got.transcript, got.prior), (Some("initial"), "talk", None));
        let got = filled("<a>talk<b><c>old<d><focus>names").unwrap();
        assert_eq!(
            (got.variant, got.transcript, got.prior, got.focus),
            (Some("update"), "talk", Some("old"), Some("names"))
        );
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
        let segments = json!({"segments": [
            {"text": "a"}, {"constant": "join"}, {"text": {"repeat": "b", "times": 2}},
            {"files": {"read": ["x", "y"], "modified": ["z"]}},
        ]});
        assert_eq!(body(&segments, &form).unwrap(), "a--bb[x,y|z]");
        assert!(body(&json!({"segments": [{"constant": "other"}]}), &form).is_err());
        assert!(body(&segments["segments"][3], &SummaryForm::default()).is_err());
    }
}
