//! A recording format, and the import with it.

use std::ops::ControlFlow;
use std::path::PathBuf;

use ctxbench_util::plural::pluralize;

use super::recording::Recording;
use super::session;
use super::source::{Head, Source};
use crate::error::{InputError, Loaded};

pub struct Format {
    pub title: &'static str,
    /// Name for the session's source.
    pub name: &'static str,
    /// Properties of a session that its recordings lack, as the end of a sentence.
    pub untold: &'static str,
    /// Returns whether a source has this format, judging by its beginning.
    pub sniff: fn(&Head) -> bool,
    /// Passes the sessions of a source to the sink one at a time. A session that cannot be read is
    /// passed as an error.
    pub(super) read: fn(&Source<'_>, &mut Sink<'_>) -> Result<(), Ended>,
    /// Returns the companion files that the sessions of a source include and that are recordings of
    /// the format themselves. Avoids reading the whole source where possible.
    pub parts: fn(&Source<'_>) -> Vec<PathBuf>,
}

/// [`Format::parts`] of a format with one file per session.
pub(super) fn no_parts(_: &Source<'_>) -> Vec<PathBuf> {
    Vec::new()
}

pub(super) type Sink<'a> = dyn FnMut(Result<Recording, InputError>) -> Result<(), Ended> + 'a;

pub(super) enum Ended {
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

impl Format {
    /// Passes the recordings of a source to the sink, and an error for each unreadable one. A
    /// source without any recording is an error as well. Of a document that breaks off, what is whole
    /// is read.
    pub fn recordings(
        &self,
        source: &Source<'_>,
        sink: &mut dyn FnMut(Result<Recording, InputError>) -> ControlFlow<()>,
    ) {
        let mut any = false;
        // The newest recording of a document that breaks off: the last one is cut.
        let mut held = None;
        let mut pass = |one: Result<Recording, InputError>, cut: Option<usize>| {
            let linked = one.map(|mut recording| {
                cut.into_iter().for_each(|line| recording.cut_off(source.name(), line));
                recording.link();
                recording
            });
            if sink(linked).is_break() { Err(Ended::Enough) } else { Ok(()) }
        };
        let mut read = |is_cut: bool| {
            let read = (self.read)(source, &mut |one| match one {
                Err(e) if !any && !is_cut && source.mend().is_some() => Err(Ended::Unreadable(e)),
                one => {
                    any = true;
                    let ready = if is_cut { held.replace(one) } else { Some(one) };
                    ready.map_or(Ok(()), |one| pass(one, None))
                }
            });
            (read, any)
        };
        let (read, any) = match read(false) {
            (Err(Ended::Unreadable(_)), false) if source.mend().is_some() => read(true),
            other => other,
        };
        if let Some((last, line)) = held.zip(source.mend())
            && !matches!(read, Err(Ended::Enough))
            && pass(last, Some(line)).is_err()
        {
            return;
        }
        let expected = format!("a recording of {}", self.title);
        let nothing = InputError::new(1, "nothing in it", expected, "check the format");
        let error = match read {
            Err(Ended::Unreadable(e)) => e,
            Ok(()) if !any => nothing.at(source.name()),
            _ => return,
        };
        let _ = sink(Err(error));
    }

    /// Imports the sessions of a source one at a time. Does not search for facts.
    pub fn import(
        &self,
        source: &Source<'_>,
        mut sink: impl FnMut(Result<Loaded, InputError>) -> ControlFlow<()>,
    ) {
        self.recordings(source, &mut |recording| {
            let imported = recording.and_then(|mut recording| {
                let beside = std::mem::take(&mut recording.beside);
                let mut loaded = session::put_together(recording, self.name, source.name())?;
                loaded.warnings.extend((!beside.is_empty()).then(|| companions_note(&beside)));
                Ok(Loaded { beside, ..loaded })
            });
            sink(imported)
        });
    }

    /// Returns all sessions of a source that is known to be small.
    pub fn import_all(&self, source: &Source<'_>) -> Result<Vec<Loaded>, InputError> {
        let mut all = Vec::new();
        self.import(source, |imported| {
            all.push(imported);
            ControlFlow::Continue(())
        });
        all.into_iter().collect()
    }
}

fn companions_note(beside: &[PathBuf]) -> String {
    let names: Vec<String> = beside.iter().map(|p| p.display().to_string()).collect();
    let (n, names) = (pluralize(names.len(), "file"), names.join(", "));
    format!("also read {n} next to it; line numbers count all of them together: {names}")
}
