//! A conversation as one text, for summarisers that are given no messages.

use std::ops::Deref;

use crate::block::{BlockKind, Draft, Quote, Role};

/// A text together with what it quotes: only who reads its bytes has to guess who said what.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    text: String,
    quotes: Vec<Quote>,
}

impl Transcript {
    /// A text that is all of one kind.
    pub fn of(kind: BlockKind, text: impl Into<String>) -> Self {
        let text = text.into();
        let quotes = vec![Quote { range: 0..text.len(), kind, call: None, is_error: false }];
        Transcript { text, quotes }
    }

    /// Adds what stands between the quotes, such as headings and line breaks.
    pub fn push(&mut self, words: &str) {
        self.text.push_str(words);
    }

    /// Adds what a block says, in the form of `shown`.
    pub fn quote(&mut self, block: &Draft, shown: &str) {
        let from = self.text.len();
        self.text.push_str(shown);
        let Draft { kind, call, is_error, .. } = block;
        self.quotes.push(Quote {
            range: from..self.text.len(),
            kind: *kind,
            call: call.clone(),
            is_error: *is_error,
        });
    }

    /// Adds a block as it is, with what it quotes itself.
    pub fn show(&mut self, block: &Draft) {
        match block.quotes.as_slice() {
            [] => self.quote(block, &block.text),
            quotes => self.add(&block.text, quotes),
        }
    }

    /// Adds another transcript.
    pub fn append(&mut self, other: &Transcript) {
        self.add(&other.text, &other.quotes);
    }

    /// Adds what was said before all that stands here.
    pub fn recall(&mut self, other: &Transcript) {
        let later = std::mem::take(&mut self.quotes);
        self.append(other);
        self.quotes.extend(later);
    }

    fn add(&mut self, text: &str, quotes: &[Quote]) {
        let from = self.text.len();
        self.text.push_str(text);
        self.quotes.extend(quotes.iter().cloned().map(|mut q| {
            q.range = q.range.start + from..q.range.end + from;
            q
        }));
    }

    /// A block that was never said and shows this.
    pub fn draft(self, kind: BlockKind, role: Role) -> Draft {
        Draft { quotes: self.quotes, ..Draft::synthetic(kind, role, self.text) }
    }
}

impl Deref for Transcript {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

/// Words of nobody in particular.
impl<T: Into<String>> From<T> for Transcript {
    fn from(text: T) -> Self {
        Transcript { text: text.into(), quotes: Vec::new() }
    }
}

/// The same text is the same transcript.
impl PartialEq for Transcript {
    fn eq(&self, o: &Self) -> bool {
        self.text == o.text
    }
}

impl Eq for Transcript {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_says_what_its_text_quotes() {
        let said = Draft::text(BlockKind::User, Role::User, "[User]: is quoted here");
        let mut inner = Transcript::default();
        inner.push("[User]: ");
        inner.show(&said);
        let mut all = Transcript::of(BlockKind::SummaryPrompt, "Sum this up:\n");
        all.append(&inner);
        let block = all.draft(BlockKind::SummaryPrompt, Role::User);
        let quoted: Vec<_> = block.quoted().map(|(q, text)| (q.kind, text)).collect();
        let want = [(BlockKind::SummaryPrompt, "Sum this up:\n"), (BlockKind::User, &*said.text)];
        assert_eq!(quoted, want);
        // Shown in another text it still quotes the same; with a text of its own it does not.
        let mut again = Transcript::from("- ");
        again.show(&block);
        let again = again.draft(BlockKind::SummaryPrompt, Role::User);
        assert_eq!(again.quoted().map(|(q, text)| (q.kind, text)).collect::<Vec<_>>(), want);
        let built = again.build(crate::block::MessageId(0), vec![]);
        assert_eq!(built.altered(crate::block::Form::Cleared, "gone").quotes, []);
    }
}
