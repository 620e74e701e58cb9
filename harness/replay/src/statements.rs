//! Decides whether a text states a literal or only lists it.
//!
//! A text states a literal in a sentence that shares terms with a line that showed it, by a copy of
//! that line or of what surrounded it, or alone on a line. A literal with a blank in it states itself.
//! A fact without literals is stated in a sentence, or in a copied line.
//! A list states nothing: its terms do not follow each other as they do in the session, or there is
//! no room between them to say something. The limits were chosen on three recordings with real
//! summaries; see docs/recall.md.

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, OnceLock};

use ctxbench_core::compaction::tools::without_line_number;
use ctxbench_core::tokens::content_hash;
use ctxbench_session::fact::fold;
use rapidhash::quality::SeedableState;
use rapidhash::{RapidHashMap as HashMap, RapidHashSet as HashSet};

use super::session_cache::lock;

/// Number of bytes on each side of a literal that count as near it.
const SPAN: usize = 100;

/// Minimum number of near terms that a sentence shares with a line. Of a line with two, one is enough.
const SHARED: usize = 2;

/// Minimum share of usual pairs in a sentence, in a session with [`ALL_PAIRS`] of them. In a shorter
/// one proportionally less is enough, but at least one pair.
const USUAL: f64 = 0.15;

/// Number of different usual pairs in a session that is long enough for the whole share.
const ALL_PAIRS: f64 = 20_000.0;

/// Maximum length of the short word of a usual pair, bytes.
const SHORT: usize = 5;

/// Minimum length of the longer word of a pair, bytes. So `of the` is no pair.
const LONG: usize = 5;

/// Share of the near terms, or of the pairs in a line, that a copy has.
const COPIED: f64 = 0.8;

/// Minimum number of pairs in a line that is copied.
const LINE_PAIRS: usize = 2;

/// Minimum number of terms of a line that is copied as a whole.
const LINE_TERMS: usize = 3;

/// Minimum number of near terms for each new rare one. So a list has to be as long as copies of the
/// lines.
const ROOM: usize = 3;

/// Minimum length of a rare term, characters.
const RARE: usize = 8;

/// Minimum length of a term that is compared, bytes.
const WORD: usize = 3;

/// Maximum number of showings and of occurrences per literal. The first ones count.
const MOST: usize = 32;

/// Maximum number of lines with a single word that state it. The first ones of a text count.
const ALONE: usize = 32;

/// Number of different terms on the other lines of a text for each line with a single word that
/// states it. So a summary can list files, and a bare list states nothing.
const TERMS_FOR_ALONE: usize = 10;

/// Pairs and lines of the recorded texts of a session.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Usual pairs: a short and another word that follow each other.
    pairs: HashSet<u32>,
    /// Hashes of the lines.
    lines: HashSet<u64>,
}

impl Usage {
    pub(super) fn add(&mut self, text: &str) {
        self.pairs.extend(pairs(text).filter(|pair| pair.has_short).map(|pair| pair.hash));
        self.lines.extend(text.lines().filter_map(line_hash));
    }

    /// Returns whether enough of these pairs are usual.
    fn is_of_sentence(&self, pairs: &BTreeSet<u32>) -> bool {
        let usual = pairs.iter().filter(|pair| self.pairs.contains(pair)).count();
        let limit = USUAL * (self.pairs.len() as f64 / ALL_PAIRS).min(1.0);
        usual > 0 && usual as f64 >= limit * pairs.len() as f64
    }
}

/// A text of a strategy.
pub(super) struct WrittenText<'a> {
    folded: &'a str,
    /// What stands alone on the first lines with one word, folded.
    alone: Vec<String>,
    /// Start of each term between blanks, and number of different rare ones before it.
    words: Vec<(usize, usize)>,
    /// Copies of recorded lines, folded.
    copied: String,
    usage: &'a Usage,
}

