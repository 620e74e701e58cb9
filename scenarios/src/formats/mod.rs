//! Recordings of real programs. A format is a folder with a [`Format`] and its line in [`ALL`].
//!
//! A format has one reader, which turns lines into the steps of a [`Recording`]; importing and
//! validating are two views of these.

mod claude_code;
mod codex;
mod companions;
mod lines;
mod pi;
mod recording;
mod session;
mod time;

use std::path::{Path, PathBuf};

use ctxbench_core::nearest;

use crate::autofacts;
use crate::error::{ImportError, LoadError, Loaded};

pub use lines::RecordedLine;
pub use recording::{
    Compaction, Counters, Input, NoteKind, Piece, Place, Recording, Reply, Route, Step, View, What,
};
pub use time::millis;

/// A recording format.
pub struct Format {
    /// As people write it.
    pub title: &'static str,
    /// Name for `--format` and for the session's source.
    pub name: &'static str,
    /// Whether a text is of the format; looks at the first lines only.
    pub sniff: fn(&str) -> bool,
    /// The objects of a text, in order; what cannot be read is noted in the recording. The file's
    /// name is for messages.
    pub objects: fn(&str, &str, &mut Recording) -> Vec<RecordedLine>,
    /// Adds what the objects hold to a recording.
    pub read: fn(Vec<RecordedLine>, &str, &mut Recording),
    /// The files beside a recording that belong to the same session.
    pub companions: fn(&Path, &str) -> Vec<PathBuf>,
}

/// For formats that keep a session in one file.
pub fn no_companions(_: &Path, _: &str) -> Vec<PathBuf> {
    Vec::new()
}

/// Every recording format, in the order in which they are tried.
pub static ALL: &[&Format] = &[&claude_code::FORMAT, &codex::FORMAT, &pi::FORMAT];

/// The format of a recording, if one of [`ALL`] knows it.
pub fn detect(text: &str) -> Option<&'static Format> {
    ALL.iter().copied().find(|f| (f.sniff)(text))
}

/// The format called `name`.
pub fn by_name(name: &str) -> Result<&'static Format, LoadError> {
    ALL.iter().copied().find(|f| f.name == name).ok_or_else(|| LoadError::NoSuchFormat {
        name: name.to_string(),
        hint: nearest::hint(name, &names()),
    })
}

/// The names of all formats.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|f| f.name).collect()
}

/// All formats as people write them: "A, B or C".
pub fn titles() -> String {
    let titles: Vec<&str> = ALL.iter().map(|f| f.title).collect();
    match titles.split_last() {
        Some((last, [])) => last.to_string(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

impl Format {
    /// Reads a recording. `file` is the file's name, for messages.
    pub fn recording(&self, text: &str, file: &str) -> Recording {
        self.with_companions(text, &[], file)
    }

    fn with_companions(&self, text: &str, others: &[String], file: &str) -> Recording {
        let mut out = Recording::default();
        let mut lines = (self.objects)(text, file, &mut out);
        if !others.is_empty() {
            let others = others.iter().map(|o| (self.objects)(o, file, &mut out));
            lines = companions::merged(std::iter::once(lines).chain(others.collect::<Vec<_>>()));
        }
        out.last_line = lines.last().map_or(1, |l| l.number);
        (self.read)(lines, file, &mut out);
        out
    }

    /// The session in a recording. The file's name also becomes the session's id.
    pub fn session(&self, text: &str, file: &str) -> Result<Loaded, ImportError> {
        session::put_together(self.recording(text, file), self.name, file)
    }

    /// The session in a recording with its facts; see [`autofacts`].
    pub fn import(&self, text: &str, file: &str) -> Result<Loaded, ImportError> {
        self.import_with(text, &[], file)
    }

    /// The same for a recording and the texts of the files beside it that belong to it.
    pub fn import_with(
        &self,
        text: &str,
        others: &[String],
        file: &str,
    ) -> Result<Loaded, ImportError> {
        let recording = self.with_companions(text, others, file);
        let mut loaded = session::put_together(recording, self.name, file)?;
        autofacts::add(&mut loaded.session);
        Ok(loaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_format_tells_the_nearest() {
        let e = by_name("claud-code").err().unwrap().to_string();
        assert!(e.contains("did you mean claude-code"), "{e}");
        assert_eq!(by_name("codex").unwrap().name, "codex");
    }
}
