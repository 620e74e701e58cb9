//! `ctxbench run --otel`: metrics of finished pairs, exported while the run goes on.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::run::Finished;
use crate::watch::otel::{Attribute, ExportError, Exporter, INTERVAL_MS, Metrics, Sink};
use clap::builder::ValueHint;

/// Where metrics go, how often, and what is said of their source.
#[derive(clap::Args, Debug)]
pub(super) struct Options {
    /// Export metrics to OpenTelemetry while the run goes on and at its end: otlp, otlp=URL,
    /// prometheus=FILE, console (repeat)
    #[arg(long = "otel", value_name = "SINK", value_hint = ValueHint::Other)]
    pub(super) sinks: Vec<Sink>,
    /// Time between two exports of --otel, ms
    #[arg(long = "otel-interval", value_name = "MS", default_value_t = INTERVAL_MS)]
    #[arg(requires = "sinks")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,
    /// What --otel says of where the metrics come from, beside service.name and service.version,
    /// such as deployment.environment.name=ci (repeat)
    #[arg(long = "otel-attribute", value_name = "KEY=VALUE", requires = "sinks")]
    attributes: Vec<Attribute>,
}

/// What is exported, shared by the threads of a run.
pub(super) struct Export {
    state: Option<Mutex<(Metrics, Exporter)>>,
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

impl Export {
    /// Without a sink nothing is counted.
    pub(super) fn new(options: &Options) -> Self {
        let Options { sinks, interval, attributes } = options;
        let exporter = || {
            Exporter::new(sinks.clone(), now_ms())
                .with_interval(*interval)
                .with_attributes(attributes.clone())
        };
        let state = (!sinks.is_empty()).then(|| Mutex::new((Metrics::default(), exporter())));
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
