//! The engine of ctxbench: history, context, budget and compaction behind a [`Strategy`] trait.
//!
//! The history is an append-only log of what was said; the context is the view of it that the next request will show.
//! A strategy is a policy over named moments that edits the view and never the log.

pub mod block;
pub mod context;
pub mod fact;
pub mod history;
pub mod nearest;
pub mod provider;
pub mod request;
pub mod session;
pub mod settings;
pub mod tokens;
