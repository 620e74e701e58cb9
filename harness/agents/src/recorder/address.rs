//! Addresses: the provider's, and the one that an agent gets instead.

use ctxbench_os::server_url::{AddressError, ServerUrl};
use ctxbench_provider::wire::{Api, apis};
use hyper::Uri;

/// Returns the address of a request at a provider. A prefix that ends the provider's address and
/// begins the path, such as `/v1`, appears once.
pub(super) fn at(
    upstream: &ServerUrl,
    path: &str,
    query: Option<&str>,
) -> Result<Uri, AddressError> {
    let base = upstream.path();
    let ends = base.match_indices('/').map(|(i, _)| &base[i..]);
    let mut shared = ends.filter(|end| {
        path.strip_prefix(end).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    let rest = shared.next().map_or(path, |end| &path[end.len()..]);
    let query = query.map_or(String::new(), |q| format!("?{q}"));
    upstream.with_path(&format!("{base}{rest}{query}"))
}

/// The addresses of all providers.
#[derive(Clone, Debug, Default)]
pub struct Upstreams(Vec<(Option<Api>, ServerUrl)>);

impl Upstreams {
    /// One for everything.
    pub fn single(upstream: ServerUrl) -> Upstreams {
        Upstreams(vec![(None, upstream)])
    }

    /// Returns each provider's address, or the one that a variable of its clients names.
    pub fn of_providers(variable: impl Fn(&str) -> Option<String>) -> Result<Upstreams, String> {
        let mut out = Vec::new();
        for api in apis() {
            let set = api.base_urls.iter().find_map(|(name, _)| {
                Some((*name, variable(name).filter(|v| !v.trim().is_empty())?))
            });
            let upstream = match set {
                Some((name, value)) => {
                    Some(ServerUrl::parse(&value).map_err(|e| format!("{name}: {e}"))?)
                }
                None => ServerUrl::parse(api.address).ok(),
            };
            out.extend(upstream.map(|u| (Some(api), u)));
        }
        Ok(Upstreams(out))
    }

    pub fn get(&self, api: Api) -> Option<&ServerUrl> {
        self.0.iter().find(|(of, _)| of.is_none_or(|of| of == api)).map(|(_, u)| u)
    }

    pub fn all(&self) -> impl Iterator<Item = &ServerUrl> {
        self.0.iter().map(|(_, upstream)| upstream)
    }
}

/// Returns the environment variables for clients of all providers, with their values.
pub fn variables(url: &str) -> Vec<(&'static str, String)> {
    let all = apis().into_iter().flat_map(|a| a.base_urls);
    all.map(|(name, path)| (*name, format!("{url}{path}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_on_where_the_address_ends() {
        for (base, path, to) in [
            ("https://api.example.com", "/v1/messages", "https://api.example.com/v1/messages"),
            ("https://h/v1", "/v1/chat/completions", "https://h/v1/chat/completions"),
            ("https://h/api/v1/", "/v1/chat/completions", "https://h/api/v1/chat/completions"),
            ("https://h/api/v1", "/chat/completions", "https://h/api/v1/chat/completions"),
            ("http://127.0.0.1:9/v1", "/v10/x", "http://127.0.0.1:9/v1/v10/x"),
            ("http://h:9", "/", "http://h:9/"),
        ] {
            let upstream = ServerUrl::parse(base).unwrap();
            assert_eq!(at(&upstream, path, None).unwrap().to_string(), to, "{base}");
        }
        let upstream = ServerUrl::parse("https://h").unwrap();
        let uri = at(&upstream, "/v1/x", Some("alt=sse")).unwrap();
        assert_eq!(uri.to_string(), "https://h/v1/x?alt=sse");
    }

    #[test]
    fn an_address_that_cannot_be_used_is_not_repeated() {
        for text in ["", "host", "ftp://h", "https://user:canary@h", "https://h?key=canary"] {
            let e = ServerUrl::parse(text).unwrap_err().to_string();
            assert!(!e.contains("canary") && e.contains("expected one such as"), "{e}");
        }
    }

    #[test]
    fn keys_on_their_way_are_safe_on_this_machine_and_encrypted() {
        let bare = |t: &str| !ServerUrl::parse(t).unwrap().is_private();
        assert!(bare("http://10.0.0.1:80") && bare("http://gateway.example"));
        assert!(
            !bare("http://127.0.0.1:80") && !bare("http://localhost") && !bare("http://[::1]:1")
        );
        assert!(!bare("https://gateway.example"));
    }

    #[test]
    fn a_variable_that_is_set_names_the_provider() {
        let set = |name: &str| (name == "OPENAI_BASE_URL").then(|| "https://g.example/v1".into());
        let all = Upstreams::of_providers(set).unwrap();
        let host = |name: &str| {
            let api = apis().into_iter().find(|a| a.name == name).unwrap();
            all.get(api).unwrap().host().to_string()
        };
        assert_eq!(host("openai"), "g.example");
        assert_eq!(host("anthropic"), "api.anthropic.com");
        let wrong = Upstreams::of_providers(|_| Some("canary".into())).unwrap_err();
        assert!(wrong.contains("_URL: ") && !wrong.contains("canary"), "{wrong}");
    }
}
