//! Token counting in tiers: fast estimates with each product's rounding, exact counts, and the
//! provider's endpoint.
//!
//! The estimates are pure functions of a text. The exact counts use the o200k and cl100k
//! vocabularies and cutting rules of tiktoken-rs 0.12, which is read at build time: `words` cuts,
//! `vocabulary` joins, and that the counts are tiktoken's is tested on random and real texts.
//! A count is remembered by content hash, so that a text is tokenised once per process. The third tier, the provider's counting endpoint, is a request and lives in
//! [`crate::engine::World::count`].

use std::sync::{OnceLock, RwLock};

use crate::recent::Recent;

#[cfg(feature = "tokenizers")]
mod classes;
#[cfg(feature = "tokenizers")]
mod seen;
#[cfg(feature = "tokenizers")]
mod vocabulary;
#[cfg(feature = "tokenizers")]
mod words;

/// `ceil(bytes / 4)`: Codex CLI (docs/sources/codex.md §3, all versions).
pub fn bytes_div4_up(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// UTF-16 length / 4 rounded half up: OpenCode (docs/sources/opencode.md §1, `Token.estimate`).
pub fn utf16_div4_round(text: &str) -> u64 {
    (utf16_len(text) + 2) / 4
}

/// Number of UTF-16 units of a text, which is JavaScript's `length`.
pub fn utf16_len(text: &str) -> u64 {
    // One for each character, two for those of four bytes; few enough at a time for a byte.
    let units = |b: &u8| u8::from(b & 0xc0 != 0x80) + u8::from(*b >= 0xf0);
    let chunks = text.as_bytes().chunks(64);
    chunks.map(|chunk| u64::from(chunk.iter().map(units).sum::<u8>())).sum()
}

/// Bytes that a text grows by when it is written as a JSON string, quotes left out: one per escaped
/// character, five per other control.
pub fn json_escapes(text: &str) -> u64 {
    let extra = |b: u8| match b {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..=0x1f => 5,
        _ => 0,
    };
    text.bytes().map(extra).sum()
}

/// UTF-16 length of a text as a JSON string, quotes included.
pub fn json_utf16_len(text: &str) -> u64 {
    utf16_len(text) + json_escapes(text) + 2
}

/// `len / 4` rounded down: the OpenOxide blueprint's fast path (docs/sources/openoxide.md §2.1).
pub fn bytes_div4_down(text: &str) -> u64 {
    text.len() as u64 / 4
}

/// A vocabulary with exact counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// GPT-4o and later; what counting models are told in.
    O200k,
    /// GPT-3.5 and GPT-4.
    Cl100k,
}

/// A 64-bit content hash, the same on every machine.
pub fn content_hash(bytes: &[u8]) -> u64 {
    rapidhash::v3::rapidhash_v3(bytes)
}

type Memo = RwLock<Recent<(u64, usize), u64>>;

/// Most texts that are remembered per vocabulary: 24 bytes each and one of the table, which is at
/// most half empty, so 26 MB. A server that runs for weeks forgets what was counted least recently;
/// it is counted anew when it comes again.
const MEMO_MOST: usize = 800_000;

fn memo(encoding: Encoding) -> &'static Memo {
    static O200K: OnceLock<Memo> = OnceLock::new();
    static CL100K: OnceLock<Memo> = OnceLock::new();
    match encoding {
        Encoding::O200k => O200K.get_or_init(|| RwLock::new(Recent::new(MEMO_MOST))),
        Encoding::Cl100k => CL100K.get_or_init(|| RwLock::new(Recent::new(MEMO_MOST))),
    }
}

/// Texts shorter than this are counted anew each time: hashing and locking would cost as much.
const MEMO_FROM: usize = 24;

/// Exact number of tokens of a text. Counted once per content.
pub fn exact(encoding: Encoding, text: &str) -> u64 {
    if text.len() < MEMO_FROM {
        return tokenise(encoding, text);
    }
    let key = (content_hash(text.as_bytes()), text.len());
    let memo = memo(encoding);
    let known = memo.read().ok().and_then(|m| m.peek(&key).map(|(n, ageing)| (*n, ageing)));
    if let Some((n, ageing)) = known {
        if ageing && let Ok(mut m) = memo.write() {
            m.touch(&key);
        }
        return n;
    }
    let n = tokenise(encoding, text);
    if let Ok(mut m) = memo.write() {
        m.insert(key, n);
    }
    n
}

