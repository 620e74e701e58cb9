//! `ctxbench run --otel`: exports the metrics of a run.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use ctxbench_replay::Replayed;
use ctxbench_replay::watch::otel::{Collector, ExportError, Metrics};

/// Metrics of a run, shared by its threads.
pub(super) struct MetricsExport {
    collector: Option<Collector>,
    metrics: Mutex<Metrics>,
    start_ms: u64,
}

pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

impl MetricsExport {
    /// Creates an export, which does nothing without a collector.
    pub(super) fn new(collector: Option<&Collector>) -> Self {
        let metrics = Mutex::new(Metrics::default());
        MetricsExport { collector: collector.cloned(), metrics, start_ms: now_ms() }
    }

    /// Adds the metrics of a finished row.
    pub(super) fn add(&self, row: &Replayed) {
        let (Some(_), Some(meter)) = (&self.collector, &row.seen.meter) else { return };
        let r = &row.record;
        let Ok(mut metrics) = self.metrics.lock() else { return };
        metrics.add_session(&format!("{}/{}", r.scenario.id, r.strategy.label), meter);
    }

    /// Sends all metrics to the collector.
    pub(super) fn finish(self) -> Result<(), ExportError> {
        let Some(collector) = &self.collector else { return Ok(()) };
        let Ok(metrics) = self.metrics.lock() else { return Ok(()) };
        collector.export(&metrics, self.start_ms, now_ms())
    }
}
