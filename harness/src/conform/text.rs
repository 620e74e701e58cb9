//! Texts of cases: plain strings or recipes.

use serde_json::Value;

use super::case::CaseError;

/// Expands a text or recipe.
pub(super) fn expand(v: &Value) -> Result<String, CaseError> {
    let bad = |what: &str| CaseError::Format { what: what.to_string(), found: v.to_string().chars().take(120).collect() };
    match v {
        Value::String(s) => Ok(s.clone()),
        Value::Object(o) => {
            if let (Some(Value::String(s)), Some(n)) = (o.get("repeat"), o.get("times").and_then(Value::as_u64)) {
                return Ok(s.repeat(n as usize));
            }
            if let Some(l) = o.get("lines_from") {
                let format = l["format"].as_str().ok_or_else(|| bad("`format` of a lines_from recipe"))?;
                let (from, to) = (l["from"].as_i64(), l["to"].as_i64());
                let (Some(from), Some(to)) = (from, to) else { return Err(bad("`from` and `to` of a lines_from recipe")) };
                let sep = l.get("sep").and_then(Value::as_str).unwrap_or("");
                let line =
                    |n: i64| format.replace("{n4}", &format!("{n:04}")).replace("{n5}", &format!("{n:05}")).replace("{n}", &n.to_string());
                return Ok((from..=to).map(line).collect::<Vec<_>>().join(sep));
            }
            if let Some(Value::Array(parts)) = o.get("concat") {
                return parts.iter().map(expand).collect();
            }
            if let Some(inner) = o.get("slice") {
                let text = expand(inner)?;
                let (Some(start), Some(end)) = (o.get("start").and_then(Value::as_u64), o.get("end").and_then(Value::as_u64)) else {
                    return Err(bad("`start` and `end` of a slice recipe"));
                };
                return text
                    .get(start as usize..end as usize)
                    .map(str::to_string)
                    .ok_or_else(|| bad("a slice inside the text, at character boundaries"));
            }
            Err(bad("a recipe: repeat, lines_from, concat or slice"))
        }
        _ => Err(bad("a string or a recipe")),
    }
}

/// A filler of exactly `bytes` bytes.
pub(super) fn filler(tag: &str, bytes: usize) -> String {
    let mut out: String = format!("<{tag}>").chars().take(bytes).collect();
    out.extend(std::iter::repeat_n('.', bytes - out.len()));
    out
}

/// A filler of `bytes` bytes whose JSON form is `escapes` bytes longer.
pub(super) fn filler_with_escapes(tag: &str, bytes: usize, escapes: usize) -> String {
    let mut out = "\n".repeat(escapes.min(bytes));
    out.push_str(&filler(tag, bytes - out.len()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn recipes_expand() {
        assert_eq!(expand(&json!({"concat": ["a", {"repeat": "xy", "times": 2}]})).unwrap(), "axyxy");
        assert_eq!(expand(&json!({"lines_from": {"format": "f{n4} ", "from": 9, "to": 10, "sep": "|"}})).unwrap(), "f0009 |f0010 ");
        assert_eq!(expand(&json!({"slice": "abcdef", "start": 1, "end": 3})).unwrap(), "bc");
        assert!(expand(&json!({"slice": "é", "start": 1, "end": 2})).is_err());
        assert!(expand(&json!({"unknown": 1})).is_err());
    }

    #[test]
    fn fillers_have_their_size() {
        assert_eq!(filler("context", 3).len(), 3);
        assert_eq!(filler("context", 300).len(), 300);
        assert_eq!(filler_with_escapes("c", 100, 7).len(), 100);
    }
}
