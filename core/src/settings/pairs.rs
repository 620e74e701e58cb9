//! Pairs of names and values as text: `name=value,name="a, b"`.

use std::borrow::Cow;

use super::SettingError;

/// Splits `name=value,name=value` into its pairs, trimmed. A value in double quotes may contain
/// commas; `""` in it is one quote. Other values are taken literally. Empty pairs are kept.
///
/// ```
/// use ctxbench_core::settings::split_pairs;
/// let pairs = split_pairs(r#"limit=90k, prompt="Be ""brief"", please""#).unwrap();
/// assert_eq!(pairs, ["limit=90k", r#"prompt="Be ""brief"", please""#]);
/// ```
pub fn split_pairs(text: &str) -> Result<Vec<&str>, SettingError> {
    let mut pairs = Vec::new();
    let mut rest = text;
    loop {
        let is_quoted = |at: usize| rest[at + 1..].trim_start().starts_with('"');
        let end = match rest.find(['=', ',']) {
            Some(at) if rest[at..].starts_with('=') && is_quoted(at) => {
                let open = at + 1 + rest[at + 1..].find('"').unwrap_or_default();
                let error = || SettingError::Quote(rest.trim().to_string());
                let close = closing_quote(&rest[open..]).ok_or_else(error)?;
                let after = open + close + 1;
                let end = rest[after..].find(',').map(|comma| after + comma);
                if !rest[after..end.unwrap_or(rest.len())].trim().is_empty() {
                    return Err(error());
                }
                end
            }
            _ => rest.find(','),
        };
        pairs.push(rest[..end.unwrap_or(rest.len())].trim());
        match end {
            Some(end) => rest = &rest[end + 1..],
            None => return Ok(pairs),
        }
    }
}

/// Returns the byte offset of the quote that closes the one at the beginning of `text`.
fn closing_quote(text: &str) -> Option<usize> {
    let mut from = 1;
    loop {
        let close = from + text[from..].find('"')?;
        if !text[close + 1..].starts_with('"') {
            return Some(close);
        }
        from = close + 2;
    }
}

/// Splits a pair of [`split_pairs`] into name and value, without the quotes of the value.
pub fn split_pair(pair: &str) -> Result<(&str, Cow<'_, str>), SettingError> {
    let (name, value) =
        pair.split_once('=').ok_or_else(|| SettingError::NotAPair(pair.to_string()))?;
    let value = value.trim();
    let value = match value.strip_prefix('"').and_then(|v| v.strip_suffix('"')) {
        Some(quoted) => Cow::Owned(quoted.replace("\"\"", "\"")),
        None => Cow::Borrowed(value),
    };
    Ok((name.trim(), value))
}

/// Quotes a value where [`split_pairs`] would not read it back otherwise.
pub(super) fn quote(value: &str) -> Cow<'_, str> {
    if value.contains(',') || value.starts_with('"') || value.trim() != value {
        Cow::Owned(format!("\"{}\"", value.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(value)
    }
}
