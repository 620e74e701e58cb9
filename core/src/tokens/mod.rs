//! Token counts: fast estimates with each product's rounding, and exact counts.
//!
//! Exact counts use the vocabularies and splitting rules of tiktoken-rs 0.12, read at build time:
//! `words` splits text, `vocabulary` merges tokens. Tests compare the counts with
//! tiktoken's on random and real texts. Counts are cached by content hash, so that each text is
//! tokenised once per process. For the provider's counting endpoint see
//! [`crate::Host::count`].

use std::sync::{OnceLock, RwLock};

use ctxbench_util::lru_map::LruMap;

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

/// Returns the UTF-16 length divided by 4, rounded half up. Used by OpenCode
/// (docs/sources/opencode.md §1, `Token.estimate`).
pub fn utf16_div4_round(text: &str) -> u64 {
    (utf16_len(text) + 2) / 4
}

/// Returns the number of UTF-16 units of a text, JavaScript's `length`.
pub fn utf16_len(text: &str) -> u64 {
    // One for each character, two for those of four bytes; few enough at a time for a byte.
    let units = |b: &u8| u8::from(b & 0xc0 != 0x80) + u8::from(*b >= 0xf0);
    let chunks = text.as_bytes().chunks(64);
    chunks.map(|chunk| u64::from(chunk.iter().map(units).sum::<u8>())).sum()
}

/// `len / 4` rounded down: the OpenOxide blueprint's fast path (docs/sources/openoxide.md §2.1).
pub fn bytes_div4_down(text: &str) -> u64 {
    text.len() as u64 / 4
}

/// Returns a 64-bit content hash, the same on every machine.
pub fn content_hash(bytes: &[u8]) -> u64 {
    rapidhash::v3::rapidhash_v3(bytes)
}

/// Maximum number of cached counts, 26 MB. A server that runs for weeks evicts the least recently used.
const MAX_MEMO_ENTRIES: usize = 800_000;

/// Minimum size of cached texts: for shorter ones, hashing and locking cost as much as counting.
const MIN_MEMO_BYTES: usize = 24;

/// A vocabulary with its rule for splitting text.
#[derive(Clone, Copy, Debug)]
pub enum Encoding {
    O200k,
    Cl100k,
}

/// Returns the exact number of o200k tokens of a text. Cached.
pub fn o200k(text: &str) -> u64 {
    cached(text, Encoding::O200k)
}

/// Returns the exact number of cl100k tokens of a text. Cached.
pub fn cl100k(text: &str) -> u64 {
    cached(text, Encoding::Cl100k)
}

fn cached(text: &str, encoding: Encoding) -> u64 {
    static MEMO: OnceLock<RwLock<LruMap<(u64, usize), u64>>> = OnceLock::new();
    if text.len() < MIN_MEMO_BYTES {
        return count_uncached(text, encoding);
    }
    let key = (content_hash(text.as_bytes()) ^ encoding as u64, text.len());
    let memo = MEMO.get_or_init(|| RwLock::new(LruMap::new(MAX_MEMO_ENTRIES)));
    let known = memo.read().ok().and_then(|m| m.peek(&key).map(|(n, is_old)| (*n, is_old)));
    if let Some((n, is_old)) = known {
        if is_old && let Ok(mut m) = memo.write() {
            m.touch(&key);
        }
        return n;
    }
    let n = count_uncached(text, encoding);
    if let Ok(mut m) = memo.write() {
        m.insert(key, n);
    }
    n
}

/// The size of content that a provider counts; [`Counting`](crate::model::Counting) converts it to
/// tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// o200k tokens of the text and of a call's name.
    pub text: u64,
    /// Tokens of an opaque payload.
    pub opaque: u64,
    /// Number of images and documents.
    pub images: u64,
    /// Width and height of the image in pixels, if they are known.
    pub pixels: Option<(u32, u32)>,
}

impl Size {
    pub fn text(text: &str) -> Size {
        Size { text: o200k(text), ..Size::default() }
    }

    pub fn call(name: &str, arguments: &str) -> Size {
        Size { text: o200k(name) + o200k(arguments), ..Size::default() }
    }

    /// Returns the size of text with an opaque base64 payload, at four decoded bytes per token.
    pub fn with_opaque(text: &str, payload: Option<&str>) -> Size {
        let opaque = payload.map_or(0, |p| (p.len() as u64 * 3 / 4).div_ceil(4));
        Size { opaque, ..Size::text(text) }
    }
}

/// Returns the exact number of tokens of a text without the cache.
pub fn count_uncached(text: &str, encoding: Encoding) -> u64 {
    #[cfg(feature = "tokenizers")]
    return seen::count(text, encoding);
    #[cfg(not(feature = "tokenizers"))]
    {
        let _ = encoding;
        bytes_div4_up(text)
    }
}

#[cfg(all(test, feature = "tokenizers"))]
mod equality_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_round_like_the_products() {
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
    fn utf16_len_equals_encoded_length() {
        let long = "aé日😀".repeat(100);
        for from in (0..long.len()).filter(|i| long.is_char_boundary(*i)) {
            let text = &long[from..];
            assert_eq!(utf16_len(text), text.encode_utf16().count() as u64, "{from}");
        }
        assert_eq!(utf16_len(&"😀".repeat(64)), 128);
    }

    #[cfg(feature = "tokenizers")]
    #[test]
    fn cached_counts_equal_fresh_ones() {
        let text = "the quick brown fox jumps over the lazy dog, again and again";
        assert_eq!(o200k(text), count_uncached(text, Encoding::O200k));
        assert_eq!(o200k(text), o200k(text));
    }
}
