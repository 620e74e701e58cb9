//! OpenOxide: functions on the view, and the conversation as text for the weak model.

use std::collections::HashMap;

use ctxbench_core::prelude::*;
use ctxbench_kit::memory::{IndexLimit, cut_index};

use super::budget::{PromptChunks, PromptPart};
use crate::openoxide::budget::{OpenOxideSettings, PruneOrder};

/// Returns true if a block belongs to the conversation and not to the fixed part.
pub fn is_conversation(b: &Block) -> bool {
    !is_system(b)
        && !matches!(
            b.kind,
            BlockKind::Context | BlockKind::RepoMap | BlockKind::File | BlockKind::Reminder
        )
}

pub fn conversation(blocks: &[Arc<Block>], before: usize) -> Vec<Arc<Block>> {
    blocks[..before].iter().filter(|b| is_conversation(b)).cloned().collect()
}

fn said_by_user(b: &Block) -> bool {
    matches!(b.kind, BlockKind::User | BlockKind::Image)
}

/// Returns the positions at which user messages begin, including images before the text. Fixed
/// blocks may have any message ID, so only the user's own blocks are compared.
fn user_messages(blocks: &[Arc<Block>]) -> Vec<usize> {
    let begin = |i: usize| {
        let same = |b: &&Arc<Block>| said_by_user(b) && b.message == blocks[i].message;
        i - blocks[..i].iter().rev().take_while(same).count()
    };
    let mut out: Vec<usize> =
        (0..blocks.len()).filter(|&i| blocks[i].kind == BlockKind::User).map(begin).collect();
    out.dedup();
    out
}

/// Returns the position at which the newest user message begins.
pub fn newest_turn(blocks: &[Arc<Block>]) -> Option<usize> {
    user_messages(blocks).pop()
}

/// Returns the blocks of the newest user message, as the user wrote it.
pub fn newest_user(blocks: &[Arc<Block>]) -> Vec<Arc<Block>> {
    let Some(at) = newest_turn(blocks) else { return Vec::new() };
    blocks[at..]
        .iter()
        .take_while(|b| said_by_user(b) && b.message == blocks[at].message)
        .cloned()
        .collect()
}

pub fn newest_message(blocks: &[Arc<Block>]) -> Option<MessageId> {
    blocks.iter().flat_map(|b| b.origin.iter().map(|o| o.message)).max()
}

/// Returns the position of the provider's newest compaction. A failed compaction is empty and is
/// skipped.
pub fn server_compaction(blocks: &[Arc<Block>]) -> Option<usize> {
    blocks.iter().rposition(|b| b.kind == BlockKind::Compaction && !b.text.is_empty())
}

/// Returns the positions of the tool results to clear: before the newest `keep_turns` turns, except
/// the newest or most important ones that are protected. Results of the newest turns do not count
/// as protected, as in OpenCode (docs/sources/openoxide.md §1.3).
pub fn prunable(
    blocks: &[Arc<Block>],
    rule: PruneRule,
    keep_turns: usize,
    placeholder: usize,
    order: PruneOrder,
) -> Vec<usize> {
    let turns = user_messages(blocks);
    let end = match keep_turns {
        0 => blocks.len(),
        n if n <= turns.len() => turns[turns.len() - n],
        _ => return Vec::new(),
    };
    let mut places: Vec<usize> =
        (0..end).rev().filter(|&i| blocks[i].kind == BlockKind::Output).collect();
    if order == PruneOrder::Importance {
        let ranks = importance(blocks, &places);
        // The sort is stable: results of equal rank stay newest first.
        places.sort_by_key(|i| std::cmp::Reverse(ranks[i]));
    }
    let sizes = places.iter().map(|&i| {
        let b = &blocks[i];
        let is_clearable = b.form != BlockForm::Cleared && b.bytes() > placeholder;
        is_clearable.then(|| bytes_div4_down(&b.text))
    });
    prune_walk(sizes, rule).into_iter().map(|k| places[k]).collect()
}

/// Returns the number of the oldest blocks of the finished history that one background summary
/// covers: all except the newest half of the budget, cut between a result and the next message, and
/// at most as many as the weak model can read. 0 = a summary would gain nothing.
pub fn head_end(history: &[Arc<Block>], cap: u64, readable: u64, output_bytes: usize) -> usize {
    let starts = group_starts(history);
    let mut end = suffix_within(history, &starts, cap / 2, |b| bytes_div4_down(&b.text))
        .unwrap_or(history.len());
    // A head that consists only of the previous summary would be summarised endlessly
    // (docs/sources/aider.md §1.1, depth).
    if end == 1 && history[0].kind == BlockKind::Summary {
        end = history.len();
    }
    let mut read = 0;
    let mut last = 0;
    for (k, &start) in starts.iter().enumerate().filter(|(_, s)| **s < end) {
        let next = starts.get(k + 1).copied().unwrap_or(history.len()).min(end);
        read += bytes_div4_down(&transcript(&history[start..next], output_bytes));
        if read > readable {
            break;
        }
        last = next;
    }
    if last == 1 && history[0].kind == BlockKind::Summary { 0 } else { last }
}

