//! Extracts the stems of the content words of a sentence, to find a paraphrased rule or decision.

use std::sync::LazyLock;

use rapidhash::RapidHashSet;

/// Stop words: function words of English, and terms that agents use all the time.
static COMMON: LazyLock<RapidHashSet<&str>> =
    LazyLock::new(|| include_str!("gist/common.txt").lines().collect());

/// Suffixes to remove, longest first.
const SUFFIXES: &[&str] = &[
    "ization", "ations", "ation", "ingly", "edly", "ings", "ing", "ied", "ies", "ers", "ed", "es",
    "er", "ly", "s",
];

/// Minimum number of letters without the suffix.
const ROOT: usize = 4;

/// Minimum length of a content word, in characters, and of a number, in digits.
const MIN_WORD: usize = 3;
const MIN_NUMBER: usize = 2;

/// Number of bits that identify an ASCII letter regardless of case.
const LETTER: u32 = 5;

/// Returns the stems of the content words of a text, in order and with repetitions. A stem is in
/// lower case, without common English suffixes. A name such as `parse_token` is one word.
pub fn stems(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut lower = String::new();
    words(text).filter_map(move |w| stem(w, &mut lower).map(str::to_string))
}

/// Calls `found` for each of the [`stems`].
pub fn for_each_stem(text: &str, found: impl FnMut(&str)) {
    for_each_stem_where(text, |_| true, found);
}

/// Calls `found` with the stem of each content word for which `wanted` returns true.
pub fn for_each_stem_where(text: &str, wanted: impl Fn(&str) -> bool, mut found: impl FnMut(&str)) {
    let mut lower = String::new();
    let words = words(text).filter(|w| wanted(w));
    words.for_each(|w| stem(w, &mut lower).into_iter().for_each(&mut found));
}

/// A filter on the first three letters of stems, with false positives. Since a stem begins like its
/// word, the filter makes it unnecessary to compute most stems of a text.
#[derive(Debug)]
pub(crate) struct PrefixFilter(Vec<u64>);

impl PrefixFilter {
    pub(crate) fn new<'a>(stems: impl Iterator<Item = &'a str>) -> Self {
        let mut all = PrefixFilter(vec![0; (1 << (3 * LETTER)) / 64]);
        for at in stems.filter_map(Self::slot_index) {
            all.0[at / 64] |= 1 << (at % 64);
        }
        all
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        Self::slot_index(word).is_none_or(|at| self.0[at / 64] >> (at % 64) & 1 == 1)
    }

    /// Returns the bit of a prefix; `None` if it is not three ASCII characters.
    fn slot_index(word: &str) -> Option<usize> {
        let first = word.as_bytes().first_chunk::<3>().filter(|f| f.is_ascii())?;
        let letter = |b: u8| usize::from(b) & ((1 << LETTER) - 1);
        Some(first.iter().fold(0, |at, &b| at << LETTER | letter(b)))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

/// Returns the stem of a word, using `lower` as buffer.
fn stem<'a>(word: &'a str, lower: &'a mut String) -> Option<&'a str> {
    if !word.starts_with(char::is_alphabetic) {
        let number = word.len() >= MIN_NUMBER && word.bytes().all(|b| b.is_ascii_digit());
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
    let mut endings = SUFFIXES.iter().filter(|e| e.as_bytes().last() == last);
    let rest = endings.find_map(|e| word.strip_suffix(*e).filter(|r| r.len() >= ROOT));
    let mut root = rest.unwrap_or(word);
    if root.len() > ROOT {
        root = root.trim_end_matches('e');
    }
    let known = root.len() == word.len();
    (known || !is_short(root) && !COMMON.contains(root)).then_some(root)
}

fn is_short(word: &str) -> bool {
    word.chars().nth(MIN_WORD - 1).is_none()
}

/// Returns the minimum number of stems that one line must share with a statement of `n` stems. This
/// is two thirds, because a summary omits or replaces some terms.
pub fn match_threshold(n: usize) -> usize {
    (2 * n).div_ceil(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(text: &str) -> Vec<String> {
        stems(text).collect()
    }

    proptest::proptest! {
        #[test]
        fn prefix_filter_has_no_false_negatives(
            text in "[aBe1İK\u{212a}_]{1,4}(ing|ES|é)? ?b?",
        ) {
            for word in words(&text) {
                let beginnings = PrefixFilter::new(collect(word).iter().map(String::as_str));
                let mut found = Vec::new();
                for_each_stem_where(word, |w| beginnings.has(w), |stem| found.push(stem.to_string()));
                proptest::prop_assert_eq!(found, collect(word));
            }
        }
    }

    #[test]
    fn stems_removes_stop_words_and_suffixes() {
        assert_eq!(
            collect("Now let me add the CSS for debug grids, and the expanded controls (90 %)."),
            ["css", "debug", "grid", "expand", "control", "90"]
        );
        assert_eq!(
            collect("merging, merged, merge; retries; parse_token don't"),
            ["merg", "merg", "merg", "retr", "parse_token"]
        );
        assert_eq!(collect("Übersetzungen für 7 de"), ["übersetzungen", "für"]);
    }

    #[test]
    fn suffixes_are_sorted_by_length() {
        assert!(SUFFIXES.windows(2).all(|w| w[0].len() >= w[1].len()));
    }

    #[test]
    fn match_threshold_is_two_thirds() {
        assert_eq!([1, 2, 3, 4, 5, 6].map(match_threshold), [1, 2, 2, 3, 4, 4]);
    }
}
