//! Accepts HTTP connections on loopback. Idle clients are disconnected.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::server_url::is_loopback;

/// Time for the head of a request, and for a pause between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for open replies after the server has stopped accepting.
const GRACE: Duration = Duration::from_secs(2);

/// Pause after an error of `accept`, usually because too many files are open.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Creates a response with a content type. An invalid status becomes 500.
pub fn response(status: u16, content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Returns why a request is refused that no program of this machine sends. A page in a browser can
/// reach loopback, too, under another name or from another origin, and could advance a script, read
/// the client's requests, or use its keys.
pub fn foreign(headers: &HeaderMap) -> Option<String> {
    let value = |name| headers.get(name).map(|v| String::from_utf8_lossy(v.as_bytes()));
    if let Some(host) = value(header::HOST).filter(|h| !is_loopback(h)) {
        return Some(format!("the host {host:?} is not this machine's loopback"));
    }
    let origin = value(header::ORIGIN)?;
    let own = origin.split_once("://").is_some_and(|(_, host)| is_loopback(host));
    (!own).then(|| format!("requests of pages from {origin:?} are refused"))
}

/// Opens a port on loopback, any free one for 0. Requests wait until [`listen`].
pub async fn bind(port: u16) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves a listener until `until` completes. Open replies have two seconds to finish.
pub async fn listen<F>(
    listener: TcpListener,
    answer: impl Fn(Request) -> F + Clone + Send + 'static,
    until: impl Future<Output = ()> + Send,
) where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let open = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    // hyper panics on a clock before 1970 or after 9999.
    http.auto_date_header(false);
    tokio::pin!(until);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut until => break,
        };
        let Ok((stream, _)) = accepted else {
            sleep(ACCEPT_RETRY).await;
            continue;
        };
        // Events are small and would wait for each other.
        let _ = stream.set_nodelay(true);
        let answer = answer.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let answer = answer(request.map(Body::new));
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        // An error of a connection affects only its client.
        tokio::spawn(async move { drop(connection.await) });
    }
    drop(listener);
    let _ = timeout(GRACE, open.shutdown()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_many_names_and_others_have_none_of_them() {
        let refused = |name: header::HeaderName, value: &str| {
            foreign(&HeaderMap::from_iter([(name, value.parse().unwrap())])).is_some()
        };
        let own = "127.0.0.1:8080 localhost LOCALHOST.:1 [::1]:9 127.9.9.9 a.localhost";
        assert!(own.split(' ').all(|host| !refused(header::HOST, host)));
        let other = "example.com 127.0.0.1.example.com localhost.example 10.0.0.1 [::2]";
        assert!(other.split(' ').chain([""]).all(|host| refused(header::HOST, host)));
        let own = "http://localhost:3000 https://127.0.0.1";
        assert!(own.split(' ').all(|origin| !refused(header::ORIGIN, origin)));
        let other = "https://example.com null http://localhost.example.com file://";
        assert!(other.split(' ').all(|origin| refused(header::ORIGIN, origin)));
        assert!(foreign(&HeaderMap::new()).is_none());
    }
}