/// Formats the conversation as one text under role headings. Tool results are cut to
/// `output_bytes`, and reasoning is left out.
pub fn transcript(blocks: &[Arc<Block>], output_bytes: usize) -> Transcript {
    let mut out = Transcript::default();
    for b in blocks {
        let tool = b.call.as_ref().map_or("", |c| &*c.name);
        let (heading, text) = match b.kind {
            BlockKind::Reasoning | BlockKind::Image => continue,
            BlockKind::Call => (format!("# CALL {tool}"), &*b.text),
            BlockKind::Output => {
                (format!("# RESULT {tool}"), &b.text[..b.text.floor_char_boundary(output_bytes)])
            }
            _ if b.role == Role::Assistant && b.kind != BlockKind::Compaction => {
                ("# ASSISTANT".to_string(), &*b.text)
            }
            _ => ("# USER".to_string(), &*b.text),
        };
        out.push(&heading);
        out.push("\n");
        if text.len() < b.bytes() {
            out.quote(b, &format!("{text}…"));
        } else {
            out.push_block(b);
        }
        out.push("\n");
    }
    out
}

/// Path of the agent's own memory index (docs/sources/openoxide.md §1.7: `auto_memory`).
const MEMORY_INDEX: &str = "/memory/MEMORY.md";

/// Returns a memory file in the form in which it is loaded: the first `lines` lines of the agent's
/// own index, or any other file in full. A memory block is a heading with the path, an empty line
/// and the text.
pub fn memory_index(b: &Arc<Block>, lines: usize) -> Arc<Block> {
    let is_index = b.kind == BlockKind::Context
        && b.text.lines().next().is_some_and(|l| l.ends_with(MEMORY_INDEX));
    let (shown, rest) = cut_index(&b.text, IndexLimit { lines: lines + 2, bytes: None });
    if is_index && !rest.is_empty() { b.with_text(BlockForm::Truncated, shown) } else { b.clone() }
}

/// Splits the fixed part and cuts the repository map to its budget at a line end. A ranked map
/// loses its least relevant lines.
pub(super) fn fixed_chunks(
    blocks: &[Arc<Block>],
    settings: &OpenOxideSettings,
    system: u64,
    window: u64,
) -> PromptChunks {
    let mut chunks = PromptChunks::split(blocks, blocks.len());
    let Some(given) = settings.allocate(window, &chunks.demand(system)) else { return chunks };
    let mut left = 4 * given.repo_map as usize + 3;
    for b in &mut chunks[PromptPart::RepoMap] {
        let head = &b.text[..b.text.floor_char_boundary(left)];
        let cut = head.rfind('\n').map_or(head, |i| &head[..=i]);
        let cut = (b.bytes() > left).then(|| b.with_text(BlockForm::Truncated, cut));
        left = left.saturating_sub(b.bytes());
        *b = cut.unwrap_or_else(|| b.clone());
    }
    chunks[PromptPart::RepoMap].retain(|b| b.bytes() > 0);
    chunks
}

/// Importance of a result, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// No sign of importance.
    Plain,
    /// A later message or call mentions a name that this result was the first to contain.
    Used,
    /// The tool failed. Without the result the model may repeat the failure.
    Error,
}

/// Minimum length of a name in bytes. Shorter ones match by chance.
const SHORTEST: usize = 6;

/// Returns the ranks of the results at these positions of a view.
pub fn importance(blocks: &[Arc<Block>], places: &[usize]) -> HashMap<usize, Rank> {
    let mut ranks: HashMap<usize, Rank> = places
        .iter()
        .map(|&i| (i, if blocks[i].is_error { Rank::Error } else { Rank::Plain }))
        .collect();
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (i, b) in blocks.iter().enumerate() {
        let speaks = matches!(b.kind, BlockKind::User | BlockKind::Assistant | BlockKind::Call);
        for word in names(&b.text) {
            let shown = *first.entry(word).or_insert(i);
            if let Some(rank) = ranks.get_mut(&shown).filter(|_| speaks && shown < i) {
                *rank = Rank::Used.max(*rank);
            }
        }
    }
    ranks
}

/// Splits out names: paths, identifiers, numbers with a unit, hashes. Ordinary prose contains none
/// of the characters that mark them.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let inside = |c: char| c.is_alphanumeric() || "_./:-".contains(c);
    text.split(move |c| !inside(c))
        .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|w| w.len() >= SHORTEST && w.chars().any(|c| c.is_numeric() || "_/.:".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block;

    #[test]
    fn errors_come_first_then_what_is_named_later() {
        use BlockKind::{Assistant, Call, Output, User};
        let view = [
            block(User, 0, "look at src/known.rs"),
            block(Output, 0, "src/known.rs is long"),
            block(Output, 0, "the pool is pool_size_max, see src/pool.rs"),
            block(Output, 0, "E0433 unresolved").map_draft(|d| d.is_error = true),
            block(Output, 0, "nobody names port 8443-internal"),
            block(Assistant, 0, "src/known.rs was known before the result"),
            block(Call, 0, "{\"path\":\"src/pool.rs\"}"),
        ];
        let ranks = importance(&view, &[1, 2, 3, 4]);
        let want = [Rank::Plain, Rank::Used, Rank::Error, Rank::Plain];
        assert_eq!([1, 2, 3, 4].map(|i| ranks[&i]), want);
        assert!(Rank::Error > Rank::Used && Rank::Used > Rank::Plain);
    }

    #[test]
    fn prose_names_nothing() {
        assert_eq!(names("a sentence. Another one, longer").count(), 0);
        assert_eq!(
            names("(src/a.rs), v1.2.34: 12 MB").collect::<Vec<_>>(),
            ["src/a.rs", "v1.2.34"]
        );
    }
}