impl<'a> WrittenText<'a> {
    pub(super) fn new(text: &str, folded: &'a str, usage: &'a Usage) -> Self {
        let is_copy = |line: &&str| line_hash(line).is_some_and(|hash| usage.lines.contains(&hash));
        let copied: String = text.lines().filter(is_copy).map(|line| fold(line) + "\n").collect();
        let lines = text.lines().map(|l| l.trim_start_matches(['-', '*', ' ', '\t']).trim());
        let (others, alone): (Vec<&str>, Vec<&str>) =
            lines.filter(|l| !l.is_empty()).partition(|l| l.contains(char::is_whitespace));
        let others: HashSet<u64> = others.into_iter().flat_map(terms).collect();
        let most = ALONE.min(others.len() / TERMS_FOR_ALONE);
        let (mut at, mut rare, mut words) = (0, HashSet::default(), Vec::new());
        for word in folded.split(' ') {
            words.push((at, rare.len()));
            at += word.len() + 1;
            let parts = word.split(|c: char| "\"'`,;(){}[]<>=".contains(c));
            rare.extend(parts.filter(|part| part.chars().count() >= RARE));
        }
        words.push((usize::MAX, rare.len()));
        let alone = alone.into_iter().take(most).map(fold).collect();
        WrittenText { folded, alone, words, copied, usage }
    }

    /// Returns the parts of the text that can state a fact without literals: the lines that it copies,
    /// and where it reads like the session and has room.
    pub(super) fn statements(&self) -> String {
        let (text, mut out) = (self.folded, self.copied.clone());
        let ends = (1..=text.len().div_ceil(SPAN)).map(|n| text.floor_char_boundary(n * SPAN));
        let mut at = 0;
        for end in ends {
            let middle = text.floor_char_boundary((at + end) / 2);
            let pairs = Near::new(text, middle, 0).pairs();
            let said = self.usage.is_of_sentence(&pairs) && !self.is_crowded(middle);
            out.push_str(if said { &text[at..end] } else { "\n" });
            at = end;
        }
        out
    }

    /// Returns whether too many of the terms near this place are rare and new in the text.
    fn is_crowded(&self, at: usize) -> bool {
        let word_at = |at: usize| self.words.partition_point(|(start, _)| *start < at);
        let (from, to) = (word_at(at.saturating_sub(SPAN)), word_at(at + SPAN));
        let rare = self.words[to].1 - self.words[from].1;
        rare * ROOM > to - from
    }
}

/// A literal, and the texts that show it.
#[derive(Debug)]
pub(super) struct StatedLiteral {
    literal: Box<str>,
    folded: String,
    /// Whether it is more than one word, such as a line of code, and so is a statement itself.
    is_statement: bool,
    showings: Vec<Showing>,
    /// Whether it is stated, by the hash of the text near it.
    known: Mutex<HashMap<u64, bool>>,
}

/// A text that shows a literal, and where. The terms near it are kept only once a strategy's text has the
/// literal, which is true of few.
#[derive(Debug)]
struct Showing {
    text: Arc<str>,
    at: usize,
    /// Hash of the terms near it.
    hash: u64,
    near: OnceLock<Box<Surroundings>>,
}

/// Terms near a literal.
#[derive(Debug, Hash)]
struct Surroundings {
    /// Hashes of the terms around it, those in its line first.
    around: Box<[u64]>,
    /// Number of terms in its line.
    in_line: usize,
    /// Hashes of the pairs in its line.
    pairs: Box<[u32]>,
}

impl Surroundings {
    /// Collects the terms near a literal of `len` bytes.
    fn new(text: &str, at: usize, len: usize) -> Self {
        let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
        let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
        let near = Near::new(&text[start..end], at - start, len);
        let (line, around) = (near.hashes(), Near::new(text, at, len));
        // In a text of one line they are the same.
        let around = if around == near { line.clone() } else { around.hashes() };
        let all = line.iter().chain(around.difference(&line)).copied().collect();
        let pairs = near.pairs().into_iter().collect();
        Surroundings { around: all, in_line: line.len(), pairs }
    }
}

