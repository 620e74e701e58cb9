//! Recordings of real programs. A format is one file with an [`Importer`] and one line in [`ALL`].

mod build;
mod chain;
pub mod claude_code;
mod claude_content;
pub mod codex;
mod codex_content;
pub(crate) mod companions;
pub mod pi;
mod sidechains;
mod time;

use ctxbench_core::nearest;
use serde_json::{Map, Value};

use crate::autofacts;
use crate::error::{ImportError, LoadError, Loaded};
use crate::jsonl::numbered;

pub use time::millis;

/// A recording format.
pub trait Importer: Sync {
    /// Name for `--format` and for the session's source.
    fn name(&self) -> &'static str;
    /// Whether a file with this content is of the format; looks at the first lines only.
    fn sniff(&self, text: &str) -> bool;
    /// The session in a recording. `file` is the file's name, for messages and for the session's id.
    fn import(&self, text: &str, file: &str) -> Result<Loaded, ImportError>;
}

/// Every recording format, in the order in which they are tried.
pub static ALL: &[&dyn Importer] = &[&claude_code::ClaudeCode, &codex::Codex, &pi::Pi];

/// The format of a recording, if one of [`ALL`] knows it.
pub fn detect(text: &str) -> Option<&'static dyn Importer> {
    ALL.iter().copied().find(|i| i.sniff(text))
}

/// The format called `name`.
pub fn by_name(name: &str) -> Result<&'static dyn Importer, LoadError> {
    ALL.iter().copied().find(|i| i.name() == name).ok_or_else(|| {
        let known: Vec<&str> = ALL.iter().map(|i| i.name()).collect();
        LoadError::NoSuchFormat { name: name.to_string(), hint: nearest::hint(name, &known) }
    })
}

/// Imports a recording and finds its facts; see [`autofacts`].
pub fn import(importer: &dyn Importer, text: &str, file: &str) -> Result<Loaded, ImportError> {
    let mut loaded = importer.import(text, file)?;
    autofacts::add(&mut loaded.session);
    Ok(loaded)
}

/// One line of a recording.
struct Line {
    number: usize,
    object: Map<String, Value>,
}

/// The JSON objects of a recording with their lines. Broken lines are left out and reported; `cut` is the last one's case.
fn objects(text: &str, file: &str, warnings: &mut Vec<String>) -> Vec<Line> {
    let mut out = Vec::new();
    let mut lines = numbered(text).peekable();
    while let Some((number, content)) = lines.next() {
        match serde_json::from_str(content) {
            Ok(object) => out.push(Line { number, object }),
            Err(e) if lines.peek().is_none() && e.is_eof() => {
                warnings.push(format!("{file}:{number}: the last line breaks off; what stands before it is used"));
            }
            Err(e) => warnings.push(format!("{file}:{number}: not a JSON object ({e}); left out")),
        }
    }
    out
}

/// The first objects of a text, for sniffing.
fn first_objects(text: &str) -> impl Iterator<Item = Map<String, Value>> {
    numbered(text).take(20).filter_map(|(_, l)| serde_json::from_str(l).ok())
}

fn str_of<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

fn flag(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).and_then(Value::as_bool).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_format_tells_the_nearest() {
        let e = by_name("claud-code").err().unwrap().to_string();
        assert!(e.contains("did you mean claude-code"), "{e}");
        assert_eq!(by_name("codex").unwrap().name(), "codex");
    }

    #[test]
    fn broken_lines_are_reported_and_the_rest_is_kept() {
        let mut warnings = Vec::new();
        let lines = objects("{\"a\":1}\nnoise\n\n{\"b\":2}\n{\"c\":", "r.jsonl", &mut warnings);
        assert_eq!(lines.iter().map(|l| l.number).collect::<Vec<_>>(), [1, 4]);
        assert!(warnings[0].starts_with("r.jsonl:2: not a JSON object"), "{warnings:?}");
        assert!(warnings[1].starts_with("r.jsonl:5: the last line breaks off"), "{warnings:?}");
    }
}
