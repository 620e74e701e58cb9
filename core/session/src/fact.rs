//! Facts: information that a session establishes and later messages need. Matches facts in text.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::gist;

/// The kind of a fact, in report order. Recall is reported per kind.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// A goal of the user.
    Goal,
    /// A rule or prohibition.
    Constraint,
    /// A file, symbol or other thing worked on.
    Artifact,
    /// Lines of a result that the agent fetched again, unchanged.
    Content,
    /// A choice with its reason.
    Decision,
    /// An error text or its cause.
    Error,
    /// An exact value.
    #[default]
    Value,
    /// An open task.
    Todo,
    /// A value that was replaced later.
    Superseded,
}

/// Writes the name in files.
impl fmt::Display for FactKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Information that the session establishes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Unique in the session.
    pub id: String,
    pub kind: FactKind,
    /// Literals; a text contains the fact if it contains all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<String>,
    /// For a fact without literals: stems ([`gist::stems`]) of its statement. A text contains the fact
    /// if one line, or 400 bytes of a long one, contains enough of them ([`gist::match_threshold`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Id of the message, or call id of the tool result, that first contains it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arises: String,
    /// Ids of later messages that need the fact.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The fact that replaces this one.
    pub superseded_by: Option<String>,
}

/// Quality of a match between a text and a fact, worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// No match, or an incomplete one.
    #[default]
    Absent,
    /// The numbers are equal, but not the text around them.
    Numeric,
    /// Equal after [`fold`]ing case, white space and quotes.
    Normalised,
    /// Equal.
    Verbatim,
}

impl Fact {
    /// Creates a fact that no message needs yet.
    pub fn new(
        id: impl Into<String>,
        kind: FactKind,
        token: impl Into<String>,
        arises: impl Into<String>,
    ) -> Fact {
        let (id, arises) = (id.into(), arises.into());
        Fact { id, kind, tokens: vec![token.into()], arises, ..Fact::default() }
    }

    /// Returns the weakest match of all tokens. A fact without tokens is matched by its stems:
    /// `Verbatim` for all of them, `Normalised` for enough of them. `folded` is the folded `text`.
    pub fn matches(&self, text: &str, folded: &str) -> Match {
        let tokens = self.tokens.iter().map(|t| match_token(t, text, folded)).min();
        tokens.unwrap_or_else(|| match_words(&self.words, text))
    }

    /// Returns whether `text` matches the fact at all.
    pub fn occurs_in(&self, text: &str) -> bool {
        let folded = if self.tokens.is_empty() { String::new() } else { fold(text) };
        self.matches(text, &folded) > Match::Absent
    }
}

fn match_words(words: &[String], text: &str) -> Match {
    if words.is_empty() {
        return Match::Absent;
    }
    let mut found = vec![false; words.len()];
    let in_line = |line: &str| {
        found.fill(false);
        gist::for_each_stem(line, |stem| {
            words.iter().zip(&mut found).for_each(|(word, found)| *found |= word == stem);
        });
        found.iter().filter(|found| **found).count()
    };
    words_tier(spans(text).map(in_line).max().unwrap_or(0), words.len())
}

/// Length within which the stems of a fact count, bytes: a few times that of a statement.
const SPAN: usize = 200;

/// Returns the lines of a text. A long line is cut into overlapping pieces, so that any [`SPAN`]
/// bytes are in one of them.
pub(crate) fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let starts = (0..line.len().saturating_sub(SPAN).max(1)).step_by(SPAN);
        starts.map(move |at| {
            let end = line.floor_char_boundary(at + 2 * SPAN);
            &line[line.floor_char_boundary(at)..end]
        })
    })
}

/// Returns the match of a fact with `n` stems if no line contains more than `max` of them.
pub(crate) fn words_tier(max: usize, n: usize) -> Match {
    match max {
        _ if max == n => Match::Verbatim,
        _ if max >= gist::match_threshold(n) => Match::Normalised,
        _ => Match::Absent,
    }
}

fn match_token(token: &str, text: &str, folded: &str) -> Match {
    if memchr::memmem::find(text.as_bytes(), token.as_bytes()).is_some() {
        return Match::Verbatim;
    }
    let t = fold(token);
    if !t.is_empty() && memchr::memmem::find(folded.as_bytes(), t.as_bytes()).is_some() {
        return Match::Normalised;
    }
    match number_in(&t) {
        Some(n) if numbers(folded).any(|m| m == n) => Match::Numeric,
        _ => Match::Absent,
    }
}

