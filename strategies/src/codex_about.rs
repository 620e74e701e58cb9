//! What the Codex strategy says of itself: settings, sources, prompt texts.

use ctxbench_core::descriptor::{Descriptor, Matrix, Recovery, Standing};
use ctxbench_core::provider::{Model, Wire};
use ctxbench_core::settings::{Default, Kind, Setting, Settings};

/// What the strategy says of itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "codex",
    summary: "Codex CLI: user messages verbatim, everything else becomes one handoff summary",
    versions: &["0.169", "0.104", "0.63"],
    sources: &["facts/codex.md §1-3: released programs 0.169, 0.104 and 0.63 observed, source at 6c0c6759 and 54d22e3f read"],
    settings: &[
        Setting {
            name: "auto_compact_limit",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "tokens in use from which it compacts; auto = 90 % of the window, which is also the cap (0.63: none by itself, and no cap)",
            source: "facts/codex.md §1.2, model_auto_compact_token_limit",
        },
        Setting {
            name: "limit_scope",
            kind: Kind::Choice(&["total", "body_after_prefix"]),
            default: Default::Word("total"),
            help: "what the limit counts: all tokens in use, or those beyond the first input that the provider reported since the last \
                   compaction, with 95 % of the window as a stop of its own",
            source: "facts/codex.md §1.2, model_auto_compact_token_limit_scope",
        },
        Setting {
            name: "compact_prompt",
            kind: Kind::Text,
            default: Default::Auto,
            help: "what is asked of the model instead of the built-in prompt",
            source: "facts/codex.md §1.3, compact_prompt (verified by za_custom_prompt)",
        },
        Setting {
            name: "user_message_tokens",
            kind: Kind::Tokens,
            default: Default::Int(20_000),
            help: "budget for user messages kept verbatim, newest first",
            source: "facts/codex.md §1.4, COMPACT_USER_MESSAGE_MAX_TOKENS",
        },
        Setting {
            name: "tool_output_tokens",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "tool output longer than this is cut in the middle on its way in, at four bytes a token; auto = 10,000 in the unit of \
                   tool_output_policy, 0 = never",
            source: "facts/codex.md §3, tool_output_token_limit over the model's truncation_policy",
        },
        Setting {
            name: "tool_output_policy",
            kind: Kind::Choice(&["tokens", "bytes"]),
            default: Default::Word("tokens"),
            help: "unit in which tool output is limited: tokens for the models that the program knows, bytes for all others",
            source: "facts/codex.md §3, truncation_policy of bundled and of unknown models",
        },
        Setting {
            name: "post_turn_percent",
            kind: Kind::Percent,
            default: Default::Int(0),
            help: "per cent of the window from which a finished turn is followed by a compaction (0.169 only); 0 = off",
            source: "facts/codex.md §1.1, model_post_turn_compact_threshold_percent",
        },
        Setting {
            name: "stream_retries",
            kind: Kind::Count,
            default: Default::Int(5),
            help: "further attempts after a request that failed for another reason than its length, 100 at most; 2 at most where the \
                   provider compacts",
            source: "facts/codex.md §1.5 and §2, stream_max_retries",
        },
        Setting {
            name: "remote",
            kind: Kind::Flag,
            default: Default::Flag(false),
            help: "the provider compacts: a trigger item instead of a prompt, an opaque item instead of a summary",
            source: "facts/codex.md §2: chosen where the provider's name is OpenAI",
        },
        Setting {
            name: "remote_user_tokens",
            kind: Kind::Tokens,
            default: Default::Int(64_000),
            help: "budget for user messages kept beside a remote compaction",
            source: "facts/codex.md §2, RETAINED_MESSAGE_TOKEN_BUDGET",
        },
        Setting {
            name: "base_estimate_bytes",
            kind: Kind::Bytes,
            default: Default::Auto,
            help: "size of the base instructions in the local estimate; auto = their size as sent",
            source: "facts/codex.md §3: the estimate uses the text of session_meta, which may be longer than the one sent",
        },
        Setting {
            name: "as_described",
            kind: Kind::Choice(&["off", "trim95", "handoff"]),
            default: Default::Word("off"),
            help: "follow a published description instead of the program. trim95: above 95 % of the window the oldest items are removed, \
                   no summary; the newest message of the user stays (in fact it summarises at 90 %, and removes items only inside a refused summary request). handoff: system \
                   prompt, the user's messages and an assistant message with the note, then trimming from the head if that is not enough (in \
                   fact the note is a user message behind a fixed prefix, the context is rebuilt before the last user message, and nothing \
                   is trimmed after a compaction)",
            source: "seeds/000 and seeds/003 (trim95), seeds/002 (handoff); facts/codex.md §6",
        },
    ],
    matrix: Matrix {
        layers: "1: handoff summary",
        llm_calls: "1 per compaction (more when the summary request itself overflows)",
        user_messages: "kept verbatim, newest first, 20k tokens; the oldest that fits partly is cut in the middle",
        tool_results: "dropped with the rest; long ones cut in the middle on arrival",
        cache: "summary request repeats the conversation but offers no tools: read from the cache only where tools are not its beginning; rewritten after it",
        afterwards: "context rebuilt, the turn goes on from the summary",
        token_counting: "last usage reported + bytes / 4 of what is new",
        pre_send_check: "before a turn and between steps, >= 90 % of the window",
        overflow_response: "turn fails, the next turn compacts; in a compaction the oldest item goes and it tries again",
        thinking: "encrypted reasoning is kept until the compaction and counted",
        memory: "AGENTS.md shown again",
        undo: "whole turns of the user; going back past a compaction brings the old history back from the rollout",
    },
    wording: &[("codex.summary_prompt", PROMPT), ("codex.summary_prefix", PREFIX)],
    standing: Standing::Contender,
    manual: true,
    recovery: Recovery::Log,
    unfit,
    build: crate::codex::build,
};

const PROMPT: &str = "Stop working on the task for a moment and write a handoff note. Another assistant will take over from it without \
seeing this conversation.\nCover:\n- Progress so far and the decisions that were made\n- Context that matters: constraints and what the user prefers\n\
- What is left to do, as clear next steps\n- Data, examples and references that are needed to go on\nBe brief and well ordered, and write only what helps the work to continue.";

const PREFIX: &str = "An assistant before you began this task and left the note below. The tools are in the state it left them in. \
Use what it found out instead of doing the same work twice. Its note:";

/// Remote compaction is an item of the Responses API, and what a provider's compaction block means differs elsewhere.
fn unfit(_version: &str, settings: &Settings, model: &Model) -> Option<&'static str> {
    (settings.flag("remote") && model.wire != Wire::OpenaiResponses).then_some("remote compaction exists on the OpenAI Responses API only")
}
