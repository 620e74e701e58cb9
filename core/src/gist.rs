//! What a sentence is about: its content words, reduced to stems, so that a rule or a decision is
//! known again in other words than those in which it was said.

use std::sync::LazyLock;

use rapidhash::RapidHashSet;

/// Words that say nothing about a subject: function words of English, and what agents say in every
/// other sentence.
static COMMON: LazyLock<RapidHashSet<&str>> =
    LazyLock::new(|| include_str!("gist/common.txt").lines().collect());

/// Endings that go, longest first.
const ENDINGS: &[&str] = &[
    "ization", "ations", "ation", "ingly", "edly", "ings", "ing", "ied", "ies", "ers", "ed", "es",
    "er", "ly", "s",
];

/// Letters that must be left of a word without its ending.
const ROOT: usize = 4;

/// Shortest content word, in characters, and shortest number, in digits.
const SHORTEST: usize = 3;
const SHORTEST_NUMBER: usize = 2;

/// Bits that tell ASCII letters from one another, whatever their case.
const LETTER: u32 = 5;

/// Stems of the content words of a text, in order, with repetitions: lower case, without the
/// commonest English endings. Names such as `parse_token` are one word.
pub fn stems(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut lower = String::new();
    words(text).filter_map(move |w| stem(w, &mut lower).map(str::to_string))
}

/// Calls `found` with the same stems, in the same order.
pub fn each_stem(text: &str, found: impl FnMut(&str)) {
    each_stem_where(text, |_| true, found);
}

/// Calls `found` with the same stems but for those of words that are not `wanted`.
pub fn each_stem_where(text: &str, wanted: impl Fn(&str) -> bool, mut found: impl FnMut(&str)) {
    let mut lower = String::new();
    let words = words(text).filter(|w| wanted(w));
    words.for_each(|w| stem(w, &mut lower).into_iter().for_each(&mut found));
}

/// How some stems begin, without their case; it may take one for another. A stem begins as its word
/// does, so most words of a text need not be reduced to one.
#[derive(Debug)]
pub(crate) struct Beginnings(Vec<u64>);

impl Beginnings {
    pub(crate) fn of<'a>(stems: impl Iterator<Item = &'a str>) -> Self {
        let mut all = Beginnings(vec![0; (1 << (3 * LETTER)) / 64]);
        for at in stems.filter_map(Self::place) {
            all.0[at / 64] |= 1 << (at % 64);
        }
        all
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        Self::place(word).is_none_or(|at| self.0[at / 64] >> (at % 64) & 1 == 1)
    }

    /// `None` = not three ASCII characters.
    fn place(word: &str) -> Option<usize> {
        let first = word.as_bytes().first_chunk::<3>().filter(|f| f.is_ascii())?;
        let letter = |b: u8| usize::from(b) & ((1 << LETTER) - 1);
        Some(first.iter().fold(0, |at, &b| at << LETTER | letter(b)))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

/// The stem of a word; `lower` is where it is made.
fn stem<'a>(word: &'a str, lower: &'a mut String) -> Option<&'a str> {
    if !word.starts_with(char::is_alphabetic) {
        let number = word.len() >= SHORTEST_NUMBER && word.bytes().all(|b| b.is_ascii_digit());
        return number.then_some(word);
    }
    lower.clear();
    if word.is_ascii() {
        lower.push_str(word);
        lower.make_ascii_lowercase();
    } else {
        lower.push_str(&word.to_lowercase());
    }
    let word = lower.as_str();
    if is_short(word) || COMMON.contains(word) {
        return None;
    }
    let last = word.as_bytes().last();
    let mut endings = ENDINGS.iter().filter(|e| e.as_bytes().last() == last);
    let rest = endings.find_map(|e| word.strip_suffix(*e).filter(|r| r.len() >= ROOT));
    let mut root = rest.unwrap_or(word);
    if root.len() > ROOT {
        root = root.trim_end_matches('e');
    }
    let known = root.len() == word.len();
    (known || !is_short(root) && !COMMON.contains(root)).then_some(root)
}

fn is_short(word: &str) -> bool {
    word.chars().nth(SHORTEST - 1).is_none()
}

/// How many of `n` content words must stand in one line of a text for it to say the same: two
/// thirds, since who says something again in a summary leaves a word out or takes another.
pub fn enough(n: usize) -> usize {
    (2 * n).div_ceil(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        stems(text).collect()
    }

    proptest::proptest! {
        #[test]
        fn no_word_is_passed_over_whose_stem_is_looked_for(
            text in "[aBe1İK\u{212a}_]{1,4}(ing|ES|é)? ?b?",
        ) {
            for word in words(&text) {
                let beginnings = Beginnings::of(of(word).iter().map(String::as_str));
                let mut found = Vec::new();
                each_stem_where(word, |w| beginnings.has(w), |stem| found.push(stem.to_string()));
                proptest::prop_assert_eq!(found, of(word));
            }
        }
    }

    #[test]
    fn content_words_lose_their_endings() {
        assert_eq!(
            of("Now let me add the CSS for debug grids, and the expanded controls (90 %)."),
            ["css", "debug", "grid", "expand", "control", "90"]
        );
        assert_eq!(
            of("merging, merged, merge; retries; parse_token don't"),
            ["merg", "merg", "merg", "retr", "parse_token"]
        );
        assert_eq!(of("Übersetzungen für 7 de"), ["übersetzungen", "für"]);
    }

    #[test]
    fn endings_are_in_the_order_that_looking_up_needs() {
        assert!(ENDINGS.windows(2).all(|w| w[0].len() >= w[1].len()));
    }

    #[test]
    fn two_thirds_are_enough() {
        assert_eq!([1, 2, 3, 4, 5, 6].map(enough), [1, 2, 2, 3, 4, 4]);
    }
}
