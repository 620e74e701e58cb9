//! What Aider's strategy says of itself, and its prompt texts.

use crate::descriptor::{Descriptor, Factory, Look, Matrix, Recovery, Rewind, Standing};

/// What the strategy says of itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "aider",
    summary: "Aider: finished history above a small budget is summarised in the background; turns \
        without an edit are never shortened",
    sources: &[
        "docs/sources/aider.md §1: Aider 0.86.2 read and its routines run",
        "tool traffic is mapped, since Aider has no tools: no request offers any; a call is a text \
         of the assistant (name and arguments), as \
         an edit block would stand in its reply; a result is a text of the user, as command output \
         that is added to the chat; a turn in \
         which an editing tool was called is an edit turn",
        "not modelled, because no session event expresses it: the summary of the whole history \
         when the edit format changes, architect mode",
    ],
    matrix: Matrix {
        layers: "1: summary of the older part of the finished history",
        llm_calls: "1 per summary (2 when the first is too long), by the weak model, in the \
            background",
        user_messages: "verbatim since the last edit and in the newest half of the budget; older \
            ones in the summary",
        tool_results: "no tools: calls and output stand as text of assistant and user and go with \
            their turn",
        cache: "off unless asked for; then system, repository map and files are marked, and \
            history before the files breaks the last mark; \
                keep-alive requests on demand",
        afterwards: "nothing: the summary is there at the next request",
        token_counting: "tokenizer, per message over its JSON text",
        pre_send_check: "asks the user when the prompt does not fit",
        overflow_response: "none: an error text as the reply",
        thinking: "not kept",
        memory: "read-only files; repository map",
        undo: "chat history file, read again only on request and with losses",
    },
    wording: &[
        ("aider.summary_prompt", PROMPT),
        ("aider.summary_prefix", "Before this we spoke about several things, in short:\n"),
        ("aider.described_prefix", "[chat summary] "),
        ("aider.committed", "The changes are written and committed."),
        ("aider.ok", "Ok."),
        (
            "aider.reminder",
            "Show every change as complete blocks of old and new lines, each under the path of its \
             file.",
        ),
        ("aider.too_long", "No answer: the request held more tokens than the model takes."),
    ],
    standing: Standing::Contender,
    manual: false,
    recovery: Recovery::Markdown,
    // `/undo` takes a commit back and no message.
    rewind: Rewind::NONE,
    formats: &[crate::aider::persist::FORMAT],
    functions: crate::aider::conform::FUNCTIONS,
    look: Look::Hue(0),
    page: "docs/systems/aider.md",
    factory: Factory::of::<crate::aider::Aider>(),
};

const PROMPT: &str = "Here is a part of a conversation between a USER and an ASSISTANT about \
    programming. Sum it up shortly. Say less about what \
is long ago and more about what came last, and start a paragraph where the subject changes. The \
conversation goes on after it, so do not close \
with a conclusion.\nName the functions, libraries and packages that were spoken of, and every file \
whose code stands between fences in what the \
assistant said. Do not use fences yourself.\nWrite as the USER speaking to the ASSISTANT: the user \
is I, the assistant is you. Begin with: I asked you";
