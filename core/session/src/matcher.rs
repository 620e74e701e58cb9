//! Searches for many literals at once, in one pass over a text.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use crate::fact::{Fact, Match, fold, number_in, numbers, spans, words_tier};
use crate::gist::{self, PrefixFilter};

/// A set of numbered literals to search for together.
#[derive(Debug)]
pub struct Literals {
    /// Finds the distinct literals that are not empty; `None` if there are none.
    finder: Option<AhoCorasick>,
    /// Pattern of each literal in the finder; `None` if empty, which never matches.
    pattern: Vec<Option<usize>>,
    /// Literals of each pattern.
    literals: Vec<Vec<usize>>,
}

impl Literals {
    /// Creates a set of literals, numbered in order. Duplicates are allowed.
    pub fn new<S: AsRef<str>>(literals: &[S]) -> Self {
        let mut distinct: Vec<&str> =
            literals.iter().map(AsRef::as_ref).filter(|l| !l.is_empty()).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let pattern: Vec<Option<usize>> =
            literals.iter().map(|l| distinct.binary_search(&l.as_ref()).ok()).collect();
        let mut of = vec![Vec::new(); distinct.len()];
        pattern.iter().enumerate().for_each(|(i, p)| p.iter().for_each(|&p| of[p].push(i)));
        let finder = (!distinct.is_empty()).then(|| {
            // A DFA for few literals is larger but not faster on these texts.
            let built =
                AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(&distinct);
            built.expect("literals of a session fit into an automaton")
        });
        Literals { finder, pattern, literals: of }
    }

    fn is_empty(&self, literal: usize) -> bool {
        self.pattern[literal].is_none()
    }

    pub fn found(&self, text: &str) -> MatchedLiterals<'_> {
        let mut seen = vec![false; self.literals.len()];
        for m in self.finder.iter().flat_map(|f| f.find_overlapping_iter(text)) {
            seen[m.pattern().as_usize()] = true;
        }
        MatchedLiterals { of: self, seen }
    }
}

#[derive(Debug)]
pub struct MatchedLiterals<'a> {
    of: &'a Literals,
    seen: Vec<bool>,
}

impl MatchedLiterals<'_> {
    pub fn has(&self, literal: usize) -> bool {
        self.of.pattern[literal].is_some_and(|p| self.seen[p])
    }

    /// Returns the numbers of all literals found, in no order.
    pub fn all(&self) -> impl Iterator<Item = usize> + '_ {
        let found = self.of.literals.iter().zip(&self.seen).filter(|(_, seen)| **seen);
        found.flat_map(|(of, _)| of.iter().copied())
    }
}

/// Matches many facts against texts, with the result of [`Fact::matches`] for each. The time depends
/// on the text rather than on the number of facts.
#[derive(Debug)]
pub struct Matcher {
    /// Range of each fact's literals in the list of all literals.
    literals: Vec<Range<usize>>,
    tokens: Vec<Box<str>>,
    folded: Literals,
    numbers: Vec<Option<u128>>,
    has_numbers: bool,
    first: First,
    /// Facts without literals, by content word.
    words: HashMap<String, Vec<usize>>,
    prefixes: PrefixFilter,
    /// Number of stems of each fact without literals.
    word_counts: Vec<usize>,
}

