//! Decides whether a text states a literal or only lists it.
//!
//! A text states a literal in a sentence or line that shares terms with one that showed it, or by a copy
//! of what surrounded it. A list does neither: it has no short terms between the long ones. The limits
//! were chosen on two recordings with real summaries; see docs/recall.md.

use std::collections::HashSet;

use ctxbench_core::tokens::content_hash;
use ctxbench_session::fact::fold;

/// Number of bytes on each side of a literal that count as near it.
const SPAN: usize = 100;

/// Minimum number of near terms that a sentence shares with a line. Of a line with two, one is enough.
const SHARED: usize = 2;

/// Share of the near terms that a copy has.
const COPIED: f64 = 0.8;

/// Minimum share of different short terms in a sentence, among all near the literal, and the maximum
/// length of a short one, bytes.
const SHORT_SHARE: f64 = 0.2;
const SHORT: usize = 5;

/// Minimum length of a term that is compared, bytes.
const WORD: usize = 3;

/// Maximum number of showings and of occurrences per literal. The first ones count.
const MOST: usize = 32;

/// A literal, and the texts that show it.
#[derive(Debug)]
pub(super) struct StatedLiteral {
    literal: Box<str>,
    folded: String,
    showings: Vec<Showing>,
}

/// Hashes of the terms near a literal: in its line, and around it.
#[derive(Debug, PartialEq)]
struct Showing {
    line: HashSet<u64>,
    around: HashSet<u64>,
}

impl StatedLiteral {
    pub(super) fn new(literal: &str) -> Self {
        StatedLiteral { literal: literal.into(), folded: fold(literal), showings: Vec::new() }
    }

    /// Adds the first showing of the literal in a recorded text.
    pub(super) fn note(&mut self, text: &str) {
        let literal = &*self.literal;
        if self.showings.len() == MOST || literal.is_empty() {
            return;
        }
        let Some(at) = memchr::memmem::find(text.as_bytes(), literal.as_bytes()) else { return };
        let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
        let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
        let line = Near::new(&text[start..end], at - start, literal.len()).hashes();
        let around = Near::new(text, at, literal.len()).hashes();
        let showing = Showing { line, around };
        if !self.showings.contains(&showing) {
            self.showings.push(showing);
        }
    }

    /// Returns whether a folded text that contains the literal states it. Always true for a literal
    /// that no recorded text shows as it is, and for a number in another notation.
    pub(super) fn is_stated(&self, folded: &str) -> bool {
        let all = memchr::memmem::find_iter(folded.as_bytes(), self.folded.as_bytes());
        let mut is_found = false;
        let is_stated_at = |at: usize| {
            is_found = true;
            let near = Near::new(folded, at, self.folded.len());
            let (is_sentence, words) = (near.is_sentence(), near.hashes());
            let shares = |showing: &Showing| {
                let of = |known: &HashSet<u64>| known.intersection(&words).count();
                let copied = COPIED * showing.around.len() as f64;
                is_sentence && of(&showing.line) >= SHARED.min(showing.line.len().div_ceil(2))
                    || showing.around.len() >= SHARED && of(&showing.around) as f64 >= copied
            };
            is_whole(folded, at, self.folded.len()) && self.showings.iter().any(shares)
        };
        self.showings.is_empty() || all.take(MOST).any(is_stated_at) || !is_found
    }
}

/// Text on both sides of a literal. It begins at the next blank: the rest of a path or of a call is no
/// statement about it.
struct Near<'a>([&'a str; 2]);

impl<'a> Near<'a> {
    fn new(text: &'a str, at: usize, len: usize) -> Self {
        let start = text[..at].rfind(char::is_whitespace).unwrap_or(0);
        let end = text[at + len..].find(char::is_whitespace).map_or(text.len(), |i| at + len + i);
        let before = &text[text.ceil_char_boundary(start.saturating_sub(SPAN))..start];
        Near([before, &text[end..text.floor_char_boundary(end + SPAN)]])
    }

    fn hashes(&self) -> HashSet<u64> {
        let words = self.0.iter().flat_map(|t| t.split(|c: char| !c.is_alphanumeric()));
        let words = words.filter(|w| w.len() >= WORD);
        words.map(|w| content_hash(w.to_lowercase().as_bytes())).collect()
    }

    /// Returns whether there are as many different short terms as in a sentence or line of code.
    fn is_sentence(&self) -> bool {
        let words = || self.0.iter().flat_map(|t| t.split_whitespace());
        let is_short = |w: &&str| w.len() <= SHORT && w.contains(char::is_alphabetic);
        let short: HashSet<&str> = words().filter(is_short).collect();
        short.len() as f64 >= SHORT_SHARE * words().count() as f64
    }
}

/// Returns whether `at..at + len` is not only a part of a longer name.
fn is_whole(text: &str, at: usize, len: usize) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let found = &text[at..at + len];
    let before = is_word(text[..at].chars().next_back()) && is_word(found.chars().next());
    let after = is_word(found.chars().next_back()) && is_word(text[at + len..].chars().next());
    !before && !after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_stated(shown: &[&str], text: &str) -> bool {
        let mut literal = StatedLiteral::new("retry_limit");
        shown.iter().for_each(|text| literal.note(text));
        literal.is_stated(&fold(text))
    }

    #[test]
    fn a_sentence_states_it_and_a_list_does_not() {
        let code = "fn connect() {\n    let retry_limit = config.read(\"network\");\n}";
        assert!(is_stated(&[code], "The network config has a `Retry_Limit`."));
        assert!(
            !is_stated(&[code], "connection config_read retry_limit timeout_ms network"),
            "a list"
        );
        assert!(
            !is_stated(&[code], "It is said that a retry_limit is in the list"),
            "about others"
        );
        assert!(
            !is_stated(&[code], &format!("let read config {} retry_limit", "x ".repeat(100))),
            "far"
        );
        assert!(
            !is_stated(&[code], "let us read the config of the network_retry_limits"),
            "a part"
        );
        assert!(is_stated(&[code], code), "a copy");
        // A line with a single word needs that one.
        assert!(is_stated(&["network retry_limit"], "the retry_limit of the network"));
        assert!(!is_stated(&["network retry_limit"], "the retry_limit of a disk"));
        let listing = "timeout_ms\nretry_limit\nparse_header\n";
        assert!(is_stated(&[listing], "the retry_limit is set"), "a bare line needs no word");
        assert!(is_stated(&[listing], listing), "a copy of a list");
        assert!(!is_stated(&[listing], "connection retry_limit authority"), "another list");
        assert!(is_stated(&[], "retry_limit"), "never shown as such");
    }
}
