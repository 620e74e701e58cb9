//! A client and a server for tests of the model server.

mod assemble;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ctxbench_agents::serve::{FAULT_HEADER, ServeOptions, Server};
use ctxbench_core::request::{ModelError, Reply};
use ctxbench_provider::wire::find;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::common::json_lines;

pub use assemble::assembled;

pub struct Answer {
    pub status: u16,
    pub headers: hyper::HeaderMap,
    pub body: Vec<u8>,
    /// Whether the connection broke before the end of the body.
    pub broken: bool,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn reply(&self, wire: &str) -> Reply {
        (find(wire).unwrap().decode_reply)(&self.body).unwrap()
    }

    pub fn error(&self, wire: &str) -> ModelError {
        find(wire).unwrap().api.decode_error(self.status, &self.body)
    }

    pub fn events(&self) -> Vec<(String, String)> {
        let text = std::str::from_utf8(&self.body).unwrap();
        let field = |event: &str, name: &str| {
            event.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("").to_string()
        };
        text.split_terminator("\n\n").map(|e| (field(e, "event: "), field(e, "data: "))).collect()
    }
}

/// A server with a clock that the test controls.
pub struct Here {
    address: SocketAddr,
    pub now: Arc<AtomicU64>,
    log: tempfile::NamedTempFile,
    pub stop: Option<tokio::sync::oneshot::Sender<()>>,
    pub running: tokio::task::JoinHandle<()>,
}

impl Here {
    pub async fn plain() -> Here {
        Here::new(ServeOptions::default()).await
    }

    pub async fn new(options: ServeOptions) -> Here {
        let (now, log) = (Arc::new(AtomicU64::new(0)), tempfile::NamedTempFile::new().unwrap());
        let clock = now.clone();
        let clock = Arc::new(move || clock.load(Ordering::SeqCst));
        let file = Box::new(log.reopen().unwrap());
        let server =
            Server::bind(ServeOptions { clock, log: Some(file), ..options }).await.unwrap();
        let address = server.address();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(server.run(async move { drop(stopped.await) }));
        Here { address, now, log, stop: Some(stop), running }
    }

    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request =
            hyper::Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let client = Client::builder(TokioExecutor::new()).build_http();
        let response = client.request(request.body(Full::new(body.into())).unwrap()).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let (mut body, mut incoming, mut broken) = (Vec::new(), response.into_body(), false);
        while let Some(frame) = incoming.frame().await {
            match frame.map(|f| f.into_data()) {
                Ok(Ok(data)) => body.extend_from_slice(&data),
                Ok(Err(_)) => {}
                Err(_) => {
                    broken = true;
                    break;
                }
            }
        }
        Answer { status, headers, body, broken }
    }

    pub async fn get(&self, path: &str) -> Value {
        self.ask("GET", path, &[], "").await.json()
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], body.to_string()).await
    }

    pub async fn with_fault(&self, path: &str, fault: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[(FAULT_HEADER, fault)], body.to_string()).await
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    pub fn lines(&self) -> Vec<Value> {
        json_lines(&self.log())
    }
}
