//! Tolerant JSON parsing: replaces lone UTF-16 surrogates with U+FFFD.
//!
//! JavaScript programs that cut text at a UTF-16 length can split a character, and `JSON.stringify`
//! then writes a lone `\ud83d`, which is not valid JSON text.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// Parses JSON. Replaces lone surrogates only if the text cannot be parsed otherwise.
pub fn from_str<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|e| match replace_lone_surrogates(text) {
        Cow::Owned(replaced) => serde_json::from_str(&replaced),
        Cow::Borrowed(_) => Err(e),
    })
}

/// Replaces each lone surrogate with U+FFFD. The length does not change, so that positions in errors
/// remain valid.
pub fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut done, mut at) = (String::new(), 0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        match (surrogate_at(bytes, at), surrogate_at(bytes, at + UNIT)) {
            (Some(Surrogate::High), Some(Surrogate::Low)) => at += 2 * UNIT,
            (Some(_), _) => {
                out.push_str(&text[done..at]);
                out.push_str("\\ufffd");
                at += UNIT;
                done = at;
            }
            // Skip another escape with the escaped character, such as a backslash.
            (None, _) => at += 1 + usize::from(bytes.get(at + 1).is_some_and(u8::is_ascii)),
        }
        at = at.min(text.len());
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Returns the byte offset of the first lone surrogate.
pub fn first_lone_surrogate(text: &str) -> Option<usize> {
    let Cow::Owned(replaced) = replace_lone_surrogates(text) else { return None };
    let differs = |(a, b): (u8, u8)| a != b;
    let at = text.bytes().zip(replaced.bytes()).position(differs)?;
    text[..at].rfind('\\')
}

/// Length of `\ud83d`.
const UNIT: usize = 6;

enum Surrogate {
    High,
    Low,
}

/// Returns the surrogate that is escaped at a position.
fn surrogate_at(bytes: &[u8], at: usize) -> Option<Surrogate> {
    match bytes.get(at..at + UNIT)? {
        [b'\\', b'u', b'd' | b'D', kind, rest @ ..] if rest.iter().all(u8::is_ascii_hexdigit) => {
            match kind.to_ascii_lowercase() {
                b'8' | b'9' | b'a' | b'b' => Some(Surrogate::High),
                b'c'..=b'f' => Some(Surrogate::Low),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        let read = |text: &str| from_str::<String>(&format!("\"{text}\"")).unwrap();
        assert_eq!(read(r"cut \ud83d"), "cut \u{fffd}");
        assert_eq!(read(r"\uDE00 and \ud83d\ud83d\ude00é"), "\u{fffd} and \u{fffd}😀é");
        assert_eq!(read(r"\ud83dé\ud83d\u00e9"), "\u{fffd}é\u{fffd}é");
        // An escaped backslash does not start an escape.
        assert_eq!(read(r"\\ud83d \ud83d\\ude00 \\\ud83d"), "\\ud83d \u{fffd}\\ude00 \\\u{fffd}");
    }

    #[test]
    fn first_lone_surrogate_returns_its_offset() {
        assert_eq!(first_lone_surrogate(r"é \\ \ud83d\ude00 \ude00 \ud83d"), Some(19));
        assert_eq!(first_lone_surrogate(r"\uD83D"), Some(0));
        assert_eq!(first_lone_surrogate(r"\\ud83d"), None);
    }

    #[test]
    fn text_without_lone_surrogates_is_borrowed() {
        for text in
            ["", "\\", "\\u", "\\ud83", "plain", "\\ud83d\\ude00", "\\\\ud83d", "é\\é", "\\é"]
        {
            assert!(matches!(replace_lone_surrogates(text), Cow::Borrowed(_)), "{text}");
        }
        let broken = "{\"a\":\"\\ud83d\" 1}";
        let e = from_str::<serde_json::Value>(broken).unwrap_err();
        // The position in the original text.
        assert_eq!((e.line(), e.column()), (1, broken.find('1').unwrap() + 1));
    }
}
