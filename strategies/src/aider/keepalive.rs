//! Keep-alive requests: what stands before the last cache breakpoint is sent again shortly before
//! the cache would drop it (docs/sources/aider.md §1.4).

use ctxbench_core::engine::{Engine, Task};
use ctxbench_core::request::{Purpose, Request};
use ctxbench_core::session::Millis;

/// From a request to the keep-alive request after it, ms: five minutes less five seconds
/// (docs/sources/aider.md §1.4). The program looks at the clock once a second; that second is not
/// modelled.
const DELAY_MS: Millis = 295_000;

/// When the next keep-alive request is due, what it sends, and how many are left.
#[derive(Debug, Default)]
pub(crate) struct KeepAlive {
    /// Keep-alive requests after each normal one.
    pings: u64,
    next: Millis,
    left: u64,
    request: Option<Request>,
    /// Sent and perhaps not yet answered; nobody waits for them.
    sent: Vec<(Task, Request)>,
}

impl KeepAlive {
    pub(crate) fn new(pings: u64) -> Self {
        KeepAlive { pings, ..KeepAlive::default() }
    }

    /// A normal request goes out: time and number begin anew. Without a breakpoint there is nothing
    /// to keep.
    pub(crate) fn begin(&mut self, now: Millis, request: &Request) {
        let Some(last) = request.breakpoints.last().filter(|_| self.pings > 0) else { return };
        let ping = Request {
            purpose: Purpose::Ping,
            max_tokens: Some(1),
            blocks: request.blocks[..=*last].to_vec(),
            ..request.clone()
        };
        (self.next, self.left, self.request) = (now + DELAY_MS, self.pings, Some(ping));
    }

    /// The program ended.
    pub(crate) fn stop(&mut self) {
        self.left = 0;
    }

    /// When the next one is due.
    pub(crate) fn due(&self) -> Option<Millis> {
        (self.left > 0).then_some(self.next)
    }

    /// Sends the one that is due, beside the conversation.
    pub(crate) async fn send(&mut self, s: &mut Engine) {
        self.settle(s).await;
        let Some(request) = self.request.clone().filter(|_| self.left > 0) else { return };
        self.left -= 1;
        self.next = s.now() + DELAY_MS;
        let task = s.spawn(&request).await;
        self.sent.push((task, request));
    }

    /// Takes the answers that are there; failures are passed over as the program does.
    pub(crate) async fn settle(&mut self, s: &mut Engine) {
        for (task, request) in std::mem::take(&mut self.sent) {
            if s.collect(task, &request, false).await.is_none() {
                self.sent.push((task, request));
            }
        }
    }
}
