//! Posts to a server from synchronous code.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Bytes};
use hyper::{StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

pub struct AnswerLimits {
    pub timeout: Duration,
    /// Maximum size of the answer, bytes.
    pub bytes: usize,
}

/// Posts JSON and returns status and body. The runtime of a replay cannot be entered twice, so the
/// request runs on its own thread and runtime.
pub fn post(
    url: &Uri,
    headers: &[(&'static str, String)],
    body: Vec<u8>,
    limits: &AnswerLimits,
) -> Result<(StatusCode, Bytes), String> {
    let work = || {
        let client = client();
        let sent = async {
            let sent = send(&client, url, headers, body, limits.bytes);
            tokio::time::timeout(limits.timeout, sent).await
        };
        let late = |_| Err(format!("no answer within {} s", limits.timeout.as_secs()));
        crate::block_on(sent).map_err(|e| e.to_string())?.unwrap_or_else(late)
    };
    let joined = std::thread::scope(|s| s.spawn(work).join());
    joined.unwrap_or_else(|_| Err("the request panicked".to_string()))
}

pub type HttpClient<B> = Client<HttpsConnector<HttpConnector>, B>;

/// Creates a client with the root certificates of browsers.
pub fn client<B: Body<Data: Send> + Send>() -> HttpClient<B> {
    let connector = HttpsConnectorBuilder::new();
    let connector = connector.with_webpki_roots().https_or_http().enable_http1().build();
    Client::builder(TokioExecutor::new()).build(connector)
}

/// Posts JSON and returns status and body.
pub async fn send(
    client: &HttpClient<Full<Bytes>>,
    url: &Uri,
    headers: &[(&'static str, String)],
    body: Vec<u8>,
    max_bytes: usize,
) -> Result<(StatusCode, Bytes), String> {
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
        .map_err(|e| format!("the server could not be reached: {}", error_chain(&e)))?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), max_bytes)
        .collect()
        .await
        .map_err(|e| format!("the answer is incomplete: {e}"))?;
    Ok((status, body.to_bytes()))
}

/// Formats an error with its sources, which the messages of hyper leave out.
pub fn error_chain(e: &dyn std::error::Error) -> String {
    match e.source() {
        Some(s) => format!("{e}: {}", error_chain(s)),
        None => e.to_string(),
    }
}
