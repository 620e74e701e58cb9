//! Streaming of an answer: every piece is passed on as it arrives, and a copy is kept.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use ctxbench_scenarios::formats::exchanges::{Exchange, ExchangeEnd};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::serve::Clock;
use ctxbench_os::post::error_chain;

/// Most of an answer that is kept, bytes.
const MAX_REPLY_BYTES: usize = 256 << 20;

/// Gets an exchange that has ended, and the bytes of its answer.
type OnEnd = Box<dyn FnOnce(Exchange, Vec<u8>) + Send>;

/// The body of an answer.
pub(super) struct Tee {
    inner: Incoming,
    /// Length that the header announced.
    length: Option<u64>,
    kept: Vec<u8>,
    too_long: bool,
    clock: Clock,
    /// The exchange, until it has ended.
    open: Option<(Exchange, OnEnd)>,
}

impl Tee {
    pub(super) fn new(inner: Incoming, clock: Clock, begun: Exchange, on_end: OnEnd) -> Tee {
        let length = inner.size_hint().exact();
        let open = Some((begun, on_end));
        Tee { inner, length, kept: Vec::new(), too_long: false, clock, open }
    }

    fn over(&mut self, ended: ExchangeEnd, error: Option<String>) {
        let Some((exchange, on_end)) = self.open.take() else { return };
        let long = || format!("more than {} MiB, of which nothing is kept", MAX_REPLY_BYTES >> 20);
        let error = error.or_else(|| self.too_long.then(long));
        let over = Exchange { ended, error, end_ms: (self.clock)(), ..exchange };
        on_end(over, std::mem::take(&mut self.kept));
    }

    fn is_whole(&self) -> bool {
        self.inner.is_end_stream() || self.length == Some(self.kept.len() as u64)
    }
}

impl Body for Tee {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    let now = (self.clock)();
                    if let Some((exchange, _)) = &mut self.open {
                        exchange.first_ms.get_or_insert(now);
                    }
                    self.too_long |= self.kept.len() + data.len() > MAX_REPLY_BYTES;
                    if self.too_long {
                        self.kept.clear();
                    } else {
                        self.kept.extend_from_slice(data);
                    }
                }
                // The sender may not poll again.
                if self.is_whole() {
                    self.over(ExchangeEnd::Whole, None);
                }
            }
            Poll::Ready(Some(Err(e))) => {
                let why = error_chain(e);
                self.over(ExchangeEnd::Cut, Some(why));
            }
            Poll::Ready(None) => self.over(ExchangeEnd::Whole, None),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        let ended = if self.is_whole() { ExchangeEnd::Whole } else { ExchangeEnd::Left };
        self.over(ended, None);
    }
}
