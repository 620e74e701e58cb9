//! Masks the text that an agent adds around messages of the session: letters and digits become `x`,
//! while all sizes that an estimate may use (bytes, UTF-16 units, escapes) stay.

use std::collections::{HashMap, HashSet};

/// Minimum length of a text that is recognised in a truncated text, bytes.
const MIN_BYTES: usize = 16;

/// Masks a text except for a message, or for its beginning and end if it was truncated.
pub(super) fn masked(text: &str, words: &str) -> String {
    let words = words.trim();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut keep = |from: &mut &str, at: usize, len: usize| {
        out.extend(from[..at].chars().map(mask));
        out.push_str(&from[at..at + len]);
        *from = &from[at + len..];
    };
    match rest.find(words).filter(|_| !words.is_empty()) {
        Some(at) => keep(&mut rest, at, words.len()),
        None => {
            if let Some((at, len)) = beginning(rest, words) {
                keep(&mut rest, at, len);
                if let Some((at, len)) = end(rest, &words[len..]) {
                    keep(&mut rest, at, len);
                }
            }
        }
    }
    out.extend(rest.chars().map(mask));
    out
}

/// Returns a placeholder with the same size.
fn mask(c: char) -> char {
    match (c.is_alphanumeric(), c.len_utf8()) {
        (false, _) => c,
        (true, 1) => 'x',
        (true, 2) => 'ä',
        (true, 3) => '一',
        (true, _) => '𐐀',
    }
}

/// Finds the longest beginning of a message in a text. Returns position and length.
fn beginning(text: &str, words: &str) -> Option<(usize, usize)> {
    longest(words.len(), |n| words.get(..words.floor_char_boundary(n)).and_then(|w| text.find(w)))
        .map(|(at, n)| (at, words.floor_char_boundary(n)))
}

/// Finds the longest end of a message in a text. Returns position and length.
fn end(text: &str, words: &str) -> Option<(usize, usize)> {
    let begin = |n: usize| words.ceil_char_boundary(words.len() - n);
    longest(words.len(), |n| words.get(begin(n)..).and_then(|w| text.rfind(w)))
        .map(|(at, n)| (at, words.len() - begin(n)))
}

/// Returns the largest size up to `max` at which `find` succeeds. A text with a longer piece also
/// contains a shorter one.
fn longest(max: usize, find: impl Fn(usize) -> Option<usize>) -> Option<(usize, usize)> {
    let (mut low, mut high) = (MIN_BYTES, max);
    let mut found = None;
    while low <= high {
        let middle = low + (high - low) / 2;
        match find(middle) {
            Some(at) => {
                found = Some((at, middle));
                low = middle + 1;
            }
            None => high = middle - 1,
        }
    }
    found
}

/// Stretches of the agent's own text, which are recognised in summaries.
#[derive(Default)]
struct OwnText(HashSet<[u8; MIN_BYTES]>);

impl OwnText {
    /// Adds the stretches that masking changed.
    fn learn(&mut self, text: &str, masked: &str) {
        let both = text.as_bytes().array_windows().zip(masked.as_bytes().array_windows());
        self.0.extend(both.filter(|(t, m)| t != m).map(|(t, _)| *t));
    }

    /// Masks these stretches in a text.
    fn hidden(&self, text: &str) -> String {
        let mut own = vec![false; text.len()];
        for (i, stretch) in text.as_bytes().array_windows().enumerate() {
            if self.0.contains::<[u8; MIN_BYTES]>(stretch) {
                own[i..i + MIN_BYTES].fill(true);
            }
        }
        let all = |i: usize, c: char| own[i..i + c.len_utf8()].iter().all(|own| *own);
        text.char_indices().map(|(i, c)| if all(i, c) { mask(c) } else { c }).collect()
    }
}

/// Texts of the history with their masked forms.
#[derive(Default)]
pub(super) struct Masked<'a> {
    known: HashMap<&'a str, String>,
    agents: OwnText,
}

impl<'a> Masked<'a> {
    /// Adds a text that contains a message of the session.
    pub(super) fn learn(&mut self, text: &'a str, words: &str) {
        if !self.known.contains_key(text) {
            let masked = masked(text, words);
            self.agents.learn(text, &masked);
            self.known.insert(text, masked);
        }
    }

    /// Adds a text of the agent.
    pub(super) fn constant(&mut self, text: &str) {
        self.agents.learn(text, &masked(text, ""));
    }

    /// Adds a summary. All texts of the agent must be known, since a summary may quote them.
    pub(super) fn summary(&mut self, text: &'a str) {
        let hidden = self.hidden(text);
        self.known.insert(text, hidden);
    }

    /// Masks the agent's text.
    pub(super) fn hidden(&self, text: &str) -> String {
        self.agents.hidden(text)
    }

