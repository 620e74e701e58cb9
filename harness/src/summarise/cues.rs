//! General features of a sentence: marks of rules, decisions, errors and tasks; paths, names and
//! numbers.

use std::sync::OnceLock;

use rapidhash::RapidHashMap as HashMap;
use serde::Deserialize;

use super::words::{WORDS, has_any};

/// A feature of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Cue {
    /// Marks of a rule: must, never, only, please keep.
    Rule,
    /// Marks of a decision: because, found, decided.
    Decision,
    /// Marks of an error: error, failed, refused.
    Error,
    /// Marks of a task: todo, next, remaining.
    Todo,
    /// Marks of finished work: added, changed, passed.
    Done,
    Question,
    /// A path or file name.
    Path,
    /// An identifier or something quoted.
    Name,
    /// A number of two digits or more.
    Number,
    /// Marks of a total: total, count, result.
    Total,
    /// Marks of one side of a comparison: expected, received, got.
    Compared,
    /// Marks that cancel an error: none, zero.
    NoCues,
    /// Announces an action without a statement: let me, I will read.
    Filler,
}

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cues(u16);

impl Cues {
    pub fn single(cue: Cue) -> Cues {
        Cues(1 << cue as u16)
    }

    pub fn has(self, cue: Cue) -> bool {
        self.0 & Cues::single(cue).0 != 0
    }

    pub fn add(&mut self, cue: Cue) {
        self.0 |= Cues::single(cue).0;
    }
}

fn table() -> &'static HashMap<&'static [u8], Cues> {
    static TABLE: OnceLock<HashMap<&'static [u8], Cues>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table: HashMap<&[u8], Cues> = HashMap::default();
        for (cue, words) in &WORDS.cues {
            for word in words.split_whitespace() {
                table.entry(word.as_bytes()).or_default().add(*cue);
            }
        }
        table
    })
}

/// Length of the longest entry, bytes.
const LONGEST: usize = 16;

/// Returns the features of a sentence, in one pass.
pub(super) fn parse(text: &str) -> Cues {
    let table = table();
    let mut cues = Cues::default();
    for token in text.split_ascii_whitespace() {
        add_shape(token, &mut cues);
        for word in token.as_bytes().split(|b| b.is_ascii() && !b.is_ascii_alphanumeric()) {
            if word.is_empty() || word.len() > LONGEST {
                continue;
            }
            let mut low = [0u8; LONGEST];
            for (l, b) in low.iter_mut().zip(word) {
                *l = b.to_ascii_lowercase();
            }
            if let Some(c) = table.get(&low[..word.len()]) {
                cues.0 |= c.0;
            }
        }
    }
    if text.trim_end().ends_with('?') {
        cues.add(Cue::Question);
    }
    if text.contains(['✗', '✕', '✖', '❌']) {
        cues.add(Cue::Error);
    }
    if !text.is_ascii() {
        let found = WORDS.phrases.iter().filter(|(_, phrases)| has_any(text, phrases));
        found.for_each(|(cue, _)| cues.add(*cue));
    }
    cues
}

/// Adds the features of a token's shape: path, name, number.
fn add_shape(token: &str, cues: &mut Cues) {
    let t = token.as_bytes();
    let (mut digits, mut last) = (0, b' ');
    for (i, &b) in t.iter().enumerate() {
        let next = t.get(i + 1).copied().unwrap_or(b' ');
        match b {
            b'/' if last.is_ascii_alphanumeric() && next.is_ascii_alphanumeric() && t.len() > 5 => {
                cues.add(Cue::Path)
            }
            b'.' if (last.is_ascii_alphanumeric() || last == b'_') && is_extension(&t[i + 1..]) => {
                cues.add(Cue::Path)
            }
            b'_' if last.is_ascii_alphanumeric() && next.is_ascii_alphanumeric() => {
                cues.add(Cue::Name)
            }
            b'`' => cues.add(Cue::Name),
            b'A'..=b'Z' if last.is_ascii_lowercase() => cues.add(Cue::Name),
            b'-' if last.is_ascii_uppercase() && next.is_ascii_digit() => cues.add(Cue::Name),
            b'0'..=b'9' => digits += 1,
            _ => {}
        }
        last = b;
    }
    if digits >= 2 {
        cues.add(Cue::Number);
    }
}

/// Returns whether two to four letters follow up to the end of the token, except for closing marks.
fn is_extension(rest: &[u8]) -> bool {
    let letters = rest.iter().take_while(|b| b.is_ascii_lowercase()).count();
    (2..=5).contains(&letters)
        && rest[letters..].iter().all(|b| b.is_ascii_punctuation() || b.is_ascii_digit())
}
