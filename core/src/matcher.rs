//! Looking for many literals at once: one pass over a text, however many facts there are.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use crate::fact::{Fact, Match, fold, number_in, numbers, words_tier};
use crate::gist::{self, Beginnings};

/// A set of literals that are looked for together. Each has the number under which it was added.
#[derive(Debug)]
pub struct Literals {
    /// Knows the different literals that are not empty; `None` when there are none.
    finder: Option<AhoCorasick>,
    /// Of each literal its pattern in the finder; `None` = empty, which stands nowhere.
    pattern: Vec<Option<usize>>,
    /// Of each pattern its literals.
    literals: Vec<Vec<usize>>,
}

impl Literals {
    /// A set of literals, numbered as they come. Equal ones may be given more than once.
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
            // The larger tables that few literals would get are no faster on our texts, and every
            // subagent has its own.
            let built =
                AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(&distinct);
            built.expect("literals of a session fit into an automaton")
        });
        Literals { finder, pattern, literals: of }
    }

    fn is_empty(&self, literal: usize) -> bool {
        self.pattern[literal].is_none()
    }

    /// Which literals stand in a text in a place that `counts`, given what stands before and behind
    /// it.
    pub fn found(&self, text: &str, counts: impl Fn(&str, &str) -> bool) -> Found<'_> {
        let mut seen = vec![false; self.literals.len()];
        for m in self.finder.iter().flat_map(|f| f.find_overlapping_iter(text)) {
            let at = m.pattern().as_usize();
            seen[at] = seen[at] || counts(&text[..m.start()], &text[m.end()..]);
        }
        Found { of: self, seen }
    }
}

/// What of a set of literals stands in a text.
#[derive(Debug)]
pub struct Found<'a> {
    of: &'a Literals,
    seen: Vec<bool>,
}

impl Found<'_> {
    /// Whether the literal of this number does.
    pub fn has(&self, literal: usize) -> bool {
        self.of.pattern[literal].is_some_and(|p| self.seen[p])
    }

    /// The numbers of all that do, in no order.
    pub fn all(&self) -> impl Iterator<Item = usize> + '_ {
        self.of
            .literals
            .iter()
            .zip(&self.seen)
            .filter(|(_, seen)| **seen)
            .flat_map(|(of, _)| of.iter().copied())
    }
}

/// Facts that are matched against texts together: the same as [`Fact::matches`] for each of them. A
/// text costs what it says, not how many facts there are.
#[derive(Debug)]
pub struct Matcher {
    /// Where the literals of each fact stand among all of them, fact by fact.
    literals: Vec<Range<usize>>,
    tokens: Vec<Box<str>>,
    folded: Literals,
    numbers: Vec<Option<u128>>,
    has_numbers: bool,
    first: First,
    /// Of each content word the facts without literals that it carries.
    words: HashMap<String, Vec<usize>>,
    beginnings: Beginnings,
    /// How many content words each fact without literals has.
    said: Vec<usize>,
}

/// By what a text shows the first literal of a fact, without which it carries no other.
#[derive(Debug, Default)]
struct First {
    /// Of each literal the fact whose first one it is.
    of: Vec<Option<usize>>,
    /// By the number that it is.
    numbers: HashMap<u128, Vec<usize>>,
    /// It is nothing but quotes and blanks, which folding takes away.
    blank: Vec<usize>,
}

