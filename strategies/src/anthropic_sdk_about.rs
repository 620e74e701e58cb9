//! What the strategy of the Anthropic SDK's tool runner says of itself, and its prompt.

use ctxbench_core::descriptor::{Descriptor, Matrix, Recovery, Standing};
use ctxbench_core::provider::{Model, Wire};
use ctxbench_core::settings::{Default, Kind, Setting, Settings};

/// What the strategy says of itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "anthropic-sdk",
    summary: "Anthropic SDK tool runner: at 100k tokens everything becomes one summary; the crossing turn is lost",
    versions: &["0.125", "2.12"],
    sources: &[
        "facts/aider-and-anthropic-sdk.md §2.2: PyPI anthropic 0.125.0 read and observed",
        "facts/aider-and-anthropic-sdk.md §2.3: npm @anthropic-ai/sdk 0.124.0 read and observed",
        "facts/aider-and-anthropic-sdk.md §2.4: PyPI anthropic 2.12.0 read and observed",
        "seeds/001 §8: the description, for as_described=001",
    ],
    settings: &[
        Setting {
            name: "language",
            kind: Kind::Choice(&["python", "typescript"]),
            default: Default::Word("python"),
            help: "0.125: typescript checks refusals too, keeps every block of the summary, and what the caller appended",
            source: "facts/aider-and-anthropic-sdk.md §2.3",
        },
        Setting {
            name: "threshold",
            kind: Kind::Tokens,
            default: Default::Int(100_000),
            help: "0.125: usage of one reply from which it compacts",
            source: "facts/aider-and-anthropic-sdk.md §2.2, context_token_threshold",
        },
        Setting {
            name: "model",
            kind: Kind::Model,
            default: Default::Auto,
            help: "0.125: model of the summary; auto = the runner's",
            source: "facts/aider-and-anthropic-sdk.md §2.2, CompactionControl.model",
        },
        Setting {
            name: "max_tokens",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "largest reply, also of the summary; auto = the model's",
            source: "facts/aider-and-anthropic-sdk.md §2.2: the caller's max_tokens",
        },
        Setting {
            name: "max_iterations",
            kind: Kind::Count,
            default: Default::Auto,
            help: "replies of one turn after which the runner stops, checked before each request; auto = no limit",
            source: "facts/aider-and-anthropic-sdk.md §2.2, the caller's max_iterations",
        },
        Setting {
            name: "compact_at",
            kind: Kind::Tokens,
            default: Default::Int(100_000),
            help: "2.12: usage of one reply from which our caller asks for a compaction before the next turn; 0 = never",
            source: "our caller, since the SDK leaves the moment to its user; the threshold of 0.125 (facts/aider-and-anthropic-sdk.md §2.2)",
        },
        Setting {
            name: "threads",
            kind: Kind::Flag,
            default: Default::Flag(true),
            help: "2.12: the provider keeps the conversation and only what is new is sent",
            source: "facts/aider-and-anthropic-sdk.md §2.4",
        },
        Setting {
            name: "edits",
            kind: Kind::Choice(&["none", "clear_tool_uses", "compact"]),
            default: Default::Word("none"),
            help: "2.12: context_management that the caller passes through, with the API's defaults; with compact our caller never asks",
            source: "facts/aider-and-anthropic-sdk.md §2.4 and §3",
        },
        Setting {
            name: "as_described",
            kind: Kind::Choice(&["off", "001"]),
            default: Default::Word("off"),
            help: "001 = as seeds/001 describes it: more than the threshold in all messages, checked after the step, nothing lost",
            source: "seeds/001 §8; fact is the usage of the last reply, and that reply is lost (facts/aider-and-anthropic-sdk.md §2.2)",
        },
    ],
    matrix: Matrix {
        layers: "1: summary of everything",
        llm_calls: "1 per compaction",
        user_messages: "gone; only the summary is left",
        tool_results: "gone; those of the crossing turn never ran (2.12: they ran and are in the summary)",
        cache: "summary request without system and tools reads nothing; everything is rewritten after it (2.12: reads the warm prefix)",
        afterwards: "the model is asked again with the summary as the only message",
        token_counting: "usage of the last reply",
        pre_send_check: "none: after each reply",
        overflow_response: "the error goes to the caller",
        thinking: "not passed to the summary request's parameters",
        memory: "none",
        undo: "none",
    },
    wording: &[("anthropic-sdk.summary_prompt", PROMPT)],
    standing: Standing::Contender,
    manual: false,
    recovery: Recovery::Nothing,
    unfit,
    build: crate::anthropic_sdk::build,
};

/// What 0.125 does is done by its client and works over any wire; threads and compaction on demand are the provider's.
fn unfit(version: &str, settings: &Settings, model: &Model) -> Option<&'static str> {
    let of_the_provider = version == "2.12" && settings.word("as_described") != Some("001");
    (of_the_provider && model.wire != Wire::AnthropicMessages).then_some("threads and compaction on demand exist on the Anthropic API only")
}

const PROMPT: &str = "The task is not finished, and this conversation is about to be cut off here. Write a summary from which the work can be \
continued. Be structured, brief and practical:\n\
1. Task Overview: what was asked, how success is judged, what was clarified\n\
2. Current State: what is done, which files were read, changed or made (with paths), important outputs\n\
3. Important Discoveries: constraints, decisions with their reasons, errors and how they were solved, what was tried and did not work\n\
4. Next Steps: what to do next, what stands in the way, in which order\n\
5. Context to Preserve: wishes of the user, details of the field, promises made\n\
When in doubt include what keeps work from being done twice. Put the summary between <summary> and </summary>.";
