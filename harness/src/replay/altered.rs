//! Facts that a summary carries wrongly: incomplete, or with something else in their place.
//!
//! No judge reads along: a value counts as wrong only if it stands in the frame of a fact's value and was never said in what the
//! model was shown, and a fact as incomplete if a line of the summary holds half of its pieces or more.

use std::collections::HashSet;

use ctxbench_core::fact::{Fact, fold};
use ctxbench_core::tokens::content_hash;

/// What is wrong with a fact in a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flaw {
    /// Half of its pieces or more stand in one line.
    pub(super) partial: bool,
    /// Another value stands in its place.
    pub(super) changed: bool,
    /// The summary says what the fact forbids.
    pub(super) forbidden: bool,
}

/// How a fact would be recognised in altered form.
pub(super) struct Frame {
    /// Words of its literals; a path is its folder and its file name.
    pieces: Vec<String>,
    values: Vec<Value>,
}

/// A word with digits in a literal of a fact.
struct Value {
    word: String,
    skeleton: String,
    /// The word before it, in the literal or else where the fact arises.
    before: Option<String>,
    /// The other literals of the fact, folded.
    others: Vec<String>,
}

/// Letters from which the skeleton of a word is its own frame.
const OWN_FRAME: usize = 3;
/// Shortest word that is a piece of a literal of several words, and shortest word before a number that frames it, in characters.
const PIECE: usize = 4;
const BEFORE: usize = 3;

impl Frame {
    /// The frame of a fact that arises in `source`.
    pub(super) fn of(fact: &Fact, source: &str) -> Frame {
        let folded: Vec<String> = fact.tokens.iter().map(|t| fold(t)).collect();
        let mut values = Vec::new();
        for (i, token) in folded.iter().enumerate() {
            let all: Vec<&str> = words(token).collect();
            for (at, word) in all.iter().enumerate().filter(|(_, w)| digits(w) >= 2) {
                let before = if at > 0 { Some(all[at - 1].to_string()) } else { word_before(&fact.tokens[i], source) };
                let others = folded.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, t)| t.clone()).collect();
                let word = plain(word);
                values.push(Value { skeleton: skeleton(&word), word, before: before.filter(|b| letters(b) >= BEFORE), others });
            }
        }
        Frame { pieces: folded.iter().flat_map(|t| pieces(t)).collect(), values }
    }

    /// What is wrong with the fact in a summary; `said` tells whether a word was said in earnest.
    pub(super) fn flaw(&self, fact: &Fact, summary: &str, said: impl Fn(&str) -> bool) -> Flaw {
        let mut out = Flaw::default();
        for line in summary.lines().map(fold).filter(|l| !l.is_empty()) {
            out.forbidden |= fact.forbids.iter().any(|t| stands(&line, &fold(t)));
            let found = self.pieces.iter().filter(|p| stands(&line, p)).count();
            out.partial |= self.pieces.len() > 1 && 2 * found >= self.pieces.len();
            out.changed |= self.values.iter().any(|v| v.changed(&line, &said));
        }
        out
    }
}

impl Value {
    fn changed(&self, line: &str, said: impl Fn(&str) -> bool) -> bool {
        let own = letters(&self.skeleton) >= OWN_FRAME;
        let beside = !self.others.is_empty() && self.others.iter().all(|o| stands(line, o));
        let mut before = "";
        for raw in words(line) {
            let word = plain(raw);
            let framed = own || beside || self.before.as_deref().is_some_and(|b| b == before);
            if framed && word != self.word && skeleton(&word) == self.skeleton && !said(&word) {
                return true;
            }
            before = raw;
        }
        false
    }
}

/// Words with digits that were said, by hash.
#[derive(Default)]
pub(super) struct Said(HashSet<u64>);

impl Said {
    /// Notes the words of a folded text.
    pub(super) fn note(&mut self, folded: &str) {
        self.0.extend(words(folded).filter(|w| digits(w) >= 2).map(|w| content_hash(plain(w).as_bytes())));
    }

    /// Whether a word was said.
    pub(super) fn holds(&self, word: &str) -> bool {
        self.0.contains(&content_hash(word.as_bytes()))
    }
}

fn pieces(token: &str) -> Vec<String> {
    if token.contains(' ') {
        let long = |w: &&str| w.chars().count() >= PIECE || digits(w) >= 2;
        return words(token).filter(long).map(str::to_string).collect();
    }
    match token.rsplit_once('/') {
        Some((folder, name)) if !folder.is_empty() && !name.is_empty() => vec![folder.to_string(), name.to_string()],
        _ => vec![token.to_string()],
    }
}

