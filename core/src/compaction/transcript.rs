//! A conversation as one text, for summarisers that take no messages.

use std::ops::Deref;

use crate::block::{BlockKind, Draft, Quote, Role};

/// A text with the ranges that quote blocks.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    text: String,
    quotes: Vec<Quote>,
}

impl Transcript {
    pub fn quoted(kind: BlockKind, text: impl Into<String>) -> Self {
        let text = text.into();
        let quotes = vec![Quote { range: 0..text.len(), kind, call: None, is_error: false }];
        Transcript { text, quotes }
    }

    /// Appends text between quotes, such as headings and line breaks.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a separator, unless the transcript is empty.
    pub fn separate(&mut self, by: &str) {
        if !self.text.is_empty() {
            self.push(by);
        }
    }

    /// Appends instructions to the summariser.
    pub fn instruct(&mut self, words: &str) {
        self.append(&Transcript::quoted(BlockKind::SummaryPrompt, words));
    }

    /// Appends a quote of a block, as the text `shown`.
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

    /// Appends a block unchanged, with its own quotes.
    pub fn push_block(&mut self, block: &Draft) {
        match block.quotes.as_slice() {
            [] => self.quote(block, &block.text),
            quotes => self.add(&block.text, quotes),
        }
    }

    pub fn append(&mut self, other: &Transcript) {
        self.add(&other.text, &other.quotes);
    }

    /// Appends another transcript, with its quotes ordered before all others.
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

    /// Creates a synthetic block of the transcript.
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

/// Text without quotes.
impl<T: Into<String>> From<T> for Transcript {
    fn from(text: T) -> Self {
        Transcript { text: text.into(), quotes: Vec::new() }
    }
}

/// Compares the text only.
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
    fn transcript_block_keeps_quotes() {
        let said = Draft::text(BlockKind::User, Role::User, "[User]: is quoted here");
        let mut inner = Transcript::default();
        inner.push("[User]: ");
        inner.push_block(&said);
        let mut all = Transcript::quoted(BlockKind::SummaryPrompt, "Sum this up:\n");
        all.append(&inner);
        let block = all.draft(BlockKind::SummaryPrompt, Role::User);
        let quoted: Vec<_> = block.quoted().map(|(q, text)| (q.kind, text)).collect();
        let want = [(BlockKind::SummaryPrompt, "Sum this up:\n"), (BlockKind::User, &*said.text)];
        assert_eq!(quoted, want);
        // Quotes survive in another transcript, but not a change of the text.
        let mut again = Transcript::from("- ");
        again.push_block(&block);
        let again = again.draft(BlockKind::SummaryPrompt, Role::User);
        assert_eq!(again.quoted().map(|(q, text)| (q.kind, text)).collect::<Vec<_>>(), want);
        let built = again.build(crate::block::MessageId(0), vec![]);
        assert_eq!(built.with_text(crate::block::BlockForm::Cleared, "gone").quotes, []);
    }
}
