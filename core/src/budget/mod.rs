//! The budget of one prompt: how the window is shared out, what a prompt is made of, and the check
//! before it is sent.
//!
//! The shares and their order are those of the OpenOxide blueprint (docs/sources/openoxide.md
//! §2.2). Sizes are counted in three tiers: a fast estimate while a prompt is put together
//! ([`estimate`]), and at the last gate the provider's own count or, where there is none, the exact
//! local one ([`crate::Engine::count`]); the estimate never decides whether a prompt is sent.

mod allocate;
mod chunks;
mod error;
mod snapshot;

pub use allocate::{Allocation, BudgetConfig, Demand};
pub use chunks::{PromptChunks, estimate, validate};
pub use error::{BudgetError, BudgetPart};
pub use snapshot::BudgetSnapshot;
