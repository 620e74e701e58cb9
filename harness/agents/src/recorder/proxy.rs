//! From a request to the provider and back.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use ctxbench_provider::Wire;
use ctxbench_provider::wire::Api;
use ctxbench_scenarios::formats::Source;
use ctxbench_scenarios::formats::exchanges::{Exchange, ExchangeEnd, Passed};
use http_body_util::{BodyExt, Limited};
use hyper::Uri;

use super::address::{Upstreams, at};
use super::file::RecordingFile;
use super::route::{RecordRoute, route};
use super::tee::Tee;
use crate::serve::Clock;
use ctxbench_os::accept::{foreign, response};
use ctxbench_os::post::{HttpClient, error_chain};
use ctxbench_os::redact::{RequestSecrets, headers};

/// Maximum size of a request for a reply, bytes; larger than providers accept.
const BODY_LIMIT: usize = 256 << 20;

/// State shared by all requests.
pub(super) struct ProxyState {
    pub(super) upstreams: Upstreams,
    pub(super) client: HttpClient<Body>,
    pub(super) recording: Arc<RecordingFile>,
    pub(super) clock: Clock,
    pub(super) number: AtomicU64,
}

/// Headers between two hosts only, and headers that the proxy sets itself.
const NOT_PASSED_ON: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "host",
];

fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|v| v.to_str().ok());
    let named: Vec<String> =
        named.flat_map(|v| v.split(',')).map(|n| n.trim().to_ascii_lowercase()).collect();
    let mut out = headers.clone();
    NOT_PASSED_ON.iter().for_each(|name| drop(out.remove(*name)));
    named.iter().for_each(|name| drop(out.remove(name.as_str())));
    out
}

/// Forwards a request and returns the provider's answer.
pub(super) async fn handle(shared: Arc<ProxyState>, request: Request) -> Response<Body> {
    let at_ms = (shared.clock)();
    if let Some(why) = foreign(request.headers()) {
        return plain(StatusCode::FORBIDDEN, &why);
    }
    if request.headers().contains_key(header::UPGRADE) {
        // A client that asks for a WebSocket falls back to HTTP after this status.
        return plain(StatusCode::UPGRADE_REQUIRED, "no other protocol is passed on");
    }
    let (head, body) = request.into_parts();
    let (path, header) = (head.uri.path(), |name: &str| head.headers.contains_key(name));
    let route = route(head.method.as_str(), path, &header);
    let api = route.api();
    let Some(upstream) = shared.upstreams.get(api) else {
        let why = format!("no address of {} is known; give --upstream URL", api.name);
        return refusal(api, StatusCode::BAD_GATEWAY, &why);
    };
    let to = match at(upstream, path, head.uri.query()) {
        Ok(to) => to,
        Err(e) => return refusal(api, StatusCode::BAD_GATEWAY, &e.to_string()),
    };
    let host = upstream.host().to_string();
    match route {
        RecordRoute::Reply(wire, path) => {
            let begun = Exchange { path, host, at_ms, ..Exchange::default() };
            exchange(shared.clone(), wire, begun, head, body, to).await
        }
        RecordRoute::Other { api, is_known } => {
            pass(&shared, (api, is_known), head, body, to, at_ms).await
        }
    }
}

fn plain(status: StatusCode, words: &str) -> Response<Body> {
    response(status.as_u16(), "text/plain", format!("ctxbench record: {words}\n"))
}

/// Builds a refusal in the provider's format, since clients read no other.
fn refusal(api: Api, status: StatusCode, why: &str) -> Response<Body> {
    let status = status.as_u16();
    let code = api.status_code(status).unwrap_or("api_error");
    let body = (api.error_body)(status, code, &format!("ctxbench record: {why}"));
    response(status, "application/json", body.to_string())
}

