//! Finds the messages that a transcript in a summary prompt quotes, so that the summariser knows the
//! speaker of each part, and the summaries that a program shows.
//!
//! A transcript contains the texts, mostly in order, whole or cut, plain or escaped for XML or JSON.
//! The search uses a stretch of each text that escaping does not change. A quote extends as far as
//! both texts are equal, or to the next quote.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, Quote, Role};
use ctxbench_provider::Prompt;

/// Minimum, preferred and maximum length of a stretch, bytes.
const MIN_STRETCH: usize = 12;
const GOOD_STRETCH: usize = 24;
const MAX_STRETCH: usize = 32;
/// The stretch is taken from this many bytes at the beginning of a text; the rest may be cut.
const BEGINNING: usize = 400;
const MIN_QUOTES: usize = 2;

/// Adds the quotes to a block that is a summary prompt with a transcript.
pub(crate) fn with_quotes(block: Arc<Block>, known: &[Arc<Block>]) -> Arc<Block> {
    if block.kind != BlockKind::SummaryPrompt {
        return block;
    }
    match quotes(&block.text, known) {
        Some(quotes) => block.map_draft(|d| d.quotes = quotes),
        None => block,
    }
}

/// Adds the quotes to the messages of another program's request for a summary, whatever their form.
pub(crate) fn mark(prompt: &mut Prompt, known: &[Arc<Block>]) {
    let last = prompt.items.len().saturating_sub(1);
    // A message of the conversation itself may quote others.
    let is_message =
        |text: &str| known.iter().any(|b| 2 * b.text.len() > text.len() && text.contains(&*b.text));
    for (i, item) in prompt.items.iter_mut().enumerate() {
        if item.role != Role::User || !item.is_text() || (i < last && is_message(item.text())) {
            continue;
        }
        let Some(quotes) = quotes(item.text(), known) else { continue };
        let kind = if i == last { BlockKind::SummaryPrompt } else { item.kind };
        item.shows = Some(Draft { kind, quotes, ..item.draft() }.ephemeral());
    }
}

/// Returns whether a text contains most lines of a summary. A program may take the summary out of
/// its tags.
pub(crate) fn contains_summary(text: &str, summary: &str) -> bool {
    let lines = summary.lines().map(str::trim).filter(|l| l.len() >= MIN_STRETCH);
    let (found, missing): (Vec<&str>, Vec<&str>) = lines.partition(|l| text.contains(l));
    !summary.trim().is_empty() && (text.contains(summary.trim()) || found.len() > missing.len())
}

/// Returns the quotes in a text and the prompt around them, or `None` if there are too few.
fn quotes(text: &str, known: &[Arc<Block>]) -> Option<Vec<Quote>> {
    let (mut found, mut elsewhere, mut from) = (Vec::new(), Vec::new(), 0);
    for b in known {
        match find_quote(&text[from..], b) {
            Some((at, length)) => {
                found.push((from + at, length, b));
                from += at + length;
            }
            None => elsewhere.push(b),
        }
    }
    // A program may move texts, and a text that repeats another one is found too late.
    for b in elsewhere {
        let Some((at, length)) = find_quote(text, b) else { continue };
        if found.iter().all(|(other, n, _)| at + length <= *other || other + n <= at) {
            found.push((at, length, b));
        }
    }
    // A program may summarise each result alone.
    let is_most = |(_, length, b): &(usize, usize, &Arc<Block>)| {
        b.kind == BlockKind::Output && 2 * length > text.len()
    };
    if found.len() < MIN_QUOTES && !found.iter().any(is_most) {
        return None;
    }
    found.sort_by_key(|(at, ..)| *at);
    let (begin, end) = (found[0].0, found.last().map_or(0, |(at, length, _)| at + length));
    let mut quotes: Vec<Quote> = Vec::with_capacity(found.len() + 2);
    // Whether the newest quote reaches the end of its text.
    let mut whole = true;
    for (at, length, b) in found {
        if let Some(before) = quotes.last_mut().filter(|_| !whole) {
            before.range.end = at;
        }
        whole = b.text.ends_with(&text[at..at + length]);
        let (kind, call) = (b.kind, b.call.clone());
        quotes.push(Quote { range: at..at + length, kind, call, is_error: b.is_error });
    }
    // The text around the quotes is the prompt.
    let asks = |range| Quote { range, kind: BlockKind::SummaryPrompt, call: None, is_error: false };
    quotes.insert(0, asks(0..begin));
    quotes.push(asks(end..text.len()));
    Some(quotes)
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
    use ctxbench_core::block::MessageId;
    use ctxbench_mock::summarise::unread;
    use ctxbench_provider::{Item, plain};

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

    #[test]
    fn quotes_are_found_where_a_program_moved_them() {
        let known = [
            block(BlockKind::User, "Please mend the login for returning customers."),
            block(BlockKind::Assistant, "The cookie is signed with the old key, so I rotate it."),
            block(BlockKind::Summary, "- The server answers 401 to returning customers"),
        ];
        let asked = format!("{}\n==\n{}\n==\n{}", known[2].text, known[0].text, known[1].text);
        let kinds: Vec<BlockKind> = quoted(&asked, &known).into_iter().map(|(k, _)| k).collect();
        assert_eq!(kinds, [BlockKind::Summary, BlockKind::User, BlockKind::Assistant]);
    }

    #[test]
    fn conversation_in_one_message_of_a_foreign_form_is_read() {
        let known = [
            block(BlockKind::User, "Please mend the login for returning customers."),
            block(BlockKind::Output, &"the server answers 401\n".repeat(800)),
        ];
        let asked =
            format!("Compact this.\n@1 by user@ {}\n@2 by tool@ {}", known[0].text, known[1].text);
        let mut prompt = Prompt::new("m", vec![Item::new(Role::User, plain(asked), 1, None)]);
        assert!(unread(&prompt).unwrap().contains("no part of the conversation"));
        mark(&mut prompt, &known);
        assert_eq!(unread(&prompt), None);
        let shown = prompt.items[0].shows.as_ref().unwrap();
        let kinds: Vec<BlockKind> = shown.quotes.iter().map(|q| q.kind).collect();
        let ask = BlockKind::SummaryPrompt;
        assert_eq!(kinds, [ask, BlockKind::User, BlockKind::Output, ask]);
    }

    #[test]
    fn one_result_is_read_where_it_is_most_of_the_text() {
        let result = block(BlockKind::Output, &"the server answers 401\n".repeat(2));
        let asked = format!("Result:\n{}", result.text);
        let read = |asked: &str, known: &Arc<Block>| quoted(asked, std::slice::from_ref(known));
        assert_eq!(read(&asked, &result), [(result.kind, result.text.to_string())]);
        assert!(read(&format!("{asked}{}", "Be short. ".repeat(9)), &result).is_empty());
        let message = block(BlockKind::User, "Please mend the login for returning customers.");
        assert!(read(&message.text, &message).is_empty());
    }

    #[test]
    fn summary_without_its_tags_is_still_contained() {
        let summary =
            "<summary>\n## Work State\n- The cookie is signed with the old key\n</summary>";
        assert!(contains_summary(&format!("Earlier:\n{summary}"), summary));
        let inside = "Earlier: ## Work State\n- The cookie is signed with the old key\nGo on.";
        assert!(contains_summary(inside, summary));
        assert!(!contains_summary("## Work State\n- other", summary));
        assert!(!contains_summary("anything", " "));
    }
}
