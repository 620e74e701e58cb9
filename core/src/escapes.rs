//! JSON as programs write it that is none by the letter. A program that counts in UTF-16 and cuts a
//! text at a length can leave half a character at its end, which `JSON.stringify` writes as a
//! `\ud83d` without its other half. It is read as U+FFFD, as encodings are whose bytes are no text.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// What a text says. Halves of characters are looked for only where the text cannot be read.
pub fn from_str<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|e| match mended(text) {
        Cow::Owned(mended) => serde_json::from_str(&mended),
        Cow::Borrowed(_) => Err(e),
    })
}

/// The text with U+FFFD in the place of each half of a character, as long as before, so that places
/// in it stay what they are.
pub fn mended(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut done, mut at) = (String::new(), 0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        match (half(bytes, at), half(bytes, at + UNIT)) {
            (Some(Half::First), Some(Half::Second)) => at += 2 * UNIT,
            (Some(_), _) => {
                out.push_str(&text[done..at]);
                out.push_str("\\ufffd");
                at += UNIT;
                done = at;
            }
            // Another escape; what stands escaped, such as a backslash, begins none.
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

/// Where the first half of a character without its other half stands, in bytes.
pub fn first_half(text: &str) -> Option<usize> {
    let Cow::Owned(mended) = mended(text) else { return None };
    let differs = |(a, b): (u8, u8)| a != b;
    let at = text.bytes().zip(mended.bytes()).position(differs)?;
    text[..at].rfind('\\')
}

/// Bytes of `\ud83d`.
const UNIT: usize = 6;

enum Half {
    First,
    Second,
}

/// The half of a character that is written at a place.
fn half(bytes: &[u8], at: usize) -> Option<Half> {
    match bytes.get(at..at + UNIT)? {
        [b'\\', b'u', b'd' | b'D', kind, rest @ ..] if rest.iter().all(u8::is_ascii_hexdigit) => {
            match kind.to_ascii_lowercase() {
                b'8' | b'9' | b'a' | b'b' => Some(Half::First),
                b'c'..=b'f' => Some(Half::Second),
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
    fn halves_of_characters_are_marks() {
        let read = |text: &str| from_str::<String>(&format!("\"{text}\"")).unwrap();
        assert_eq!(read(r"cut \ud83d"), "cut \u{fffd}");
        assert_eq!(read(r"\uDE00 and \ud83d\ud83d\ude00é"), "\u{fffd} and \u{fffd}😀é");
        assert_eq!(read(r"\ud83dé\ud83d\u00e9"), "\u{fffd}é\u{fffd}é");
        // No escape is one whose backslash is escaped.
        assert_eq!(read(r"\\ud83d \ud83d\\ude00 \\\ud83d"), "\\ud83d \u{fffd}\\ude00 \\\u{fffd}");
    }

    #[test]
    fn the_place_of_the_first_half_is_found() {
        assert_eq!(first_half(r"é \\ \ud83d\ude00 \ude00 \ud83d"), Some(19));
        assert_eq!(first_half(r"\uD83D"), Some(0));
        assert_eq!(first_half(r"\\ud83d"), None);
    }

    #[test]
    fn what_holds_none_stays_as_it_is() {
        for text in
            ["", "\\", "\\u", "\\ud83", "plain", "\\ud83d\\ude00", "\\\\ud83d", "é\\é", "\\é"]
        {
            assert!(matches!(mended(text), Cow::Borrowed(_)), "{text}");
        }
        let broken = "{\"a\":\"\\ud83d\" 1}";
        let e = from_str::<serde_json::Value>(broken).unwrap_err();
        // Where it stands in the text that was given.
        assert_eq!((e.line(), e.column()), (1, broken.find('1').unwrap() + 1));
    }
}
