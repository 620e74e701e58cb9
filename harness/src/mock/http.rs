//! The door over HTTP: requests in the provider's wire format to a server on loopback, replies back.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::body::Body;
use axum::extract::Request as Posted;
use axum::http::{Response, header};
use ctxbench_core::Millis;
use ctxbench_core::block::Block;
use ctxbench_core::request::{ErrorKind, ModelError, Reply, Request};
use ctxbench_provider::Encoded;
use ctxbench_provider::wire::{Endpoint, IncrementalDecoder, Wire};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::oneshot;

use super::{Door, PlannedReply, ProviderModel};
use crate::accept::{bind, listen, response};

/// Header of our server with the virtual latency, which no wire transports, ms.
const LATENCY: &str = "x-ctxbench-latency-ms";
/// Header with the tokens that the cache dropped when their time was over. No provider reports
/// them.
const EXPIRED: &str = "x-ctxbench-expired-tokens";

const PANICKED: &str = "the provider model panicked";

struct ServerState {
    provider: ProviderModel,
    decoder: IncrementalDecoder,
    /// Planned reply to the next request, the time of the answer, and the blocks that the request
    /// shows.
    next: Option<(PlannedReply, Millis, Vec<Arc<Block>>)>,
}

impl ServerState {
    fn answer(&mut self, path: &str, body: &[u8]) -> Response<Body> {
        let wire = self.provider.wire();
        let mut prompt = match self.decoder.decode(path, body) {
            Ok(p) => p,
            Err(e) => return text(400, &e.to_string()),
        };
        if (wire.endpoint)(path) == Some(Endpoint::Count) {
            let (tokens, original) = self.provider.count(&prompt);
            return json(200, wire.encode_count_reply(tokens, original));
        }
        let Some((plan, now, blocks)) = self.next.take() else {
            return text(500, "an unannounced request");
        };
        prompt.recognise(blocks);
        let model = self.provider.model(&prompt.model);
        match self.provider.answer(prompt, plan, now) {
            Ok(reply) => {
                let mut answer = json(200, (wire.encode_reply)(&reply, &model));
                answer.headers_mut().insert(LATENCY, reply.latency_ms.into());
                answer.headers_mut().insert(EXPIRED, reply.expired.into());
                answer
            }
            Err(e) => {
                let (status, body) = wire.api.encode_error(&e);
                json(status, body)
            }
        }
    }
}

fn text(status: u16, words: &str) -> Response<Body> {
    response(status, "text/plain", words.to_string())
}

fn json(status: u16, body: Vec<u8>) -> Response<Body> {
    response(status, "application/json", body)
}

async fn respond(desk: Arc<Mutex<ServerState>>, posted: Posted) -> Response<Body> {
    let (head, body) = posted.into_parts();
    match (body.collect().await, desk.lock()) {
        (Ok(body), Ok(mut desk)) => desk.answer(head.uri.path(), &body.to_bytes()),
        (Err(e), _) => text(400, &e.to_string()),
        (_, Err(_)) => text(500, PANICKED),
    }
}

/// A server that lives as long as this does.
struct Server {
    address: SocketAddr,
    _lives: oneshot::Sender<()>,
}

impl Server {
    async fn start(desk: Arc<Mutex<ServerState>>) -> io::Result<Server> {
        let (listener, address) = bind(0).await?;
        let (lives, ended) = oneshot::channel::<()>();
        let until = async { drop(ended.await) };
        tokio::spawn(listen(listener, move |posted| respond(desk.clone(), posted), until));
        Ok(Server { address, _lives: lives })
    }
}

/// Sends requests over HTTP to its own server, which starts with the first request.
pub struct HttpTransport {
    server: Option<Server>,
    desk: Arc<Mutex<ServerState>>,
    client: Client<HttpConnector, Full<Bytes>>,
    wire: Wire,
    counting: bool,
}

impl HttpTransport {
    /// A door to a provider.
    pub fn new(provider: ProviderModel) -> Self {
        let (wire, counting) = (provider.wire(), provider.has_counting());
        let decoder = IncrementalDecoder::new(wire);
        let desk = Arc::new(Mutex::new(ServerState { provider, decoder, next: None }));
        let client = Client::builder(TokioExecutor::new()).build_http();
        HttpTransport { server: None, desk, client, wire, counting }
    }

    async fn address(&mut self) -> io::Result<SocketAddr> {
        if let Some(server) = &self.server {
            return Ok(server.address);
        }
        let server = Server::start(self.desk.clone()).await?;
        Ok(self.server.insert(server).address)
    }

    /// Returns status, latency in ms, expired tokens, and body of the answer.
    async fn post(&mut self, encoded: Encoded) -> Result<(u16, Millis, u64, Bytes), ModelError> {
        let address = self.address().await.map_err(|e| broken(&e))?;
        let mut builder = hyper::Request::post(format!("http://{address}{}", encoded.path))
            .header(header::CONTENT_TYPE, "application/json");
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
        let (latency_ms, expired) = (number(LATENCY), number(EXPIRED));
        let body = response.into_body().collect().await.map_err(|e| broken(&e))?.to_bytes();
        Ok((status, latency_ms, expired, body))
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
        match self.desk.lock() {
            Ok(mut d) => d.next = Some((plan, now, std::mem::take(&mut encoded.shows))),
            Err(_) => return Err(broken(&PANICKED)),
        }
        let (status, latency_ms, expired, body) = self.post(encoded).await?;
        if status != 200 {
            return Err(self.wire.api.decode_error(status, &body));
        }
        let reply = (self.wire.decode_reply)(&body).map_err(|e| broken(&e))?;
        Ok(Reply { latency_ms, expired, ..reply })
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        if !self.counting {
            return None;
        }
        let (status, .., body) = self.post(self.wire.encode_count(request)?).await.ok()?;
        (status == 200).then(|| self.wire.decode_count_reply(&body).ok()).flatten()
    }
}