impl Matcher {
    /// A matcher of these facts.
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
            beginnings: Beginnings::of(words.keys().map(String::as_str)),
            words,
            said: facts.iter().map(|f| f.words.len()).collect(),
            literals,
            has_numbers: numbers.iter().any(Option::is_some),
            folded,
            numbers,
            tokens,
            first,
        }
    }

    /// The facts that a text carries, by index, with the strongest way in which it carries them;
    /// `folded` = the text after [`fold`].
    pub fn carried(&self, text: &str, folded: &str) -> Vec<(usize, Match)> {
        let normal = self.folded.found(folded, |_, _| true);
        let verbatim =
            |t: usize| memchr::memmem::find(text.as_bytes(), self.tokens[t].as_bytes()).is_some();
        let mut said: Vec<u128> =
            if self.has_numbers { numbers(folded).collect() } else { Vec::new() };
        said.sort_unstable();
        said.dedup();
        // What stands in a text letter by letter stands folded in the folded text, unless it is
        // nothing but quotes and blanks.
        let tier = |t: usize| match self.numbers[t] {
            _ if normal.has(t) && verbatim(t) => Match::Verbatim,
            _ if normal.has(t) => Match::Normalised,
            _ if self.folded.is_empty(t) && verbatim(t) => Match::Verbatim,
            Some(n) if said.binary_search(&n).is_ok() => Match::Numeric,
            _ => Match::Absent,
        };
        let First { of, numbers, blank } = &self.first;
        let mut likely: Vec<usize> = normal.all().filter_map(|t| of[t]).collect();
        likely.extend(said.iter().filter_map(|n| numbers.get(n)).flatten());
        likely.extend(blank);
        likely.sort_unstable();
        likely.dedup();
        let all = |fact: usize| self.literals[fact].clone().map(tier).min();
        let of_literals = likely.into_iter().map(|f| (f, all(f).unwrap_or(Match::Absent)));
        let of_words =
            self.most_words(text).into_iter().map(|(f, most)| (f, words_tier(most, self.said[f])));
        let carried = |(_, how): &(usize, Match)| *how > Match::Absent;
        let mut out: Vec<(usize, Match)> = of_literals.chain(of_words).filter(carried).collect();
        out.sort_unstable_by_key(|(fact, _)| *fact);
        out
    }

    /// How many words of a fact without literals stand in one line, at most; of those of which any
    /// does.
    fn most_words(&self, text: &str) -> Vec<(usize, usize)> {
        let mut most: Vec<(usize, usize)> = Vec::new();
        if self.words.is_empty() {
            return most;
        }
        let mut stems: Vec<(&str, &[usize])> = Vec::new();
        let mut facts: Vec<usize> = Vec::new();
        for line in text.lines() {
            stems.clear();
            let known = |word: &str| self.beginnings.has(word);
            gist::each_stem_where(line, known, |stem| {
                let known = self.words.get_key_value(stem);
                stems.extend(known.map(|(word, facts)| (word.as_str(), facts.as_slice())));
            });
            stems.sort_unstable();
            stems.dedup();
            facts.clear();
            facts.extend(stems.iter().flat_map(|(_, facts)| *facts));
            facts.sort_unstable();
            most.extend(facts.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())));
        }
        // The most of each first, which stays.
        most.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        most.dedup_by_key(|(fact, _)| *fact);
        most
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
    fn literals_are_found_where_they_count() {
        let all = Literals::new(&["ab", "", "b", "ab", "x"]);
        let found = all.found("ab c", |_, _| true);
        assert_eq!(
            [0, 1, 2, 3, 4].map(|i| found.has(i)),
            [true, false, true, true, false],
            "one inside another, and twice the same"
        );
        let whole =
            all.found("ab b", |before, behind| before.is_empty() && behind.starts_with(' '));
        assert_eq!([whole.has(0), whole.has(2)], [true, false]);
        let mut numbers: Vec<usize> = found.all().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 2, 3]);
        assert_eq!(
            (
                all.found("zzz", |_, _| true).all().count(),
                Literals::new::<&str>(&[]).found("a", |_, _| true).all().count()
            ),
            (0, 0)
        );
    }

    proptest! {
        // Few letters, so that much is found: case, quotes, blanks, numbers with separators,
        // letters that grow when folded.
        #[test]
        fn together_as_one_by_one(
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
            prop_assert_eq!(Matcher::new(&facts).carried(&text, &folded), one_by_one);
        }
    }
}
