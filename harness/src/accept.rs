//! Connections: each a task, none kept open by a client that says nothing.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

/// How long a client may take for the head of a request, and how long it may say nothing between two.
const HEAD: Duration = Duration::from_secs(60);

/// How long open replies may take to end once the server is told to stop.
const GRACE: Duration = Duration::from_secs(2);

/// Pause after the system had no place for a connection, most often because too many files are open.
const NO_PLACE: Duration = Duration::from_millis(100);

/// Answers on a listener until `until` is ready; answers under way may end within [`GRACE`].
pub(crate) async fn listen<F>(
    listener: TcpListener,
    answer: impl Fn(Request) -> F + Clone + Send + 'static,
    until: impl Future<Output = ()> + Send,
) where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let open = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    tokio::pin!(until);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut until => break,
        };
        let Ok((stream, _)) = accepted else {
            sleep(NO_PLACE).await;
            continue;
        };
        // Events are small; without this they would wait for each other.
        let _ = stream.set_nodelay(true);
        let answer = answer.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let answer = answer(request.map(Body::new));
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        // A connection that breaks concerns its client alone.
        tokio::spawn(async move { drop(connection.await) });
    }
    drop(listener);
    let _ = timeout(GRACE, open.shutdown()).await;
}
