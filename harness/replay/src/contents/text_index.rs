//! Index of the text of a conversation: finds lines that are shown twice, and results that later
//! replies use.

use ctxbench_core::compaction::tools::without_line_number;
use ctxbench_core::tokens::content_hash;
use rapidhash::RapidHashMap as HashMap;

/// Minimum length of a line that is compared, in bytes without its number and indentation.
const LINE: usize = 12;

/// Minimum length of a word that shows a use, in bytes.
const WORD: usize = 5;

/// Lines and terms of a conversation, by their hashes.
#[derive(Default)]
pub(super) struct TextIndex {
    /// Part that showed each line last, among those in the context.
    lines: HashMap<u64, usize>,
    /// Result that showed each word last; `None` if something other than a result was the first to
    /// show it.
    words: HashMap<u64, Option<usize>>,
}

impl TextIndex {
    /// Records the text of a result or a file. Returns the share of its bytes in lines that another
    /// part of the context has, too.
    pub(super) fn result(&mut self, part: usize, text: &str) -> f64 {
        for word in words(text) {
            let newest = |owner: &mut Option<usize>| *owner = owner.map(|_| part);
            self.words.entry(word).and_modify(newest).or_insert(Some(part));
        }
        let mut again = 0;
        for line in text.lines() {
            let own = without_line_number(line).trim_end();
            if own.len() < LINE {
                continue;
            }
            let before = self.lines.insert(content_hash(own.as_bytes()), part);
            again += if before.is_some_and(|p| p != part) { line.len() } else { 0 };
        }
        again as f64 / text.lines().map(str::len).sum::<usize>().max(1) as f64
    }

    /// Records a text that is not a result.
    pub(super) fn other(&mut self, text: &str) {
        for word in words(text) {
            self.words.entry(word).or_insert(None);
        }
    }

    /// Records the text of a reply. Calls `used` with each result that was the first to show one of
    /// its words.
    pub(super) fn reply(&mut self, text: &str, mut used: impl FnMut(usize)) {
        for word in words(text) {
            self.words.entry(word).or_insert(None).iter().for_each(|part| used(*part));
        }
    }

    /// Begins a new context. Terms stay known, because a summary may carry them.
    pub(super) fn forget_lines(&mut self) {
        self.lines.clear();
    }
}

fn words(text: &str) -> impl Iterator<Item = u64> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|w| w.len() >= WORD).map(|w| content_hash(w.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_twice_whatever_their_numbers() {
        let mut shown = TextIndex::default();
        let first = "  10→let value_one = 1;\nlet value_two = 2;\n}";
        assert_eq!(shown.result(0, first), 0.0);
        assert_eq!(shown.result(0, first), 0.0, "the same part");
        // 18 of 18 + 3 + 20 bytes.
        let again = shown.result(1, "let value_two = 2;\nnew\nlet value_three = 3;");
        assert!((again - 18.0 / 41.0).abs() < 1e-9, "{again}");
        shown.forget_lines();
        assert_eq!(shown.result(2, "let value_two = 2;"), 0.0);
    }

    #[test]
    fn a_reply_uses_the_result_that_showed_a_word_last() {
        let mut shown = TextIndex::default();
        let used = |shown: &mut TextIndex, text: &str| {
            let mut all = Vec::new();
            shown.reply(text, |part| all.push(part));
            all
        };
        shown.other("please look into parser.rs");
        shown.result(0, "parser has retry_limit and backoff");
        assert_eq!(
            used(&mut shown, "the parser"),
            Vec::<usize>::new(),
            "the user was the first to say it"
        );
        assert_eq!(used(&mut shown, "set retry_limit"), [0]);
        shown.result(1, "retry_limit = 3");
        assert_eq!(used(&mut shown, "retry_limit, backoff"), [1, 0]);
    }
}
