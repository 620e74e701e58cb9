//! Refusals that come from the server and not from the model, in the shape of the client's
//! provider.

use ctxbench_core::request::{ErrorKind, ModelError};
use ctxbench_provider::WireError;
use ctxbench_provider::wire::Api;
use ctxbench_util::escapes;

/// A refusal with the code that the provider uses for its status.
pub(super) fn refusal(api: Api, status: u16, message: String) -> ModelError {
    let code = api.status_code(status);
    api.refusal(status, code.map(str::to_string), message)
}

/// Error for an unreadable body. A lone surrogate, as programs in JavaScript write it, is reported
/// as Anthropic's API does, with its position.
pub(super) fn unread(body: &[u8], why: &WireError) -> ModelError {
    let half = std::str::from_utf8(body).ok().and_then(|text| {
        let read = serde_json::from_str::<serde_json::Value>(text);
        read.err().and_then(|_| Some((text, escapes::first_lone_surrogate(text)?)))
    });
    let Some((text, at)) = half else { return ModelError::invalid(why.to_string()) };
    let line = text[..at].matches('\n').count() + 1;
    let column = at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1;
    ModelError::invalid(format!(
        "The request body is not valid JSON: no low surrogate in string: line {line} column \
         {column} (char {at}); {:?} is half a character",
        &text[at..at + 6]
    ))
}

pub(super) fn no_model(api: Api, name: &str) -> ModelError {
    let (code, message) = (api.unknown_model)(name);
    api.refusal(404, Some(code.into()), message)
}

/// The body is larger than the server takes.
pub(super) fn too_large(api: Api, limit: usize) -> ModelError {
    let (status, message) = (api.too_large)(limit);
    refusal(api, status, message)
}

/// A stream that was broken off.
pub(super) fn cut() -> ModelError {
    let message = "the stream was cut on purpose".into();
    ModelError { kind: ErrorKind::Stream, status: 200, code: None, message }
}
