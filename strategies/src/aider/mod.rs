//! Aider: summarises the finished history in the background when it exceeds a small budget. The
//! current turns grow without limit.
//!
//! Follows version 0.86 (docs/sources/aider.md §1). There are two lists: the messages since the
//! last edit (`cur`) and those before it (`done`). Only an edit moves `cur` to `done`, and only
//! `done` is ever summarised. The weak model does this in the background and produces one message
//! that precedes a verbatim tail (`background.rs`). On overflow, the program only asks the user.
//!
//! `aider` behaves as the released program: the finished summary is discarded, because two messages
//! are appended after the worker has copied the history (docs/sources/aider.md §1.2, surprise 1).
//! `aider@intended` behaves as its authors meant: a summary replaces the messages that it covers,
//! and later messages stay after it. //!
//! `aider@described-003`: Aider according to its published description
//! (docs/sources/token-budgeting.md §2, docs/sources/chat-history.md §2), which differs from the
//! current program.
//!
//! | | described | observed (docs/sources/aider.md §1) |
//! |---|---|---|
//! | moved to history | every finished turn | a turn with an edit |
//! | tail | the newest messages within half of the budget | fewer than half, and the head must end with the model |
//! | head | all of it | cut at the summariser's input limit, the newest part dropped |
//! | short lists | no special case | lists of up to four messages are summarised whole |
//! | recursion | while summary and tail exceed the budget, to depth 3, the tail kept | the second pass takes summary and tail together |
//! | answer `Ok.`, notice of a commit | not mentioned | appended |
//! | summarising model | the weak model | the weak model, then the main one |
//! | failure | full history kept | kept, or emptied when nothing was appended meanwhile |
//! | finished summary | applied at once, followed by the messages added meanwhile | thrown away after every edit turn |
//! | counting | exact tokens of the content | tokens of the JSON text |
//! | oversize | above the window | from the window on |
//!
//! Mapping of tool traffic: Aider has no tools. Its model reads files because they are in the chat,
//! and edits files by writing blocks of text. Requests therefore offer no tools. A call becomes an
//! assistant text (the tool name and arguments, or an edit block). Its result becomes a user text,
//! like the output of a command that the user adds to the chat. A turn is an edit turn if it
//! contains a call of an editing tool. No text is left out, so Aider is compared with the other
//! strategies on the same amount of text. Reasoning is not kept. Memory files take the place of
//! Aider's read-only files. The session's repository map is cut to Aider's map budget (`chunks.rs`).
//!
//! In architect mode (`strategy/architect.rs`), an editor model receives each reply that contains an
//! edit. Results of the edit are not shown to the main model.
//!
//! Not modelled: retries of a failed summary request (the next model is asked instead), the summary
//! of the whole history on a change of the edit format (`summarize_from_coder`), because no session
//! event represents it, and commands such as `/drop` and `/add`.

#[cfg(test)]
mod architect_tests;
mod chunks;
pub mod markdown;
#[cfg(test)]
mod recorded_tests;
mod rules;
mod strategy;
#[cfg(test)]
mod tests;

use crate::descriptor::Known;
use strategy::AiderProgram;

pub(crate) const AIDER: Known = Known {
    formats: &[markdown::FORMAT],
    ..Known::new(include_str!("about.toml"), |b| Box::new(AiderProgram::new(b)))
};
