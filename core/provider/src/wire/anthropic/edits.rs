//! Anthropic Messages: context edits.

use std::borrow::Cow;

use ctxbench_core::request::ServerEdit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `context_management` of a request.
#[derive(Deserialize, Serialize)]
pub(crate) struct ContextManagement<'a> {
    #[serde(default)]
    pub(super) edits: Cow<'a, [ServerEdit]>,
}

/// Decodes the edits in raw parameters.
pub(super) fn among(params: &Map<String, Value>) -> Vec<ServerEdit> {
    let given =
        params.get("context_management").and_then(|g| ContextManagement::deserialize(g).ok());
    given.map(|m| m.edits.into_owned()).unwrap_or_default()
}
