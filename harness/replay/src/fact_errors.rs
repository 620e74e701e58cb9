//! Detects facts that a summary states wrongly: incomplete, or with another value.
//!
//! The check needs no judge. A value counts as wrong only if it has the form and the context of a
//! fact's value and the model was never shown it. A fact counts as incomplete if one line of the
//! summary has at least half of its pieces.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use ctxbench_core::tokens::content_hash;
use ctxbench_session::fact::{Fact, fold};
use ctxbench_session::matcher::{Literals, MatchedLiterals};
use rapidhash::RapidHashSet;

/// Errors of a fact in a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flaw {
    /// A single line contains at least half of the pieces of the fact.
    pub(super) partial: bool,
    /// Another value is in its place.
    pub(super) changed: bool,
    /// The summary states a literal that the fact forbids.
    pub(super) forbidden: bool,
}

/// Patterns that recognise wrong facts. All patterns are searched at once, so the cost depends on
/// the size of the summary and not on the number of facts.
pub(super) struct ErrorPatterns {
    facts: Vec<Frame>,
    /// Folded literals that must match whole words; patterns refer to them by index.
    literals: Literals,
    /// Fact of each literal.
    owners: Vec<usize>,
    /// Values by [`skeleton`].
    values: HashMap<String, Vec<Value>>,
}

/// Patterns of one fact.
#[derive(Default)]
struct Frame {
    /// Indices of the pieces of the literals: long tokens, or folder and file name of a path.
    pieces: Range<usize>,
    forbids: Range<usize>,
}

/// A word with digits in a literal of a fact.
struct Value {
    fact: usize,
    word: String,
    /// Word before the value in the literal, or otherwise in the text where the fact arises.
    before: Option<String>,
    /// Other literals of the fact.
    others: Range<usize>,
}

/// Letters in a skeleton from which it identifies a value without further context.
const OWN_FRAME: usize = 3;
/// Minimum length, in characters, of a word that is a piece of a literal, and of a word that gives
/// context to the number after it.
const PIECE: usize = 4;
const BEFORE: usize = 3;

impl ErrorPatterns {
    /// Builds the patterns. `before` contains the [`words_before`] of each fact.
    pub(super) fn new(facts: &[Fact], before: Vec<Option<Vec<Option<String>>>>) -> ErrorPatterns {
        let mut all = Collected::default();
        let mut values: HashMap<String, Vec<Value>> = HashMap::new();
        let mut frames = Vec::new();
        for (fact, (f, preceding)) in facts.iter().zip(before).enumerate() {
            let preceding = preceding.unwrap_or_default();
            let folded: Vec<String> = f.tokens.iter().map(|t| fold(t)).collect();
            for (i, token) in folded.iter().enumerate() {
                let words: Vec<&str> = words(token).collect();
                for (at, word) in words.iter().enumerate().filter(|(_, w)| digits(w) >= 2) {
                    let before = if at > 0 {
                        Some(words[at - 1].to_string())
                    } else {
                        preceding.get(i).cloned().flatten()
                    };
                    let others = all.add(
                        fact,
                        folded.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, t)| t.clone()),
                    );
                    let word = plain(word);
                    let before = before.filter(|b| letters(b) >= BEFORE);
                    values.entry(skeleton(&word)).or_default().push(Value {
                        fact,
                        word,
                        before,
                        others,
                    });
                }
            }
            let pieces = all.add(fact, folded.iter().flat_map(|t| pieces(t)));
            let forbids = all.add(fact, f.forbids.iter().map(|t| fold(t)));
            frames.push(Frame { pieces, forbids });
        }
        ErrorPatterns {
            facts: frames,
            literals: Literals::new(&all.literals),
            owners: all.owners,
            values,
        }
    }

    /// Returns the errors of facts in a summary, by index of the fact. `said` returns whether a
    /// word was shown to the model.
    pub(super) fn flaws(&self, summary: &str, said: impl Fn(&str) -> bool) -> Vec<(usize, Flaw)> {
        let mut out: BTreeMap<usize, Flaw> = BTreeMap::new();
        for line in summary.lines().map(fold).filter(|l| !l.is_empty()) {
            let stand = self.literals.found(&line, |before, behind| {
                edge(before.chars().next_back()) && edge(behind.chars().next())
            });
            let touched: BTreeSet<usize> = stand.all().map(|l| self.owners[l]).collect();
            for fact in touched {
                let Frame { pieces, forbids } = &self.facts[fact];
                let found = pieces.clone().filter(|&p| stand.has(p)).count();
                let flaw = out.entry(fact).or_default();
                flaw.partial |= pieces.len() > 1 && 2 * found >= pieces.len();
                flaw.forbidden |= forbids.clone().any(|f| stand.has(f));
            }
            for fact in self.changed(&line, &stand, &said) {
                out.entry(fact).or_default().changed = true;
            }
        }
        out.into_iter().filter(|(_, flaw)| *flaw != Flaw::default()).collect()
    }

    /// Returns the facts that have another value in their place in a line.
    fn changed(
        &self,
        line: &str,
        stand: &MatchedLiterals<'_>,
        said: impl Fn(&str) -> bool,
    ) -> Vec<usize> {
        let mut out = Vec::new();
        let mut before = "";
        for raw in words(line) {
            let preceding = std::mem::replace(&mut before, raw);
            // The skeleton of a value has digits.
            if digits(raw) == 0 {
                continue;
            }
            let word = plain(raw);
            let skeleton = skeleton(&word);
            let own = letters(&skeleton) >= OWN_FRAME;
            for v in self.values.get(&skeleton).into_iter().flatten() {
                let beside = || !v.others.is_empty() && v.others.clone().all(|o| stand.has(o));
                let framed = own || v.before.as_deref().is_some_and(|b| b == preceding) || beside();
                if framed && word != v.word && !said(&word) {
                    out.push(v.fact);
                }
            }
        }
        out
    }
}

