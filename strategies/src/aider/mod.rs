//! Aider: finished history above a small budget is summarised beside the conversation; the current
//! turns grow without limit.
//!
//! Follows 0.86 (docs/sources/aider.md §1). Two lists: what was said since the last edit
//! (`cur`) and what came before (`done`). Only an edit moves `cur` to `done`, and only `done` is
//! ever summarised: by the weak model, in the background, into one message in front of a verbatim
//! tail (`background.rs`). There is no answer to an overflow but a question to the user.
//!
//! The plain behaviour is that of the released program: the finished summary is thrown away,
//! because two messages are appended after the worker has copied the history
//! (docs/sources/aider.md §1.2, surprise 1). `aider@intended` does what the program means to do: a
//! summary replaces what it covers, and what was said since stays behind it. `aider@described-003`
//! is the published description.
//!
//! Mapping of tool traffic: Aider has no tools; its model reads files because they are in the chat
//! and edits by writing blocks of text. So no request offers tools; a call becomes a text of the
//! assistant (tool name and arguments, as an edit block would stand in a reply), its result a text
//! of the user (as the output of a command that the user adds to the chat), and a turn counts as an
//! edit turn if a call of an editing tool happened in it. Nothing is left out, so that Aider is
//! held against the same amount of text as everyone else. Thinking is not kept. Memory files stand
//! where Aider shows files that may only be read, the session's repository map is cut to Aider's
//! budget for it (`map.rs`).
//!
//! In architect mode (`program/architect.rs`) a reply with an edit goes to an editor model, and what
//! the edit returned is not seen.
//!
//! Not modelled: retries of a failed summary request (the next model is asked), the summary of
//! everything when the edit format changes (`summarize_from_coder`), because no session event
//! expresses it; commands such as `/drop` and `/add`.

#[cfg(test)]
mod architect_tests;
mod chunks;
mod conform;
mod conform_texts;
mod created;
mod described;
pub(crate) mod descriptor;
mod keepalive;
mod map;
pub mod markdown;
pub(crate) mod persist;
mod program;
mod settings;
mod summary;
#[cfg(test)]
mod tests;
mod version;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{Build, Product, Requirement};
use program::Program;
use settings::AiderSettings;
use version::AiderVersion;
use words::AiderWords;

pub(crate) struct Aider;

impl Product for Aider {
    type Version = AiderVersion;
    type Settings = AiderSettings;
    type Words = AiderWords;

    fn needs(_version: AiderVersion, _settings: &AiderSettings) -> Option<Requirement> {
        None
    }

    fn build(b: Build<Aider>) -> Box<dyn Strategy> {
        Box::new(Program::new(b.version, b.settings, b.words, b.scale))
    }
}
