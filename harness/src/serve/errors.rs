//! Refusals that come from the server and not from the model, in the shape of the client's provider.

use ctxbench_core::provider::{self, Wire};
use ctxbench_core::request::{ErrorKind, ModelError};

/// A refusal with the code that the provider uses for its status.
pub(super) fn refusal(wire: Wire, status: u16, message: String) -> ModelError {
    let code = match (wire, status) {
        (Wire::AnthropicMessages, 401) => Some("authentication_error"),
        (Wire::AnthropicMessages, 403) => Some("permission_error"),
        (Wire::AnthropicMessages, 404) => Some("not_found_error"),
        (Wire::AnthropicMessages, 529) => Some("overloaded_error"),
        (_, 413) => Some("request_too_large"),
        _ => None,
    };
    provider::refusal(wire, status, code.map(str::to_string), message)
}

/// The request is not what the wire prescribes.
pub(super) fn invalid(message: impl Into<String>) -> ModelError {
    ModelError { kind: ErrorKind::Invalid, status: 400, code: None, message: message.into() }
}

/// No such model on this wire.
pub(super) fn no_model(wire: Wire, name: &str) -> ModelError {
    match wire {
        Wire::AnthropicMessages => refusal(wire, 404, format!("model: {name}")),
        _ => ModelError { code: Some("model_not_found".into()), ..refusal(wire, 404, format!("The model `{name}` does not exist here.")) },
    }
}

/// The body is larger than the server takes.
pub(super) fn too_large(wire: Wire, limit: usize) -> ModelError {
    refusal(wire, 413, format!("the request body is larger than {limit} bytes"))
}
