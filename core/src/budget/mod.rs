//! The budget of a prompt: the allocation of the window, the parts of a prompt, and the check before
//! sending.
//!
//! The shares and their order are those of the OpenOxide blueprint (docs/sources/openoxide.md §2.2).
//! A fast estimate ([`estimate`]) sizes the parts. The check before sending uses the provider's count
//! or else the exact local one ([`crate::Engine::count`]).

mod allocate;
mod chunks;
mod error;
mod snapshot;

pub use allocate::{Allocation, BudgetConfig, Demand};
pub use chunks::{PromptChunks, estimate, validate};
pub use error::{BudgetError, BudgetPart};
pub use snapshot::BudgetSnapshot;
