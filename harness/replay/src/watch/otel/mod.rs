//! Export of metrics to an OpenTelemetry collector: one OTLP POST over HTTP with a JSON body.

mod metrics;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use hyper::Uri;
use thiserror::Error;

use ctxbench_os::post::{AnswerLimits, post};

pub use metrics::Metrics;

/// Limits of the collector's response (OTLP specification: 10 s).
const LIMITS: AnswerLimits = AnswerLimits { timeout: Duration::from_secs(10), bytes: 64 << 10 };

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector(Uri);

impl FromStr for Collector {
    type Err = String;

    /// Parses `http://HOST[:PORT][/PATH]`. The default path is `/v1/metrics`.
    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|e| format!("`{text}` is not a URL: {e}"))?;
        if uri.scheme_str() != Some("http") {
            return Err(format!(
                "`{text}`: expected http://HOST[:PORT][/PATH]; a local collector can forward over \
                 TLS"
            ));
        }
        if uri.path() != "/" {
            return Ok(Collector(uri));
        }
        let with_path = format!("{}/v1/metrics", text.trim_end_matches('/'));
        with_path.parse().map(Collector).map_err(|e| format!("`{with_path}` is not a URL: {e}"))
    }
}

#[derive(Debug, Error)]
#[error("failed to export metrics to {url}: {reason}; check that a collector accepts OTLP there")]
pub struct ExportError {
    url: Uri,
    reason: String,
}

/// Attributes of the exporting program: name and version, and those in the environment variable
/// `OTEL_RESOURCE_ATTRIBUTES` (`key=value,…`), which take precedence.
fn resource(environment: Option<&str>) -> BTreeMap<String, String> {
    let own = [("service.name", "ctxbench"), ("service.version", env!("CARGO_PKG_VERSION"))];
    let more = environment.unwrap_or_default().split(',').filter_map(|a| a.split_once('='));
    own.into_iter().chain(more).map(|(k, v)| (k.trim().into(), v.trim().into())).collect()
}

impl Collector {
    /// Posts the metrics of a run between two Unix times in ms.
    ///
    /// # Errors
    ///
    /// If the collector cannot be reached or rejects data points.
    pub fn export(&self, metrics: &Metrics, start_ms: u64, now_ms: u64) -> Result<(), ExportError> {
        let environment = std::env::var("OTEL_RESOURCE_ATTRIBUTES").ok();
        let body = metrics.body(&resource(environment.as_deref()), start_ms, now_ms);
        send(&self.0, body).map_err(|reason| ExportError { url: self.0.clone(), reason })
    }
}

/// Posts a body. The error contains the collector's response.
fn send(uri: &Uri, body: String) -> Result<(), String> {
    let (status, bytes) = post(uri, &[], body.into_bytes(), &LIMITS)?;
    if !status.is_success() {
        return Err(format!("{status} {}", String::from_utf8_lossy(&bytes).trim()));
    }
    // Status 200 with `partialSuccess` means that some data points were rejected. An empty body means
    // full success.
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
