//! Errors in TOML files of users, with the line and a similar name.

use serde::de::DeserializeOwned;

use crate::{nearest, serde_error};

/// Start offsets of the lines of a text.
pub struct Lines(Vec<usize>);

impl Lines {
    pub fn new(text: &str) -> Lines {
        Lines(std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect())
    }

    /// Returns the line of a byte offset, counted from 1.
    pub fn line_at(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset).max(1)
    }
}

/// An error in a file of the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct TomlError {
    /// Path as the user wrote it.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// The problem, the expected value, and the remedy.
    pub what: String,
}

/// Parses the text of a file. An unknown key or word is reported with similar ones.
pub fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, TomlError> {
    toml::from_str(text).map_err(|e| error(file, text, &e))
}

/// Converts an error of the parser.
pub fn error(file: &str, text: &str, e: &toml::de::Error) -> TomlError {
    let line = e.span().map_or(1, |s| Lines::new(text).line_at(s.start));
    TomlError { file: file.into(), line, what: describe(e, text) }
}

const TABLE: &str = "a table";

/// Describes an error without its position. `text` is the parsed text, or empty.
pub fn describe(e: &toml::de::Error, text: &str) -> String {
    let what = e.message().split_whitespace().collect::<Vec<_>>().join(" ");
    let at = |what: &str| match e.span().and_then(|s| key(text, s.start)) {
        Some(key) => format!("{key}: {what}"),
        None => what.to_string(),
    };
    let unquoted = || e.span().and_then(|s| unquoted(text, s.start));
    unknown(&what).or_else(|| missing(&what)).or_else(unquoted).unwrap_or_else(|| {
        let what = match what.strip_prefix("wanted ") {
            Some(kind) => format!("it does not fit; expected {}", serde_error::kind(kind, TABLE)),
            None => serde_error::describe(&what, TABLE),
        };
        let what = match &*what {
            "it is a table; expected a list" => format!("{what}; write its tables as [[…]]"),
            _ => what,
        };
        if what.starts_with("it ") { at(&what) } else { what }
    })
}

/// Describes text without quotes at the offset of a value.
fn unquoted(text: &str, value: usize) -> Option<String> {
    let key = key(text, value).filter(|_| text[..value].trim_end().ends_with('='))?;
    let rest = text.get(value..)?.lines().next()?;
    let word = rest.split([',', '#', ']', '}']).next()?.trim();
    let is_text = word.starts_with(char::is_alphabetic)
        && !["true", "false", "nan", "inf"].contains(&word)
        && !word.contains(['"', '\'']);
    is_text.then(|| format!("{key}: {word} has no quotes; write \"{word}\""))
}

/// Returns the key of the value at an offset, or the table with its header there.
fn key(text: &str, value: usize) -> Option<&str> {
    let before = text.get(..value)?;
    let begin = before.rfind('\n').map_or(0, |i| i + 1);
    let line = &before[begin..];
    let head = text[begin..].lines().next()?.trim();
    if let Some(head) = head.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        return Some(head.trim());
    }
    let key = line.rsplit(['{', ',']).next()?.trim().strip_suffix('=')?.trim();
    (!key.is_empty()).then_some(key)
}

/// Rewrites serde's "missing field `x`".
fn missing(what: &str) -> Option<String> {
    let name = what.strip_prefix("missing field `")?.strip_suffix('`')?;
    Some(format!("`{name}` is missing"))
}

/// Rewrites serde's "unknown field `x`, expected one of `a`, `b`" with similar names instead of all.
pub fn unknown(what: &str) -> Option<String> {
    let kind = ["field", "variant"].into_iter().find(|k| what.starts_with(&format!("unknown {k}")));
    let word = if kind? == "field" { "key" } else { "word" };
    let mut quoted = what.split('`').skip(1).step_by(2);
    let given = quoted.next()?;
    let known: Vec<&str> = quoted.collect();
    (!known.is_empty())
        .then(|| format!("unknown {word} `{given}`; {}", nearest::hint(given, &known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_at_converts_offsets() {
        let lines = Lines::new("a\nbc\n\nd");
        assert_eq!([0, 1, 2, 4, 5, 6, 99].map(|o| lines.line_at(o)), [1, 1, 2, 2, 3, 4, 4]);
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Provider {
        Anthropic,
        Openai,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct TestForm {
        #[allow(dead_code, reason = "only its name matters")]
        window: u64,
        #[allow(dead_code, reason = "only its name matters")]
        provider: Option<Provider>,
    }

    #[test]
    fn errors_have_line_and_similar_name() {
        let told = |text: &str| read::<TestForm>("f.toml", text).unwrap_err().to_string();
        for (text, expected) in [
            ("window = 1\nwindw = 2\n", "2: unknown key `windw`; did you mean window?"),
            ("window = 1\nprovider = \"opnai\"\n", "2: unknown word `opnai`; did you mean openai?"),
            (
                "\nwindow = \"a\"\n",
                "2: window: it is the text \"a\"; expected a whole number from 0 on",
            ),
            ("provider = \"openai\"", "1: `window` is missing"),
            ("window = 1\nprovider = 5\n", "2: provider: it does not fit; expected a word"),
            ("[window]\n", "1: window: it is a table; expected a whole number from 0 on"),
        ] {
            assert_eq!(told(text), format!("f.toml:{expected}"));
        }
        assert!(told("window = = 1").starts_with("f.toml:1: "));
        for text in ["foo", "open ai", "true-ish", "some.thing"] {
            assert_eq!(
                told(&format!("window = 1\nprovider = {text} # which\n")),
                format!("f.toml:2: provider: {text} has no quotes; write \"{text}\"")
            );
        }
    }
}
