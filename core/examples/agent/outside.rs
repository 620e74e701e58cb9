//! What any agent has: the way to a provider and a tool.

use std::path::Path;

use ctxbench_core::checkpoint::{EditCheckpoints, Snapshots};
use ctxbench_core::compaction::text_argument;
use ctxbench_core::provider::{Wire, decode_error, decode_reply, encode};
use ctxbench_core::request::{ErrorKind, ModelError, Reply, Request};
use ctxbench_core::world::{ToolCall, ToolOutcome};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

fn failed(why: impl std::fmt::Display) -> ModelError {
    ModelError { kind: ErrorKind::Stream, status: 0, code: None, message: why.to_string() }
}

/// Sends a request in Anthropic's format.
pub async fn post(address: String, request: Request) -> Result<Reply, ModelError> {
    let encoded = encode(Wire::AnthropicMessages, &request);
    let mut http = hyper::Request::post(format!("{address}{}", encoded.path)).header("content-type", "application/json");
    for (name, value) in encoded.headers {
        http = http.header(name, value);
    }
    let body = Full::new(hyper::body::Bytes::from(encoded.body));
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(http.body(body).map_err(failed)?).await.map_err(failed)?;
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.map_err(failed)?.to_bytes();
    match status {
        200 => decode_reply(Wire::AnthropicMessages, &bytes).map_err(failed),
        _ => Err(decode_error(Wire::AnthropicMessages, status, &bytes)),
    }
}

/// Writes a file, whose former content is kept.
pub fn write(files: &mut EditCheckpoints, folder: &Path, call: &ToolCall) -> ToolOutcome {
    let named = |name| text_argument(&call.arguments, &[name]).ok_or(format!("{name} is missing"));
    let mut done = || -> Result<(), String> {
        let (path, text) = (named("path")?, named("text")?);
        files.before_edit(&path).map_err(|e| e.to_string())?;
        std::fs::write(folder.join(path), text).map_err(|e| e.to_string())
    };
    match done() {
        Ok(()) => call.outcome(false, "written"),
        Err(why) => call.outcome(true, why),
    }
}
