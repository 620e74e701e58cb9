//! The [`Strategy`] trait: hooks that the agent's loop calls. A hook may edit the context, and
//! returns how the loop continues.

use async_trait::async_trait;
use thiserror::Error;

use crate::block::{Draft, MessageId};
use crate::engine::Engine;
use crate::host::{Incoming, RewindMode};
use crate::request::{ModelError, Reply, Request};
use crate::time::Millis;

/// Next action of the agent's loop after a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continue as usual.
    Proceed,
    /// Ask the model again, even if the turn seemed over.
    Again,
    EndTurn,
    /// The turn failed, with this message for the user.
    FailTurn(String),
}

/// Next action of the agent's loop after a reply that is not recorded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyFlow {
    /// Record the reply and run its calls.
    Proceed,
    /// The reply is unfinished: record it, run none of its calls and ask the model to continue.
    Resume,
    /// Discard the reply and ask again.
    DropReply,
    /// Record the reply. The turn is over.
    EndTurn,
    /// The turn failed, with this message for the user. The reply is not recorded.
    FailTurn(String),
}

/// The product has no such command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("this product has no manual compaction")]
pub struct Unsupported;

/// Outcome of the user's command to compact, which a product may not have.
pub type Manual = Result<(), Unsupported>;

/// Context management of one product. Every method has a default that does nothing.
#[async_trait]
pub trait Strategy: Send {
    /// Maps content that enters the context: cut tool output or change roles here.
    fn admit(&self, raw: Draft) -> Draft {
        raw
    }

    /// Maps a tool result that enters the context as message `id`. May send requests, unlike
    /// [`Strategy::admit`], which is the default.
    async fn on_result(&mut self, _s: &mut Engine, _id: MessageId, raw: Draft) -> Draft {
        self.admit(raw)
    }

    /// Starts the session. The default shows the fixed blocks.
    async fn on_start(&mut self, s: &mut Engine) {
        s.show_fixed();
    }

    /// Handles a restart: the program exited and reopened the session.
    async fn on_restart(&mut self, _s: &mut Engine) {}

    /// Starts the next session of the same project. Shows the context that the product keeps on
    /// disk; the default shows only the fixed blocks.
    async fn on_new_session(&mut self, s: &mut Engine) {
        s.reset_view();
        self.on_start(s).await;
    }

    /// Runs after message `id` of the session was recorded and its blocks were added to the view.
    /// Not called for messages that the strategy made.
    fn on_recorded(&mut self, _s: &mut Engine, _id: MessageId) {}

    /// Handles a user message that arrived, but is neither recorded nor counted yet.
    async fn on_user(&mut self, _s: &mut Engine, _msg: &Incoming) -> Flow {
        Flow::Proceed
    }

    /// Runs before a normal request is built.
    async fn before_request(&mut self, _s: &mut Engine) -> Flow {
        Flow::Proceed
    }

    /// Builds the normal request. The default shows the context with the default breakpoints.
    fn request(&mut self, s: &Engine) -> Request {
        s.sample_request()
    }

    /// Handles a reply that arrived. The reply is not recorded yet, and its tools have not run.
    async fn on_reply(&mut self, _s: &mut Engine, _reply: &Reply) -> ReplyFlow {
        ReplyFlow::Proceed
    }

    /// Runs after the reply and its tool results were recorded.
    async fn after_step(&mut self, _s: &mut Engine, _had_calls: bool) -> Flow {
        Flow::Proceed
    }

    /// Handles a failed normal request. `attempt` is the number of failures in a row, from 1. The
    /// default retries transient errors.
    async fn on_error(&mut self, _s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        again_if_passing(e, attempt, PASSING_RETRIES)
    }

    async fn after_turn(&mut self, _s: &mut Engine) {}

    /// Runs at the end of the session. No other hook is called afterwards.
    async fn on_end(&mut self, _s: &mut Engine) {}

    /// Returns the virtual time in ms at which [`Strategy::on_wake`] should be called. Called between
    /// turns only.
    fn wakes_at(&self) -> Option<Millis> {
        None
    }

    /// Runs at the time given by [`Strategy::wakes_at`]. Runs again before the next turn only if
    /// `wakes_at` then returns a later time.
    async fn on_wake(&mut self, _s: &mut Engine) {}

    /// Handles an idle period of `gap_ms`, which has already passed.
    async fn on_idle(&mut self, _s: &mut Engine, _gap_ms: Millis) {}

    /// Handles a rewind to message `to`, the last one to keep.
    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        s.truncate_after(to);
    }

    /// Summarises everything up to and including message `to`, or everything after it, on request
    /// of the user. `mode` is one that summarises. Returns false if nothing changed because there
    /// was nothing to summarise or the request failed.
    async fn summarise_at(
        &mut self,
        _s: &mut Engine,
        _to: MessageId,
        _mode: RewindMode,
        _instructions: Option<&str>,
    ) -> Result<bool, Unsupported> {
        Err(Unsupported)
    }

    /// Compacts the conversation on request of the user.
    async fn compact(&mut self, _s: &mut Engine, _instructions: Option<&str>) -> Manual {
        Err(Unsupported)
    }
}

/// The role of a strategy in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// A product, or a technique that products use.
    #[default]
    Contender,
    /// A baseline at one end of the scale.
    Control,
    /// A bound that no real product can reach.
    Hypothetical,
    /// The recorded program itself, by the provider's counters.
    Recorded,
}

/// Retries after transient errors, for strategies without their own rule: the minimum of all products
/// (five: docs/sources/codex.md §1.5, docs/sources/opencode.md), so that no baseline fails where
/// every product continues.
pub const PASSING_RETRIES: u32 = 5;

/// Retries a request after a transient error, up to `max` times; any other error ends the turn. The
/// client's own pauses before a retry are not modelled.
pub fn again_if_passing(e: &ModelError, attempt: u32, max: u32) -> Flow {
    again_if(e.is_passing() && attempt <= max, e)
}

/// Retries a request, or ends the turn with its error.
pub fn again_if(retries: bool, e: &ModelError) -> Flow {
    if retries { Flow::Again } else { Flow::FailTurn(e.to_string()) }
}
