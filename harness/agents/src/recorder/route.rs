//! Purpose of a request, by its method and path.

use ctxbench_provider::Wire;
use ctxbench_provider::wire::{ALL, Api, Endpoint, detect_api};

/// Purpose of a request.
pub(super) enum RecordRoute {
    /// A reply of a model; with the path as the wire knows it.
    Reply(Wire, String),
    /// Something else, known (such as counting tokens) or not.
    Other { api: Api, is_known: bool },
}

impl RecordRoute {
    pub(super) fn api(&self) -> Api {
        match self {
            RecordRoute::Reply(wire, _) => wire.api,
            RecordRoute::Other { api, .. } => api,
        }
    }
}

pub(super) fn route(method: &str, path: &str, header: &dyn Fn(&str) -> bool) -> RecordRoute {
    let api = detect_api(path, header);
    let found = || {
        let spoken = |p: &String| ALL.iter().find_map(|w| Some((*w, (w.endpoint)(p)?)));
        paths(path).find_map(|p| spoken(&p).map(|(wire, endpoint)| (wire, endpoint, p)))
    };
    if method == "POST"
        && let Some((wire, endpoint, path)) = found()
    {
        return match endpoint {
            Endpoint::Reply | Endpoint::Compact => RecordRoute::Reply(wire, path),
            Endpoint::Count => RecordRoute::Other { api: wire.api, is_known: true },
        };
    }
    let is_known = method == "GET" && paths(path).any(|p| api.model_in(&p).is_some());
    RecordRoute::Other { api, is_known }
}

/// A path as it is, and as it may be meant: providers' APIs are also reached below another path, and
/// some clients leave out the version.
fn paths(path: &str) -> impl Iterator<Item = String> {
    let ends = path.match_indices('/').map(|(i, _)| &path[i..]);
    ends.flat_map(|end| [end.to_string(), format!("/v1{end}")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route_of(method: &str, path: &str) -> String {
        match route(method, path, &|_| false) {
            RecordRoute::Reply(wire, path) => format!("{} {path}", wire.name),
            RecordRoute::Other { api, is_known: true } => format!("known {}", api.name),
            RecordRoute::Other { .. } => "unknown".into(),
        }
    }

    #[test]
    fn requests_are_known_below_any_path() {
        for (path, is) in [
            ("/v1/messages", "anthropic-messages /v1/messages"),
            ("/v1/responses", "openai-responses /v1/responses"),
            ("/api/v1/chat/completions", "openai-chat /v1/chat/completions"),
            ("/chat/completions", "openai-chat /v1/chat/completions"),
            ("/backend-api/codex/responses", "openai-responses /v1/responses"),
            ("/v1/responses/compact", "openai-responses /v1/responses/compact"),
            ("/v1/messages/count_tokens", "known anthropic"),
            ("/v1/files", "unknown"),
            ("/", "unknown"),
        ] {
            assert_eq!(route_of("POST", path), is, "{path}");
        }
        assert_eq!(route_of("GET", "/v1/models"), "known openai");
        assert_eq!(route_of("GET", "/v1/models/gpt-5.5"), "known openai");
        assert_eq!(route_of("GET", "/v1/responses"), "unknown");
    }
}
