//! Wire formats and the simulated prompt cache of model servers.

mod cache;
#[cfg(test)]
mod cache_tests;
pub mod prompt;
pub mod wire;

pub use cache::{Prefix, PromptCache};
pub use prompt::{Item, Prompt, plain};
pub use wire::{Encoded, Wire, WireError};
