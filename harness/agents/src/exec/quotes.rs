//! Finds the messages that a transcript in a summary prompt quotes, so that the summariser knows the
//! speaker of each part.
//!
//! A transcript contains the texts in order, whole or cut, plain or escaped for XML or JSON. The search
//! uses a stretch of each text that escaping does not change. A quote extends as far as both texts are
//! equal, or to the next quote.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Quote};

/// Minimum, preferred and maximum length of a stretch, bytes.
const MIN_STRETCH: usize = 12;
const GOOD_STRETCH: usize = 24;
const MAX_STRETCH: usize = 32;
/// The stretch is taken from this many bytes at the beginning of a text; the rest may be cut.
const BEGINNING: usize = 400;
const MIN_QUOTES: usize = 2;

/// Adds the quotes to a block that is a summary prompt with a transcript.
pub(super) fn with_quotes(block: Arc<Block>, known: &[Arc<Block>]) -> Arc<Block> {
    if block.kind != BlockKind::SummaryPrompt {
        return block;
    }
    let text = &*block.text;
    let mut quotes: Vec<Quote> = Vec::new();
    // Whether the newest quote reaches the end of its text.
    let mut whole = true;
    let mut from = 0;
    for b in known {
        let Some((at, length)) = find_quote(&text[from..], b) else { continue };
        let at = from + at;
        if let Some(before) = quotes.last_mut().filter(|_| !whole) {
            before.range.end = at;
        }
        whole = b.text.ends_with(&text[at..at + length]);
        from = at + length;
        let (kind, call) = (b.kind, b.call.clone());
        quotes.push(Quote { range: at..from, kind, call, is_error: b.is_error });
    }
    if quotes.len() < MIN_QUOTES {
        return block;
    }
    let (begin, end) = (quotes[0].range.start, quotes[quotes.len() - 1].range.end);
    // The text around the quotes is the prompt.
    let asks = |range| Quote { range, kind: BlockKind::SummaryPrompt, call: None, is_error: false };
    quotes.insert(0, asks(0..begin));
    quotes.push(asks(end..text.len()));
    block.map_draft(|d| d.quotes = quotes)
}

/// Returns the position and length of the beginning of a block's text.
fn find_quote(text: &str, b: &Block) -> Option<(usize, usize)> {
    let beginning = &b.text[..b.text.floor_char_boundary(BEGINNING)];
    let mut plain = beginning.split(|c: char| c.is_control() || "&<>\"'\\".contains(c));
    let stretch = plain
        .clone()
        .find(|s| s.len() >= GOOD_STRETCH)
        .or_else(|| plain.find(|s| s.trim().len() >= MIN_STRETCH))?;
    let stretch = &stretch[..stretch.floor_char_boundary(MAX_STRETCH)];
    let at = text.find(stretch)?;
    let rest = &b.text[b.text.find(stretch)?..];
    let same = |(a, b): &(char, char)| a == b;
    let pairs = text[at..].chars().zip(rest.chars()).take_while(same);
    Some((at, pairs.map(|(c, _)| c.len_utf8()).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{Draft, MessageId, Role};

    fn block(kind: BlockKind, text: &str) -> Arc<Block> {
        Draft::text(kind, Role::User, text).build(MessageId(0), vec![])
    }

    fn quoted(asked: &str, known: &[Arc<Block>]) -> Vec<(BlockKind, String)> {
        let marked = with_quotes(block(BlockKind::SummaryPrompt, asked), known);
        let quotes = marked.quoted().filter(|(q, _)| q.kind != BlockKind::SummaryPrompt);
        quotes.map(|(q, text)| (q.kind, text.to_string())).collect()
    }

    #[test]
    fn with_quotes_of_transcript_finds_plain_escaped_and_cut_texts() {
        let known = [
            block(BlockKind::User, "Please mend the login for returning customers."),
            block(BlockKind::Output, "<html> the server answers 401 & \"no session\" to everybody"),
            block(BlockKind::Assistant, "The cookie is signed with the old key, so I rotate it."),
        ];
        let asked = "Summarise.\n<messages>\n<m>Please mend the login for returning customers.</m>\n\
                     <m>&lt;html&gt; the server answers 401 &amp; &quot;no session&quot; to everybody</m>\n\
                     <m>The cookie is signed with the old...</m>\n</messages>";
        let found = quoted(asked, &known);
        let texts: Vec<&str> = found.iter().map(|(_, t)| t.trim()).collect();
        assert_eq!(found[0], (BlockKind::User, known[0].text.to_string()));
        assert!(texts[1].starts_with("the server answers 401 &amp; &quot;no session"), "{texts:?}");
        assert_eq!(texts[2], "The cookie is signed with the old");
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn with_quotes_of_text_without_quotes_returns_it_unchanged() {
        let known = [block(BlockKind::User, "Please mend the login for returning customers.")];
        assert!(quoted("Summarise what was said above.", &known).is_empty());
    }
}
