//! Several values of a setting in one specification: `codex:auto_compact_limit=[60k,90k,120k]` or
//! `codex:auto_compact_limit=60k..180k/30k`.

use ctxbench_core::settings::{SettingError, split_pairs};
use ctxbench_util::quantity::parse_decimal;
use thiserror::Error;

/// Maximum number of rows that one specification may expand to.
pub const MAX_ROWS: usize = 1_000;

/// A sweep that cannot be expanded.
#[derive(Debug, Error, PartialEq)]
pub enum SweepError {
    #[error("`{0}` has a bracket without its other half; write name=[60k,90k,120k]")]
    Bracket(String),
    /// An empty list, or an empty element of a list.
    #[error("`{0}` leaves out a value; write name=[60k,90k,120k]")]
    Empty(String),
    #[error(
        "`{0}` is not a range; write FROM..TO/STEP with a step above 0 and FROM at most TO, all \
         three plain or all three in %, such as 60k..180k/30k or 40%..80%/10%"
    )]
    Range(String),
    /// A list for a setting that takes text.
    #[error(
        "`{0}` takes one text, not a list; quote a text that begins with a bracket (name=\"[a, b]\"), \
         or repeat the whole strategy for another text"
    )]
    Text(String),
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// More rows than [`MAX_ROWS`].
    #[error("`{text}` makes {rows} rows, more than {MAX_ROWS}; take larger steps")]
    Many {
        text: String,
        /// Number of combinations, as far as they were counted.
        rows: usize,
    },
}

/// Expands a specification into one per combination of values, or returns it unchanged if it sweeps
/// nothing. Numbers ascend, and the first setting changes last. The value of a setting that
/// `is_text` accepts is never expanded.
pub fn expand(text: &str, is_text: &dyn Fn(&str) -> bool) -> Result<Vec<String>, SweepError> {
    let Some((head, settings)) = text.split_once(':') else { return Ok(vec![text.to_string()]) };
    let mut rows = vec![String::new()];
    for pair in pairs(settings, is_text)? {
        let values = match pair.split_once('=') {
            Some((name, value)) if !is_text(name.trim()) && !value.trim().starts_with('"') => {
                values(value.trim())?.into_iter().map(|v| format!("{}={v}", name.trim())).collect()
            }
            _ => vec![pair],
        };
        let rows_now = rows.len().saturating_mul(values.len());
        if rows_now > MAX_ROWS {
            return Err(SweepError::Many { text: text.into(), rows: rows_now });
        }
        let joined = |row: &String, v: &String| {
            if row.is_empty() { v.clone() } else { format!("{row},{v}") }
        };
        rows = rows.iter().flat_map(|row| values.iter().map(move |v| joined(row, v))).collect();
    }
    Ok(rows.into_iter().map(|row| format!("{head}:{row}")).collect())
}

/// Splits settings at commas outside brackets and quotes. Brackets within a text value are not
/// special.
fn pairs(settings: &str, is_text: &dyn Fn(&str) -> bool) -> Result<Vec<String>, SweepError> {
    let wrong = || SweepError::Bracket(settings.to_string());
    let (mut out, mut list) = (Vec::new(), None::<String>);
    for piece in split_pairs(settings)? {
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        let (name, value) = (name.trim(), value.trim());
        if list.is_none() && (is_text(name) || value.starts_with('"')) {
            if value.starts_with('[') {
                return Err(SweepError::Text(name.to_string()));
            }
            out.push(piece.to_string());
            continue;
        }
        let mut open = list.is_some();
        for bracket in piece.chars().filter(|c| matches!(c, '[' | ']')) {
            if open == (bracket == '[') {
                return Err(wrong());
            }
            open = !open;
        }
        let pair = match list.take() {
            Some(list) => format!("{list},{piece}"),
            None => piece.to_string(),
        };
        if open { list = Some(pair) } else { out.push(pair) }
    }
    if list.is_some() { Err(wrong()) } else { Ok(out) }
}

fn values(given: &str) -> Result<Vec<String>, SweepError> {
    let Some(inner) = given.strip_prefix('[') else { return one_or_range(given) };
    let inner =
        inner.strip_suffix(']').ok_or_else(|| SweepError::Bracket(given.to_string()))?.split(',');
    let mut out = Vec::new();
    for part in inner.map(str::trim) {
        if part.is_empty() {
            return Err(SweepError::Empty(given.to_string()));
        }
        out.extend(one_or_range(part)?);
    }
    // Text values keep their order, after the numbers.
    out.sort_by_key(|v| number(v).map_or((true, (false, 0)), |n| (false, n)));
    Ok(out)
}

