//! The door over HTTP: requests in the provider's wire format to wiremock on loopback, replies
//! back.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctxbench_core::block::Block;
use ctxbench_core::request::{ErrorKind, ModelError, Reply, Request};
use ctxbench_core::session::Millis;
use ctxbench_provider::Encoded;
use ctxbench_provider::wire::{Endpoint, IncrementalDecoder, Wire};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Respond, ResponseTemplate};

use super::{Door, PlannedReply, ProviderModel};

/// Virtual latency is on no provider's wire; it travels in a header of our own.
const LATENCY: &str = "x-ctxbench-latency-ms";
/// So does what the cache let go when its time was over, tokens: no provider tells.
const EXPIRED: &str = "x-ctxbench-expired-tokens";

struct Desk {
    provider: ProviderModel,
    decoder: IncrementalDecoder,
    /// What the next request is answered with, when, and the blocks that it shows.
    next: Option<(PlannedReply, Millis, Vec<Arc<Block>>)>,
}

struct Responder(Arc<Mutex<Desk>>);

impl Respond for Responder {
    fn respond(&self, request: &wiremock::Request) -> ResponseTemplate {
        let Ok(mut desk) = self.0.lock() else {
            return ResponseTemplate::new(500).set_body_string("the provider model panicked");
        };
        let wire = desk.provider.wire();
        let mut prompt = match desk.decoder.decode(request.url.path(), &request.body) {
            Ok(p) => p,
            Err(e) => return ResponseTemplate::new(400).set_body_string(e.to_string()),
        };
        if wire.endpoint(request.url.path()) == Some(Endpoint::Count) {
            let (tokens, original) = desk.provider.count(&prompt);
            return json(200, wire.encode_count_reply(tokens, original));
        }
        let Some((plan, now, blocks)) = desk.next.take() else {
            return ResponseTemplate::new(500).set_body_string("a request that nobody announced");
        };
        prompt.recognise(blocks);
        let model = desk.provider.model(&prompt.model);
        match desk.provider.answer(prompt, plan, now) {
            Ok(reply) => json(200, wire.encode_reply(&reply, &model))
                .insert_header(LATENCY, reply.latency_ms.to_string().as_str())
                .insert_header(EXPIRED, reply.expired.to_string().as_str()),
            Err(e) => {
                let (status, body) = wire.api().encode_error(&e);
                json(status, body)
            }
        }
    }
}

fn json(status: u16, body: Vec<u8>) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_raw(body, "application/json")
}

/// Sends requests over HTTP to a wiremock server of its own.
pub struct HttpDoor {
    server: MockServer,
    desk: Arc<Mutex<Desk>>,
    client: Client<HttpConnector, Full<Bytes>>,
    wire: Wire,
    counting: bool,
}

impl HttpDoor {
    /// Starts a server; `counting` = the model has a counting endpoint.
    pub async fn start(provider: ProviderModel, counting: bool) -> Self {
        let wire = provider.wire();
        let decoder = IncrementalDecoder::new(wire);
        let desk = Arc::new(Mutex::new(Desk { provider, decoder, next: None }));
        let server = MockServer::builder().disable_request_recording().start().await;
        let client = Client::builder(TokioExecutor::new()).build_http();
        HttpDoor { server, desk, client, wire, counting }
    }

    /// Mounts the mock anew while no request is in flight: wiremock keeps every matched request for
    /// as long as its mock is mounted (docs/sources/dependencies.md §c).
    async fn mount(&self) {
        self.server.reset().await;
        Mock::given(any()).respond_with(Responder(self.desk.clone())).mount(&self.server).await;
    }

    async fn post(&mut self, encoded: Encoded) -> Result<(u16, Beside, Bytes), ModelError> {
        self.mount().await;
        let mut builder = hyper::Request::post(format!("{}{}", self.server.uri(), encoded.path))
            .header("content-type", "application/json");
        for (name, value) in &encoded.headers {
            builder = builder.header(*name, value);
        }
        let request = builder.body(Full::new(Bytes::from(encoded.body))).map_err(|e| broken(&e))?;
        let response = self.client.request(request).await.map_err(|e| broken(&e))?;
        let status = response.status().as_u16();
        let number = |name| {
            response
                .headers()
                .get(name)
                .and_then(|v| v.to_str().ok())
                .and_then(|v| v.parse().ok())
                .unwrap_or(0)
        };
        let beside = Beside { latency_ms: number(LATENCY), expired: number(EXPIRED) };
        let body = response.into_body().collect().await.map_err(|e| broken(&e))?.to_bytes();
        Ok((status, beside, body))
    }
}

/// What travels beside the body.
struct Beside {
    latency_ms: Millis,
    expired: u64,
}

fn broken(e: &dyn std::fmt::Display) -> ModelError {
    ModelError {
        kind: ErrorKind::Stream,
        status: 0,
        code: None,
        message: format!("the mock server could not be reached: {e}"),
    }
}

#[async_trait]
impl Door for HttpDoor {
    async fn send(
        &mut self,
        request: &Request,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        let mut encoded = self.wire.encode(request);
        match self.desk.lock() {
            Ok(mut d) => d.next = Some((plan, now, std::mem::take(&mut encoded.shows))),
            Err(_) => return Err(broken(&"the provider model panicked")),
        }
        let (status, Beside { latency_ms, expired }, body) = self.post(encoded).await?;
        if status != 200 {
            return Err(self.wire.api().decode_error(status, &body));
        }
        let reply = self.wire.decode_reply(&body).map_err(|e| broken(&e))?;
        Ok(Reply { latency_ms, expired, ..reply })
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        if !self.counting {
            return None;
        }
        let (status, _, body) = self.post(self.wire.encode_count(request)?).await.ok()?;
        (status == 200).then(|| self.wire.decode_count_reply(&body).ok()).flatten()
    }
}
