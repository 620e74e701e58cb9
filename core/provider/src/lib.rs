//! What a model server knows, without a server: wire formats and the simulated prompt cache.

mod cache;
#[cfg(test)]
mod cache_tests;
pub mod prompt;
pub mod wire;

pub use cache::{CacheUse, Prefix, PromptCache};
pub use prompt::{Content, Item, Prompt, PromptThread};
pub use wire::{
    ALL, Encoded, WireError, WireFormat, decode, decode_error, decode_reply, edits_among, encode,
    encode_error, encode_reply, format, overflow, refusal, tool_definitions,
};