async fn exchange(
    shared: Arc<ProxyState>,
    wire: Wire,
    begun: Exchange,
    head: Parts,
    body: Body,
    to: Uri,
) -> Response<Body> {
    let api = wire.api;
    let number = shared.number.fetch_add(1, Ordering::SeqCst) + 1;
    let body = match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => {
            let why = format!("the request broke off, or is larger than {BODY_LIMIT} bytes");
            return refusal(api, StatusCode::PAYLOAD_TOO_LARGE, &why);
        }
    };
    let secrets = RequestSecrets::new(&head.headers, head.uri.query());
    let begun = Exchange {
        number,
        wire: wire.name.to_string(),
        path: secrets.clean(begun.path),
        query: headers::parameter_names(head.uri.query()),
        headers: secrets.clean_headers(&head.headers),
        ..begun
    };
    let text = text_of(&body, &head.headers).map(|t| secrets.clean(t));
    let mut request = forwarded(&head, to, Body::from(body));
    // A compressed reply could not be read.
    let plain = HeaderValue::from_static("identity");
    request.headers_mut().insert(header::ACCEPT_ENCODING, plain);
    let clock = shared.clock.clone();
    match shared.client.request(request).await {
        Err(e) => {
            let why = secrets.clean(error_chain(&e));
            let words = format!("{} could not be reached: {why}", begun.host);
            let (end_ms, ended) = (clock(), ExchangeEnd::Unreached);
            let over = Exchange { end_ms, ended, error: Some(why), ..begun };
            shared.recording.exchange(wire, over, text);
            refusal(api, StatusCode::BAD_GATEWAY, &words)
        }
        Ok(answer) => {
            let (head, body) = answer.into_parts();
            let status = head.status.as_u16();
            let reply_headers = secrets.clean_headers(&head.headers);
            let begun = Exchange { status, reply_headers, ..begun };
            let kept = head.headers.clone();
            let on_end = Box::new(move |mut over: Exchange, bytes: Vec<u8>| {
                over.reply = text_of(&bytes, &kept).map(|t| secrets.clean(t));
                over.error = over.error.map(|e| secrets.clean(e));
                shared.recording.exchange(wire, over, text);
            });
            let body = Tee::new(body, clock, begun, on_end);
            answered(head.status, &head.headers, Body::new(body))
        }
    }
}

/// Builds the request to the provider.
fn forwarded(head: &Parts, to: Uri, body: Body) -> Request {
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut()) = (head.method.clone(), to);
    *request.headers_mut() = passed_on(&head.headers);
    request
}

fn answered(status: StatusCode, headers: &HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = passed_on(headers);
    response
}

/// Forwards a request that does not ask for a reply.
async fn pass(
    shared: &ProxyState,
    (api, known): (Api, bool),
    head: Parts,
    body: Body,
    to: Uri,
    at_ms: u64,
) -> Response<Body> {
    let secrets = RequestSecrets::new(&head.headers, head.uri.query());
    let path = ctxbench_os::redact::Redactor::default().text(head.uri.path()).into_owned();
    let method = head.method.to_string();
    let noted = |status: u16| {
        let path = secrets.clean(path.clone());
        shared.recording.passed(Passed { at_ms, method: method.clone(), path, status, known });
    };
    match shared.client.request(forwarded(&head, to, body)).await {
        Ok(answer) => {
            let (head, body) = answer.into_parts();
            noted(head.status.as_u16());
            answered(head.status, &head.headers, Body::new(body))
        }
        Err(e) => {
            noted(0);
            let why =
                format!("the provider could not be reached: {}", secrets.clean(error_chain(&e)));
            refusal(api, StatusCode::BAD_GATEWAY, &why)
        }
    }
}

/// A body as text, unpacked where it is compressed in a way that is known here.
fn text_of(body: &[u8], headers: &HeaderMap) -> Option<String> {
    let coding = headers.get(header::CONTENT_ENCODING).and_then(|v| v.to_str().ok());
    let plain = coding.is_none_or(|c| c.trim().is_empty() || c.eq_ignore_ascii_case("identity"));
    if plain {
        return std::str::from_utf8(body).ok().map(str::to_string);
    }
    let mut unpacked = Vec::new();
    let source = Source::of_bytes(body, "body");
    source.open().ok()?.take(BODY_LIMIT as u64).read_to_end(&mut unpacked).ok()?;
    String::from_utf8(unpacked).ok()
}