/// Indexes facts by their first literal: without it, a text cannot match.
#[derive(Debug, Default)]
struct First {
    /// The fact of each literal that is a first one.
    of: Vec<Option<usize>>,
    /// Facts by the number that the first literal is.
    numbers: HashMap<u128, Vec<usize>>,
    /// Facts with a first literal of only quotes and blanks, which folding removes.
    blank: Vec<usize>,
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
        let literals: Vec<Range<usize>> = facts.iter().map(range).collect();
        let numbers: Vec<Option<u128>> = folded.iter().map(|t| number_in(t)).collect();
        let folded = Literals::new(&folded);
        let mut first = First { of: vec![None; tokens.len()], ..First::default() };
        for (fact, own) in literals.iter().enumerate().filter(|(_, own)| !own.is_empty()) {
            first.of[own.start] = Some(fact);
            if let Some(n) = numbers[own.start] {
                first.numbers.entry(n).or_default().push(fact);
            }
            first.blank.extend(folded.is_empty(own.start).then_some(fact));
        }
        Matcher {
            prefixes: PrefixFilter::new(words.keys().map(String::as_str)),
            words,
            word_counts: facts.iter().map(|f| f.words.len()).collect(),
            literals,
            has_numbers: numbers.iter().any(Option::is_some),
            folded,
            numbers,
            tokens,
            first,
        }
    }

    /// Returns the indices of the facts that a text matches, with the match; `folded` is the text after
    /// [`fold`].
    pub fn find(&self, text: &str, folded: &str) -> Vec<(usize, Match)> {
        let normal = self.folded.found(folded);
        let verbatim =
            |t: usize| memchr::memmem::find(text.as_bytes(), self.tokens[t].as_bytes()).is_some();
        let mut values: Vec<u128> =
            if self.has_numbers { numbers(folded).collect() } else { Vec::new() };
        values.sort_unstable();
        values.dedup();
        // A verbatim match implies a match of the folded text, except for quotes and blanks only.
        let tier = |t: usize| match self.numbers[t] {
            _ if normal.has(t) && verbatim(t) => Match::Verbatim,
            _ if normal.has(t) => Match::Normalised,
            _ if self.folded.is_empty(t) && verbatim(t) => Match::Verbatim,
            Some(n) if values.binary_search(&n).is_ok() => Match::Numeric,
            _ => Match::Absent,
        };
        let First { of, numbers, blank } = &self.first;
        let mut likely: Vec<usize> = normal.all().filter_map(|t| of[t]).collect();
        likely.extend(values.iter().filter_map(|n| numbers.get(n)).flatten());
        likely.extend(blank);
        likely.sort_unstable();
        likely.dedup();
        let all = |fact: usize| self.literals[fact].clone().map(tier).min();
        let of_literals = likely.into_iter().map(|f| (f, all(f).unwrap_or(Match::Absent)));
        let of_words = self.max_words(text).into_iter();
        let of_words = of_words.map(|(f, max)| (f, words_tier(max, self.word_counts[f])));
        let carried = |(_, how): &(usize, Match)| *how > Match::Absent;
        let mut out: Vec<(usize, Match)> = of_literals.chain(of_words).filter(carried).collect();
        out.sort_unstable_by_key(|(fact, _)| *fact);
        out
    }

    /// Returns, for each fact without literals, the maximum number of its stems in one line. Facts
    /// without any are left out.
    fn max_words(&self, text: &str) -> Vec<(usize, usize)> {
        let mut max: Vec<(usize, usize)> = Vec::new();
        if self.words.is_empty() {
            return max;
        }
        let mut stems: Vec<(&str, &[usize])> = Vec::new();
        let mut facts: Vec<usize> = Vec::new();
        for line in spans(text) {
            stems.clear();
            let known = |word: &str| self.prefixes.has(word);
            gist::for_each_stem_where(line, known, |stem| {
                let known = self.words.get_key_value(stem);
                stems.extend(known.map(|(word, facts)| (word.as_str(), facts.as_slice())));
            });
            stems.sort_unstable();
            stems.dedup();
            facts.clear();
            facts.extend(stems.iter().flat_map(|(_, facts)| *facts));
            facts.sort_unstable();
            max.extend(facts.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())));
        }
        // Sort the maximum of each fact first, so that `dedup` keeps it.
        max.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        max.dedup_by_key(|(fact, _)| *fact);
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
        let found = all.found("ab c");
        assert_eq!(
            [0, 1, 2, 3, 4].map(|i| found.has(i)),
            [true, false, true, true, false],
            "one inside another, and twice the same"
        );
        let mut numbers: Vec<usize> = found.all().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 2, 3]);
        assert_eq!(
            (all.found("zzz").all().count(), Literals::new::<&str>(&[]).found("a").all().count()),
            (0, 0)
        );
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
