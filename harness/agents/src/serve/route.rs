//! Routes: the endpoint and the provider of a path.

use ctxbench_provider::wire::{ALL, Api, Endpoint, Wire};

/// Meaning of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Route<'a> {
    /// Something a wire has a path for.
    Of(Wire, Endpoint),
    Models,
    Model(&'a str),
}

/// Returns the route of a request, else the status and message of its refusal. Several providers list
/// their models at the same path; `speaker` is the API that the client speaks.
pub(super) fn route<'a>(
    method: &str,
    path: &'a str,
    speaker: Api,
) -> Result<Route<'a>, (u16, String)> {
    let known = path.strip_suffix('/').filter(|p| !p.is_empty()).unwrap_or(path);
    let own = |w: &Wire| Some(Route::Of(w, (w.endpoint)(known)?));
    let listed = || match speaker.model_in(known)? {
        "" => Some(Route::Models),
        name => Some(Route::Model(name)),
    };
    let Some(route) = ALL.iter().find_map(own).or_else(listed) else {
        return Err((404, format!("{method} {path} does not exist here")));
    };
    let wanted = if matches!(route, Route::Of(..)) { "POST" } else { "GET" };
    let refused = || (405, format!("{path} takes {wanted}, not {method}"));
    (method == wanted).then_some(route).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_provider::wire::find;

    #[test]
    fn each_provider_has_its_paths() {
        let messages = find("anthropic-messages").unwrap();
        let openai = find("openai-chat").unwrap().api;
        let reply = || Ok(Route::Of(messages, Endpoint::Reply));
        for (method, path, is) in [
            ("POST", "/v1/messages", reply()),
            ("POST", "/v1/messages/", reply()),
            ("GET", "/v1/messages", Err(405)),
            ("GET", "/v1/models/gpt-5.5", Ok(Route::Model("gpt-5.5"))),
            ("POST", "/v1/embeddings", Err(404)),
            ("GET", "/v1/models", Ok(Route::Models)),
        ] {
            let route = route(method, path, openai).map_err(|(status, _)| status);
            assert_eq!(route, is, "{method} {path}");
        }
    }
}
