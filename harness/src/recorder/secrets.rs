//! What must not be kept: keys, and whatever else tells a provider who asks.

use std::collections::BTreeMap;

use axum::http::HeaderMap;

/// What stands in the place of a secret.
pub(super) const MARK: &str = "[redacted]";

/// Names of headers and parameters of a query that hold secrets have one of these in them.
const SECRET: &[&str] =
    &["auth", "key", "token", "cookie", "secret", "credential", "session", "signature", "passw"];

/// Headers whose values are kept have one of these in their names. All others may tell who somebody
/// is.
const PUBLIC: &[&str] = &[
    "version",
    "beta",
    "type",
    "agent",
    "ratelimit",
    "retry",
    "request-id",
    "stainless",
    "encoding",
    "length",
    "date",
    "server",
    "accept",
    "processing-ms",
    "warning",
];

/// Shorter values are found everywhere, bytes.
const SHORTEST: usize = 8;

fn has(name: &str, words: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    words.iter().any(|w| name.contains(w))
}

/// The headers as they are kept.
pub(super) fn public(headers: &HeaderMap) -> BTreeMap<String, String> {
    let value = |name: &str, value: &[u8]| {
        let shown = has(name, PUBLIC) && (!has(name, SECRET) || has(name, &["ratelimit"]));
        if shown { String::from_utf8_lossy(value).into_owned() } else { MARK.to_string() }
    };
    let kept = headers.iter().map(|(n, v)| (n.to_string(), value(n.as_str(), v.as_bytes())));
    kept.collect()
}

/// The names of a query's parameters.
pub(super) fn names(query: Option<&str>) -> Vec<String> {
    pairs(query).map(|(name, _)| name.to_string()).collect()
}

fn pairs(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    query.into_iter().flat_map(|q| q.split('&')).map(|p| p.split_once('=').unwrap_or((p, "")))
}

/// The secrets of a request, which are nowhere kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn of(headers: &HeaderMap, query: Option<&str>) -> Secrets {
        let mut all: Vec<String> = Vec::new();
        let held = headers.iter().filter(|(n, _)| has(n.as_str(), SECRET));
        for value in held.map(|(_, v)| String::from_utf8_lossy(v.as_bytes()).into_owned()) {
            // `Bearer KEY`, `name=VALUE; name=VALUE`.
            let pieces = value.split([' ', ';', ',']).map(|p| p.trim_matches('"').to_string());
            for piece in pieces.filter(|p| !p.is_empty()) {
                all.extend(piece.split_once('=').map(|(_, v)| v.to_string()));
                all.push(piece);
            }
            all.push(value);
        }
        all.extend(pairs(query).filter(|(n, _)| has(n, SECRET)).map(|(_, v)| v.to_string()));
        all.retain(|s| s.len() >= SHORTEST && !s.eq_ignore_ascii_case("anonymous"));
        all.sort_by_key(|s| std::cmp::Reverse(s.len()));
        all.dedup();
        Secrets(all)
    }

    /// The text without them.
    pub(super) fn clean(&self, mut text: String) -> String {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MARK);
            }
        }
        text
    }

    pub(super) fn cleaned(&self, headers: BTreeMap<String, String>) -> BTreeMap<String, String> {
        headers.into_iter().map(|(name, value)| (name, self.clean(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap())).collect()
    }

    #[test]
    fn values_are_kept_of_headers_that_tell_nothing() {
        let kept = public(&headers(&[
            ("content-type", "application/json"),
            ("anthropic-version", "2023-06-01"),
            ("x-ratelimit-remaining-tokens", "5"),
            ("authorization", "Bearer canary"),
            ("x-api-key", "canary"),
            ("set-cookie", "id=canary"),
            ("openai-organization", "canary"),
            ("x-auth-type-token", "canary"),
        ]));
        assert!(!format!("{kept:?}").contains("canary"), "{kept:?}");
        assert_eq!(kept["content-type"], "application/json");
        assert_eq!(kept["anthropic-version"], "2023-06-01");
        assert_eq!(kept["x-ratelimit-remaining-tokens"], "5");
        assert_eq!(kept["authorization"], MARK);
    }

    #[test]
    fn a_secret_is_found_wherever_it_comes_back() {
        let sent = headers(&[
            ("authorization", "Bearer canary-one-1"),
            ("cookie", "a=canary-two-2; b=short"),
            ("x-stainless-lang", "javascript"),
        ]);
        let secrets = Secrets::of(&sent, Some("alt=sse&key=canary-three-3"));
        let text = "canary-one-1 canary-two-2 canary-three-3 javascript short sse".to_string();
        let clean = secrets.clean(text);
        assert_eq!(clean, format!("{MARK} {MARK} {MARK} javascript short sse"));
        assert_eq!(names(Some("alt=sse&key=canary-three-3")), ["alt", "key"]);
    }
}
