//! Options and results of a replay.

use std::sync::Arc;
use std::time::Duration;

use ctxbench_core::engine::Fixed;
use ctxbench_core::model::Model;
use ctxbench_mock::Transport;
use ctxbench_mock::summarise::Summariser;
use ctxbench_reports::record::RunRecord;
use ctxbench_session::calibration::Calibrate;

use crate::conversation::NeedContexts;
use crate::memory::Prefixes;
use crate::resume::Loading;
use crate::watch::{Observations, Watch};

#[derive(Clone, Debug)]
pub struct Options {
    /// Transport to the provider model.
    pub transport: Transport,
    /// Writer of the summaries.
    pub summariser: Summariser,
    pub seed: u64,
    /// Whether the agent fetches lost facts again when it needs them.
    pub rereads: bool,
    /// Share of what is present in a prompt that a model uses, for people. Only printed.
    pub used: String,
    /// Whether to write a trace line per request.
    pub trace: bool,
    /// Calibration of token counts.
    pub calibrate: Calibrate,
    /// Context window in tokens, instead of the model's.
    pub window: Option<u64>,
    /// Model of every summary. `None` = the strategy's choice.
    pub summary_model: Option<&'static Model>,
    /// Live monitoring and spend limit, if requested.
    pub watch: Option<Watch>,
    /// Memory files in addition to those of the session.
    pub memory: Arc<Prefixes>,
    /// Fixed context, instead of the session's.
    pub shown: Option<Arc<Fixed>>,
}

impl Default for Options {
    /// Default options: replay in process, with the default summariser.
    fn default() -> Self {
        Options {
            transport: Transport::Direct,
            summariser: Summariser::Extractive,
            seed: 1,
            rereads: true,
            used: "29 to 92 %".into(),
            trace: false,
            calibrate: Calibrate::default(),
            window: None,
            summary_model: None,
            watch: None,
            memory: Arc::default(),
            shown: None,
        }
    }
}

/// Record of one replay, with its trace.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Measured figures, except those that need other runs, such as savings.
    pub record: RunRecord,
    /// Contexts at the needs of the main conversation; empty unless replayed in full.
    pub contexts: NeedContexts,
    /// One JSON line per request.
    pub trace: Vec<String>,
    /// Wall-clock time of a row of a run; not part of results.
    pub took: Duration,
    /// Wall-clock times of loading sessions from disk.
    pub loadings: Vec<Loading>,
    /// Usage, if the run was monitored.
    pub seen: Observations,
}
