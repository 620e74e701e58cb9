//! Posting to a collector over plain HTTP.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// Longest that a collector may take (OTLP specification: 10 s).
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest answer that is read, bytes.
const LONGEST_ANSWER: usize = 64 * 1024;

/// Posts a JSON body; the error says what the collector answered. Must not be called on a thread
/// that runs a tokio runtime.
pub(super) fn post(uri: &Uri, body: String) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, send(uri, body))
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())))
    })
}

async fn send(uri: &Uri, body: String) -> Result<(), String> {
    let client: Client<HttpConnector, Full<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    let request = Request::post(uri)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)));
    let answer = client.request(request.map_err(|e| e.to_string())?).await.map_err(|e| told(&e))?;
    let status = answer.status();
    let bytes = Limited::new(answer.into_body(), LONGEST_ANSWER)
        .collect()
        .await
        .map_err(|e| e.to_string())?
        .to_bytes();
    let text = String::from_utf8_lossy(&bytes);
    if !status.is_success() {
        return Err(format!("{status} {}", text.trim()));
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

/// An error with its causes: hyper's own words leave out why.
fn told(e: &dyn std::error::Error) -> String {
    let mut out = e.to_string();
    let mut cause = e.source();
    while let Some(c) = cause {
        out = format!("{out}: {c}");
        cause = c.source();
    }
    out
}
