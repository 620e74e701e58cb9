//! Searches for many literals at once, in one pass over a text.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use rapidhash::{HashMapExt, RapidHashMap as HashMap, RapidHashSet as HashSet};

use crate::fact::{Fact, Match, fold, number_in, numbers, spans, words_tier};
use crate::gist::{self, PrefixFilter};

/// A list of literals to search for together.
#[derive(Debug)]
pub struct Literals(AhoCorasick);

impl Literals {
    pub fn new<S: AsRef<str>>(literals: &[S]) -> Self {
        let literals = literals.iter().map(AsRef::as_ref);
        // A DFA for few literals is larger but not faster on these texts.
        let built =
            AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(literals);
        Literals(built.expect("literals of a session fit into an automaton"))
    }

    /// Returns for each literal whether a text contains it. An empty one is never found.
    pub fn found(&self, text: &str) -> Vec<bool> {
        let mut found = vec![false; self.0.patterns_len()];
        for m in self.0.find_overlapping_iter(text).filter(|m| !m.is_empty()) {
            found[m.pattern().as_usize()] = true;
        }
        found
    }
}

/// Matches many facts against texts, with the result of [`Fact::matches`] for each, in one pass over
/// a text.
#[derive(Debug)]
pub struct Matcher {
    /// Range of each fact's literals in the list of all literals.
    literals: Vec<Range<usize>>,
    tokens: Vec<Box<str>>,
    folded: Literals,
    numbers: Vec<Option<u128>>,
    /// Literals of only quotes and blanks, which folding removes.
    blank: Vec<bool>,
    /// Facts without literals, by content word.
    words: HashMap<String, Vec<usize>>,
    prefixes: PrefixFilter,
    /// Number of stems of each fact without literals.
    word_counts: Vec<usize>,
}

impl Matcher {
    pub fn new(facts: &[Fact]) -> Self {
        let tokens: Vec<Box<str>> =
            facts.iter().flat_map(|f| &f.tokens).map(|t| t.as_str().into()).collect();
        let folded: Vec<String> = tokens.iter().map(|t| fold(t)).collect();
        let mut words: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, f) in facts.iter().enumerate().filter(|(_, f)| f.tokens.is_empty()) {
            f.words.iter().for_each(|w| words.entry(w.clone()).or_default().push(i));
        }
        let mut at = 0;
        let range = |f: &Fact| {
            at += f.tokens.len();
            at - f.tokens.len()..at
        };
        Matcher {
            literals: facts.iter().map(range).collect(),
            prefixes: PrefixFilter::new(words.keys().map(String::as_str)),
            words,
            word_counts: facts.iter().map(|f| f.words.len()).collect(),
            numbers: folded.iter().map(|t| number_in(t)).collect(),
            blank: folded.iter().map(String::is_empty).collect(),
            folded: Literals::new(&folded),
            tokens,
        }
    }

    /// Returns the indices of the facts that a text matches, with the match; `folded` is the text after
    /// [`fold`].
    pub fn find(&self, text: &str, folded: &str) -> Vec<(usize, Match)> {
        let normal = self.folded.found(folded);
        let verbatim =
            |t: usize| memchr::memmem::find(text.as_bytes(), self.tokens[t].as_bytes()).is_some();
        let has_numbers = self.numbers.iter().any(Option::is_some);
        let values = has_numbers.then(|| numbers(folded)).into_iter().flatten();
        let values: HashSet<u128> = values.collect();
        // A verbatim match implies a match of the folded text, except for quotes and blanks only.
        let tier = |t: usize| match self.numbers[t] {
            _ if normal[t] && verbatim(t) => Match::Verbatim,
            _ if normal[t] => Match::Normalised,
            _ if self.blank[t] && verbatim(t) => Match::Verbatim,
            Some(n) if values.contains(&n) => Match::Numeric,
            _ => Match::Absent,
        };
        let max_words = self.max_words(text);
        let of_words =
            |fact: usize| Some(words_tier(*max_words.get(&fact)?, self.word_counts[fact]));
        let is_likely = |t: usize| {
            normal[t] || self.blank[t] || !values.is_empty() && self.numbers[t].is_some()
        };
        let of_literals = |own: Range<usize>| match own.clone().all(is_likely) {
            true => own.map(tier).min(),
            false => Some(Match::Absent),
        };
        let own = self.literals.iter().cloned().map(of_literals).enumerate();
        own.filter_map(|(fact, of_literals)| Some((fact, of_literals.or_else(|| of_words(fact))?)))
            .filter(|(_, how)| *how > Match::Absent)
            .collect()
    }

    /// Returns, for each fact without literals, the maximum number of its stems in one line. Facts
    /// without any are left out.
    fn max_words(&self, text: &str) -> HashMap<usize, usize> {
        let mut max: HashMap<usize, usize> = HashMap::new();
        if self.words.is_empty() {
            return max;
        }
        for line in spans(text) {
            let mut stems: HashMap<&str, &[usize]> = HashMap::new();
            let known = |word: &str| self.prefixes.has(word);
            gist::for_each_stem_where(line, known, |stem| {
                stems.extend(self.words.get_key_value(stem).map(|(stem, of)| (&**stem, &**of)));
            });
            let mut found: HashMap<usize, usize> = HashMap::new();
            for fact in stems.values().copied().flatten() {
                *found.entry(*fact).or_default() += 1;
            }
            for (fact, n) in found {
                let most = max.entry(fact).or_default();
                *most = n.max(*most);
            }
        }
        max
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fact((tokens, words): (Vec<String>, Vec<String>)) -> Fact {
        Fact { tokens, words, ..Fact::new("f", crate::fact::FactKind::Value, "", "m") }
    }

    #[test]
    fn found_reports_literals() {
        let all = Literals::new(&["ab", "", "b", "ab", "x"]);
        assert_eq!(
            all.found("ab c"),
            [true, false, true, true, false],
            "one inside another, and twice the same"
        );
        assert_eq!(all.found("zzz"), [false; 5]);
        assert!(Literals::new::<&str>(&[]).found("a").is_empty());
    }

    proptest! {
        // The alphabet is small, so that many matches occur: case, quotes, blanks, numbers with
        // separators, letters that grow when folded.
        #[test]
        fn matcher_equals_matching_one_by_one(
            facts in prop::collection::vec(
                (
                    prop::collection::vec("[aB1 5,`İ]{0,5}", 0..3),
                    prop::collection::btree_set("[ab]{3}", 0..4)
                        .prop_map(|w| w.into_iter().collect()),
                ),
                0..6
            ),
            text in "[aAbB1 5,_`\nİ]{0,40}",
        ) {
            let facts: Vec<Fact> = facts.into_iter().map(fact).collect();
            let folded = fold(&text);
            let one_by_one: Vec<(usize, Match)> =
                facts.iter().map(|f| f.matches(&text, &folded)).enumerate().filter(|(_, m)| *m > Match::Absent).collect();
            prop_assert_eq!(Matcher::new(&facts).find(&text, &folded), one_by_one);
        }
    }
}
