//! First difference between two JSON values, and texts shortened around it.

use serde_json::{Map, Value};

use crate::hash::sha256;

/// Characters shown before the first difference.
const BEFORE: usize = 60;
const AFTER: usize = 100;

/// Returns path, expected value and actual value of the first difference. An expected `{"bytes",
/// "sha256"}` is compared with the text at that path.
pub(super) fn first(expected: &Value, got: &Value) -> Option<(String, String, String)> {
    let mut at = Vec::new();
    walk(expected, got, &mut at)
        .map(|(e, g)| (if at.is_empty() { "result".into() } else { at.concat() }, e, g))
}

fn walk(e: &Value, g: &Value, at: &mut Vec<String>) -> Option<(String, String)> {
    let whole = || Some((e.to_string(), g.to_string()));
    match (e, g) {
        (Value::Object(eo), _) if is_digest(eo) => {
            let Some(text) = g.as_str().or_else(|| g.get("text")?.as_str()) else { return whole() };
            let got = serde_json::json!({"bytes": text.len(), "sha256": sha256(text)});
            (*e != got).then(|| (e.to_string(), format!("{got} of {g}")))
        }
        (Value::Object(eo), Value::Object(go)) => {
            if let Some(k) =
                eo.keys().chain(go.keys()).find(|k| !(eo.contains_key(*k) && go.contains_key(*k)))
            {
                at.push(format!(".{k}"));
                let shown = |o: &Map<String, Value>| {
                    o.get(k).map_or("nothing".to_string(), Value::to_string)
                };
                return Some((shown(eo), shown(go)));
            }
            eo.iter().find_map(|(k, v)| descend(v, &go[k], format!(".{k}"), at))
        }
        (Value::Array(ea), Value::Array(ga)) => {
            let inner = ea
                .iter()
                .zip(ga)
                .enumerate()
                .find_map(|(i, (v, w))| descend(v, w, format!("[{i}]"), at));
            inner.or_else(|| if ea.len() == ga.len() { None } else { whole() })
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        _ if e == g => None,
        _ => whole(),
    }
}

fn descend(e: &Value, g: &Value, step: String, at: &mut Vec<String>) -> Option<(String, String)> {
    at.push(step);
    let found = walk(e, g, at);
    if found.is_none() {
        at.pop();
    }
    found
}

fn is_digest(o: &Map<String, Value>) -> bool {
    o.len() == 2 && o.contains_key("bytes") && o.contains_key("sha256")
}

/// Returns the parts of both texts around the first different character, each on one line.
pub fn shorten(expected: &str, got: &str) -> (String, String) {
    let same = expected.chars().zip(got.chars()).take_while(|(a, b)| a == b).count();
    (window(expected, same), window(got, same))
}

fn window(text: &str, same: usize) -> String {
    let from = same.saturating_sub(BEFORE);
    let all = text.chars().count();
    let shown: String = text.chars().skip(from).take(BEFORE + AFTER).collect();
    let before = if from > 0 { format!("({from} more)…") } else { String::new() };
    let left = all.saturating_sub(from + BEFORE + AFTER);
    let behind = if left > 0 { format!("…({left} more)") } else { String::new() };
    format!("{before}{shown}{behind}").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_the_first_place() {
        let (at, e, g) =
            first(&json!({"a": [1, {"b": "x"}]}), &json!({"a": [1.0, {"b": "y"}]})).unwrap();
        assert_eq!((at.as_str(), e.as_str(), g.as_str()), (".a[1].b", "\"x\"", "\"y\""));
        let (at, e, g) = first(&json!({"a": null}), &json!({})).unwrap();
        assert_eq!((at.as_str(), e.as_str(), g.as_str()), (".a", "null", "nothing"));
        assert_eq!(first(&json!([1, 2]), &json!([1, 2])), None);
        assert!(first(&json!([1, 2]), &json!([1])).is_some());
    }

    #[test]
    fn a_digest_stands_for_its_text() {
        let digest = json!({"bytes": 3, "sha256": sha256("abc")});
        assert_eq!(first(&digest, &json!({"text": "abc"})), None);
        assert!(first(&digest, &json!({"text": "abd"})).is_some());
        assert!(first(&digest, &json!(3)).is_some());
    }

    #[test]
    fn long_texts_are_shortened_around_the_difference() {
        let (a, b) =
            (format!("{}A{}", "x".repeat(500), "y".repeat(500)), format!("{}B", "x".repeat(500)));
        let (a, b) = shorten(&a, &b);
        assert!(
            a.starts_with("(440 more)…") && a.contains("xA") && a.ends_with("…(401 more)"),
            "{a}"
        );
        assert!(b.ends_with("xB"), "{b}");
    }
}
