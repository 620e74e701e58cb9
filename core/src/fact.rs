//! Facts: what a session establishes and what later points need. Matching of a fact in a text.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::gist;

/// What sort of thing a fact is; retention is always reported per kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// What the user wants.
    Goal,
    /// A rule or prohibition.
    Constraint,
    /// A file, symbol or other thing worked on.
    Artifact,
    /// A choice with its reason.
    Decision,
    /// An error text or its cause.
    Error,
    /// An exact value.
    Value,
    /// Something still to do.
    Todo,
    /// A value that was replaced later.
    Superseded,
}

impl FactKind {
    /// All kinds in report order.
    pub const ALL: [FactKind; 8] = [
        FactKind::Goal,
        FactKind::Constraint,
        FactKind::Artifact,
        FactKind::Decision,
        FactKind::Error,
        FactKind::Value,
        FactKind::Todo,
        FactKind::Superseded,
    ];

    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            FactKind::Goal => "goal",
            FactKind::Constraint => "constraint",
            FactKind::Artifact => "artifact",
            FactKind::Decision => "decision",
            FactKind::Error => "error",
            FactKind::Value => "value",
            FactKind::Todo => "todo",
            FactKind::Superseded => "superseded",
        }
    }
}

/// Something the session establishes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fact {
    /// Unique in the session.
    pub id: String,
    /// Kind.
    pub kind: FactKind,
    /// Literals that carry it; all must stand in a text for the fact to be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<String>,
    /// Of a fact without literals: stems ([`gist::stems`]) of what it says. It is there if enough
    /// of them ([`gist::enough`]) stand in one line of a text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Message id, or call id for a tool result, in which it first stands.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arises: String,
    /// Ids of later messages that need it.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The fact that replaces this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// Literals that contradict it: a summary that says one of them asserts something false.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbids: Vec<String>,
    /// Fields this build does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How well a text carries a fact, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// Nothing, or not all of it.
    Absent,
    /// The numbers agree though the words around them differ.
    Numeric,
    /// Equal after folding case, white space and quotes.
    Normalised,
    /// Letter by letter.
    Verbatim,
}

impl Fact {
    /// A fact that nothing needs yet.
    pub fn new(
        id: impl Into<String>,
        kind: FactKind,
        token: impl Into<String>,
        arises: impl Into<String>,
    ) -> Fact {
        Fact {
            id: id.into(),
            kind,
            tokens: vec![token.into()],
            words: Vec::new(),
            arises: arises.into(),
            needs: Vec::new(),
            superseded_by: None,
            forbids: Vec::new(),
            extra: Map::new(),
        }
    }

    /// The strongest way in which `text` carries every token of the fact, or the words of one
    /// without tokens: all of them as if letter by letter, enough of them as normalised.
    pub fn matches(&self, text: &str, folded: &str) -> Match {
        let tokens = self.tokens.iter().map(|t| match_token(t, text, folded)).min();
        tokens.unwrap_or_else(|| match_words(&self.words, text))
    }

    /// Whether `text` carries it in any way.
    pub fn stands_in(&self, text: &str) -> bool {
        let folded = if self.tokens.is_empty() { String::new() } else { fold(text) };
        self.matches(text, &folded) > Match::Absent
    }
}

fn match_words(words: &[String], text: &str) -> Match {
    if words.is_empty() {
        return Match::Absent;
    }
    let mut said = vec![false; words.len()];
    let in_line = |line: &str| {
        said.fill(false);
        gist::each_stem(line, |stem| {
            words.iter().zip(&mut said).for_each(|(word, said)| *said |= word == stem);
        });
        said.iter().filter(|said| **said).count()
    };
    words_tier(text.lines().map(in_line).max().unwrap_or(0), words.len())
}

/// How well a text carries `n` words of which `most` stand in one of its lines.
pub(crate) fn words_tier(most: usize, n: usize) -> Match {
    match most {
        _ if most == n => Match::Verbatim,
        _ if most >= gist::enough(n) => Match::Normalised,
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

/// Lower case, runs of white space as one space, quotes and backticks dropped.
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    let mut rest = text;
    loop {
        let end = rest.bytes().position(|b| !stays(b)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let mut behind = behind.chars();
        let next = behind.next();
        rest = behind.as_str();
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

/// A sign that is folded without a look at others, beside its case.
fn stays(byte: u8) -> bool {
    byte.is_ascii_graphic() && !is_quote(char::from(byte))
}

fn is_quote(c: char) -> bool {
    matches!(c, '`' | '"' | '\'' | '“' | '”' | '‘' | '’')
}

/// A token that is one number with at least three digits, possibly with a unit: its value.
pub(crate) fn number_in(token: &str) -> Option<u128> {
    let mut all = numbers(token);
    let first = all.next()?;
    let letters = token.chars().filter(|c| c.is_alphabetic()).count();
    (all.next().is_none() && first >= 100 && letters <= 3).then_some(first)
}

/// Whole numbers of a text; `15,420` and `15_420` are one number each.
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
        Fact {
            id: "f".into(),
            kind: FactKind::Value,
            tokens: tokens.iter().map(|t| (*t).to_string()).collect(),
            words: vec![],
            arises: "m1".into(),
            needs: vec![],
            superseded_by: None,
            forbids: vec![],
            extra: Map::new(),
        }
    }

    fn tier(tokens: &[&str], text: &str) -> Match {
        fact(tokens).matches(text, &fold(text))
    }

    #[test]
    fn tiers_from_verbatim_to_absent() {
        assert_eq!(tier(&["src/auth.ts"], "see src/auth.ts line 3"), Match::Verbatim);
        assert_eq!(tier(&["Token Expired"], "the `token   expired` text"), Match::Normalised);
        assert_eq!(tier(&["15420 ms"], "it took 15,420ms"), Match::Numeric);
        assert_eq!(tier(&["15420"], "it took 15421"), Match::Absent);
    }

    #[test]
    fn every_token_must_be_there() {
        assert_eq!(tier(&["alpha", "beta"], "alpha only"), Match::Absent);
        assert_eq!(tier(&["alpha", "Beta"], "alpha beta"), Match::Normalised);
    }

    #[test]
    fn a_fact_without_literals_is_carried_by_enough_of_its_words_in_one_line() {
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
        fn a_text_is_folded_sign_by_sign(text in "[aB1.\u{b}\u{1b} \n`'”İKé日]{0,24}") {
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
    fn small_numbers_never_match_by_value() {
        assert_eq!(tier(&["7x"], "7 apples"), Match::Absent);
    }
}