    /// Returns the masked form of a part of a summary.
    pub(super) fn of_summary(&self, piece: &str, summaries: &[&str]) -> Option<&str> {
        let of = |s: &&str| {
            let at = s.find(piece)?;
            self.get(s)?.get(at..at + piece.len())
        };
        summaries.iter().find_map(of)
    }

    /// Adds a text of the session, which is not masked.
    pub(super) fn own(&mut self, text: &'a str) {
        self.known.entry(text).or_insert_with(|| text.to_string());
    }

    /// Returns the masked form of a known text.
    pub(super) fn get(&self, text: &str) -> Option<&str> {
        self.known.get(text).map(String::as_str)
    }

    /// Masks all known texts in a longer text, including truncated ones.
    pub(super) fn within(&self, text: &str) -> String {
        let mut out = text.to_string();
        let mut differ: Vec<(&str, &String)> = self.known.iter().map(|(t, m)| (*t, m)).collect();
        differ.retain(|(t, m)| t != m);
        differ.sort_unstable();
        for (from, to) in differ {
            out = replaced(&out, from, to);
        }
        out
    }
}

/// Replaces every occurrence of `from` or of its beginning by the same part of `to`. Both have
/// characters of the same sizes.
fn replaced(text: &str, from: &str, to: &str) -> String {
    let begin = &from[..from.floor_char_boundary(MIN_BYTES)];
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(begin) {
        let same = rest[at..].bytes().zip(from.bytes()).take_while(|(a, b)| a == b).count();
        let same = from.floor_char_boundary(same);
        out.push_str(&rest[..at]);
        out.push_str(&to[..same]);
        rest = &rest[at + same..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_stay_readable() {
        let shown = "Chunk ID: 3fa9\nWall time: 0.0512 s\nOutput:\nfn main() {}\n\nSee docs.";
        let want = "xxxxx xx: xxxx\nxxxx xxxx: x.xxxx x\nxxxxxx:\nfn main() {}\n\nxxx xxxx.";
        assert_eq!(masked(shown, "fn main() {}\n"), want);
        assert_eq!(masked("Größe 好 𐐀!", "none of it"), "xxäßx 一 𐐀!".replace('ß', "ä"));
        assert_eq!(masked("all its own", ""), "xxx xxx xxx");
    }

    #[test]
    fn of_words_that_were_cut_both_ends_stay() {
        let words: String = (0..40).map(|n| format!("line {n} of a file\n")).collect();
        let (head, tail) = (&words[..100], &words[words.len() - 60..]);
        let shown = format!("Warning: cut\n{head}…900 chars truncated…{tail}");
        let got = masked(&shown, &words);
        assert_eq!(got.len(), shown.len());
        assert!(got.starts_with(&format!("xxxxxxx: xxx\n{head}…xxx xxxxx xxxxxxxxx…")), "{got}");
        assert!(got.ends_with(tail.trim_end()) || got.ends_with(tail), "{got}");
    }

    #[test]
    fn sizes_stay_in_every_unit() {
        for text in ["plain \"quoted\"\n\t\\", "ÄÖ 漢字 😀 𐐀", ""] {
            let out = masked(text, "");
            let json = |t: &str| serde_json::Value::from(t).to_string().len();
            assert_eq!((out.len(), json(&out)), (text.len(), json(text)));
            assert_eq!(out.encode_utf16().count(), text.encode_utf16().count());
        }
    }

    #[test]
    fn a_summary_quotes_nothing_of_the_agent() {
        let mut m = Masked::default();
        m.constant("You are the agent of a secret maker. Obey.");
        m.learn("Secret wrapper 17: the words of the session.", "the words of the session.");
        let summary = "- User: You are the agent of a sec…\n- Output: Secret wrapper 17: the words\n\
                       - the words of the session. Obey.";
        m.summary(summary);
        let want = "- User: xxx xxx xxx xxxxx xx x xxx…\n- Output: xxxxxx xxxxxxx xx: xxx xxxxx\n\
                    - the words of the session. Obey.";
        assert_eq!(m.get(summary), Some(want));
        let piece = &summary[2..20];
        assert_eq!(m.of_summary(piece, &[summary]), Some(&want[2..20]));
        assert_eq!(m.of_summary("something else", &[summary]), None);
    }

    #[test]
    fn what_is_cut_within_a_longer_text_is_masked_there_too() {
        let mut m = Masked::default();
        let shown = "Secret wrapper: the words of the session. Secret end.";
        m.learn(shown, "the words of the session.");
        let long = format!("[User]: {shown}\n\n[Result]: {}…", &shown[..30]);
        let want = "[User]: xxxxxx xxxxxxx: the words of the session. xxxxxx xxx.\n\n\
                    [Result]: xxxxxx xxxxxxx: the words of t…";
        assert_eq!(m.within(&long), want);
    }
}
