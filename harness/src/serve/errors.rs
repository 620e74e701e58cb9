//! Refusals that come from the server and not from the model, in the shape of the client's
//! provider.

use ctxbench_core::model::Wire;
use ctxbench_core::request::{ErrorKind, ModelError};
use ctxbench_provider as provider;

/// A refusal with the code that the provider uses for its status.
pub(super) fn refusal(wire: Wire, status: u16, message: String) -> ModelError {
    let code = provider::format(wire).status_code(status);
    provider::refusal(wire, status, code.map(str::to_string), message)
}

/// The request is not what the wire prescribes.
pub(super) fn invalid(message: impl Into<String>) -> ModelError {
    ModelError { kind: ErrorKind::Invalid, status: 400, code: None, message: message.into() }
}

/// No such model on this wire.
pub(super) fn no_model(wire: Wire, name: &str) -> ModelError {
    let (code, message) = provider::format(wire).unknown_model(name);
    provider::refusal(wire, 404, Some(code.into()), message)
}

/// The body is larger than the server takes.
pub(super) fn too_large(wire: Wire, limit: usize) -> ModelError {
    refusal(wire, 413, format!("the request body is larger than {limit} bytes"))
}
