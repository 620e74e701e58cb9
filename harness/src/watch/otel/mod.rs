//! Export of metrics to OpenTelemetry: OTLP over HTTP with JSON bodies, a Prometheus text file, the
//! console.
//!
//! Every 60 s unless told otherwise, and at the end, as Claude Code does (docs/sources/openoxide.md
//! §2.9, `export_interval_ms`). The clock is the caller's.

mod json;
mod metrics;
mod prometheus;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use ctxbench_core::files::{self, FileError};
use hyper::Uri;
use thiserror::Error;

use crate::post::{Limits, post};

pub use metrics::{Instrument, Kind, Metrics};

/// Time between two exports, ms (docs/sources/openoxide.md §2.9: `export_interval_ms`, default
/// 60,000).
pub const INTERVAL_MS: u64 = 60_000;

/// Where a collector listens for metrics unless told otherwise (OTLP specification, HTTP port
/// 4318).
const DEFAULT_OTLP: &str = "http://localhost:4318/v1/metrics";

/// What a collector may take for an answer (OTLP specification: 10 s).
const LIMITS: Limits = Limits { timeout: Duration::from_secs(10), bytes: 64 << 10 };

/// Where metrics go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// A collector, OTLP over HTTP with JSON bodies.
    Otlp(Uri),
    /// A text file that Prometheus's node exporter picks up.
    Prometheus(PathBuf),
    /// Standard error.
    Console,
}

impl Sink {
    /// The file that it writes.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Sink::Prometheus(path) => Some(path),
            Sink::Otlp(_) | Sink::Console => None,
        }
    }
}

impl FromStr for Sink {
    type Err = String;

    /// `otlp`, `otlp=URL`, `prometheus=FILE`, `console`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=').unwrap_or((text, "")) {
            ("console", "") => Ok(Sink::Console),
            ("prometheus", file) if !file.is_empty() => Ok(Sink::Prometheus(file.into())),
            ("otlp", url) => {
                let url = if url.is_empty() { DEFAULT_OTLP } else { url };
                let uri: Uri = url.parse().map_err(|e| format!("`{url}` is no address: {e}"))?;
                // A collector's address without a path means its metrics.
                let bare = uri.scheme_str() == Some("http") && uri.path() == "/";
                let uri = if bare {
                    format!("{}/v1/metrics", url.trim_end_matches('/')).parse().unwrap_or(uri)
                } else {
                    uri
                };
                match uri.scheme_str() {
                    Some("http") => Ok(Sink::Otlp(uri)),
                    _ => Err(format!(
                        "`{url}`: expected http://HOST[:PORT][/PATH]; a collector on this machine \
                         can forward over TLS"
                    )),
                }
            }
            _ => Err(format!(
                "`{text}` is no exporter; expected otlp, otlp=URL, prometheus=FILE or console"
            )),
        }
    }
}

/// An export that failed; what was counted is kept and goes out with the next.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The collector could not be reached, or did not take it.
    #[error("metrics were not taken by {0}: {1}")]
    Otlp(Uri, String),
    /// The file could not be written.
    #[error("metrics: {0}")]
    File(#[source] FileError),
}

/// What is said of the source of all metrics, such as `deployment.environment.name=ci`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute(String, String);

impl FromStr for Attribute {
    type Err = String;

    /// `KEY=VALUE`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Attribute(key.trim().to_string(), value.to_string()))
            }
            _ => Err(format!("`{text}` is no attribute; expected KEY=VALUE")),
        }
    }
}

/// Our name and version, and what the user adds or says instead.
struct Resource(BTreeMap<String, String>);

impl Resource {
    fn with(more: Vec<Attribute>) -> Resource {
        let own = [("service.name", "ctxbench"), ("service.version", env!("CARGO_PKG_VERSION"))];
        let own = own.into_iter().map(|(k, v)| (k.to_string(), v.to_string()));
        Resource(own.chain(more.into_iter().map(|Attribute(k, v)| (k, v))).collect())
    }
}

/// Sends metrics to their sinks when it is time.
pub struct Exporter {
    sinks: Vec<Sink>,
    resource: Resource,
    interval_ms: u64,
    began_ms: u64,
    next_ms: u64,
}

impl Exporter {
    /// An exporter that began at a Unix time in ms.
    pub fn new(sinks: Vec<Sink>, began_ms: u64) -> Self {
        let resource = Resource::with(Vec::new());
        let next_ms = began_ms + INTERVAL_MS;
        Exporter { sinks, resource, interval_ms: INTERVAL_MS, began_ms, next_ms }
    }

    /// With another time between two exports, ms.
    pub fn with_interval(self, interval_ms: u64) -> Self {
        Exporter { interval_ms, next_ms: self.began_ms.saturating_add(interval_ms), ..self }
    }

    /// With more said of the source of the metrics.
    pub fn with_attributes(self, attributes: Vec<Attribute>) -> Self {
        Exporter { resource: Resource::with(attributes), ..self }
    }

    /// Exports if the interval is over. Returns whether it did.
    pub fn tick(&mut self, metrics: &Metrics, now_ms: u64) -> Result<bool, ExportError> {
        if now_ms < self.next_ms {
            return Ok(false);
        }
        self.flush(metrics, now_ms).map(|()| true)
    }

    /// Exports now. Every sink is tried; the first failure is returned.
    pub fn flush(&mut self, metrics: &Metrics, now_ms: u64) -> Result<(), ExportError> {
        self.next_ms = now_ms.saturating_add(self.interval_ms);
        let mut outcome = Ok(());
        for sink in &self.sinks {
            let one = match sink {
                Sink::Otlp(uri) => {
                    let body = json::body(metrics, &self.resource, self.began_ms, now_ms);
                    collected(uri, body).map_err(|why| ExportError::Otlp(uri.clone(), why))
                }
                Sink::Prometheus(path) => {
                    files::write(path, prometheus::text(metrics, &self.resource))
                        .map_err(ExportError::File)
                }
                Sink::Console => {
                    let _ = std::io::stderr()
                        .write_all(prometheus::text(metrics, &self.resource).as_bytes());
                    Ok(())
                }
            };
            outcome = outcome.and(one);
        }
        outcome
    }
}

/// Posts a body to a collector; the error says what it answered.
fn collected(uri: &Uri, body: String) -> Result<(), String> {
    let (status, bytes) = post(uri, &[], body.into_bytes(), &LIMITS)?;
    if !status.is_success() {
        return Err(format!("{status} {}", String::from_utf8_lossy(&bytes).trim()));
    }
    // 200 with `partialSuccess` means that some of it was thrown away. An empty answer is full
    // success.
    let partial = serde_json::from_slice::<serde_json::Value>(&bytes).unwrap_or_default();
    let partial = &partial["partialSuccess"];
    let rejected = &partial["rejectedDataPoints"];
    match rejected.as_str().and_then(|n| n.parse().ok()).or(rejected.as_u64()) {
        Some(n) if n > 0 => Err(format!(
            "{n} data points were rejected: {}",
            partial["errorMessage"].as_str().unwrap_or("no reason given")
        )),
        _ => Ok(()),
    }
}
