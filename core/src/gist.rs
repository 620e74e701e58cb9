//! What a sentence is about: its content words, reduced to stems, so that a rule or a decision is
//! known again in other words than those in which it was said.

use std::sync::LazyLock;

/// Words that say nothing about a subject, sorted: function words of English, and what agents say in
/// every other sentence.
static COMMON: LazyLock<Vec<&str>> =
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

/// Stems of the content words of a text, in order, with repetitions: lower case, without the
/// commonest English endings. Names such as `parse_token` are one word.
pub fn stems(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter_map(stem)
}

fn stem(word: &str) -> Option<String> {
    if !word.starts_with(char::is_alphabetic) {
        let number = word.len() >= SHORTEST_NUMBER && word.bytes().all(|b| b.is_ascii_digit());
        return number.then(|| word.to_string());
    }
    let mut word = word.to_lowercase();
    if word.chars().count() < SHORTEST || common(&word) {
        return None;
    }
    let ending = ENDINGS.iter().find(|e| word.strip_suffix(**e).is_some_and(|r| r.len() >= ROOT));
    word.truncate(word.len() - ending.map_or(0, |e| e.len()));
    if word.len() > ROOT {
        word.truncate(word.trim_end_matches('e').len());
    }
    (word.chars().count() >= SHORTEST && !common(&word)).then_some(word)
}

fn common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
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
    fn lists_are_in_the_order_that_looking_up_needs() {
        assert!(COMMON.is_sorted());
        assert!(ENDINGS.windows(2).all(|w| w[0].len() >= w[1].len()));
    }

    #[test]
    fn two_thirds_are_enough() {
        assert_eq!([1, 2, 3, 4, 5, 6].map(enough), [1, 2, 2, 3, 4, 4]);
    }
}
