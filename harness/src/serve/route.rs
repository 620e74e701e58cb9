//! Paths: what is asked for, and of whom.

use ctxbench_core::model::Wire;
use ctxbench_provider::wire::{Endpoint, Family};
use ctxbench_provider::{ALL, format};

/// What a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// Something a wire has a path for.
    Of(Wire, Endpoint),
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

/// What a request asks for. Listing the models is a path of every provider; `speaker` = whose
/// language the client speaks.
pub(super) fn route<'a>(
    served: Option<Family>,
    method: &str,
    path: &'a str,
    speaker: Family,
) -> Result<Route<'a>, NoRoute> {
    let path = path.strip_suffix('/').filter(|p| !p.is_empty()).unwrap_or(path);
    let own = |w: &Wire| Some(Route::Of(*w, format(*w).endpoint(path)?));
    let route = match (path, ALL.iter().find_map(own)) {
        (_, Some(route)) => route,
        ("/v1/models", _) => Route::Models,
        _ => match path.strip_prefix("/v1/models/") {
            Some(name) => Route::Model(name),
            None => return Err(NoRoute::Path),
        },
    };
    let asked = if let Route::Of(wire, _) = route { format(wire).family() } else { speaker };
    if served.is_some_and(|s| s != asked) {
        return Err(NoRoute::Path);
    }
    let wanted = if matches!(route, Route::Models | Route::Model(_)) { "GET" } else { "POST" };
    if method == wanted { Ok(route) } else { Err(NoRoute::Method(wanted)) }
}

/// Whose language a client speaks, also where the path is nobody's.
pub(super) fn speaker(path: &str, header: &dyn Fn(&str) -> bool) -> Family {
    let all = ALL.map(format);
    let known = all.iter().find(|w| w.speaks(path, header));
    known.or(all.last()).expect("there are wires").family()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_has_its_paths() {
        let both = |method, path| route(None, method, path, Family::Openai);
        assert_eq!(
            both("POST", "/v1/messages"),
            Ok(Route::Of(Wire::AnthropicMessages, Endpoint::Reply))
        );
        assert_eq!(
            both("POST", "/v1/messages/"),
            Ok(Route::Of(Wire::AnthropicMessages, Endpoint::Reply))
        );
        assert_eq!(both("GET", "/v1/messages"), Err(NoRoute::Method("POST")));
        assert_eq!(both("GET", "/v1/models/gpt-5.5"), Ok(Route::Model("gpt-5.5")));
        assert_eq!(both("POST", "/v1/embeddings"), Err(NoRoute::Path));
        let only = |family, path| route(Some(family), "GET", path, Family::Openai);
        assert_eq!(only(Family::Openai, "/v1/models"), Ok(Route::Models));
        assert_eq!(only(Family::Anthropic, "/v1/models"), Err(NoRoute::Path));
        assert_eq!(
            route(Some(Family::Anthropic), "POST", "/v1/responses", Family::Openai),
            Err(NoRoute::Path)
        );
    }
}
