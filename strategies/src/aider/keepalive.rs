//! Keep-alive requests, which send the prompt up to the last cache breakpoint again shortly before
//! the cache entry would expire (docs/sources/aider.md §1.4).

use ctxbench_core::Millis;
use ctxbench_core::engine::Engine;
use ctxbench_core::host::Task;
use ctxbench_core::request::{Purpose, Request};

/// Schedule of keep-alive requests: the due time, the request, and the number left. The program
/// checks the clock once a second; this delay is not modelled.
#[derive(Debug, Default)]
pub(crate) struct KeepAlive {
    /// Number of keep-alive requests after each normal one.
    pings: u64,
    /// Delay between a request and the next keep-alive request, ms.
    delay: Millis,
    next: Millis,
    left: u64,
    /// True if further requests are forbidden until the program ends.
    forbidden: bool,
    request: Option<Request>,
    /// Requests sent, possibly without an answer yet. The conversation does not wait for them.
    sent: Vec<(Task, Request)>,
}

impl KeepAlive {
    pub(crate) fn new(pings: u64, delay: Millis) -> Self {
        KeepAlive { pings, delay, ..KeepAlive::default() }
    }

    /// Restarts the delay and the number of keep-alive requests after a normal request. Does
    /// nothing if the request has no breakpoint.
    pub(crate) fn begin(&mut self, now: Millis, request: &Request) {
        let Some(last) = request.breakpoints.last().filter(|_| self.pings > 0 && !self.forbidden)
        else {
            return;
        };
        let ping = Request {
            purpose: Purpose::Ping,
            max_tokens: Some(1),
            blocks: request.blocks[..=*last].to_vec(),
            ..request.clone()
        };
        (self.next, self.left, self.request) =
            (now.saturating_add(self.delay), self.pings, Some(ping));
    }

    /// Stops because the program ended. The next one may send requests again.
    pub(crate) fn stop(&mut self) {
        (self.left, self.forbidden) = (0, false);
    }

    /// Stops until the program ends.
    pub(crate) fn forbid(&mut self) {
        (self.left, self.forbidden) = (0, true);
    }

    /// Returns the virtual time of the next request, ms.
    pub(crate) fn due(&self) -> Option<Millis> {
        (self.left > 0).then_some(self.next)
    }

    /// Sends the next keep-alive request in the background.
    pub(crate) async fn send(&mut self, s: &mut Engine) {
        self.settle(s).await;
        let Some(request) = self.request.clone().filter(|_| self.left > 0) else { return };
        self.left -= 1;
        self.next = s.now().saturating_add(self.delay);
        let task = s.spawn(&request).await;
        self.sent.push((task, request));
    }

    /// Collects the answers that have arrived. Ignores failures, as the program does.
    pub(crate) async fn settle(&mut self, s: &mut Engine) {
        for (task, request) in std::mem::take(&mut self.sent) {
            if s.collect(task, &request, false).await.is_none() {
                self.sent.push((task, request));
            }
        }
    }
}