/// Literals collected for the automaton.
#[derive(Default)]
struct Collected {
    literals: Vec<String>,
    owners: Vec<usize>,
}

impl Collected {
    fn add(&mut self, fact: usize, literals: impl Iterator<Item = String>) -> Range<usize> {
        let first = self.literals.len();
        self.literals.extend(literals);
        self.owners.resize(self.literals.len(), fact);
        first..self.literals.len()
    }
}

/// Returns a hash of each token with at least two digits in a folded text.
pub(super) fn said_words(folded: &str) -> impl Iterator<Item = u64> + '_ {
    let said = with_digits(folded).filter(|w| digits(w) >= 2);
    said.map(|w| content_hash(plain(w).as_bytes()))
}

/// Returns the [`words`] that contain a digit, without examining the others.
fn with_digits(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let digit = rest.bytes().position(|b| b.is_ascii_digit())?;
        let start = digit - rest[..digit].rsplit(is_apart).next().map_or(0, str::len);
        let end = rest[digit..].find(is_apart).map_or(rest.len(), |at| digit + at);
        let word = &rest[start..end];
        rest = &rest[end..];
        Some(word.trim_matches(is_sign))
    })
}

/// Hashes of tokens with digits that were shown to the model.
#[derive(Default)]
pub(super) struct SaidWords(RapidHashSet<u64>);

impl SaidWords {
    /// Adds the hashes of a text ([`said_words`]).
    pub(super) fn note(&mut self, words: &[u64]) {
        self.0.extend(words);
    }

    /// Returns whether a token was shown to the model.
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
        Some((folder, name)) if !folder.is_empty() && !name.is_empty() => {
            vec![folder.to_string(), name.to_string()]
        }
        _ => vec![token.to_string()],
    }
}

/// Splits a folded text into tokens of letters, digits and the characters that join names, paths
/// and numbers.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_apart).map(|w| w.trim_matches(is_sign)).filter(|w| !w.is_empty())
}

fn is_sign(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '/' | ',')
}

/// Returns whether a character separates tokens.
fn is_apart(c: char) -> bool {
    !c.is_alphanumeric() && !is_sign(c)
}

/// Removes digit separators: `15,420` and `15_420` become `15420`. Returns other tokens unchanged.
fn plain(word: &str) -> String {
    let bytes = word.as_bytes();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let kept = |&(i, c): &(usize, char)| {
        !(matches!(c, ',' | '_') && i > 0 && digit(i - 1) && digit(i + 1))
    };
    word.char_indices().filter(kept).map(|(_, c)| c).collect()
}

/// Returns a word with `#` for every run of digits.
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

