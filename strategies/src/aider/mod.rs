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
//! and later messages stay after it. `aider@described-003` follows the published description.
//!
//! Mapping of tool traffic: Aider has no tools. Its model reads files because they are in the chat,
//! and edits files by writing blocks of text. Requests therefore offer no tools. A call becomes an
//! assistant text (the tool name and arguments, or an edit block). Its result becomes a user text,
//! like the output of a command that the user adds to the chat. A turn is an edit turn if it
//! contains a call of an editing tool. No text is left out, so Aider is compared with the other
//! strategies on the same amount of text. Reasoning is not kept. Memory files take the place of
//! Aider's read-only files. The session's repository map is cut to Aider's map budget (`map.rs`).
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
mod created;
mod described;
mod job;
mod keepalive;
mod map;
pub mod markdown;
pub(crate) mod persist;
#[cfg(test)]
mod recorded_tests;
mod rules;
mod settings;
mod strategy;
#[cfg(test)]
mod tests;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::conform::Conformance;
use crate::descriptor::{
    Build, Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Product, Reads,
    Rewind, Standing, Version,
};
use settings::AiderSettings;
use strategy::AiderProgram;
use words::AiderWords;

/// Descriptor of the strategy.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "aider",
    summary: "Aider: finished history above a small budget is summarised in the background, and \
        the summary thrown away after an edit; other turns are never shortened",
    sources: &[
        "docs/sources/aider.md §1: Aider 0.86.2 read and its routines run",
        "tool traffic is mapped, since Aider has no tools: no request offers any; a call is a text \
         of the assistant (name and arguments), as \
         an edit block would stand in its reply; a result is a text of the user, as command output \
         that is added to the chat; a turn in \
         which an editing tool was called is an edit turn",
        "not modelled, because no session event expresses it: the summary of the whole history \
         when the edit format changes",
    ],
    matrix: Matrix {
        layers: "1: summary of the older part of the finished history",
        llm_calls: "1 per summary (2 when the first is too long), by the weak model, in the \
            background",
        user_messages: "verbatim; `intended`: those before the last edit and the newest half of \
            the budget in the summary",
        tool_results: "no tools: calls and output stand as text of assistant and user and go with \
            their turn",
        cache: "off unless asked for; then system, repository map and files are marked, and \
            history before the files breaks the last mark; \
                keep-alive requests on demand",
        afterwards: "the summary is thrown away, since its history grew meanwhile; `intended`: it \
            is there at the next request",
        token_counting: "tokenizer, per message over its JSON text",
        pre_send_check: "asks the user when the prompt does not fit",
        overflow_response: "none: an error text as the reply",
        thinking: "not kept",
        memory: "read-only files; repository map",
        undo: "chat history file, read again only on request and with losses",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::Absent,
    // `/undo` takes back a commit, but no message.
    rewind: Rewind::UNSUPPORTED,
    formats: &[persist::FORMAT],
    conform: Conformance::Functions,
    color: PlotColor::Palette(0),
    files: MemoryFiles::None(
        "it searches for none; read-only files are named by hand, with --read",
    ),
    settings_file: None,
    page: "docs/systems/aider.md",
    factory: Factory::of::<Aider>(),
};

pub(crate) struct Aider;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AiderVersion {
    /// Discards a finished summary if the history grew meanwhile.
    Released,
    /// Applies a finished summary to the messages that it covers.
    Intended,
    Described003,
}

impl Product for Aider {
    type Version = AiderVersion;
    type Settings = AiderSettings;
    type Words = AiderWords;

    const VERSIONS: &'static [(Version, Self::Version)] = &[
        (
            Version {
                about: "as released: throws the finished summary away whenever the history grew \
                    meanwhile, which it does after every edit (docs/sources/aider.md §1.2, \
                    surprise 1: 300 of 300 runs)",
                ..Version::released("0.86")
            },
            AiderVersion::Released,
        ),
        (
            Version {
                name: "intended",
                program: "0.86",
                about: "0.86 as it was meant to be: a finished summary replaces what it covers, \
                    and what was said since stays behind it",
                reads: Reads::All,
            },
            AiderVersion::Intended,
        ),
        (
            Version::described(
                "described-003",
                "published description (docs/sources/token-budgeting.md §2.4 and pitfalls 3 \
                     and 5; docs/sources/chat-history.md §2.1 for the two lists): every finished \
                     turn is history, the newest half of the budget stays behind `[chat summary] \
                     `, up to four summaries on end, the weak model alone is asked, a failure \
                     keeps the full history, the swap is atomic. In fact only edit turns are \
                     history, the head is cut at the summariser's limit, a second summary swallows \
                     the tail, and a finished summary is thrown away",
                Reads::All,
            ),
            AiderVersion::Described003,
        ),
    ];

    fn build(b: Build<Aider>) -> Box<dyn Strategy> {
        Box::new(AiderProgram::new(b.version, b.settings, b.words, b.scale))
    }
}