fn one_or_range(given: &str) -> Result<Vec<String>, SweepError> {
    let range = given.split_once("..").and_then(|(from, rest)| Some((number(from)?, rest)));
    let Some(((percent, from), rest)) = range else { return Ok(vec![given.to_string()]) };
    let bounds = rest.split_once('/').and_then(|(to, step)| Some((number(to)?, number(step)?)));
    let (to, step) = match bounds {
        Some(((a, to), (b, step))) if a == percent && b == percent && step > 0 && from <= to => {
            (to, step)
        }
        _ => return Err(SweepError::Range(given.to_string())),
    };
    let rows = usize::try_from((to - from) / step).unwrap_or(usize::MAX).saturating_add(1);
    if rows > MAX_ROWS {
        return Err(SweepError::Many { text: given.to_string(), rows });
    }
    Ok((from..=to).step_by(step as usize).map(|n| written(percent, n)).collect())
}

/// Reads a number as settings accept it, exact to six decimals: true for a percentage, and millionths.
fn number(text: &str) -> Option<(bool, u64)> {
    let text = text.trim();
    let percentage = text.strip_suffix('%');
    Some((percentage.is_some(), parse_decimal(percentage.unwrap_or(text), 6)?))
}

fn written(percent: bool, millionths: u64) -> String {
    let (whole, part) = (millionths / 1_000_000, format!(".{:06}", millionths % 1_000_000));
    let part = part.trim_end_matches('0').trim_end_matches('.');
    format!("{whole}{part}{}", if percent { "%" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Result<Vec<String>, SweepError> {
        super::expand(text, &|name| name == "note")
    }

    #[test]
    fn lists_ranges_and_their_product() {
        assert_eq!(expand("codex").unwrap(), ["codex"]);
        assert_eq!(expand("codex:auto=true").unwrap(), ["codex:auto=true"]);
        assert_eq!(
            expand("codex:limit=[120k, 60k,90_000]").unwrap(),
            ["codex:limit=60k", "codex:limit=90_000", "codex:limit=120k"]
        );
        assert_eq!(
            expand("codex@0.104:limit=60k..180k/50k").unwrap(),
            ["codex@0.104:limit=60000", "codex@0.104:limit=110000", "codex@0.104:limit=160000"]
        );
        assert_eq!(
            expand("x:share=0.5..0.8/0.1,on=[true,false]").unwrap(),
            [
                "x:share=0.5,on=true",
                "x:share=0.5,on=false",
                "x:share=0.6,on=true",
                "x:share=0.6,on=false",
                "x:share=0.7,on=true",
                "x:share=0.7,on=false",
                "x:share=0.8,on=true",
                "x:share=0.8,on=false",
            ]
        );
        assert_eq!(
            expand("x:limit=[auto,50%..70%/10%,9k]").unwrap(),
            ["x:limit=9k", "x:limit=50%", "x:limit=60%", "x:limit=70%", "x:limit=auto"]
        );
    }

    #[test]
    fn what_only_looks_like_a_range_is_a_value() {
        for text in ["sdk:prompt=../words/a.txt", "x:tools=a..b", "x:address=http://h:1/v1"] {
            assert_eq!(expand(text).unwrap(), [text]);
        }
    }

    #[test]
    fn a_text_is_one_value_as_it_stands() {
        for text in ["x:note=0..3/1", "x:note=a[1] or b]", "x:limit=9,note=see [1"] {
            assert_eq!(expand(text).unwrap(), [text]);
        }
        assert_eq!(
            expand("x:note=a..b [2],limit=[1,2]").unwrap(),
            ["x:note=a..b [2],limit=1", "x:note=a..b [2],limit=2"]
        );
        assert_eq!(expand("x:note=[a,b]"), Err(SweepError::Text("note".into())));
        assert_eq!(
            expand(r#"x:note="[a, b], 1",limit=[1,2]"#).unwrap(),
            [r#"x:note="[a, b], 1",limit=1"#, r#"x:note="[a, b], 1",limit=2"#]
        );
    }

    #[test]
    fn errors_say_what_to_write() {
        let bracket = |t: &str| matches!(expand(t), Err(SweepError::Bracket(_)));
        assert!(["x:a=[1,2", "x:a=1]", "x:a=[[1]]", "x:a=[1]2"].into_iter().all(bracket));
        let empty = |t: &str| matches!(expand(t), Err(SweepError::Empty(_)));
        assert!(["x:a=[]", "x:a=[1,,2]"].into_iter().all(empty));
        let range = |t: &str| matches!(expand(t), Err(SweepError::Range(_)));
        let wrong =
            ["x:a=1..9", "x:a=1..9/0", "x:a=9..1/1", "x:a=1..9%/1", "x:a=1../2", "x:a=1..b/1"];
        assert!(wrong.into_iter().all(range));
        let many = ["x:a=0..9999/1", "x:a=1..100/1,b=1..100/1", "x:a=0..999999999k/0.000001"];
        assert!(many.into_iter().all(|t| matches!(expand(t), Err(SweepError::Many { .. }))));
    }
}
