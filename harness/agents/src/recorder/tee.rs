//! Streaming of an answer: every piece is passed on as it arrives, and a copy is kept.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use ctxbench_scenarios::formats::exchanges::ExchangeEnd;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::serve::Clock;
use ctxbench_os::post::error_chain;

/// Most of an answer that is kept, bytes.
const MAX_REPLY_BYTES: usize = 256 << 20;

/// Result of an answer that has ended.
pub(super) struct Over {
    pub(super) bytes: Vec<u8>,
    pub(super) first_ms: Option<u64>,
    pub(super) ended: ExchangeEnd,
    pub(super) error: Option<String>,
}

type OnEnd = Box<dyn FnOnce(Over) + Send>;

/// The body of an answer.
pub(super) struct Tee {
    inner: Incoming,
    /// Length that the header announced.
    length: Option<u64>,
    kept: Vec<u8>,
    too_long: bool,
    first_ms: Option<u64>,
    clock: Clock,
    told: Option<OnEnd>,
}

impl Tee {
    pub(super) fn new(inner: Incoming, clock: Clock, told: OnEnd) -> Tee {
        let length = inner.size_hint().exact();
        let (kept, told) = (Vec::new(), Some(told));
        Tee { inner, length, kept, too_long: false, first_ms: None, clock, told }
    }

    fn over(&mut self, ended: ExchangeEnd, error: Option<String>) {
        let Some(told) = self.told.take() else { return };
        let long = || format!("more than {} MiB, of which nothing is kept", MAX_REPLY_BYTES >> 20);
        let error = error.or_else(|| self.too_long.then(long));
        let bytes = std::mem::take(&mut self.kept);
        told(Over { bytes, first_ms: self.first_ms, ended, error });
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
                    if self.first_ms.is_none() {
                        self.first_ms = Some((self.clock)());
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
