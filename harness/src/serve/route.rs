//! Paths: what is asked for, and of whom.

use ctxbench_core::provider::{COUNT_TOKENS_PATH, Wire};

/// Whose API it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Anthropic: `/v1/messages` and what belongs to it.
    Anthropic,
    /// OpenAI: `/v1/responses`, `/v1/chat/completions` and what belongs to them.
    Openai,
}

impl Family {
    /// The wire in whose shape errors are told where no request says more.
    pub(super) fn wire(self) -> Wire {
        match self {
            Family::Anthropic => Wire::AnthropicMessages,
            Family::Openai => Wire::OpenaiResponses,
        }
    }
}

/// What a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// A reply of a model.
    Reply(Wire),
    /// Anthropic's counting.
    Count,
    /// OpenAI's compaction on demand.
    Compact,
    /// The list of models.
    Models,
    /// One model.
    Model(&'a str),
}

/// Why a path stands for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoute {
    /// No such path.
    Path,
    /// The path takes another method.
    Method(&'static str),
}

/// What a request asks for. Listing the models is a path of both providers; `anthropic` = the client speaks Anthropic's language.
pub(super) fn route<'a>(served: Option<Family>, method: &str, path: &'a str, anthropic: bool) -> Result<Route<'a>, NoRoute> {
    let path = path.strip_suffix('/').filter(|p| !p.is_empty()).unwrap_or(path);
    let (route, family) = match path {
        "/v1/messages" => (Route::Reply(Wire::AnthropicMessages), Some(Family::Anthropic)),
        COUNT_TOKENS_PATH => (Route::Count, Some(Family::Anthropic)),
        "/v1/responses" => (Route::Reply(Wire::OpenaiResponses), Some(Family::Openai)),
        "/v1/responses/compact" => (Route::Compact, Some(Family::Openai)),
        "/v1/chat/completions" => (Route::Reply(Wire::OpenaiChat), Some(Family::Openai)),
        "/v1/models" => (Route::Models, None),
        _ => match path.strip_prefix("/v1/models/") {
            Some(name) => (Route::Model(name), None),
            None => return Err(NoRoute::Path),
        },
    };
    let asked = family.unwrap_or(speaker(path, anthropic));
    if served.is_some_and(|s| s != asked) {
        return Err(NoRoute::Path);
    }
    let wanted = if matches!(route, Route::Models | Route::Model(_)) { "GET" } else { "POST" };
    if method == wanted { Ok(route) } else { Err(NoRoute::Method(wanted)) }
}

/// Whose language a client speaks, also where the path is nobody's.
pub(super) fn speaker(path: &str, anthropic: bool) -> Family {
    if anthropic || path.starts_with("/v1/messages") { Family::Anthropic } else { Family::Openai }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_has_its_paths() {
        let both = |method, path| route(None, method, path, false);
        assert_eq!(both("POST", "/v1/messages"), Ok(Route::Reply(Wire::AnthropicMessages)));
        assert_eq!(both("POST", "/v1/messages/"), Ok(Route::Reply(Wire::AnthropicMessages)));
        assert_eq!(both("GET", "/v1/messages"), Err(NoRoute::Method("POST")));
        assert_eq!(both("GET", "/v1/models/gpt-5.5"), Ok(Route::Model("gpt-5.5")));
        assert_eq!(both("POST", "/v1/embeddings"), Err(NoRoute::Path));
        let only = |family, path, anthropic| route(Some(family), "GET", path, anthropic);
        assert_eq!(only(Family::Openai, "/v1/models", false), Ok(Route::Models));
        assert_eq!(only(Family::Anthropic, "/v1/models", false), Err(NoRoute::Path));
        assert_eq!(route(Some(Family::Anthropic), "POST", "/v1/responses", false), Err(NoRoute::Path));
    }
}
