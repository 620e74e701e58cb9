//! The agent's environment: prompts, a connection to a provider, and a tool.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use ctxbench_core::Host;
use ctxbench_core::prelude::*;
use ctxbench_kit::checkpoint::{EditCheckpoints, Snapshots};
use ctxbench_provider::wire;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// The environment of the agent. Its only tool writes files.
pub struct Here {
    pub address: String,
    pub folder: PathBuf,
    pub prompts: std::vec::IntoIter<String>,
    pub files: EditCheckpoints,
    /// Number of the newest prompt's checkpoint.
    pub number: Arc<AtomicU64>,
}

#[async_trait]
impl Host for Here {
    async fn next(&mut self) -> Option<Action> {
        let text = self.prompts.next()?;
        let number = self.files.begin(&text, self.now()).expect("checkpoints can be written");
        self.number.store(number, Ordering::Relaxed);
        Some(Action::User(Incoming {
            key: text.as_str().into(),
            parts: vec![Part::Text(text.into())],
        }))
    }
    async fn send(&mut self, request: &Request) -> Result<Reply, ModelError> {
        post(self.address.clone(), request.clone()).await
    }
    async fn run(&mut self, calls: &[ToolCall]) -> Vec<Incoming> {
        calls.iter().map(|c| write(&mut self.files, &self.folder, c)).collect()
    }
    fn now(&self) -> u64 {
        SystemTime::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_millis() as u64)
    }
}

fn failed(reason: impl std::fmt::Display) -> ModelError {
    ModelError { kind: ErrorKind::Stream, status: 0, code: None, message: reason.to_string() }
}

/// Sends a request in the format of its model.
pub async fn post(address: String, request: Request) -> Result<Reply, ModelError> {
    let wire = wire::for_model(&request.model);
    let encoded = wire.encode(&request);
    let mut http = hyper::Request::post(format!("{address}{}", encoded.path))
        .header("content-type", "application/json");
    for (name, value) in encoded.headers {
        http = http.header(name, value);
    }
    let body = Full::new(hyper::body::Bytes::from(encoded.body));
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(http.body(body).map_err(failed)?).await.map_err(failed)?;
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.map_err(failed)?.to_bytes();
    match status {
        200 => (wire.decode_reply)(&bytes).map_err(failed),
        _ => Err(wire.api.decode_error(status, &bytes)),
    }
}

/// Writes a file after saving its former content.
pub fn write(files: &mut EditCheckpoints, folder: &Path, call: &ToolCall) -> Incoming {
    let named = |name| text_argument(&call.arguments, &[name]).ok_or(format!("{name} is missing"));
    let mut write_file = || -> Result<(), String> {
        let (path, text) = (named("path")?, named("text")?);
        files.before_edit(&path).map_err(|e| e.to_string())?;
        std::fs::write(folder.join(path), text).map_err(|e| e.to_string())
    };
    match write_file() {
        Ok(()) => Incoming::result(call, false, "written"),
        Err(reason) => Incoming::result(call, true, reason),
    }
}
