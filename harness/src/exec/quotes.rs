//! Which messages a text of the program quotes, so that whoever writes its summary knows who said
//! what.
//!
//! A transcript has the texts in their order, whole or cut, as they are or escaped for XML or JSON.
//! So what is looked for is a stretch of each text that no such form changes, and what it quotes
//! reaches as far as the text goes on, or to the next one that is found.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Quote};

/// A stretch that is looked for is at least this long, best this long, and no longer, bytes.
const LEAST: usize = 12;
const GOOD: usize = 24;
const MOST: usize = 32;
/// It stands within so much of the beginning of a text, since what follows may be cut, bytes.
const BEGINNING: usize = 400;
/// Quotes from which a text is a transcript.
const TRANSCRIPT: usize = 2;

/// The block with what it quotes, if it asks for a summary and is a transcript.
pub(super) fn marked(block: Arc<Block>, known: &[Arc<Block>]) -> Arc<Block> {
    if block.kind != BlockKind::SummaryPrompt {
        return block;
    }
    let text = &*block.text;
    let mut quotes: Vec<Quote> = Vec::new();
    // Whether the text of the newest quote ended, or the transcript says it otherwise from there.
    let mut whole = true;
    let mut from = 0;
    for b in known {
        let Some((at, length)) = found(&text[from..], b) else { continue };
        let at = from + at;
        if let Some(before) = quotes.last_mut().filter(|_| !whole) {
            before.range.end = at;
        }
        whole = b.text.ends_with(&text[at..at + length]);
        from = at + length;
        let (kind, call) = (b.kind, b.call.clone());
        quotes.push(Quote { range: at..from, kind, call, is_error: b.is_error });
    }
    if quotes.len() < TRANSCRIPT {
        return block;
    }
    let (begin, end) = (quotes[0].range.start, quotes[quotes.len() - 1].range.end);
    // What stands around them asks.
    let asks = |range| Quote { range, kind: BlockKind::SummaryPrompt, call: None, is_error: false };
    quotes.insert(0, asks(0..begin));
    quotes.push(asks(end..text.len()));
    block.map_draft(|d| d.quotes = quotes)
}

/// Where the block's text stands, and how far it goes on letter by letter.
fn found(text: &str, b: &Block) -> Option<(usize, usize)> {
    let beginning = &b.text[..b.text.floor_char_boundary(BEGINNING)];
    let mut plain = beginning.split(|c: char| c.is_control() || "&<>\"'\\".contains(c));
    let stretch = plain
        .clone()
        .find(|s| s.len() >= GOOD)
        .or_else(|| plain.find(|s| s.trim().len() >= LEAST))?;
    let stretch = &stretch[..stretch.floor_char_boundary(MOST)];
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
        let marked = marked(block(BlockKind::SummaryPrompt, asked), known);
        let quotes = marked.quoted().filter(|(q, _)| q.kind != BlockKind::SummaryPrompt);
        quotes.map(|(q, text)| (q.kind, text.to_string())).collect()
    }

    #[test]
    fn a_transcript_is_told_by_what_it_quotes_escaped_and_cut_texts_among_it() {
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
    fn a_text_that_quotes_nothing_stays_as_it_is() {
        let known = [block(BlockKind::User, "Please mend the login for returning customers.")];
        assert!(quoted("Summarise what was said above.", &known).is_empty());
    }
}
