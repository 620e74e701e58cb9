//! Providers: wire formats, prompt-cache rules, prices and models. What a model server knows, without a server.

mod anthropic;
mod anthropic_edits;
mod anthropic_reply;
mod cache;
#[cfg(test)]
mod cache_tests;
mod edits;
mod errors;
mod json;
mod models;
mod openai_chat;
mod openai_reply;
mod openai_responses;
mod plan;
mod price;
pub mod prompt;
mod tools;
mod wire;
#[cfg(test)]
mod wire_properties;
#[cfg(test)]
mod wire_tests;

pub use cache::{CacheUse, Prefix, PromptCache};
pub use edits::{CLEARED, CLEARED_INPUT, Decision, LEAST_COMPACT_TRIGGER, Piece, What, decide, deleted_results, edited_view, will_apply};
pub use models::{
    CacheRule, Capabilities, DEFAULT_MODEL, Entries, Latency, Model, Prices, Provider, UnknownModel, Wire, catalogue, find, find_recorded,
};
pub use price::{Cost, cost, cost_of_reply, cost_with_read_share, iterations};
pub use prompt::{Content, Item, Prompt, PromptThread, billed_tokens};
pub use tools::tool_definitions;
pub use wire::{
    COUNT_TOKENS_PATH, Encoded, WireError, decode, decode_count_reply, decode_error, decode_reply, encode, encode_compacted, encode_count,
    encode_count_reply, encode_error, encode_reply, overflow, refusal,
};