/// Folds text: lower case, runs of white space as one space, no quotes and backticks.
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    let mut rest = text;
    loop {
        let end = rest.bytes().position(|b| !is_plain(b)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let mut after = after.chars();
        let next = after.next();
        rest = after.as_str();
        let other = next.filter(|&c| !c.is_whitespace() && !is_quote(c));
        if gap && (!word.is_empty() || other.is_some()) {
            out.push(' ');
            gap = false;
        }
        out.push_str(word);
        match next {
            Some(c) if c.is_whitespace() => gap = !out.is_empty(),
            Some(_) => out.extend(other.into_iter().flat_map(char::to_lowercase)),
            None => break,
        }
    }
    out.make_ascii_lowercase();
    out
}

/// Returns whether folding changes at most the case of a byte.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !is_quote(char::from(byte))
}

fn is_quote(c: char) -> bool {
    matches!(c, '`' | '"' | '\'' | '“' | '”' | '‘' | '’')
}

/// Returns the value of a token that is one number of at least three digits, possibly with a unit.
pub(crate) fn number_in(token: &str) -> Option<u128> {
    let mut all = numbers(token);
    let first = all.next()?;
    let letters = token.chars().filter(|c| c.is_alphabetic()).count();
    (all.next().is_none() && first >= 100 && letters <= 3).then_some(first)
}

/// Returns the whole numbers of a text; `15,420` and `15_420` are one number each.
pub(crate) fn numbers(text: &str) -> impl Iterator<Item = u128> + '_ {
    let bytes = text.as_bytes();
    let mut i = 0;
    std::iter::from_fn(move || {
        while i < bytes.len() && !bytes[i].is_ascii_digit() {
            i += 1;
        }
        if i >= bytes.len() {
            return None;
        }
        let mut n: u128 = 0;
        while i < bytes.len() {
            let b = bytes[i];
            if b.is_ascii_digit() {
                n = n.saturating_mul(10).saturating_add(u128::from(b - b'0'));
            } else if !(matches!(b, b',' | b'_')
                && bytes[i + 1..].len() >= 3
                && bytes[i + 1..i + 4].iter().all(u8::is_ascii_digit))
            {
                break;
            }
            i += 1;
        }
        Some(n)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(tokens: &[&str]) -> Fact {
        let tokens = tokens.iter().map(|t| (*t).to_string()).collect();
        Fact { tokens, ..Fact::new("f", FactKind::Value, "", "m1") }
    }

    fn tier(tokens: &[&str], text: &str) -> Match {
        fact(tokens).matches(text, &fold(text))
    }

    #[test]
    fn matches_grades_from_verbatim_to_absent() {
        assert_eq!(tier(&["src/auth.ts"], "see src/auth.ts line 3"), Match::Verbatim);
        assert_eq!(tier(&["Token Expired"], "the `token   expired` text"), Match::Normalised);
        assert_eq!(tier(&["15420 ms"], "it took 15,420ms"), Match::Numeric);
        assert_eq!(tier(&["15420"], "it took 15421"), Match::Absent);
    }

    #[test]
    fn matches_requires_every_token() {
        assert_eq!(tier(&["alpha", "beta"], "alpha only"), Match::Absent);
        assert_eq!(tier(&["alpha", "Beta"], "alpha beta"), Match::Normalised);
    }

    #[test]
    fn matches_without_literals_needs_enough_words_in_one_line() {
        let words = ["css", "debug", "grid", "expand"].map(String::from).to_vec();
        let fact = Fact { words, ..fact(&[]) };
        let tier = |text: &str| fact.matches(text, &fold(text));
        assert_eq!(tier("CSS of the debug grid, expanding"), Match::Verbatim);
        assert_eq!(tier("- debug grids: CSS"), Match::Normalised);
        assert_eq!(tier("debug\ngrid and CSS"), Match::Absent, "not in one line");
        assert_eq!(super::tests::fact(&[]).matches("x", "x"), Match::Absent);
    }

    proptest::proptest! {
        #[test]
        fn fold_equals_folding_by_character(text in "[aB1.\u{b}\u{1b} \n`'”İKé日]{0,24}") {
            let mut slow = String::new();
            let mut gap = false;
            for c in text.chars().filter(|c| !"`'\"”".contains(*c)) {
                gap = if c.is_whitespace() { true } else {
                    if gap && !slow.is_empty() {
                        slow.push(' ');
                    }
                    slow.extend(c.to_lowercase());
                    false
                };
            }
            proptest::prop_assert_eq!(fold(&text), slow);
        }
    }

    #[test]
    fn matches_ignores_value_of_small_numbers() {
        assert_eq!(tier(&["7x"], "7 apples"), Match::Absent);
    }
}
