//! JSON documents: parsing of their beginnings, and location of list items by line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ctxbench_formats::lines::ObjectLine as RecordedLine;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::recording::Recording;
use super::source::Source;
use crate::error::InputError;
use crate::escapes;

/// Parses the value at the beginning of a text that may be truncated or damaged. A truncated value
/// is left out. A missing value after its name is null.
pub(super) fn beginning(text: &str) -> Value {
    let e = match serde_json::Deserializer::from_str(text).into_iter().next() {
        Some(Ok(value)) => return value,
        Some(Err(e)) => e,
        None => return Value::Null,
    };
    if let Cow::Owned(mended) = escapes::replace_lone_surrogates(text) {
        return beginning(&mended);
    }
    let lines = text.split_inclusive('\n').take(e.line().saturating_sub(1));
    let wrong = lines.map(str::len).sum::<usize>() + e.column().saturating_sub(1);
    let readable = if e.is_eof() { text } else { &text[..text.floor_char_boundary(wrong)] };
    serde_json::from_str(&closed(readable)).unwrap_or_default()
}

/// Returns a document that breaks off, up to its last complete item; `None` for any other text.
pub(super) fn closed_if_cut(text: &str) -> Option<String> {
    let error = serde_json::from_str::<IgnoredAny>(text).err()?;
    (error.is_eof() && !text.trim().is_empty()).then(|| closed(text))
}

/// Returns a text up to its last complete item, with the brackets that are still open closed. A
/// missing value after its name is null.
fn closed(text: &str) -> String {
    let (mut open, mut end, mut is_named) = (Vec::new(), 0, false);
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            if !quoted && is_named {
                (end, is_named) = (at + 1, false);
            }
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' => open.push('}'),
            b'[' => open.push(']'),
            b'}' | b']' => drop(open.pop()),
            b',' => (end, is_named) = (at, false),
            _ => {}
        }
        if matches!(byte, b'{' | b'[' | b'}' | b']' | b':') {
            (end, is_named) = (at + 1, byte == b':');
        }
    }
    let missing = if is_named { "null" } else { "" };
    text[..end].chars().chain(missing.chars()).chain(open.into_iter().rev()).collect()
}

/// Members of an object, as text.
pub(super) struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Members<'a> {
    pub(super) fn raw(&self, key: &str) -> Option<&'a RawValue> {
        self.0.get(key).copied()
    }

    /// Parses a member. Returns null if it is missing or damaged.
    pub(super) fn value(&self, key: &str) -> Value {
        self.raw(key).and_then(|raw| escapes::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// Returns a text that is not blank.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        match self.value(key) {
            Value::String(text) if !text.trim().is_empty() => Some(text),
            _ => None,
        }
    }

    /// Adds the members of another object that this one lacks.
    pub(super) fn or(mut self, other: &Members<'a>) -> Members<'a> {
        for (key, raw) in &other.0 {
            self.0.entry(key.clone()).or_insert(raw);
        }
        self
    }
}

/// JSON value as text, with its position in a file.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) text: &'a str,
    pub(super) file: &'a str,
    /// First line in the file, from 1.
    pub(super) line: usize,
}

impl<'a> Document<'a> {
    pub(super) fn new(text: &'a str, file: &'a str) -> Self {
        Document { text, file, line: 1 }
    }

    /// Reads a file that is one document.
    pub(super) fn from_source(source: &'a Source<'_>) -> Result<Self, InputError> {
        Ok(Document::new(source.text()?, source.name()))
    }

