//! A strategy is a policy over named moments: the engine calls it, it may edit the context, and it
//! answers with a flow decision.

use async_trait::async_trait;
use thiserror::Error;

use crate::block::{Block, BlockKind, Draft, MessageId, Role};
use crate::engine::{Engine, Incoming};
use crate::request::{ModelError, Reply, Request, Ttl};
use crate::session::{Millis, RewindMode};
use std::sync::Arc;

/// What the agent's loop does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on as usual.
    Proceed,
    /// Ask the model again, even if the turn seemed over.
    Again,
    /// Forget the reply just received and ask again.
    DropReply,
    /// The reply is unfinished: record it, run none of its calls and ask the model to go on (from
    /// `on_reply`).
    Resume,
    /// The turn is over.
    EndTurn,
    /// The turn failed; the text is what the user would read.
    FailTurn(String),
}

/// The product has no such command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("this product has no manual compaction")]
pub struct Unsupported;

/// Context management of one product. Every method has a default that does nothing.
#[async_trait]
pub trait Strategy: Send {
    /// Content enters the context: the place for cutting tool output or mapping roles.
    fn admit(&self, raw: Draft) -> Draft {
        raw
    }

    /// A tool result enters the context, with `id` as its message. Unlike [`Strategy::admit`], which
    /// decides by default, it may take its time and ask a model.
    async fn on_result(&mut self, _s: &mut Engine, _id: MessageId, raw: Draft) -> Draft {
        self.admit(raw)
    }

    /// The session begins: show what is always there.
    async fn on_start(&mut self, s: &mut Engine) {
        s.show_fixed();
    }

    /// The program ended and the session was opened again.
    async fn on_restart(&mut self, _s: &mut Engine) {}

    /// The session ended, and another one of the same project begins. What the product keeps on
    /// disk for it is shown again; the default keeps nothing but what is always shown.
    async fn on_new_session(&mut self, s: &mut Engine) {
        s.begin_anew();
        self.on_start(s).await;
    }

    /// A user message arrived; it is neither recorded nor counted yet.
    async fn on_user(&mut self, _s: &mut Engine, _msg: &Incoming) -> Flow {
        Flow::Proceed
    }

    /// A normal request is about to be built.
    async fn before_request(&mut self, _s: &mut Engine) -> Flow {
        Flow::Proceed
    }

    /// Builds the normal request. The default shows the context with the default breakpoints.
    fn request(&mut self, s: &Engine) -> Request {
        s.sample_request()
    }

    /// A reply arrived; it is not recorded and its tools have not run.
    async fn on_reply(&mut self, _s: &mut Engine, _reply: &Reply) -> Flow {
        Flow::Proceed
    }

    /// Reply and tool outputs are recorded.
    async fn after_step(&mut self, _s: &mut Engine, _had_calls: bool) -> Flow {
        Flow::Proceed
    }

    /// A normal request failed for the `attempt`-th time in a row, from 1. The default sends it
    /// again while the failure is a passing one.
    async fn on_error(&mut self, _s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        again_if_passing(e, attempt, PASSING_RETRIES)
    }

    /// The turn is over.
    async fn after_turn(&mut self, _s: &mut Engine) {}

    /// The session is over. Nothing is asked of it any more.
    async fn on_end(&mut self, _s: &mut Engine) {}

    /// The next moment at which it wants to act though nothing happens, ms of virtual time. Asked
    /// between turns only.
    fn wakes_at(&self) -> Option<Millis> {
        None
    }

    /// That moment has come. Without a later one afterwards it is not woken again before the next
    /// turn.
    async fn on_wake(&mut self, _s: &mut Engine) {}

    /// Nothing happened for a while; time has already passed.
    async fn on_idle(&mut self, _s: &mut Engine, _gap_ms: Millis) {}

    /// The conversation went back to a message, which is the last that stays.
    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        s.truncate_after(to);
    }

    /// The user asks for a summary of one side of a seam that lies right behind a message; `mode`
    /// is one that summarises. False = there was nothing to summarise, or it failed; nothing has
    /// changed then.
    async fn summarise_at(
        &mut self,
        _s: &mut Engine,
        _to: MessageId,
        _mode: RewindMode,
        _instructions: Option<&str>,
    ) -> Result<bool, Unsupported> {
        Err(Unsupported)
    }

    /// The user asks for a compaction.
    async fn compact(
        &mut self,
        _s: &mut Engine,
        _instructions: Option<&str>,
    ) -> Result<(), Unsupported> {
        Err(Unsupported)
    }
}

/// What kind of row a strategy makes in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// A product, or a technique that products use.
    #[default]
    Contender,
    /// A yardstick that shows one end of the scale.
    Control,
    /// Cannot exist in reality.
    Hypothetical,
    /// What a recorded program did, by the provider's counters.
    Recorded,
}

/// Further attempts at a request that fails for a passing reason, where a strategy has no rule of
/// its own. Ours: as many as the products make at least (five: docs/sources/codex.md §1.5,
/// docs/sources/opencode.md), so that no yardstick dies of what none of them dies of.
pub const PASSING_RETRIES: u32 = 5;

/// Sends a request again that failed for a passing reason, up to `most` times; any other failure
/// ends the turn. Pauses before it are those that the provider makes (a refusal may come late); the
/// client's own are not modelled.
pub fn again_if_passing(e: &ModelError, attempt: u32, most: u32) -> Flow {
    if e.is_passing() && attempt <= most { Flow::Again } else { Flow::FailTurn(e.to_string()) }
}

/// The default places of prompt-cache breakpoints where a product has no rule for the provider:
/// the end of the system part and the last two messages.
pub fn default_breakpoints(blocks: &[Arc<Block>]) -> Vec<usize> {
    let system_end = blocks.iter().take_while(|b| is_system(b)).count();
    let mut out: Vec<usize> = system_end.checked_sub(1).into_iter().collect();
    let mut messages = Vec::new();
    for i in (system_end..blocks.len()).rev() {
        let ends_message =
            i + 1 == blocks.len() || wire_side(&blocks[i]) != wire_side(&blocks[i + 1]);
        if ends_message {
            messages.push(i);
        }
        if messages.len() == 2 {
            break;
        }
    }
    out.extend(messages.into_iter().rev());
    out
}

/// The default places and one more, before the block that the next clearing of old results changes
/// first. Clearing changes the prompt from there on, far beyond the positions that a read looks
/// back from the last message; what stands before it stays in the cache.
pub fn frontier_breakpoints(blocks: &[Arc<Block>], next_change: Option<usize>) -> Vec<usize> {
    let mut out = default_breakpoints(blocks);
    if let Some(before) = next_change.and_then(|i| i.checked_sub(1)) {
        out.push(before);
        out.sort_unstable();
        out.dedup();
    }
    out
}

/// Whether a block belongs to the part before the conversation.
pub fn is_system(b: &Block) -> bool {
    b.kind == BlockKind::Base || (b.kind == BlockKind::Context && b.role != Role::User)
}

/// Whether a block is always shown, whatever is forgotten.
pub fn is_fixed(b: &Block) -> bool {
    matches!(b.kind, BlockKind::Base | BlockKind::Context | BlockKind::RepoMap)
}

/// Which side of the conversation a block is on; neighbours on one side become one message on most
/// wires.
fn wire_side(b: &Block) -> bool {
    b.role == Role::Assistant
}

/// Lifetime that products ask for unless they say otherwise: five minutes, what an API key gets
/// (docs/sources/claude-code.md §1.5).
pub const DEFAULT_TTL: Ttl = Ttl::FiveMinutes;
