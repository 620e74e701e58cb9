//! The door over HTTP: requests in the provider's wire format to a wiremock server, replies back.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use ctxbench_core::prelude::*;
use ctxbench_os::post::{self, HttpClient};
use ctxbench_provider::Encoded;
use ctxbench_provider::wire::{Endpoint, Wire};
use http_body_util::Full;
use hyper::body::Bytes;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Respond, ResponseTemplate};

use super::{Door, PlannedReply, ProviderModel};

struct Expected {
    plan: PlannedReply,
    now: Millis,
    blocks: Vec<Arc<Block>>,
}

struct ProviderState {
    provider: ProviderModel,
    expected: VecDeque<Expected>,
    /// Latency and expired tokens of the last reply, which no wire transports.
    last: (Millis, u64),
}

/// The provider model as the response of a [`wiremock::Mock`], for tests of other programs, too.
///
/// It decodes a request in the wire format of the provider's model, and answers it with the next
/// planned reply, the usage that the prompt cache gives, and the errors of the provider: an overflow
/// of the window, a tool call without a result. A request without a planned reply is answered with
/// status 500. Replies are whole, not streams. wiremock keeps every request that a mounted mock has
/// matched, so remount it after some thousand requests.
///
/// ```no_run
/// # use ctxbench_core::{content::Part, model::find};
/// # use ctxbench_mock::{PlannedReply, ProviderModel, ProviderOptions, ProviderResponder};
/// use wiremock::{Mock, MockServer, matchers::method};
///
/// # async fn test() {
/// let model = find("claude-sonnet-4-6").unwrap().clone();
/// let provider = ProviderResponder::new(ProviderModel::new(ProviderOptions::new(model.into())));
/// let parts = vec![Part::Text("The tests pass.".into())];
/// provider.plan(PlannedReply::with_parts(parts), 0);
///
/// let server = MockServer::start().await;
/// Mock::given(method("POST")).respond_with(provider.clone()).mount(&server).await;
/// // Run the agent with `server.uri()` as the address of its provider.
/// # }
/// ```
#[derive(Clone)]
pub struct ProviderResponder(Arc<Mutex<ProviderState>>);

impl ProviderResponder {
    pub fn new(provider: ProviderModel) -> Self {
        let (expected, last) = (VecDeque::new(), (0, 0));
        ProviderResponder(Arc::new(Mutex::new(ProviderState { provider, expected, last })))
    }

    /// Adds the reply to a further request, which arrives at a virtual time.
    pub fn plan(&self, reply: PlannedReply, now: Millis) {
        self.expect(Expected { plan: reply, now, blocks: Vec::new() });
    }

    fn expect(&self, expected: Expected) {
        // A poisoned lock is reported by the answer.
        if let Ok(mut state) = self.0.lock() {
            state.expected.push_back(expected);
        }
    }
}

impl Respond for ProviderResponder {
    fn respond(&self, request: &wiremock::Request) -> ResponseTemplate {
        match self.0.lock() {
            Ok(mut state) => state.answer(request.url.path(), &request.body),
            Err(_) => text(500, "the provider model panicked"),
        }
    }
}

impl ProviderState {
    fn answer(&mut self, path: &str, body: &[u8]) -> ResponseTemplate {
        let wire = self.provider.wire();
        let counts = (wire.endpoint)(path) == Some(Endpoint::Count);
        let expected = if counts { None } else { self.expected.pop_front() };
        let mut prompt = match wire.decode(path, body) {
            Ok(prompt) => prompt,
            Err(e) => return text(400, &e.to_string()),
        };
        if counts {
            let (tokens, original) = self.provider.count_prompt(&prompt);
            return json(200, wire.encode_count_reply(tokens, original));
        }
        let Some(Expected { plan, now, blocks }) = expected else {
            return text(500, "an unannounced request");
        };
        prompt.recognise(blocks);
        let model = self.provider.model(&prompt.model);
        match self.provider.answer(prompt, plan, now) {
            Ok(reply) => {
                self.last = (reply.latency_ms, reply.expired);
                json(200, (wire.encode_reply)(&reply, &model))
            }
            Err(e) => {
                let (status, body) = wire.api.encode_error(&e);
                json(status, body)
            }
        }
    }
}

fn text(status: u16, words: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_string(words)
}

fn json(status: u16, body: Vec<u8>) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_raw(body, "application/json")
}

/// Sends requests over HTTP to its own server, which starts with the first request.
pub struct HttpTransport {
    server: Option<MockServer>,
    provider: ProviderResponder,
    client: HttpClient<Full<Bytes>>,
    wire: Wire,
    counting: bool,
}

impl HttpTransport {
    pub fn new(provider: ProviderModel) -> Self {
        let (wire, counting) = (provider.wire(), provider.has_counting());
        let provider = ProviderResponder::new(provider);
        HttpTransport { server: None, provider, client: post::client(), wire, counting }
    }

    /// Returns the server, ready for one request. A mock keeps the requests that it has matched, so
    /// each is mounted again.
    async fn server(&mut self) -> io::Result<&MockServer> {
        let server = match self.server.take() {
            Some(server) => {
                server.reset().await;
                server
            }
            None => {
                let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
                let builder = MockServer::builder().listener(listener);
                builder.disable_request_recording().start().await
            }
        };
        Mock::given(any()).respond_with(self.provider.clone()).mount(&server).await;
        Ok(self.server.insert(server))
    }

    /// Returns status and body of the answer.
    async fn post(&mut self, encoded: Encoded) -> Result<(u16, Bytes), ModelError> {
        let address = self.server().await.map_err(|e| broken(&e))?.uri();
        let Encoded { path, headers, body, .. } = encoded;
        let url = format!("{address}{path}").parse().map_err(|e| broken(&e))?;
        let sent = post::send(&self.client, &url, &headers, body, usize::MAX).await;
        let (status, body) = sent.map_err(|e| broken(&e))?;
        Ok((status.as_u16(), body))
    }
}

fn broken(e: &dyn std::fmt::Display) -> ModelError {
    let message = format!("the mock server could not be reached: {e}");
    ModelError { kind: ErrorKind::Stream, status: 0, ..ModelError::invalid(message) }
}

#[async_trait]
impl Door for HttpTransport {
    async fn send(
        &mut self,
        request: &Request,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        let mut encoded = self.wire.encode(request);
        let blocks = std::mem::take(&mut encoded.shows);
        self.provider.expect(Expected { plan, now, blocks });
        let (status, body) = self.post(encoded).await?;
        if status != 200 {
            return Err(self.wire.api.decode_error(status, &body));
        }
        let reply = (self.wire.decode_reply)(&body).map_err(|e| broken(&e))?;
        let (latency_ms, expired) = self.provider.0.lock().map(|s| s.last).unwrap_or_default();
        Ok(Reply { latency_ms, expired, ..reply })
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        if !self.counting {
            return None;
        }
        let (status, body) = self.post(self.wire.encode_count(request)?).await.ok()?;
        (status == 200).then(|| self.wire.decode_count_reply(&body).ok()).flatten()
    }
}
