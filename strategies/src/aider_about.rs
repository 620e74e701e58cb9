//! What Aider's strategy says of itself, and its prompt texts.

use ctxbench_core::descriptor::{Descriptor, Matrix, Recovery, Standing, fits_any};
use ctxbench_core::settings::{Default, Kind, Setting};

/// What the strategy says of itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "aider",
    summary: "Aider: finished history above a small budget is summarised in the background; turns without an edit are never shortened",
    versions: &["0.86"],
    sources: &[
        "facts/aider-and-anthropic-sdk.md §1: Aider 0.86.2 read and its routines run",
        "tool traffic is mapped, since Aider has no tools: no request offers any; a call is a text of the assistant (name and arguments), as \
         an edit block would stand in its reply; a result is a text of the user, as command output that is added to the chat; a turn in \
         which an editing tool was called is an edit turn",
        "not modelled, because no session event expresses it: the summary of the whole history when the edit format changes, architect mode",
    ],
    settings: &[
        Setting {
            name: "max_chat_history_tokens",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "finished history above this is summarised; auto = a sixteenth of the window within bounds",
            source: "facts/aider-and-anthropic-sdk.md §1.3, --max-chat-history-tokens",
        },
        Setting {
            name: "history_least",
            kind: Kind::Tokens,
            default: Default::Int(1_024),
            help: "lower bound of that budget; it decides for windows of less than sixteen times as much (16,384 by default)",
            source: "facts/aider-and-anthropic-sdk.md §1.3",
        },
        Setting {
            name: "history_most",
            kind: Kind::Tokens,
            default: Default::Int(8_192),
            help: "upper bound of that budget",
            source: "facts/aider-and-anthropic-sdk.md §1.3",
        },
        Setting {
            name: "map_tokens",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "budget of the repository map, to which the session's is cut: its first lines, as many as the program's search takes; \
                   auto = an eighth of the window between 1,024 and 4,096; 0 = no map",
            source: "facts/aider-and-anthropic-sdk.md §1.3, --map-tokens; lines standing for ranked definitions is ours",
        },
        Setting {
            name: "map_multiplier_no_files",
            kind: Kind::Count,
            default: Default::Int(2),
            help: "times that budget when the session has no files in the chat (memory files do not count), if the window has room",
            source: "facts/aider-and-anthropic-sdk.md §1.3, --map-multiplier-no-files: 2 on the command line, 8 in the class itself",
        },
        Setting {
            name: "as_shipped",
            kind: Kind::Flag,
            default: Default::Flag(false),
            help: "throw the finished summary away whenever the history grew meanwhile, as the released program does after every edit",
            source: "facts/aider-and-anthropic-sdk.md §1.2, surprise 1: 300 of 300 runs; the default is the intended behaviour",
        },
        Setting {
            name: "as_described",
            kind: Kind::Choice(&["off", "003"]),
            default: Default::Word("off"),
            help: "003 = as its published description has it: every finished turn is history, the newest half of the budget stays behind \
                   `[chat summary] `, up to four summaries on end, the weak model alone is asked, a failure keeps the full history, the \
                   swap is atomic; in fact only edit turns are history, the head is cut at the summariser's limit, a second summary \
                   swallows the tail, and a finished summary is thrown away. as_shipped has no meaning then",
            source: "seeds/003-token-budgeting.md, \"Chat History Budget and Summarization\" and pitfalls 3 and 5; seeds/000 for the two lists",
        },
        Setting {
            name: "weak_model",
            kind: Kind::Model,
            default: Default::Auto,
            help: "model of the summary; auto = the cheaper model of the same provider",
            source: "facts/aider-and-anthropic-sdk.md §1.1: models = [weak, main]",
        },
        Setting {
            name: "cache_prompts",
            kind: Kind::Flag,
            default: Default::Flag(false),
            help: "set prompt-cache breakpoints where the provider needs them; without it nothing is cached there",
            source: "facts/aider-and-anthropic-sdk.md §1.4: only with --cache-prompts",
        },
        Setting {
            name: "keepalive_pings",
            kind: Kind::Count,
            default: Default::Int(0),
            help: "requests of one output token that keep the marked prefix in the cache while the user is away, each 295 s after the \
                   request before; only with cache_prompts, where the provider needs breakpoints; between turns, until the session's end",
            source: "facts/aider-and-anthropic-sdk.md §1.4, --cache-keepalive-pings",
        },
        Setting {
            name: "reminder",
            kind: Kind::Choice(&["user", "sys"]),
            default: Default::Word("user"),
            help: "the editing rules are repeated at the end of the last message, if it is the user's, or as a system message behind it; \
                   neither where prompt, reminder and current turns together fill the window",
            source: "facts/aider-and-anthropic-sdk.md §1.4; a setting of each model there, `user` unless its table says otherwise",
        },
        Setting {
            name: "oversize",
            kind: Kind::Choice(&["proceed", "decline"]),
            default: Default::Word("proceed"),
            help: "what the user answers when asked whether to send a prompt that does not fit",
            source: "facts/aider-and-anthropic-sdk.md §1.2, check_tokens asks; the answer is ours",
        },
        Setting {
            name: "restore",
            kind: Kind::Flag,
            default: Default::Flag(false),
            help: "after a restart read the chat history file again, with the damage that does",
            source: "facts/aider-and-anthropic-sdk.md §1.5, --restore-chat-history",
        },
    ],
    matrix: Matrix {
        layers: "1: summary of the older part of the finished history",
        llm_calls: "1 per summary (2 when the first is too long), by the weak model, in the background",
        user_messages: "verbatim since the last edit and in the newest half of the budget; older ones in the summary",
        tool_results: "no tools: calls and output stand as text of assistant and user and go with their turn",
        cache: "off unless asked for; then system, repository map and files are marked, and history before the files breaks the last mark; \
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
        ("aider.reminder", "Show every change as complete blocks of old and new lines, each under the path of its file."),
        ("aider.too_long", "No answer: the request held more tokens than the model takes."),
    ],
    standing: Standing::Contender,
    manual: false,
    recovery: Recovery::Markdown,
    unfit: fits_any,
    build: crate::aider::build,
};

const PROMPT: &str = "Here is a part of a conversation between a USER and an ASSISTANT about programming. Sum it up shortly. Say less about what \
is long ago and more about what came last, and start a paragraph where the subject changes. The conversation goes on after it, so do not close \
with a conclusion.\nName the functions, libraries and packages that were spoken of, and every file whose code stands between fences in what the \
assistant said. Do not use fences yourself.\nWrite as the USER speaking to the ASSISTANT: the user is I, the assistant is you. Begin with: I asked you";
