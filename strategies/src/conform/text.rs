//! Texts of cases: plain strings or recipes, and fillers in place of a program's text.

use serde_json::{Map, Value};

/// A recipe that cannot be expanded.
#[derive(Debug, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct BadRecipe {
    expected: String,
    found: String,
}

/// Maximum size of the text of a recipe, and of all texts of a case together: 64 MiB.
pub const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of lines of a recipe.
const MAX_LINES: u64 = 1_000_000;

/// Expands a text or recipe.
pub fn expand(v: &Value) -> Result<String, BadRecipe> {
    if let Value::String(s) = v {
        return Ok(s.clone());
    }
    let mut out = String::new();
    push(v, &mut out)?;
    Ok(out)
}

/// Members of each recipe, in order.
const RECIPES: &[&[&str]] =
    &[&["concat"], &["end", "slice", "start"], &["lines_from"], &["repeat", "times"]];

/// Replaces every recipe in a value by its text. Returns an error if one is invalid, or if all
/// texts together are larger than [`MAX_BYTES`].
pub fn expand_all(v: &mut Value) -> Result<(), BadRecipe> {
    expand_within(v, &mut 0)
}

fn expand_within(v: &mut Value, made: &mut u64) -> Result<(), BadRecipe> {
    match v {
        Value::Object(o) => {
            let mut members: Vec<&str> = o.keys().map(String::as_str).collect();
            members.sort_unstable();
            if !RECIPES.contains(&members.as_slice()) {
                return o.values_mut().try_for_each(|v| expand_within(v, made));
            }
            let text = expand(v)?;
            *made += text.len() as u64;
            if *made > MAX_BYTES {
                return Err(BadRecipe {
                    expected: format!("recipes that make at most {MAX_BYTES} bytes together"),
                    found: format!("{made} bytes"),
                });
            }
            *v = Value::String(text);
            Ok(())
        }
        Value::Array(list) => list.iter_mut().try_for_each(|v| expand_within(v, made)),
        _ => Ok(()),
    }
}

/// Appends a text to the output of a recipe. Returns an error if the output is too large.
fn push(v: &Value, out: &mut String) -> Result<(), BadRecipe> {
    let bad = |what: &str| BadRecipe {
        expected: what.to_string(),
        found: v.to_string().chars().take(120).collect(),
    };
    let fits = |len: usize, more: u64| {
        let sum = more.checked_add(len as u64).filter(|n| *n <= MAX_BYTES);
        sum.map(drop).ok_or_else(|| bad(&format!("a recipe that makes at most {MAX_BYTES} bytes")))
    };
    let only = |o: &Map<String, Value>, known: &[&str]| match o
        .keys()
        .find(|k| !known.contains(&k.as_str()))
    {
        Some(k) => Err(bad(&format!("a recipe of {} without `{k}`", known.join(", ")))),
        None => Ok(()),
    };
    match v {
        Value::String(s) => {
            fits(out.len(), s.len() as u64)?;
            out.push_str(s);
            Ok(())
        }
        Value::Object(o) => {
            if let Some(s) = o.get("repeat") {
                only(o, &["repeat", "times"])?;
                let s = s.as_str().ok_or_else(|| bad("a string in `repeat`"))?;
                let times = o
                    .get("times")
                    .and_then(Value::as_u64)
                    .ok_or_else(|| bad("`times` of a repeat recipe, a whole number from 0"))?;
                fits(out.len(), times.saturating_mul(s.len() as u64))?;
                // Repeating an empty string gives an empty text.
                out.push_str(&s.repeat(if s.is_empty() { 0 } else { times as usize }));
                return Ok(());
            }
            if let Some(l) = o.get("lines_from") {
                only(o, &["lines_from"])?;
                only(
                    l.as_object().ok_or_else(|| bad("an object in `lines_from`"))?,
                    &["format", "from", "to", "sep"],
                )?;
                let format =
                    l["format"].as_str().ok_or_else(|| bad("`format` of a lines_from recipe"))?;
                let (from, to) = (l["from"].as_u64(), l["to"].as_u64());
                let (Some(from), Some(to)) = (from, to) else {
                    return Err(bad(
                        "`from` and `to` of a lines_from recipe, whole numbers from 0",
                    ));
                };
                if to.saturating_sub(from) >= MAX_LINES {
                    return Err(bad(&format!("a lines_from recipe of at most {MAX_LINES} lines")));
                }
                let sep = l
                    .get("sep")
                    .map_or(Some(""), Value::as_str)
                    .ok_or_else(|| bad("a string in `sep`"))?;
                let line = |n: u64| {
                    format
                        .replace("{n4}", &format!("{n:04}"))
                        .replace("{n5}", &format!("{n:05}"))
                        .replace("{n}", &n.to_string())
                };
                for n in from..=to {
                    let line = line(n);
                    let sep = if n > from { sep } else { "" };
                    fits(out.len(), (line.len() + sep.len()) as u64)?;
                    out.push_str(sep);
                    out.push_str(&line);
                }
                return Ok(());
            }
            if let Some(parts) = o.get("concat") {
                only(o, &["concat"])?;
                let parts = parts.as_array().ok_or_else(|| bad("a list in `concat`"))?;
                return parts.iter().try_for_each(|p| push(p, out));
            }
            if let Some(inner) = o.get("slice") {
                only(o, &["slice", "start", "end"])?;
                let text = expand(inner)?;
                let (Some(start), Some(end)) =
                    (o.get("start").and_then(Value::as_u64), o.get("end").and_then(Value::as_u64))
                else {
                    return Err(bad("`start` and `end` of a slice recipe"));
                };
                let cut = text.get(start as usize..end as usize);
                let cut =
                    cut.ok_or_else(|| bad("a slice inside the text, at character boundaries"))?;
                fits(out.len(), cut.len() as u64)?;
                out.push_str(cut);
                return Ok(());
            }
            Err(bad("a recipe: repeat, lines_from, concat or slice"))
        }
        _ => Err(bad("a string or a recipe")),
    }
}

