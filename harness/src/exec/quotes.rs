//! Which messages a text of the program quotes, so that whoever writes its summary knows who said
//! what.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Quote};

/// What is looked for is at least this long and its beginning this long at most, bytes.
const LEAST: usize = 12;
const BEGINNING: usize = 64;
/// Of what a text quotes, this share must be found; else it is read as a foreign text.
const FOUND_PCT: usize = 50;

/// The block with what it quotes, if it asks for a summary and quotes most of what it says: a
/// transcript in any form that leaves texts as they are, in order.
pub(super) fn marked(block: Arc<Block>, known: &[Arc<Block>]) -> Arc<Block> {
    if block.kind != BlockKind::SummaryPrompt {
        return block;
    }
    let text = &*block.text;
    let mut quotes: Vec<Quote> = Vec::new();
    let mut from = 0;
    for b in known.iter().filter(|b| b.text.len() >= LEAST) {
        let beginning = &b.text[..b.text.floor_char_boundary(BEGINNING)];
        let Some(at) = text[from..].find(beginning).map(|i| from + i) else { continue };
        let same = |(a, b): &(char, char)| a == b;
        let length: usize = text[at..]
            .chars()
            .zip(b.text.chars())
            .take_while(same)
            .map(|(c, _)| c.len_utf8())
            .sum();
        from = at + length;
        let (kind, call) = (b.kind, b.call.clone());
        quotes.push(Quote { range: at..from, kind, call, is_error: b.is_error });
    }
    let found: usize = quotes.iter().map(|q| q.range.len()).sum();
    let (Some(first), Some(last)) = (quotes.first(), quotes.last()) else { return block };
    let (begin, end) = (first.range.start, last.range.end);
    if found * 100 < (end - begin) * FOUND_PCT {
        return block;
    }
    // What stands around them asks.
    let asks = |range| Quote { range, kind: BlockKind::SummaryPrompt, call: None, is_error: false };
    quotes.insert(0, asks(0..begin));
    quotes.push(asks(end..text.len()));
    block.redraft(|d| d.quotes = quotes)
}
