//! The engine of ctxbench: history, context and compaction, with a [`Strategy`] trait.
//!
//! The history is an append-only log of messages; the context is the view of it in the next request. A
//! strategy implements hooks of the agent's loop, which edit the view and never the log.

pub mod agent;
pub mod block;
pub mod calendar;
pub mod calibration;
pub mod compaction;
pub mod content;
pub mod context;
pub mod context_editing;
pub mod engine;
pub mod escapes;
pub mod fact;
pub mod files;
pub mod gist;
pub mod history;
pub mod host;
pub mod io_hint;
pub mod json;
pub mod ledger;
pub mod lru_map;
pub mod matcher;
pub mod model;
pub mod natural;
pub mod nearest;
pub mod plural;
pub mod quantity;
pub mod request;
pub mod rng;
#[cfg(feature = "schema")]
pub mod schema;
pub mod serde_error;
pub mod session;
pub mod settings;
pub mod strategy;
pub mod tokens;
pub mod toml_file;

/// Re-exported for implementations of [`Host`] and [`Strategy`].
pub use async_trait::async_trait;
pub use engine::Engine;
pub use host::Host;
pub use strategy::{Flow, Strategy};