/// Words of a folded text: letters, digits and the signs that hold names, paths and numbers together.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let sign = |c: char| matches!(c, '_' | '-' | '.' | '/' | ',');
    text.split(move |c: char| !c.is_alphanumeric() && !sign(c)).map(move |w| w.trim_matches(sign)).filter(|w| !w.is_empty())
}

/// `15,420` and `15_420` as `15420`; other words as they are.
fn plain(word: &str) -> String {
    let bytes = word.as_bytes();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let kept = |&(i, c): &(usize, char)| !(matches!(c, ',' | '_') && i > 0 && digit(i - 1) && digit(i + 1));
    word.char_indices().filter(kept).map(|(_, c)| c).collect()
}

/// A word with `#` for every row of digits.
fn skeleton(word: &str) -> String {
    let mut out = String::new();
    for c in word.chars() {
        match c {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            c => out.push(c),
        }
    }
    out
}

fn digits(word: &str) -> usize {
    word.bytes().filter(u8::is_ascii_digit).count()
}

fn letters(word: &str) -> usize {
    word.chars().filter(|c| c.is_alphabetic()).count()
}

/// The word before the first place where a literal stands in a text.
fn word_before(token: &str, source: &str) -> Option<String> {
    let at = source.find(token)?;
    let line = source[..at].rsplit('\n').next().unwrap_or("");
    words(&fold(line)).last().map(str::to_string)
}

/// Whether a text holds another that is not part of a longer word.
pub(super) fn stands(text: &str, wanted: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    !wanted.is_empty()
        && text.match_indices(wanted).any(|(i, m)| edge(text[..i].chars().next_back()) && edge(text[i + m.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(tokens: &[&str], forbids: &[&str]) -> Fact {
        serde_json::from_value(serde_json::json!({"id": "f", "kind": "value", "tokens": tokens, "forbids": forbids, "arises": "m"}))
            .unwrap()
    }

    fn flaw(tokens: &[&str], source: &str, summary: &str) -> (bool, bool) {
        let mut said = Said::default();
        said.note(&fold(source));
        let f = fact(tokens, &[]);
        let flaw = Frame::of(&f, source).flaw(&f, summary, |w| said.holds(w));
        (flaw.partial, flaw.changed)
    }

    #[test]
    fn another_number_in_the_frame_of_a_fact_is_a_change() {
        assert_eq!(flaw(&["JWT_TTL_900"], "JWT_TTL_900", "- JWT_TTL_901"), (false, true), "the word is its own frame");
        assert_eq!(flaw(&["8443"], "the port 8443 is taken", "uses port 8444"), (false, true), "the word before it is");
        assert_eq!(flaw(&["session.ts", "900"], "session.ts, 900", "session.ts · 901"), (true, true), "its other literal is");
        assert_eq!(flaw(&["wait 15420 ms"], "wait 15420 ms", "wait 15,421 ms"), (true, true));
    }

    #[test]
    fn equal_values_values_that_were_said_and_values_elsewhere_are_none() {
        assert!(!flaw(&["wait 15420 ms"], "wait 15420 ms", "WAIT 15_420 seconds").1);
        assert_eq!(flaw(&["JWT_TTL_900"], "JWT_TTL_900, before it JWT_TTL_600", "JWT_TTL_600"), (false, false));
        assert_eq!(flaw(&["8443"], "the port 8443 is taken", "1234 lines were read"), (false, false));
    }

    #[test]
    fn half_of_the_pieces_in_one_line_is_an_incomplete_fact() {
        assert_eq!(flaw(&["src/auth/session.ts"], "", "session.ts was changed"), (true, false));
        assert_eq!(flaw(&["never touch the billing tables"], "", "leave the billing alone; never ask"), (true, false));
        assert_eq!(flaw(&["never touch the billing tables"], "", "never\ntouch"), (false, false), "in two lines they are nothing");
        assert_eq!(flaw(&["parse_token"], "", "parse the token"), (false, false));
    }

    #[test]
    fn what_a_fact_forbids_is_found_as_a_whole_word() {
        let f = fact(&["use a mutex"], &["RwLock"]);
        let says = |summary: &str| Frame::of(&f, "").flaw(&f, summary, |_| true).forbidden;
        assert!(says("we chose an `rwlock`") && !says("RwLockGuard is gone"));
    }
}
