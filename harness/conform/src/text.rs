//! Texts of cases: plain strings or recipes, and fillers in place of a program's text.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Maximum size of the text of a recipe, and of all texts of a case together: 64 MiB.
pub const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of lines of a recipe.
const MAX_LINES: u64 = 1_000_000;

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Recipe {
    Plain(String),
    Repeat {
        repeat: String,
        times: u64,
    },
    Lines {
        lines_from: Lines,
    },
    Concat {
        concat: Vec<Recipe>,
    },
    /// Bytes of another text, at character boundaries.
    Slice {
        slice: Box<Recipe>,
        start: usize,
        end: usize,
    },
}

/// Numbered lines: `{n}` is the number, `{n4}` and `{n5}` with leading zeros.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    format: String,
    from: u64,
    to: u64,
    #[serde(default)]
    sep: String,
}

impl Recipe {
    /// Appends the text. Returns what was expected if it cannot be made.
    fn push(&self, out: &mut String) -> Result<(), String> {
        match self {
            Recipe::Plain(text) => add(out, text, 1),
            Recipe::Repeat { repeat, times } => add(out, repeat, *times),
            Recipe::Lines { lines_from: l } if l.to.saturating_sub(l.from) >= MAX_LINES => {
                Err(format!("a lines_from recipe of at most {MAX_LINES} lines"))
            }
            Recipe::Lines { lines_from: l } => (l.from..=l.to).try_for_each(|n| {
                let line = l
                    .format
                    .replace("{n4}", &format!("{n:04}"))
                    .replace("{n5}", &format!("{n:05}"))
                    .replace("{n}", &n.to_string());
                add(out, &l.sep, u64::from(n > l.from))?;
                add(out, &line, 1)
            }),
            Recipe::Concat { concat } => concat.iter().try_for_each(|part| part.push(out)),
            Recipe::Slice { slice, start, end } => {
                let mut text = String::new();
                slice.push(&mut text)?;
                let cut = text.get(*start..*end);
                add(out, cut.ok_or("a slice inside the text, at character boundaries")?, 1)
            }
        }
    }
}

/// Appends a text several times, unless the output becomes too large.
fn add(out: &mut String, text: &str, times: u64) -> Result<(), String> {
    let more = times.saturating_mul(text.len() as u64);
    if more.saturating_add(out.len() as u64) > MAX_BYTES {
        return Err(format!("a recipe that makes at most {MAX_BYTES} bytes"));
    }
    // Repeating an empty text takes no time.
    out.push_str(&text.repeat(if text.is_empty() { 0 } else { times as usize }));
    Ok(())
}

pub(super) fn is_recipe(o: &Map<String, Value>) -> bool {
    ["repeat", "lines_from", "concat", "slice"].iter().any(|name| o.contains_key(*name))
}

/// Expands a text or recipe. Returns what was expected if it cannot be expanded.
pub(super) fn expand(v: &Value) -> Result<String, String> {
    let recipe = Recipe::deserialize(v)
        .map_err(|_| "a recipe: repeat, lines_from, concat or slice, with its members")?;
    let mut out = String::new();
    recipe.push(&mut out)?;
    Ok(out)
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
    fn recipes_and_fillers_have_their_text() {
        for (recipe, text) in [
            (json!({"concat": ["a", {"repeat": "xy", "times": 2}]}), "axyxy"),
            (
                json!({"lines_from": {"format": "f{n4} ", "from": 9, "to": 10, "sep": "|"}}),
                "f0009 |f0010 ",
            ),
            (json!({"slice": "abcdef", "start": 1, "end": 3}), "bc"),
            (json!({"repeat": "", "times": u64::MAX}), ""),
        ] {
            assert_eq!(expand(&recipe).as_deref(), Ok(text));
        }
        let most = json!({"repeat": "ab", "times": MAX_BYTES / 2});
        assert_eq!(expand(&most).unwrap().len() as u64, MAX_BYTES);
        for wrong in [
            json!({"unknown": 1}),
            json!({"slice": "é", "start": 1, "end": 2}),
            json!({"slice": "abc", "start": 2, "end": 1}),
            json!({"concat": [most, "b"]}),
            json!({"lines_from": {"format": "", "from": 0, "to": u64::MAX}}),
            json!({"lines_from": {"format": "{n}", "from": -1, "to": 1}}),
            json!({"lines_from": {"format": "{n}", "from": 0, "to": 1, "step": 2}}),
            json!({"repeat": "a", "times": -1}),
            json!({"repeat": "a", "times": 1, "more": 1}),
        ] {
            assert!(expand(&wrong).is_err(), "{wrong}");
        }
        assert_eq!([3, 300].map(|n| filler("context", n).len()), [3, 300]);
        assert_eq!(filler_with_escapes("c", 100, 7).len(), 100);
    }
}
