//! The engine of ctxbench: history, context and compaction, with a [`Strategy`] trait.
//!
//! - [`History`] is an append-only log of messages. [`Context`] is the view of it in the next request, a
//!   list of [`Block`]s. Strategies edit the view and never the log.
//! - [`Strategy`] has a hook for each moment of a turn, in this order: `on_user`, then for each step
//!   `before_request`, `request`, `on_reply` (or `on_error`), `on_result` for each result of a tool,
//!   `after_step`, and at the end `after_turn`. `admit` maps all content that enters the context: user
//!   messages, replies and, by the default of `on_result`, results. Every hook has a default, so
//!   implement what you need.
//! - [`Host`] is your program around the loop. It gives user messages (`next`), sends requests (`send`),
//!   runs tools (`run`) and knows the time (`now`, in ms; a wall clock is fine).
//! - [`run`] is the loop, and [`Engine`] its state: the history, the context, token counts and prices.
//!
//! This program has a strategy that replaces the results of tools by a placeholder, except the newest,
//! once a request would have more than 100 tokens. The host answers three times with a call of a tool:
//!
//! ```
//! use ctxbench_core::compaction::clear_outputs;
//! use ctxbench_core::host::{Action, Incoming};
//! use ctxbench_core::{
//!     BlockKind, CompactionKind, Engine, Flow, Host, Millis, ModelError, Part, Phase, Reply, Request,
//!     Strategy, ToolCall, async_trait,
//! };
//!
//! struct ClearResults;
//!
//! #[async_trait]
//! impl Strategy for ClearResults {
//!     async fn before_request(&mut self, s: &mut Engine) -> Flow {
//!         if s.billed_tokens() > 100 {
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
//!
//! #[derive(Default)]
//! struct Script {
//!     users: u32,
//!     replies: u32,
//! }
//!
//! #[async_trait]
//! impl Host for Script {
//!     async fn next(&mut self) -> Option<Action> {
//!         self.users += 1;
//!         let parts = vec![Part::Text("Read the log three times.".into())];
//!         (self.users == 1).then(|| Action::User(Incoming { key: "u1".into(), parts }))
//!     }
//!     async fn send(&mut self, _request: &Request) -> Result<Reply, ModelError> {
//!         self.replies += 1;
//!         let part = match self.replies {
//!             n @ 1..=3 => Part::Call(ToolCall::new(format!("call_{n}"), "read", "{}")),
//!             _ => Part::Text("Done.".into()),
//!         };
//!         Ok(Reply { parts: vec![part], ..Reply::default() })
//!     }
//!     async fn run(&mut self, calls: &[ToolCall]) -> Vec<Incoming> {
//!         calls.iter().map(|c| Incoming::result(c, false, "a line of the log\n".repeat(20))).collect()
//!     }
//!     fn now(&self) -> Millis {
//!         0
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let model = ctxbench_core::model::find("claude-sonnet-4-6").unwrap();
//! let mut engine = Engine::new(model.clone().into(), Box::new(Script::default()));
//! ctxbench_core::run(&mut engine, &mut ClearResults).await;
//!
//! let cleared = engine.context.blocks().iter().filter(|b| &*b.text == "[old result]").count();
//! assert_eq!(cleared, 2);
//! assert_eq!(engine.history.messages().len(), 8);
//! # }
//! ```
//!
//! The system prompt and tool definitions are [`Engine::fixed`]. Models and their limits, prices and
//! token counts are in [`model`]; [`model::install`] adds your own. Token counts are exact with the
//! feature `tokenizers`, a default; without it, a token is four bytes. A prompt that the provider refuses
//! reaches the strategy as `on_error`. Replies arrive whole, not as a stream. Mechanisms that several
//! products share are in [`compaction`].
//!
//! Depend on it with `ctxbench-core = { git = "https://github.com/ctxbench/ctxbench" }`. The strategies
//! of products are in the crate `ctxbench-strategies`. `ctxbench-provider` turns a [`Request`] into the
//! bytes of a provider's API, and `ctxbench-kit` stores sessions; its example `agent` is a whole program.

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
mod image;
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
pub use block::{Block, BlockKind, Draft, Role};
pub use compaction::CompactionKind;
pub use content::{Part, ToolCall};
pub use context::Context;
pub use engine::Engine;
pub use history::History;
pub use host::{Action, Host, Incoming};
pub use model::Model;
pub use request::{ModelError, Phase, Reply, Request, StopReason};
pub use strategy::{Flow, Strategy};
pub use time::Millis;
pub use usage::Usage;

/// The names that most strategies and their hosts need, for `use ctxbench_core::prelude::*`.
pub mod prelude {
    pub use std::sync::Arc;

    pub use async_trait::async_trait;

    pub use crate::block::{
        Block, BlockForm, BlockKind, CallRef, Draft, Media, MessageId, Origin, Origins, Role,
        is_system,
    };
    pub use crate::compaction::*;
    pub use crate::content::{Part, ToolCall};
    pub use crate::engine::Engine;
    pub use crate::host::{Action, BackgroundStep, Event, Incoming, RewindMode, Task};
    pub use crate::request::{
        ClearInputs, ClearTrigger, ErrorKind, ModelError, Phase, Purpose, Reply, Request,
        ServerEdit, StopReason,
    };
    pub use crate::settings::scale_tokens;
    pub use crate::strategy::{
        Flow, Manual, ReplyFlow, Strategy, Unsupported, again_if, again_if_passing,
    };
    pub use crate::time::Millis;
    pub use crate::tokens::{
        bytes_div4_down, bytes_div4_up, cl100k, o200k, utf16_div4_round, utf16_len,
    };
    pub use crate::usage::Usage;
}
