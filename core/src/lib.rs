//! The engine of ctxbench: history, context, budget and compaction, with a [`Strategy`] trait.
//!
//! The history is an append-only log of messages; the context is the view of it in the next request. A
//! strategy implements hooks of the agent's loop, which edit the view and never the log.

pub mod agent;
pub mod block;
pub mod breakpoints;
pub mod budget;
pub mod compaction;
pub mod content;
pub mod context;
pub mod context_editing;
pub mod engine;
pub mod history;
pub mod host;
pub mod ledger;
pub mod model;
mod record;
pub mod request;
pub mod settings;
pub mod strategy;
pub mod time;
pub mod tokens;
pub mod usage;

/// Re-exported for implementations of [`Host`] and [`Strategy`].
pub use async_trait::async_trait;
pub use engine::Engine;
pub use host::Host;
pub use strategy::{Flow, Strategy};
pub use time::Millis;