/// Exact number of tokens of a text, counted anew and not remembered: for measuring the tokenizer
/// itself.
pub fn count_uncached(encoding: Encoding, text: &str) -> u64 {
    tokenise(encoding, text)
}

/// Exact o200k count, what counting models are told in.
pub fn o200k(text: &str) -> u64 {
    exact(Encoding::O200k, text)
}

/// What a piece of content holds that a provider counts; [`Counting`](crate::model::Counting) makes
/// tokens of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// o200k tokens of its text and of a call's name.
    pub text: u64,
    /// Tokens of an opaque payload.
    pub opaque: u64,
    /// Images and documents.
    pub images: u64,
}

impl Size {
    /// A text and nothing else.
    pub fn text(text: &str) -> Size {
        Size { text: o200k(text), ..Size::default() }
    }

    /// A call of a tool.
    pub fn call(name: &str, arguments: &str) -> Size {
        Size { text: o200k(name) + o200k(arguments), ..Size::default() }
    }

    /// A text with an opaque payload in base64: three quarters are bytes, four bytes a token.
    pub fn sealed(text: &str, payload: Option<&str>) -> Size {
        let opaque = payload.map_or(0, |p| (p.len() as u64 * 3 / 4).div_ceil(4));
        Size { opaque, ..Size::text(text) }
    }
}

#[cfg(feature = "tokenizers")]
fn tokenise(encoding: Encoding, text: &str) -> u64 {
    seen::count(encoding, text)
}

#[cfg(not(feature = "tokenizers"))]
fn tokenise(_: Encoding, text: &str) -> u64 {
    bytes_div4_up(text)
}

#[cfg(all(test, feature = "tokenizers"))]
mod equality_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_round_as_the_products_do() {
        assert_eq!(
            [bytes_div4_up(""), bytes_div4_up("a"), bytes_div4_up("abcd"), bytes_div4_up("abcde")],
            [0, 1, 1, 2]
        );
        // docs/sources/opencode.md §9 number 37, and half rounds up
        assert_eq!(
            [utf16_div4_round(""), utf16_div4_round("ab"), utf16_div4_round("a")],
            [0, 1, 0]
        );
        assert_eq!(utf16_div4_round(&"x".repeat(4000)), 1000);
        assert_eq!(utf16_len("é😀"), 3);
        assert_eq!(bytes_div4_down("abcdefg"), 1);
    }

    #[test]
    fn utf16_units_are_those_of_the_encoding() {
        let long = "aé日😀".repeat(100);
        for from in (0..long.len()).filter(|i| long.is_char_boundary(*i)) {
            let text = &long[from..];
            assert_eq!(utf16_len(text), text.encode_utf16().count() as u64, "{from}");
        }
        assert_eq!(utf16_len(&"😀".repeat(64)), 128);
    }

    #[test]
    fn escapes_are_what_a_json_writer_adds() {
        for text in ["", "plain", "a\"b\\c\nd\te\rf", "\u{1}\u{1f}\u{8}\u{c}", "日本 😀"] {
            let json = serde_json::to_string(text).unwrap();
            assert_eq!(json_escapes(text), (json.len() - text.len() - 2) as u64, "{text:?}");
        }
    }

    #[cfg(feature = "tokenizers")]
    #[test]
    fn exact_counts_agree_with_known_values() {
        // Published examples of the two vocabularies.
        assert_eq!(o200k("hello world"), 2);
        assert_eq!(exact(Encoding::Cl100k, "tiktoken is great!"), 6);
        assert_eq!(o200k(""), 0);
    }

    #[cfg(feature = "tokenizers")]
    #[test]
    fn remembered_counts_equal_fresh_ones() {
        let text = "the quick brown fox jumps over the lazy dog, again and again";
        assert_eq!(o200k(text), tokenise(Encoding::O200k, text));
        assert_eq!(o200k(text), o200k(text));
    }
}
