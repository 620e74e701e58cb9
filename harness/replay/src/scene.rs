//! Surroundings of a conversation that is played.

use std::sync::Arc;

use ctxbench_core::{Millis, Model};
use ctxbench_mock::summarise::SummaryDesk;
use ctxbench_scenarios::Scenario;
use ctxbench_session::Session;
use ctxbench_strategies::Spec;

use crate::options::Options;
use crate::rewind::FileRewinds;
use crate::session_cache::SessionCache;
use crate::subagent_index::SubagentIndex;

/// A conversation to be played, with its surroundings.
pub(crate) struct Scene<'a> {
    pub(crate) scenario: &'a Scenario,
    /// Messages of the scenario, or of one subagent.
    pub(crate) session: &'a Session,
    /// The subagent; `None` for the main conversation.
    pub(crate) agent: Option<&'a str>,
    pub(crate) spec: &'a Spec,
    pub(crate) model: &'a Arc<Model>,
    pub(crate) options: &'a Options,
    pub(crate) desk: &'a SummaryDesk,
    /// Analysis of the facts of these messages.
    pub(crate) known: Arc<SessionCache>,
    /// Whether the engine keeps its events. Measurements do not need them: they use the log.
    pub(crate) keeps_events: bool,
}

/// A replay that ended.
pub(crate) struct FinishedRun<'a> {
    pub(crate) scene: &'a Scene<'a>,
    pub(crate) files: &'a FileRewinds,
    pub(crate) subagents: &'a SubagentIndex,
    /// Reason, if a spend limit refused a request.
    pub(crate) refused: Option<String>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Start {
    /// Virtual time in ms.
    pub(crate) at_ms: Millis,
    /// Request of the caller with the reply that started this subagent.
    pub(crate) by_request: Option<u64>,
}
