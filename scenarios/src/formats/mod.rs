//! Readers for recordings of real programs. A format is a folder with a [`Format`] and a line in
//! [`ALL`].
//!
//! A format has one reader, which converts a [`Source`], a file or a folder, to [`Recording`]s, one
//! at a time. Import and validation both use this result.

mod actions;
mod aider;
mod archive;
mod atif;
mod claude_code;
mod cline;
mod codex;
mod companions;
#[cfg(test)]
mod damage_tests;
pub mod exchanges;
mod foreign;
mod gemini_cli;
mod inspect_ai;
mod json;
mod lines;
mod messages;
mod mini_swe_agent;
mod opencode;
mod openhands;
#[cfg(test)]
mod packed_tests;
mod pi;
mod plausible;
mod qwen_code;
mod recording;
mod session;
mod source;
mod swe_agent;
#[cfg(test)]
pub(crate) mod testing;
mod time;
mod unpack;

use std::ops::ControlFlow;
use std::path::PathBuf;

use ctxbench_util::nearest;
use ctxbench_util::plural::pluralize;

use crate::autofacts;
use crate::error::{InputError, LoadError, Loaded};

pub use archive::Archive;
pub(crate) use archive::below;
pub(crate) use foreign::program as foreign_program;
pub use lines::RecordedLine;
pub use recording::{
    ContextPlace, Counters, Input, MessagePart, NoteKind, ProviderRoute, Recording,
    RecordingCompaction, RecordingReply, RecordingStep, StepKind, View,
};
pub use source::{Head, Source};
pub(crate) use source::{unpacked, unread};
pub use time::millis;
pub(crate) use time::of_millis;

/// Reader of a recording format.
pub struct Format {
    /// Name of the format for display.
    pub title: &'static str,
    /// Name for the session's source.
    pub name: &'static str,
    /// Properties of a session that its recordings lack, as the end of a sentence.
    pub untold: &'static str,
    /// Returns whether a source has this format, judging by its beginning.
    pub sniff: fn(&Head) -> bool,
    /// Passes the sessions of a source to the sink one at a time. A session that cannot be read is
    /// passed as an error.
    read: fn(&Source<'_>, &mut Sink<'_>) -> Result<(), Ended>,
    /// Returns the companion files that the sessions of a source include and that are recordings of
    /// the format themselves. Avoids reading the whole source where possible.
    pub parts: fn(&Source<'_>) -> Vec<PathBuf>,
}

/// [`Format::parts`] of a format with one file per session.
fn no_parts(_: &Source<'_>) -> Vec<PathBuf> {
    Vec::new()
}

/// Receives the sessions of a source.
type Sink<'a> = dyn FnMut(Result<Recording, InputError>) -> Result<(), Ended> + 'a;

/// End of the reading of a source.
enum Ended {
    /// The receiver wants no more sessions.
    Enough,
    /// The source cannot be read any further.
    Unreadable(InputError),
}

impl From<InputError> for Ended {
    fn from(e: InputError) -> Ended {
        Ended::Unreadable(e)
    }
}

/// All recording formats, in the order in which they are tried.
pub static ALL: &[&Format] = &[
    &exchanges::FORMAT,
    &qwen_code::FORMAT,
    &claude_code::FORMAT,
    &codex::FORMAT,
    &pi::FORMAT,
    &inspect_ai::FORMAT,
    &swe_agent::FORMAT,
    &mini_swe_agent::FORMAT,
    &opencode::FORMAT,
    &openhands::FORMAT,
    &gemini_cli::FORMAT,
    &atif::FORMAT,
    &aider::FORMAT,
    &cline::FORMAT,
    &messages::ANTHROPIC,
    &messages::RESPONSES,
    &messages::CHAT,
];

/// Returns the format of a source, or `None` if no format of [`ALL`] recognises it.
pub fn detect(source: &Source<'_>) -> Option<&'static Format> {
    detect_head(&source.head().ok()?)
}

/// Returns the format that recognises a beginning. Files of programs that are not read have none.
pub fn detect_head(head: &Head) -> Option<&'static Format> {
    if foreign::program(head).is_some() {
        return None;
    }
    ALL.iter().copied().find(|f| (f.sniff)(head))
}

/// Returns the format with this name.
pub fn by_name(name: &str) -> Result<&'static Format, LoadError> {
    ALL.iter().copied().find(|f| f.name == name).ok_or_else(|| LoadError::NoSuchFormat {
        kind: "recording format",
        name: name.to_string(),
        hint: nearest::hint(name, &names()),
    })
}

