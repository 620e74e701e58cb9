//! Searches for many literals at once, in one pass over a text.

use std::collections::BTreeSet;
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

    /// Returns the numbers of the literals that a text contains. An empty one is never found.
    pub fn found(&self, text: &str) -> HashSet<usize> {
        let all = self.0.find_overlapping_iter(text).filter(|m| !m.is_empty());
        all.map(|m| m.pattern().as_usize()).collect()
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
    /// Fact of each literal.
    fact_of: Vec<usize>,
    /// Literals that are numbers, by their value.
    by_number: HashMap<u128, Vec<usize>>,
    /// Literals of only quotes and blanks, which folding removes.
    blank: Vec<usize>,
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
        let mut fact_of = Vec::new();
        let range = |(i, f): (usize, &Fact)| {
            let first = fact_of.len();
            fact_of.resize(first + f.tokens.len(), i);
            first..fact_of.len()
        };
        let literals = facts.iter().enumerate().map(range).collect();
        let mut by_number: HashMap<u128, Vec<usize>> = HashMap::new();
        for (t, value) in folded.iter().enumerate().filter_map(|(t, f)| Some((t, number_in(f)?))) {
            by_number.entry(value).or_default().push(t);
        }
        Matcher {
            literals,
            fact_of,
            by_number,
            prefixes: PrefixFilter::new(words.keys().map(String::as_str)),
            words,
            word_counts: facts.iter().map(|f| f.words.len()).collect(),
            blank: (0..folded.len()).filter(|t| folded[*t].is_empty()).collect(),
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
        let values = (!self.by_number.is_empty()).then(|| numbers(folded)).into_iter().flatten();
        let values = values.filter_map(|value| self.by_number.get(&value)).flatten();
        let numeric: HashSet<usize> = values.copied().collect();
        // A verbatim match implies a match of the folded text, except for quotes and blanks only.
        let tier = |t: usize| match normal.contains(&t) {
            true if verbatim(t) => Match::Verbatim,
            true => Match::Normalised,
            _ if self.blank.contains(&t) && verbatim(t) => Match::Verbatim,
            _ if numeric.contains(&t) => Match::Numeric,
            _ => Match::Absent,
        };
        let max_words = self.max_words(text);
        let of_words =
            |fact: usize| Some(words_tier(*max_words.get(&fact)?, self.word_counts[fact]));
        let literals = normal.iter().chain(&self.blank).chain(&numeric);
        let likely = literals.map(|t| self.fact_of[*t]).chain(max_words.keys().copied());
        let likely: BTreeSet<usize> = likely.collect();
        let own = |fact: usize| self.literals[fact].clone().map(tier).min();
        let found = likely
            .into_iter()
            .filter_map(|fact| Some((fact, own(fact).or_else(|| of_words(fact))?)));
        found.filter(|(_, how)| *how > Match::Absent).collect()
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
        let found: BTreeSet<usize> = all.found("ab c").into_iter().collect();
        assert!(found.iter().eq(&[0, 2, 3]), "one inside another, and twice the same: {found:?}");
        assert!(all.found("zzz").is_empty());
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
