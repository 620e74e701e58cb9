//! One request over the network, from code that is not asynchronous.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::Uri;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// A summary of a long conversation takes minutes; more than this, and nobody is there.
const PATIENCE: Duration = Duration::from_secs(600);
/// Largest answer that is read, bytes.
const MOST_BYTES: usize = 16 << 20;

/// Posts JSON and returns status and body. The runtime of a replay cannot be entered twice, so the
/// request has a thread and a runtime of its own; nobody waits for it in vain, since a replay
/// cannot go on without the summary.
pub(super) fn post(
    url: &Uri,
    headers: &[(&'static str, String)],
    body: Vec<u8>,
) -> Result<(u16, Vec<u8>), String> {
    let work = || -> Result<(u16, Vec<u8>), String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| e.to_string())?;
        let answer = runtime
            .block_on(async { tokio::time::timeout(PATIENCE, send(url, headers, body)).await });
        answer.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())))
    };
    let joined = std::thread::scope(|s| s.spawn(work).join());
    joined.unwrap_or_else(|_| Err("the request to the endpoint panicked".to_string()))
}

async fn send(
    url: &Uri,
    headers: &[(&'static str, String)],
    body: Vec<u8>,
) -> Result<(u16, Vec<u8>), String> {
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_webpki_roots()
        .https_or_http()
        .enable_http1()
        .build();
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let mut request = hyper::Request::post(url.clone()).header("content-type", "application/json");
    for (name, value) in headers {
        let mut value = hyper::header::HeaderValue::from_str(value)
            .map_err(|_| format!("the header {name} cannot be sent"))?;
        value.set_sensitive(true);
        request = request.header(*name, value);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|e| e.to_string())?;
    let answer = client
        .request(request)
        .await
        .map_err(|e| format!("the endpoint could not be reached: {}", causes(&e)))?;
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), MOST_BYTES)
        .collect()
        .await
        .map_err(|e| format!("the answer broke off: {e}"))?;
    Ok((status, body.to_bytes().to_vec()))
}

/// An error with what lies under it.
fn causes(e: &dyn std::error::Error) -> String {
    match e.source() {
        Some(s) => format!("{e}: {}", causes(s)),
        None => e.to_string(),
    }
}