/// Returns, for each literal that begins with a number, the token before its first occurrence in a
/// text.
pub(super) fn words_before(fact: &Fact, source: &str) -> Vec<Option<String>> {
    let numbered = |t: &&String| words(&fold(t)).next().is_some_and(|w| digits(w) >= 2);
    let before = |t| Some(t).filter(numbered).and_then(|t| word_before(t, source));
    fact.tokens.iter().map(before).collect()
}

/// Returns the word before the first occurrence of a literal in a text.
fn word_before(token: &str, source: &str) -> Option<String> {
    let at = source.find(token)?;
    let line = source[..at].rsplit('\n').next().unwrap_or("");
    words(&fold(line)).last().map(str::to_string)
}

/// Returns whether a literal may end next to this character.
fn edge(c: Option<char>) -> bool {
    c.is_none_or(|c| !c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(tokens: &[&str], forbids: &[&str]) -> Fact {
        serde_json::from_value(serde_json::json!({"id": "f", "kind": "value", "tokens": tokens, "forbids": forbids, "arises": "m"}))
            .unwrap()
    }

    fn only(fact: Fact, source: &str, summary: &str, said: impl Fn(&str) -> bool) -> Flaw {
        let before = vec![Some(words_before(&fact, source))];
        let flaws = ErrorPatterns::new(&[fact], before).flaws(summary, said);
        flaws.first().map(|(_, flaw)| *flaw).unwrap_or_default()
    }

    fn flaw(tokens: &[&str], source: &str, summary: &str) -> (bool, bool) {
        let mut said = SaidWords::default();
        said.note(&said_words(&fold(source)).collect::<Vec<_>>());
        let flaw = only(fact(tokens, &[]), source, summary, |w| said.holds(w));
        (flaw.partial, flaw.changed)
    }

    proptest::proptest! {
        #[test]
        fn words_with_digits_are_found_without_the_others(text in "[a12é_.,/ –]{0,30}") {
            let slow: Vec<&str> = words(&text).filter(|w| digits(w) > 0).collect();
            proptest::prop_assert_eq!(with_digits(&text).collect::<Vec<_>>(), slow);
        }
    }

    #[test]
    fn another_number_in_the_frame_of_a_fact_is_a_change() {
        assert_eq!(
            flaw(&["JWT_TTL_900"], "JWT_TTL_900", "- JWT_TTL_901"),
            (false, true),
            "the word is its own frame"
        );
        assert_eq!(
            flaw(&["8443"], "the port 8443 is taken", "uses port 8444"),
            (false, true),
            "the word before it is"
        );
        assert_eq!(
            flaw(&["session.ts", "900"], "session.ts, 900", "session.ts · 901"),
            (true, true),
            "its other literal is"
        );
        assert_eq!(flaw(&["wait 15420 ms"], "wait 15420 ms", "wait 15,421 ms"), (true, true));
    }

    #[test]
    fn equal_values_values_that_were_said_and_values_elsewhere_are_none() {
        assert!(!flaw(&["wait 15420 ms"], "wait 15420 ms", "WAIT 15_420 seconds").1);
        assert_eq!(
            flaw(&["JWT_TTL_900"], "JWT_TTL_900, before it JWT_TTL_600", "JWT_TTL_600"),
            (false, false)
        );
        assert_eq!(
            flaw(&["8443"], "the port 8443 is taken", "1234 lines were read"),
            (false, false)
        );
    }

    #[test]
    fn half_of_the_pieces_in_one_line_is_an_incomplete_fact() {
        assert_eq!(flaw(&["src/auth/session.ts"], "", "session.ts was changed"), (true, false));
        assert_eq!(
            flaw(&["never touch the billing tables"], "", "leave the billing alone; never ask"),
            (true, false)
        );
        assert_eq!(
            flaw(&["never touch the billing tables"], "", "never\ntouch"),
            (false, false),
            "in two lines they are nothing"
        );
        assert_eq!(flaw(&["parse_token"], "", "parse the token"), (false, false));
    }

    #[test]
    fn what_a_fact_forbids_is_found_as_a_whole_word() {
        let f = fact(&["use a mutex"], &["RwLock"]);
        let says = |summary: &str| only(f.clone(), "", summary, |_| true).forbidden;
        assert!(says("we chose an `rwlock`") && !says("RwLockGuard is gone"));
    }
}
