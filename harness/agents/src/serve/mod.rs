//! The mock model server for any client: the provider model of [`ctxbench_mock`] on loopback,
//! streaming, under a real clock.
//!
//! Path of a request: `route` finds its purpose, `faults` a deliberate fault, the wire reads the
//! body, `desk` lets a `speaker` (`script`, `echo`, the driver of an agent) decide the reply and
//! the provider model its cost, the wire writes the reply and turns those bytes into events where
//! the client wants them. A stream is always the whole reply, cut into pieces.

mod desk;
mod echo;
mod faults;
mod handle;
mod limit;
mod log;
mod refuse;
mod route;
mod script;
mod speaker;
mod sse;

use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::body::Body;
use axum::http::Request;
use ctxbench_core::Millis;
use ctxbench_mock::summarise::Summariser;
use ctxbench_session::fact::Fact;
use http_body_util::BodyExt;
use tokio::net::TcpListener;

use ctxbench_os::accept::{bind, listen};

pub(crate) use echo::offered_tools;
pub use faults::{BadFault, Fault, FaultPlan, request_numbers};
pub use handle::FAULT_HEADER;
pub use script::ReplyScript;
pub use speaker::{Arrived, ModelAnswer, RequestOutcome, Speaker};

/// Largest request body, bytes: Anthropic's limit (docs/sources/anthropic-api.md §2.5); for OpenAI
/// assumed.
pub const BODY_LIMIT: usize = 32 << 20;

/// Time in ms since some start; cache lifetimes are judged by it. Injected, so that tests can let
/// an hour pass.
pub type Clock = Arc<dyn Fn() -> Millis + Send + Sync>;

/// The real clock, from now on.
pub fn wall_clock() -> Clock {
    let start = Instant::now();
    Arc::new(move || start.elapsed().as_millis().try_into().unwrap_or(Millis::MAX))
}

pub struct ServeOptions {
    /// Port on loopback; 0 = any free one.
    pub port: u16,
    /// Speaker that decides the replies; `None` = replies describe the request.
    pub speaker: Option<Box<dyn Speaker>>,
    /// Writer of the summaries that the provider is asked for, and the facts it may use.
    pub summariser: Summariser,
    pub facts: Arc<[Fact]>,
    /// Deliberate faults, by the number of the request.
    pub faults: Vec<FaultPlan>,
    /// Window that replaces the window of every model, tokens.
    pub window: Option<u64>,
    pub body_limit: usize,
    pub log: Option<Box<dyn Write + Send>>,
    pub log_texts: bool,
    pub clock: Clock,
}

impl Default for ServeOptions {
    fn default() -> Self {
        ServeOptions {
            port: 0,
            speaker: None,
            summariser: Summariser::default(),
            facts: Arc::default(),
            faults: Vec::new(),
            window: None,
            body_limit: BODY_LIMIT,
            log: None,
            log_texts: false,
            clock: wall_clock(),
        }
    }
}

pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<handle::HandlerState>,
}

fn shared(options: ServeOptions) -> Arc<handle::HandlerState> {
    Arc::new(handle::HandlerState {
        body_limit: options.body_limit,
        window: options.window,
        clock: options.clock.clone(),
        log_texts: match (&options.log, options.log_texts) {
            (None, _) => log::LogTexts::Nothing,
            (Some(_), false) => log::LogTexts::Short,
            (Some(_), true) => log::LogTexts::All,
        },
        desk: Mutex::new(desk::ServerState::new(options)),
    })
}

/// Returns the answer of a new server to one `POST`, without a socket: status and body.
pub async fn answer(
    options: ServeOptions,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> (u16, Vec<u8>) {
    let request = headers
        .iter()
        .fold(Request::post(path), |r, (name, value)| r.header(*name, *value))
        .body(Body::from(body));
    let Ok(request) = request else { return (400, Vec::new()) };
    let response = handle::handle(shared(options), request).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.map(|b| b.to_bytes().to_vec());
    (status, body.unwrap_or_default())
}

impl Server {
    /// Listens on loopback. Requests wait until [`Server::run`].
    pub async fn bind(options: ServeOptions) -> std::io::Result<Server> {
        let (listener, address) = bind(options.port).await?;
        Ok(Server { listener, address, shared: shared(options) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `until` is ready; replies under way may end within two seconds.
    pub async fn run(self, until: impl Future<Output = ()> + Send) {
        let shared = self.shared;
        let answer = move |request| handle::handle(shared.clone(), request);
        listen(self.listener, answer, until).await;
    }
}
