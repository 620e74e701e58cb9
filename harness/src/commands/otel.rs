//! `ctxbench run --otel`: metrics of finished pairs, exported while the run goes on.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use ctxbench_harness::run::Finished;
use ctxbench_harness::watch::otel::{ExportError, Exporter, Metrics, Sink};

/// What is exported, shared by the threads of a run.
pub(super) struct Export {
    state: Option<Mutex<(Metrics, Exporter)>>,
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

impl Export {
    /// Without a sink nothing is counted.
    pub(super) fn new(sinks: &[Sink]) -> Self {
        let state = (!sinks.is_empty())
            .then(|| Mutex::new((Metrics::default(), Exporter::new(sinks.to_vec(), now_ms()))));
        Export { state }
    }

    /// A pair is finished. A failure is only said: what was counted goes out with the next export.
    pub(super) fn add(&self, f: &Finished) {
        let (Some(state), Some(meter)) = (&self.state, &f.replayed.seen.meter) else { return };
        let r = &f.replayed.record;
        let Ok(mut state) = state.lock() else { return };
        let (metrics, exporter) = &mut *state;
        metrics.add_session(&format!("{}/{}", r.scenario.id, r.strategy.label), meter);
        if let Err(e) = exporter.tick(metrics, now_ms()) {
            tell!("note: {e}");
        }
    }

    /// The run is over: everything goes out.
    pub(super) fn finish(self) -> Result<(), ExportError> {
        let Some((metrics, mut exporter)) = self.state.and_then(|s| s.into_inner().ok()) else {
            return Ok(());
        };
        exporter.flush(&metrics, now_ms())
    }
}