/// Returns the names of all formats.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|f| f.name).collect()
}

/// Returns the titles of all formats as text: "A, B or C".
pub fn titles() -> String {
    let titles: Vec<&str> = ALL.iter().map(|f| f.title).collect();
    match titles.split_last() {
        Some((last, [])) => last.to_string(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

impl Format {
    /// Passes the recordings of a source to the sink, and an error for each unreadable one. A
    /// source without any recording is an error as well.
    pub fn recordings(
        &self,
        source: &Source<'_>,
        sink: &mut dyn FnMut(Result<Recording, InputError>) -> ControlFlow<()>,
    ) {
        let mut any = false;
        let read = (self.read)(source, &mut |one| {
            any = true;
            let linked = one.map(|mut recording| {
                recording.link();
                recording
            });
            if sink(linked).is_break() { Err(Ended::Enough) } else { Ok(()) }
        });
        let expected = format!("a recording of {}", self.title);
        let nothing = InputError::new(1, "nothing in it", expected, "check the format");
        let error = match read {
            Err(Ended::Unreadable(e)) => e,
            Ok(()) if !any => nothing.at(source.name()),
            _ => return,
        };
        let _ = sink(Err(error));
    }

    /// Converts a recording to a session.
    pub fn session(&self, recording: Recording, file: &str) -> Result<Loaded, InputError> {
        session::put_together(recording, self.name, file)
    }

    /// Imports the sessions of a source with their facts, one at a time; see [`autofacts`].
    pub fn import(
        &self,
        source: &Source<'_>,
        mut sink: impl FnMut(Result<Imported, InputError>) -> ControlFlow<()>,
    ) {
        self.import_bare(source, |mut imported| {
            if let Ok(imported) = &mut imported {
                autofacts::add(&mut imported.loaded.session);
            }
            sink(imported)
        });
    }

    /// Imports without finding facts.
    pub(crate) fn import_bare(
        &self,
        source: &Source<'_>,
        mut sink: impl FnMut(Result<Imported, InputError>) -> ControlFlow<()>,
    ) {
        self.recordings(source, &mut |recording| {
            let imported = recording.and_then(|mut recording| {
                let beside = std::mem::take(&mut recording.beside);
                let mut loaded = self.session(recording, source.name())?;
                if !beside.is_empty() {
                    loaded.warnings.push(companions_note(&beside));
                }
                Ok(Imported { loaded, beside })
            });
            sink(imported)
        });
    }

    #[cfg(test)]
    fn session_of(&self, text: &str, file: &str) -> Result<Loaded, InputError> {
        let mut out = None;
        self.recordings(&Source::of_bytes(text.as_bytes(), file), &mut |recording| {
            out = Some(recording.and_then(|r| self.session(r, file)));
            ControlFlow::Break(())
        });
        out.expect("a format hands over a session or an error")
    }

    /// Returns all sessions of a source that is known to be small.
    pub fn import_all(&self, source: &Source<'_>) -> Result<Vec<Loaded>, InputError> {
        let mut all = Vec::new();
        self.import(source, |imported| {
            all.push(imported.map(|i| i.loaded));
            ControlFlow::Continue(())
        });
        all.into_iter().collect()
    }
}

/// Returns a note with the companion files that were read.
fn companions_note(beside: &[PathBuf]) -> String {
    let names: Vec<String> = beside.iter().map(|p| p.display().to_string()).collect();
    let (n, names) = (pluralize(names.len(), "file"), names.join(", "));
    format!("also read {n} next to it; line numbers count all of them together: {names}")
}

/// A session of a source.
#[derive(Debug)]
pub struct Imported {
    pub loaded: Loaded,
    /// Companion files that were read.
    pub beside: Vec<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_says_of_each_format_what_it_cannot_tell() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/formats.md");
        let page = std::fs::read_to_string(path).unwrap();
        for Format { title, name, untold, .. } in ALL {
            let row = page.lines().find(|l| l.starts_with(&format!("| {title} | `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("no row for {name}"));
            assert!(row.ends_with(&format!("| {untold} |")), "{name}: {row}");
        }
    }

    #[test]
    fn an_unknown_format_tells_the_nearest() {
        let e = by_name("claud-code").err().unwrap().to_string();
        assert!(e.contains("did you mean claude-code"), "{e}");
        assert_eq!(by_name("codex").unwrap().name, "codex");
    }
}
