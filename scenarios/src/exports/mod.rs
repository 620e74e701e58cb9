//! Export of sessions to foreign formats. A format is a file with an [`Export`] and a line in
//! [`ALL`]. [`ExportLosses`] counts the entries that the format cannot express.
//!
//! An export contains every message of the main conversation, in order. Commands of the user
//! (compact, rewind, clear) and actions of the recorded program have no equivalent in these
//! formats, so rewound messages remain in the export.

mod atif;
mod conversation;
mod requests;
mod session;

use std::collections::BTreeMap;

use ctxbench_session::{Session, UnwritableSession};
use ctxbench_util::nearest;

use crate::error::LoadError;

pub struct Export {
    pub title: &'static str,
    /// Name of the format for `--to`.
    pub name: &'static str,
    /// Extension of its files, without the dot.
    pub ending: &'static str,
    /// Whether a file can contain more than one session.
    pub several: bool,
    /// Writes a session as whole lines, and counts the entries that the format cannot express.
    pub write: fn(&Session, &mut ExportLosses) -> Result<String, UnwritableSession>,
}

pub static ALL: &[&Export] =
    &[&session::EXPORT, &atif::EXPORT, &requests::OPENAI, &requests::ANTHROPIC];

pub fn by_name(name: &str) -> Result<&'static Export, LoadError> {
    ALL.iter().copied().find(|e| e.name == name).ok_or_else(|| LoadError::NoSuchName {
        what: "format to write",
        name: name.to_string(),
        hint: nearest::hint(name, &names()),
    })
}

pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|e| e.name).collect()
}

/// Entries of a session that a format cannot express: number by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportLosses(BTreeMap<&'static str, usize>);

impl ExportLosses {
    fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    fn add_if(&mut self, is: bool, what: &'static str) {
        if is {
            self.add(what);
        }
    }

    /// Returns a readable list of the losses, or `None` if nothing is lost.
    pub fn summary(&self) -> Option<String> {
        let all: Vec<String> = self.0.iter().map(|(what, n)| format!("{n} × {what}")).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

#[cfg(test)]
mod tests;
