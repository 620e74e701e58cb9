//! Secrets out of what comes back from a server, before it is stored, printed or used.
//!
//! The rule: replaced by [`MARK`] is (1) the key of the run, wherever it stands; (2) the value
//! behind `Authorization`, `Bearer` or `x-api-key` when it has 8 or more characters and a digit or
//! `_` among them, or 20 or more; (3) any run of letters, digits, `_` and `-` that begins as keys
//! of known services do ([`PREFIXES`]) and has 20 or more characters. What a run uses is what the
//! cassette holds, so that recording and replay agree.

use serde_json::Value;

/// What stands in the place of a secret.
pub(super) const MARK: &str = "[redacted]";

/// How keys of widely used services begin.
const PREFIXES: [&str; 12] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
];
/// Shortest run that counts as such a key, characters.
const SHORTEST_KEY: usize = 20;
/// Words after which a secret comes, folded.
const NAMES: [&str; 3] = ["authorization", "bearer", "x-api-key"];
/// Shortest value behind a name that counts as a secret, characters.
const SHORTEST_VALUE: usize = 8;

/// The text without secrets.
pub(super) fn redact(text: &str, key: Option<&str>) -> String {
    let text = match key.filter(|k| !k.is_empty()) {
        Some(k) => text.replace(k, MARK),
        None => text.to_string(),
    };
    let mut out = String::with_capacity(text.len());
    // A name of NAMES was the last word but for marks between it and the value.
    let mut announced = false;
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let word = &rest[..rest.find(|c: char| !of_key(c)).unwrap_or(rest.len())];
        if word.is_empty() {
            // A line break or the end of a clause ends what a name announces.
            announced &= matches!(c, ' ' | '\t' | ':' | '=' | '"' | '\'' | '\\' | '`');
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        // What a header takes as a value is more than what a key is made of.
        let token =
            &rest[..rest.find(|c: char| !of_key(c) && !"._~+/=".contains(c)).unwrap_or(rest.len())];
        let known = word.len() >= SHORTEST_KEY && PREFIXES.iter().any(|p| word.starts_with(p));
        let name = NAMES.iter().any(|n| word.eq_ignore_ascii_case(n));
        let scheme = announced && word.eq_ignore_ascii_case("basic");
        let value =
            announced && !name && !scheme && token.len() >= SHORTEST_VALUE && looks_random(token);
        out.push_str(if known || value { MARK } else { word });
        announced = name || scheme;
        rest = &rest[if value { token.len() } else { word.len() }..];
    }
    out
}

/// The same in every text of a JSON value.
pub(super) fn redact_value(value: Value, key: Option<&str>) -> Value {
    match value {
        Value::String(s) => Value::String(redact(&s, key)),
        Value::Array(a) => Value::Array(a.into_iter().map(|v| redact_value(v, key)).collect()),
        Value::Object(o) => {
            Value::Object(o.into_iter().map(|(k, v)| (k, redact_value(v, key))).collect())
        }
        v => v,
    }
}

fn of_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Not a plain word of a language: `Bearer authentication` is no secret, `Bearer abc123def` is one.
fn looks_random(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_digit() || b == b'_') || word.len() >= SHORTEST_KEY
}
