//! HTTP headers and queries: the values that may be kept, and the secrets of a request.

use std::collections::BTreeMap;

use axum::http::HeaderMap;

use super::MARK;
use super::shapes::SHAPES;

/// Shortest value that counts as a secret, bytes: shorter ones occur in any text.
const MIN_SECRET_BYTES: usize = 8;

fn has(name: &str, parts: &[String]) -> bool {
    let name = name.to_ascii_lowercase();
    parts.iter().any(|part| name.contains(part))
}

fn is_secret(name: &str) -> bool {
    has(name, &SHAPES.secret_names)
}

fn is_public(name: &str) -> bool {
    has(name, &SHAPES.public_headers) && (!is_secret(name) || name.contains("ratelimit"))
}

/// Returns all headers, with [`MARK`] as the value of those that may not be kept.
fn marked(headers: &HeaderMap) -> BTreeMap<String, String> {
    let value = |name: &str, value: &[u8]| match is_public(name) {
        true => String::from_utf8_lossy(value).into_owned(),
        false => MARK.to_string(),
    };
    headers.iter().map(|(n, v)| (n.to_string(), value(n.as_str(), v.as_bytes()))).collect()
}

/// Returns the names of a query's parameters.
pub fn parameter_names(query: Option<&str>) -> Vec<String> {
    parameters(query).map(|(name, _)| name.to_string()).collect()
}

fn parameters(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    query.into_iter().flat_map(|q| q.split('&')).map(|p| p.split_once('=').unwrap_or((p, "")))
}

/// Secret values that a request carried in its headers and query.
#[derive(Clone, Debug, Default)]
pub struct RequestSecrets(Vec<String>);

impl RequestSecrets {
    pub fn new(headers: &HeaderMap, query: Option<&str>) -> RequestSecrets {
        let mut all: Vec<String> = Vec::new();
        let secret = headers.iter().filter(|(n, _)| is_secret(n.as_str()));
        for value in secret.map(|(_, v)| String::from_utf8_lossy(v.as_bytes()).into_owned()) {
            // `Bearer KEY`, `name=VALUE; name=VALUE`.
            let pieces = value.split([' ', ';', ',']).map(|p| p.trim_matches('"').to_string());
            for piece in pieces.filter(|p| !p.is_empty()) {
                all.extend(piece.split_once('=').map(|(_, v)| v.to_string()));
                all.push(piece);
            }
            all.push(value);
        }
        all.extend(parameters(query).filter(|(n, _)| is_secret(n)).map(|(_, v)| v.to_string()));
        all.retain(|s| s.len() >= MIN_SECRET_BYTES && !s.eq_ignore_ascii_case("anonymous"));
        all.sort_by_key(|s| std::cmp::Reverse(s.len()));
        all.dedup();
        RequestSecrets(all)
    }

    /// Replaces each secret of the request in a text by [`MARK`].
    pub fn clean(&self, mut text: String) -> String {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MARK);
            }
        }
        text
    }

    /// Returns all headers, without values that may not be kept.
    pub fn clean_headers(&self, headers: &HeaderMap) -> BTreeMap<String, String> {
        marked(headers).into_iter().map(|(name, value)| (name, self.clean(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap())).collect()
    }

    #[test]
    fn only_headers_of_the_allow_list_keep_their_values() {
        let sent = headers(&[
            ("content-type", "application/json"),
            ("anthropic-version", "2023-06-01"),
            ("x-ratelimit-remaining-tokens", "5"),
            ("x-kind", "compaction"),
            ("authorization", "Bearer canary"),
            ("proxy-authorization", "Basic canary"),
            ("x-api-key", "canary"),
            ("x-goog-api-key", "canary"),
            ("cookie", "id=canary"),
            ("set-cookie", "id=canary"),
            ("openai-organization", "canary"),
            ("openai-project", "canary"),
            ("x-auth-type-token", "canary"),
            ("x-unheard-of", "canary"),
        ]);
        let marked = marked(&sent);
        assert!(!format!("{marked:?}").contains("canary"), "{marked:?}");
        let kept = marked.iter().filter(|(_, value)| *value != MARK).map(|(name, _)| name);
        assert_eq!(
            kept.collect::<Vec<_>>(),
            ["anthropic-version", "content-type", "x-kind", "x-ratelimit-remaining-tokens"]
        );
        assert_eq!(marked["anthropic-version"], "2023-06-01");
        assert_eq!(marked.len(), sent.len());
    }

    #[test]
    fn secrets_of_a_request_are_replaced_in_its_reply() {
        let sent = headers(&[
            ("authorization", "Bearer canary-one-1"),
            ("cookie", "a=canary-two-2; b=short"),
            ("x-stainless-lang", "javascript"),
        ]);
        let secrets = RequestSecrets::new(&sent, Some("alt=sse&key=canary-three-3"));
        let text = "canary-one-1 canary-two-2 canary-three-3 javascript short sse".to_string();
        let clean = secrets.clean(text);
        assert_eq!(clean, format!("{MARK} {MARK} {MARK} javascript short sse"));
        assert_eq!(parameter_names(Some("alt=sse&key=canary-three-3")), ["alt", "key"]);
    }
}
