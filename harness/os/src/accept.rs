//! Accepts HTTP connections on loopback. Idle clients are disconnected.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

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
