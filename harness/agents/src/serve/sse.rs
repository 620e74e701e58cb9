//! Bodies that take their time: events one by one, and connections that break on purpose.

use std::time::Duration;

use axum::body::{Body, Bytes};
use ctxbench_provider::wire::StreamEvent;
use http_body_util::channel::Channel;

/// Time for the last event before a break to leave. A break overtakes unsent data, ms.
const FLUSH: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
#[error("the stream was cut on purpose")]
struct Cut;

/// Builds a stream of events with a pause between them, broken off after the first `cut`.
pub(super) fn events(events: Vec<StreamEvent>, pause: Duration, cut: Option<usize>) -> Body {
    send(events.iter().map(|e| e.bytes().into()).collect(), pause, cut)
}

/// A whole body that breaks off in its middle.
pub(super) fn half(mut body: Vec<u8>) -> Body {
    body.truncate(body.len() / 2);
    send(vec![body.into()], Duration::ZERO, Some(1))
}

fn send(pieces: Vec<Bytes>, pause: Duration, cut: Option<usize>) -> Body {
    let (mut sender, body) = Channel::<Bytes, Cut>::new(1);
    tokio::spawn(async move {
        let most = cut.unwrap_or(usize::MAX);
        for (i, piece) in pieces.into_iter().take(most).enumerate() {
            if i > 0 && !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            // A client that went away needs no more.
            if sender.send_data(piece).await.is_err() {
                return;
            }
        }
        if cut.is_some() {
            tokio::time::sleep(FLUSH).await;
            sender.abort(Cut);
        }
    });
    Body::new(body)
}