impl StatedLiteral {
    pub(super) fn new(literal: &str) -> Self {
        StatedLiteral {
            literal: literal.into(),
            folded: fold(literal),
            is_statement: literal.split_whitespace().nth(1).is_some(),
            showings: Vec::new(),
            known: Mutex::default(),
        }
    }

    /// Adds the first showing of the literal in a recorded text.
    pub(super) fn note(&mut self, text: &Arc<str>) {
        let literal = &*self.literal;
        if self.showings.len() == MOST || literal.is_empty() {
            return;
        }
        let Some(at) = memchr::memmem::find(text.as_bytes(), literal.as_bytes()) else { return };
        let hash = SeedableState::fixed().hash_one(Surroundings::new(text, at, literal.len()));
        if self.showings.iter().all(|showing| showing.hash != hash) {
            self.showings.push(Showing { text: text.clone(), at, hash, near: OnceLock::new() });
        }
    }

    /// Returns whether a text that contains the literal states it. Always true for a literal that no
    /// recorded text shows as it is, and for a number in another notation.
    pub(super) fn is_stated(&self, text: &WrittenText<'_>) -> bool {
        let (folded, len) = (text.folded, self.folded.len());
        let all = memchr::memmem::find_iter(folded.as_bytes(), self.folded.as_bytes());
        let mut is_found = false;
        let is_stated_at = |at: usize| {
            is_found = true;
            is_whole(folded, at, len)
                && (self.is_statement || self.is_stated_by(&Near::new(folded, at, len), text, at))
        };
        self.showings.is_empty()
            || all.take(MOST).any(is_stated_at)
            || !is_found
            || self.is_alone_in(text)
            || memchr::memmem::find(text.copied.as_bytes(), self.folded.as_bytes()).is_some()
    }

    /// Returns whether the text near the literal states it. Cached, because summaries repeat lines.
    fn is_stated_by(&self, near: &Near<'_>, text: &WrittenText<'_>, at: usize) -> bool {
        let is_crowded = text.is_crowded(at);
        let [before, after] = near.0.map(|side| content_hash(side.as_bytes()));
        let key = before.rotate_left(1) ^ after ^ u64::from(is_crowded);
        *lock(&self.known).entry(key).or_insert_with(|| {
            let (words, pairs) = (near.hashes(), near.pairs());
            let is_sentence = text.usage.is_of_sentence(&pairs);
            let copies =
                |n: usize, of: usize, least: usize| of >= least && n as f64 >= COPIED * of as f64;
            self.showings.iter().any(|Showing { text, at, near, .. }| {
                let new = || Surroundings::new(text, *at, self.literal.len()).into();
                let Surroundings { around, in_line, pairs: known } = &**near.get_or_init(new);
                let of = |terms: &[u64]| terms.iter().filter(|term| words.contains(term)).count();
                let same = || known.iter().filter(|pair| pairs.contains(pair)).count();
                let shared = SHARED.min(in_line.div_ceil(2));
                is_sentence && !is_crowded && of(&around[..*in_line]) >= shared
                    || copies(of(around), around.len(), SHARED)
                    || copies(same(), known.len(), LINE_PAIRS)
            })
        })
    }

    /// Returns whether the literal is alone on a line.
    fn is_alone_in(&self, text: &WrittenText<'_>) -> bool {
        let is_end = |line: &str| {
            let before = line.trim_end_matches(is_mark).strip_suffix(self.folded.as_str());
            before.is_some_and(|path| {
                path.trim_start_matches(is_mark).is_empty() || path.ends_with('/')
            })
        };
        text.alone.iter().any(|line| is_end(line))
    }
}

