//! Descriptor of the Aider strategy, and its prompt texts.

use crate::conform::Conformance;
use crate::descriptor::{
    Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Rewind, Standing,
};

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
    formats: &[crate::aider::persist::FORMAT],
    conform: Conformance::Functions,
    color: PlotColor::Palette(0),
    files: MemoryFiles::None(
        "it searches for none; read-only files are named by hand, with --read",
    ),
    settings_file: None,
    knobs: &[],
    page: "docs/systems/aider.md",
    factory: Factory::of::<crate::aider::Aider>(),
};
