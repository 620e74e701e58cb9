//! Gemini's explicit cache: `/v1beta/cachedContents` and `/v1beta/cachedContents/{name}`
//! (docs/sources/providers.md, section 5).

use ctxbench_core::Millis;
use ctxbench_util::calendar::iso;
use serde::Deserialize;
use serde_json::{Value, json};

use super::request::{self, GeminiRequest};
use crate::wire::format::{StoreRequest, StoredContents, WireError};
use crate::wire::json::{Text, opt, parse};

/// Path of stored contents after the version.
const PATH: &str = "cachedContents";

/// Returns the part of a path after the version.
fn rest(path: &str) -> Option<&str> {
    let (version, rest) = path.strip_prefix("/v1")?.split_once('/')?;
    version.chars().all(|c| c.is_ascii_alphanumeric()).then_some(rest)
}

/// Returns whether a path is one of stored contents.
pub(super) fn is(path: &str) -> bool {
    rest(path) == Some(PATH) || name(path).is_some()
}

/// Returns the name in a path, including its folder.
pub(super) fn name(path: &str) -> Option<&str> {
    let name = rest(path)?;
    let id = name.strip_prefix(PATH)?.strip_prefix('/')?;
    (!id.is_empty() && !id.contains('/')).then_some(name)
}

/// Decodes a request to store contents.
pub(super) fn decode(bytes: &[u8]) -> Result<StoreRequest, WireError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct About<'a> {
        model: Option<Text<'a>>,
        #[serde(alias = "display_name")]
        display_name: Option<Text<'a>>,
        ttl: Option<Text<'a>>,
        #[serde(alias = "expire_time")]
        expire_time: Option<Text<'a>>,
    }
    let about: About<'_> = parse(bytes)?;
    if let Some(time) = about.expire_time.filter(|_| about.ttl.is_none()) {
        let known = "ttl, such as 3600s: this server has a clock of its own";
        return Err(WireError::unsupported("expireTime", time.as_str(), known));
    }
    let ttl_ms = about.ttl.map(|t| seconds(t.as_str())).transpose()?;
    let model = about.model.as_ref().map_or("", Text::as_str);
    // Vertex sends a whole path.
    let model = model.rsplit_once("models/").map_or(model, |(_, m)| m);
    let prompt = request::prompt(model, parse::<GeminiRequest<'_>>(bytes)?)?;
    Ok(StoreRequest { prompt, title: opt(about.display_name), ttl_ms })
}

/// Parses a duration such as `3.5s` to ms.
fn seconds(text: &str) -> Result<Millis, WireError> {
    let wrong = || WireError::unsupported("ttl", text, "such as 3600s");
    let seconds: f64 = text.strip_suffix('s').and_then(|s| s.parse().ok()).ok_or_else(wrong)?;
    // At most a hundred years.
    if !(seconds > 0.0 && seconds < 3.2e9) {
        return Err(wrong());
    }
    Ok((seconds * 1_000.0).round() as Millis)
}

/// Builds the response for stored contents.
pub(super) fn encode(s: &StoredContents) -> Value {
    let mut body = json!({
        "name": s.name, "model": format!("models/{}", s.model),
        "createTime": iso(s.created_ms), "updateTime": iso(s.created_ms),
        "expireTime": iso(s.expires_ms), "usageMetadata": {"totalTokenCount": s.tokens},
    });
    if let Some(title) = &s.title {
        body["displayName"] = (&**title).into();
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_stored_contents() {
        assert!(is("/v1beta/cachedContents") && is("/v1beta/cachedContents/a"));
        assert_eq!(name("/v1beta/cachedContents/a-1"), Some("cachedContents/a-1"));
        for none in ["/v1beta/cachedContents/", "/v1beta/cachedContentsX", "/cachedContents", ""] {
            assert_eq!((is(none), name(none)), (false, None), "{none}");
        }
        assert_eq!(name("/v1beta/cachedContents"), None);
    }

    #[test]
    fn a_request_to_store_says_for_how_long() {
        let of = |ttl: &str| {
            let body = format!(
                r#"{{"model":"models/m","displayName":"d","contents":[{{"parts":[{{"text":"t"}}]}}]{ttl}}}"#
            );
            decode(body.as_bytes()).map(|s| s.ttl_ms).map_err(|e| e.to_string())
        };
        assert_eq!(of(""), Ok(None));
        assert_eq!(of(r#","ttl":"300s""#), Ok(Some(300_000)));
        assert_eq!(of(r#","ttl":"1.5s""#), Ok(Some(1_500)));
        for wrong in ["-1s", "5m", "", "nans", "1e300s"] {
            let e = of(&format!(",\"ttl\":\"{wrong}\"")).unwrap_err();
            assert!(e.contains("ttl"), "{wrong}: {e}");
        }
        let e = of(r#","expireTime":"2026-01-01T00:00:00Z""#).unwrap_err();
        assert!(e.contains("ttl"), "{e}");
        let vertex =
            br#"{"model":"projects/p/locations/l/publishers/google/models/m","contents":[]}"#;
        assert_eq!(&*decode(vertex).unwrap().prompt.model, "m");
    }
}