/// Returns a filler of exactly `bytes` bytes.
pub fn filler(tag: &str, bytes: usize) -> String {
    let mut out: String = format!("<{tag}>").chars().take(bytes).collect();
    out.extend(std::iter::repeat_n('.', bytes - out.len()));
    out
}

/// Builds a filler of `bytes` bytes with a JSON form that is `escapes` bytes longer.
pub fn filler_with_escapes(tag: &str, bytes: usize, escapes: usize) -> String {
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
        assert_eq!(
            expand(&json!({"concat": ["a", {"repeat": "xy", "times": 2}]})).unwrap(),
            "axyxy"
        );
        assert_eq!(
            expand(&json!({"lines_from": {"format": "f{n4} ", "from": 9, "to": 10, "sep": "|"}}))
                .unwrap(),
            "f0009 |f0010 "
        );
        assert_eq!(expand(&json!({"slice": "abcdef", "start": 1, "end": 3})).unwrap(), "bc");
        assert!(expand(&json!({"slice": "é", "start": 1, "end": 2})).is_err());
        assert!(expand(&json!({"unknown": 1})).is_err());
    }

    #[test]
    fn recipes_have_a_largest_size_and_no_other_members() {
        let huge = 1_000_000_000_000_u64;
        assert!(expand(&json!({"repeat": "a", "times": huge})).is_err());
        assert!(expand(&json!({"repeat": "abc", "times": u64::MAX})).is_err());
        assert_eq!(expand(&json!({"repeat": "", "times": u64::MAX})).unwrap(), "");
        assert_eq!(
            expand(&json!({"repeat": "ab", "times": MAX_BYTES / 2})).unwrap().len() as u64,
            MAX_BYTES
        );
        let half = json!({"repeat": "a", "times": MAX_BYTES / 2});
        assert!(expand(&json!({"concat": [half, half, "b"]})).is_err());
        assert!(expand(&json!({"lines_from": {"format": "{n}", "from": 0, "to": huge}})).is_err());
        assert!(expand(&json!({"lines_from": {"format": "", "from": 0, "to": u64::MAX}})).is_err());
        assert!(expand(&json!({"lines_from": {"format": "{n}", "from": -1, "to": 1}})).is_err());
        assert!(expand(&json!({"repeat": "a", "times": -1})).is_err());
        assert!(expand(&json!({"repeat": "a", "times": 1, "more": 1})).is_err());
        assert!(
            expand(&json!({"lines_from": {"format": "{n}", "from": 0, "to": 1, "step": 2}}))
                .is_err()
        );
        assert!(expand(&json!({"slice": "abc", "start": 2, "end": 1})).is_err());
    }

    #[test]
    fn fillers_have_their_size() {
        assert_eq!(filler("context", 3).len(), 3);
        assert_eq!(filler("context", 300).len(), 300);
        assert_eq!(filler_with_escapes("c", 100, 7).len(), 100);
    }
}