/// Text on both sides of a literal. It begins at the next blank: the rest of a path or of a call is no
/// statement about it.
#[derive(PartialEq)]
struct Near<'a>([&'a str; 2]);

impl<'a> Near<'a> {
    fn new(text: &'a str, at: usize, len: usize) -> Self {
        let start = text[..at].rfind(char::is_whitespace).unwrap_or(0);
        let end = text[at + len..].find(char::is_whitespace).map_or(text.len(), |i| at + len + i);
        let before = &text[text.ceil_char_boundary(start.saturating_sub(SPAN))..start];
        Near([before, &text[end..text.floor_char_boundary(end + SPAN)]])
    }

    fn hashes(&self) -> BTreeSet<u64> {
        self.0.iter().flat_map(|side| terms(side)).collect()
    }

    /// Returns hashes of the pairs on each side.
    fn pairs(&self) -> BTreeSet<u32> {
        self.0.iter().flat_map(|side| pairs(side)).map(|pair| pair.hash).collect()
    }
}

/// Returns the hash of a line without its number and bullet; `None` if it has fewer than
/// [`LINE_TERMS`].
fn line_hash(line: &str) -> Option<u64> {
    let line = without_line_number(line).trim_start_matches(['-', '*', ' ']).trim_end();
    line.split_whitespace().nth(LINE_TERMS - 1)?;
    Some(content_hash(line.as_bytes()))
}

/// Returns hashes of the terms of a text, without case.
fn terms(text: &str) -> impl Iterator<Item = u64> {
    let terms = text.split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() >= WORD);
    terms.map(word_hash)
}

/// Returns the hash of a word without case. Most words are in lower case and need no copy.
fn word_hash(word: &str) -> u64 {
    match word.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
        true => content_hash(word.as_bytes()),
        false => content_hash(word.to_lowercase().as_bytes()),
    }
}

/// Two words that follow each other.
struct Pair {
    hash: u32,
    has_short: bool,
}

/// Returns each pair of neighbors in a text, without case and punctuation. One has at least [`LONG`]
/// bytes.
fn pairs(text: &str) -> impl Iterator<Item = Pair> {
    let words = text.split_whitespace().map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()));
    let words = words.filter(|w| !w.is_empty());
    let hashes = words.map(|w| (w.len(), word_hash(w)));
    let mut last = None;
    hashes.filter_map(move |(len, hash)| {
        let (before, first) = last.replace((len, hash))?;
        let has_short = len.min(before) <= SHORT;
        let hash = (first.rotate_left(5) ^ hash) as u32;
        (len.max(before) >= LONG).then_some(Pair { hash, has_short })
    })
}

/// Returns whether a character can be around a word without being part of it.
fn is_mark(c: char) -> bool {
    !c.is_alphanumeric() && c != '/'
}

