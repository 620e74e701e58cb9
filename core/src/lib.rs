//! The engine of ctxbench: history, context and compaction, with a [`Strategy`] trait.
//!
//! The [`History`] is an append-only log of messages; the [`Context`] is the view of it in the next
//! request. A strategy implements hooks of the agent's loop ([`run`]), which edit the view and never the
//! log. The [`Host`] is the program around the loop: it gives user messages, sends requests and runs
//! tools. Mechanisms that several products share are in [`compaction`].
//!
//! This strategy replaces the results of tools by a placeholder, except the newest, once a request
//! would have more than 100,000 tokens:
//!
//! ```
//! use ctxbench_core::compaction::clear_outputs;
//! use ctxbench_core::{BlockKind, CompactionKind, Engine, Flow, Phase, Strategy, async_trait};
//!
//! struct ClearResults;
//!
//! #[async_trait]
//! impl Strategy for ClearResults {
//!     async fn before_request(&mut self, s: &mut Engine) -> Flow {
//!         if s.billed_tokens() > 100_000 {
//!             let blocks = s.context.blocks();
//!             let is_result = |&i: &usize| blocks[i].kind == BlockKind::Output;
//!             let mut results: Vec<usize> = (0..blocks.len()).filter(is_result).collect();
//!             results.pop();
//!             let view = clear_outputs(blocks, &results, &"[old result]".into());
//!             // Replacing a whole block never separates a call from its result.
//!             let _ = s.compacted(CompactionKind::Clear, "old-results", Phase::MidTurn, view);
//!         }
//!         Flow::Proceed
//!     }
//! }
//! ```
//!
//! `core/kit/examples/agent` is a program with a strategy, a host, tools and a store.

pub mod agent;
pub mod block;
pub mod breakpoints;
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

pub use agent::run;
/// Re-exported for implementations of [`Host`] and [`Strategy`].
pub use async_trait::async_trait;
pub use block::{Block, BlockKind, Draft, MessageId, Role};
pub use compaction::CompactionKind;
pub use content::{Part, ToolCall};
pub use context::{Context, EditError};
pub use engine::{Engine, EngineOptions};
pub use history::{History, Message};
pub use host::{Action, Event, Host, Incoming};
pub use model::Model;
pub use request::{ModelError, Phase, Reply, Request};
pub use strategy::{Flow, ReplyFlow, Strategy};
pub use time::Millis;
pub use usage::Usage;
