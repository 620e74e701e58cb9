//! Routes: the endpoint and the provider of a path.

use ctxbench_provider::wire::{ALL, Api, Endpoint, Wire};

/// Meaning of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Route<'a> {
    /// Something a wire has a path for.
    Of(Wire, Endpoint),
    /// The list of models.
    Models,
    /// One model.
    Model(&'a str),
}

/// Reason why a path has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoute {
    /// No such path.
    Path,
    /// The path takes another method.
    Method(&'static str),
}

/// Returns the route of a request. Several providers list their models at the same path; `speaker`
/// = the API that the client speaks.
pub(super) fn route<'a>(
    served: Option<Api>,
    method: &str,
    path: &'a str,
    speaker: Api,
) -> Result<Route<'a>, NoRoute> {
    let path = path.strip_suffix('/').filter(|p| !p.is_empty()).unwrap_or(path);
    let own = |w: &Wire| Some((w.api, Route::Of(w, (w.endpoint)(path)?)));
    let listed = || match speaker.model_in(path)? {
        "" => Some(Route::Models),
        name => Some(Route::Model(name)),
    };
    let of_wire = ALL.iter().find_map(own);
    let found = of_wire.or_else(|| Some((speaker, listed()?)));
    let (asked, route) = found.ok_or(NoRoute::Path)?;
    if served.is_some_and(|s| *s != *asked) {
        return Err(NoRoute::Path);
    }
    let wanted = if matches!(route, Route::Models | Route::Model(_)) { "GET" } else { "POST" };
    if method == wanted { Ok(route) } else { Err(NoRoute::Method(wanted)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_provider::wire::find;

    #[test]
    fn each_provider_has_its_paths() {
        let messages = find("anthropic-messages").unwrap();
        let (anthropic, openai) = (messages.api, find("openai-chat").unwrap().api);
        let both = |method, path| route(None, method, path, openai);
        assert_eq!(both("POST", "/v1/messages"), Ok(Route::Of(messages, Endpoint::Reply)));
        assert_eq!(both("POST", "/v1/messages/"), Ok(Route::Of(messages, Endpoint::Reply)));
        assert_eq!(both("GET", "/v1/messages"), Err(NoRoute::Method("POST")));
        assert_eq!(both("GET", "/v1/models/gpt-5.5"), Ok(Route::Model("gpt-5.5")));
        assert_eq!(both("POST", "/v1/embeddings"), Err(NoRoute::Path));
        let only = |api, path| route(Some(api), "GET", path, openai);
        assert_eq!(only(openai, "/v1/models"), Ok(Route::Models));
        assert_eq!(only(anthropic, "/v1/models"), Err(NoRoute::Path));
        assert_eq!(route(Some(anthropic), "POST", "/v1/responses", openai), Err(NoRoute::Path));
    }
}