/// Returns whether `at..at + len` is not only a part of a longer name.
fn is_whole(text: &str, at: usize, len: usize) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let found = &text[at..at + len];
    let before = is_word(text[..at].chars().next_back()) && is_word(found.chars().next());
    let after = is_word(found.chars().next_back()) && is_word(text[at + len..].chars().next());
    !before && !after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_stated(shown: &[&str], text: &str) -> bool {
        let mut literal = StatedLiteral::new("retry_limit");
        shown.iter().for_each(|text| literal.note(&(*text).into()));
        let mut usage = Usage::default();
        shown.iter().chain(&["the network config has a limit"]).for_each(|text| usage.add(text));
        literal.is_stated(&WrittenText::new(text, &fold(text), &usage))
    }

    #[test]
    fn a_sentence_states_it_and_a_list_does_not() {
        let code = "fn connect() {\n    let retry_limit = config.read(\"network\");\n}";
        assert!(is_stated(&[code], "The network config has a `Retry_Limit`."));
        assert!(
            !is_stated(&[code], "connection config_read retry_limit timeout_ms network"),
            "a list"
        );
        assert!(
            !is_stated(&[code], "It is said that a retry_limit is in the list"),
            "about others"
        );
        assert!(
            !is_stated(&[code], &format!("let read config {} retry_limit", "x ".repeat(100))),
            "far"
        );
        assert!(
            !is_stated(&[code], "let us read the config of the network_retry_limits"),
            "a part"
        );
        assert!(is_stated(&[code], code), "a copy");
        // A line with a single word needs that one.
        assert!(is_stated(&["network retry_limit"], "the retry_limit of the network"));
        assert!(!is_stated(&["network retry_limit"], "the retry_limit of a disk"));
        let listing = "timeout_ms\nretry_limit\nparse_header\n";
        assert!(is_stated(&[listing], "the config has a retry_limit"), "a bare line needs no word");
        let said = "The parser builds a tree of every file, and these are still missing there:";
        assert!(is_stated(&[code], &format!("{said}\n- `retry_limit`\n- x")), "alone on a line");
        assert!(!is_stated(&[code], &format!("{said}\n- x\n- retry_limit")), "too few terms");
        assert!(!is_stated(&[code], "Settings:\n- retry_limit"), "nothing but a list");
        let long: String = (0..10 * ALONE).map(|n| format!("word{n} ")).collect();
        let many = |n: usize| format!("{long}\n{}- retry_limit", "- other_setting\n".repeat(n));
        assert!(is_stated(&[code], &many(ALONE - 1)));
        assert!(!is_stated(&[code], &many(ALONE)), "one of many lines");
        assert!(is_stated(&[code], &format!("{said}\n- src/retry_limit")), "the end of a path");
        assert!(!is_stated(&[code], "Terms:\nconfig,retry_limit,network"), "a list with commas");
        let line = "let retry_limit = config.read(\"network\");";
        let among = format!("Parser tokenizer {line} evaluator Compiler backend");
        assert!(is_stated(&[code], &among), "a copied line");
        let glued = "connection of config.read to retry_limit in timeout_ms as network up";
        assert!(!is_stated(&[code], glued), "a list in disguise");
        let crowded = "network other_names config_file config has retry_limit first_word second_word \
                       network third_name";
        assert!(!is_stated(&[code], crowded), "six rare words of ten");
        let long_code = format!("{code}\nfn open(server: &Server) -> Result<Stream> {{ todo!() }}");
        let neighbors = "second_name the network config other_name let retry_limit first_name read \
                         third_name";
        assert!(!is_stated(&[&long_code], neighbors), "crowded, with all terms of the line");
        let roomy = "The network config file has other_names; what the config has is a retry_limit, \
                     and in the network part of it a third_name";
        assert!(is_stated(&[code], roomy), "three of 22");
        assert!(is_stated(&[listing], listing), "a copy of a list");
        assert!(!is_stated(&[listing], "connection retry_limit authority"), "another list");
        assert!(is_stated(&[], "retry_limit"), "never shown as such");
    }

    #[test]
    fn a_copied_line_states_its_literals_however_often_they_occur() {
        let code =
            "fn connect() {\n    12→\tlet retry_limit = parser;\n    let x = retry_limit;\n}";
        let often = "my_retry_limits ".repeat(MOST + 1);
        assert!(is_stated(&[code], &format!("{often}\n- let retry_limit = parser;")));
        assert!(!is_stated(&[code], &format!("{often}\nretry_limit of another line")));
        assert!(!is_stated(&["a retry_limit"], &format!("{often}\na retry_limit")), "two words");
    }

    #[test]
    fn a_line_of_several_words_states_itself() {
        let line = "let retry_limit = config.read();";
        let mut literal = StatedLiteral::new(line);
        literal.note(&format!("fn connect() {{\n    {line}\n}}").into());
        let text = format!("unrelated_words {line} others");
        let usage = Usage::default();
        assert!(literal.is_stated(&WrittenText::new(&text, &fold(&text), &usage)));
    }
}
