//! Sessions in foreign formats. A format is a file with an [`Export`] and its line in [`ALL`]; a
//! [`Lost`] counts the entries that it cannot express.
//!
//! An export contains every message of the main conversation, in order. Commands of the user
//! (compact, rewind, clear) and actions of the recorded program have no equivalent in these
//! formats, so messages that were rewound remain.

mod anthropic;
mod atif;
mod conversation;
mod openai;
mod session;

use std::collections::BTreeMap;

use ctxbench_core::nearest;
use ctxbench_core::session::{Session, UnwritableSession};

use crate::error::LoadError;

/// A format that sessions are written in.
pub struct Export {
    /// As people write it.
    pub title: &'static str,
    /// Name for `--to`.
    pub name: &'static str,
    /// How its files end, without the dot.
    pub ending: &'static str,
    /// Whether a file may contain several sessions.
    pub several: bool,
    /// Writes the session as whole lines, and counts the entries that the format cannot express.
    pub write: fn(&Session, &mut Lost) -> Result<String, UnwritableSession>,
}

/// Every format, our own first.
pub static ALL: &[&Export] =
    &[&session::EXPORT, &atif::EXPORT, &openai::EXPORT, &anthropic::EXPORT];

/// The format called `name`.
pub fn by_name(name: &str) -> Result<&'static Export, LoadError> {
    ALL.iter().copied().find(|e| e.name == name).ok_or_else(|| LoadError::NoSuchExport {
        name: name.to_string(),
        hint: nearest::hint(name, &names()),
    })
}

/// The names of all formats.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|e| e.name).collect()
}

/// Entries of a session that a format cannot express: number by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost(BTreeMap<&'static str, usize>);

impl Lost {
    fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    fn add_if(&mut self, is: bool, what: &'static str) {
        if is {
            self.add(what);
        }
    }

    /// As a list for people; `None` = nothing is lost.
    pub fn told(&self) -> Option<String> {
        let all: Vec<String> = self.0.iter().map(|(what, n)| format!("{n} × {what}")).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

#[cfg(test)]
mod tests;