    pub(super) fn members(&self) -> Result<Members<'a>, InputError> {
        serde_json::from_str(self.text).map(Members).map_err(|e| self.error(&e))
    }

    /// Returns the document as a value with parts that can be located in it.
    pub(super) fn raw(&self) -> Result<&'a RawValue, InputError> {
        serde_json::from_str(self.text).map_err(|e| self.error(&e))
    }

    /// Returns a value inside the document as a document.
    pub(super) fn part(&self, raw: &'a RawValue) -> Document<'a> {
        LineCounter { document: self, at: 0, line: self.line }.document(raw)
    }

    /// Returns the items of a list in the document, or none if there is no list.
    pub(super) fn items(&self, list: Option<&'a RawValue>) -> Vec<Document<'a>> {
        let items = list.and_then(|list| serde_json::from_str(list.get()).ok());
        let items: Vec<&RawValue> = items.unwrap_or_default();
        let mut lines = LineCounter { document: self, at: 0, line: self.line };
        items.into_iter().map(|raw| lines.document(raw)).collect()
    }

    /// Parses the text as any JSON value.
    pub(super) fn value(&self) -> Result<Value, InputError> {
        escapes::from_str(self.text).map_err(|e| self.error(&e))
    }

    fn error(&self, e: &serde_json::Error) -> InputError {
        let line = self.line + e.line().max(1) - 1;
        let (what, fix) = if self.text.trim().is_empty() {
            ("the file is empty".to_string(), "export or copy it again")
        } else if e.is_eof() {
            ("the JSON breaks off here".to_string(), "export or copy it again, whole")
        } else {
            (format!("not readable as JSON ({e})"), "check that the program itself wrote the file")
        };
        InputError::new(line, what, EXPECTED, fix).at(self.file)
    }

    /// Returns the objects of a list in the document, if there is one. Other items are left out
    /// with a note.
    pub(super) fn objects(
        &self,
        list: Option<&'a RawValue>,
        notes: &mut Recording,
    ) -> Vec<RecordedLine> {
        let mut out = Vec::new();
        for (n, Document { text, line: number, .. }) in (1..).zip(self.items(list)) {
            match escapes::from_str(text) {
                Ok(object) => out.push(RecordedLine { number, object }),
                Err(e) => {
                    let what = format!("item {n} is not an object ({e})");
                    notes.leave_out(self.file, number, what);
                }
            }
        }
        out
    }
}

/// Valid content of a document, for errors.
const EXPECTED: &str = "a recording as its program wrote it";

/// Finds the line numbers of successive parts of a text.
struct LineCounter<'d, 'a> {
    document: &'d Document<'a>,
    at: usize,
    line: usize,
}

impl<'a> LineCounter<'_, 'a> {
    fn document(&mut self, part: &'a RawValue) -> Document<'a> {
        let Document { text, file, .. } = *self.document;
        let from = (part.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let passed = text.as_bytes().get(self.at..from).unwrap_or_default();
        self.line += passed.iter().filter(|b| **b == b'\n').count();
        self.at = self.at.max(from);
        Document { text: part.get(), file, line: self.line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_beginning_holds_what_is_there() {
        let whole = json!({"a": [1, {"b": "x", "c": [true, null, 2.5]}], "d": -1});
        assert_eq!(beginning(&whole.to_string()), whole);
        assert_eq!(beginning(r#"{"a":[1,{"b":"x","c":[tr"#), json!({"a":[1,{"b":"x","c":[]}]}));
        assert_eq!(beginning(r#"{"a":"cut he"#), json!({"a":null}));
        assert_eq!(beginning(r#"{"a":"whole""#), json!({"a":"whole"}));
        assert_eq!(beginning("{\"a\":[1],\n\"b\":[2,NaN],\"c\":3}"), json!({"a":[1],"b":[2]}));
        assert_eq!(
            beginning(r#"{"a":"half \ud83d","b":{"c":"d","e":"cut"#),
            json!({"a":"half \u{fffd}","b":{"c":"d","e":null}})
        );
        assert_eq!(beginning("no json"), Value::Null);
        assert_eq!(beginning(""), Value::Null);
    }

    #[test]
    fn objects_of_a_list_have_their_lines() {
        let text = "{\n \"n\": 1,\n \"list\": [\n  {\"a\": 1},\n  7,\n  {\n   \"a\": 2\n  }\n ]\n}";
        let document = Document { line: 11, ..Document::new(text, "x.json") };
        let members = document.members().unwrap();
        let mut notes = Recording::default();
        let lines = document.objects(members.raw("list"), &mut notes);
        assert_eq!(lines.iter().map(|l| l.number).collect::<Vec<_>>(), [14, 16]);
        assert!(notes.warnings[0].starts_with("x.json:15: item 2 is not an object"));
        assert_eq!(notes.broken, [15]);
    }

    #[test]
    fn half_a_character_costs_no_item() {
        let text = r#"{"list":[{"a":"\ud83d"},{"a":2}],"b":"\ude00"}"#;
        let document = Document::new(text, "x.json");
        let mut notes = Recording::default();
        let members = document.members().unwrap();
        let lines = document.objects(members.raw("list"), &mut notes);
        assert_eq!((lines[0].object["a"].as_str(), lines.len()), (Some("\u{fffd}"), 2));
        assert!(notes.warnings.is_empty(), "{:?}", notes.warnings);
        assert_eq!(document.value().unwrap()["b"], "\u{fffd}");
    }

    #[test]
    fn errors_say_where_it_breaks_off() {
        let of = |text| Document::new(text, "x.json").members().err().unwrap().to_string();
        let cut = of("{\n \"a\": [1,\n");
        let begin = "x.json:3: the JSON breaks off here; expected a recording";
        assert!(cut.starts_with(begin), "{cut}");
        assert!(of("").contains("the file is empty"));
        assert!(of("{\"a\" 1}").contains("x.json:1: not readable as JSON"));
    }
}
