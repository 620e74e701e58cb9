//! Content that a compaction removed from the context and added to it, with excerpts of the largest
//! blocks.

use ctxbench_core::model::Counting;
use ctxbench_core::prelude::*;
use ctxbench_reports::record::{BlockText, EXCERPT, FactPlace, Portion, SUMMARY_TEXT};
use ctxbench_util::cut::cut;
use rapidhash::{HashMapExt, RapidHashMap as HashMap};
use serde::Serialize;

use super::facts::{fact_place, readable};
use super::recording;

/// Maximum total length of the excerpts of a run, in characters. The first compactions use it
/// first.
pub(super) const WORDS: usize = 120_000;

/// Maximum number of blocks of one kind that have excerpts. The limit is higher for restored files,
/// because each is a different file.
const LARGEST: usize = 2;
const FILES: usize = 6;

/// Returns the blocks of the first context that are not in the second one. Each block of the second
/// context cancels one equal block.
fn only_in<'a>(these: &'a [Arc<Block>], others: &[Arc<Block>]) -> Vec<&'a Block> {
    let key = |b: &Block| (b.kind, b.form, b.hash);
    let mut left: HashMap<(BlockKind, BlockForm, u64), usize> = HashMap::new();
    others.iter().for_each(|b| *left.entry(key(b)).or_default() += 1);
    let gone = |b: &&Block| match left.get_mut(&key(b)) {
        Some(n) if *n > 0 => {
            *n -= 1;
            false
        }
        _ => true,
    };
    these.iter().map(|b| &**b).filter(gone).collect()
}

/// Returns the removed and the added blocks. `room` = number of characters that excerpts may still
/// use.
pub(super) fn between(
    before: &[Arc<Block>],
    after: &[Arc<Block>],
    by: &Counting,
    room: &mut usize,
) -> (Vec<Portion>, Vec<Portion>) {
    let came = portions(only_in(after, before), by, room);
    (portions(only_in(before, after), by, room), came)
}

fn portions(blocks: Vec<&Block>, by: &Counting, room: &mut usize) -> Vec<Portion> {
    let mut kinds: Vec<(String, Vec<(u64, &Block)>)> = Vec::new();
    for b in blocks {
        let (name, sized) = (block_name(b.kind, b.form), (b.tokens(by), b));
        match kinds.iter_mut().find(|(kind, _)| *kind == name) {
            Some((_, all)) => all.push(sized),
            None => kinds.push((name, vec![sized])),
        }
    }
    let portion = |(kind, mut all): (String, Vec<(u64, &Block)>)| {
        // The sort is stable: equal blocks keep their order.
        all.sort_by_key(|(tokens, _)| std::cmp::Reverse(*tokens));
        let largest = if all[0].1.kind == BlockKind::File { FILES } else { LARGEST };
        Portion {
            kind,
            blocks: all.len() as u64,
            tokens: all.iter().map(|(tokens, _)| tokens).sum(),
            texts: all.iter().take(largest).filter_map(|(n, b)| words(b, *n, room)).collect(),
        }
    };
    let mut out: Vec<Portion> = kinds.into_iter().map(portion).collect();
    out.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.kind.cmp(&b.kind)));
    out
}

/// Returns an excerpt of a block. `None` if the block has no readable text or `room` is used up.
fn words(b: &Block, tokens: u64, room: &mut usize) -> Option<BlockText> {
    let all = recording::readable(readable(b));
    let text = match fact_place(b) {
        FactPlace::Summary => cut(all.trim(), SUMMARY_TEXT),
        // Long blocks are not read to their end.
        _ => {
            let near: String = all.chars().take(2 * EXCERPT).collect();
            let flat = near.split_whitespace().collect::<Vec<_>>().join(" ");
            cut(&flat, EXCERPT)
        }
    };
    let long = text.chars().count();
    if text.is_empty() || long > *room {
        return None;
    }
    *room -= long;
    Some(BlockText { tool: b.call.as_ref().map(|c| c.name.to_string()), tokens, text })
}

pub(crate) fn recorded_summary(text: Option<&str>, tokens: u64) -> Vec<Portion> {
    let portion = |text: &str| Portion {
        kind: spaced_name(&BlockKind::Summary),
        blocks: 1,
        tokens,
        texts: vec![BlockText { tool: None, tokens, text: cut(text.trim(), SUMMARY_TEXT) }],
    };
    text.filter(|t| !t.trim().is_empty()).map(portion).into_iter().collect()
}

/// Formats a kind of block, followed by its form unless it is verbatim.
pub fn block_name(kind: BlockKind, form: BlockForm) -> String {
    let form = match form {
        BlockForm::Verbatim => "",
        BlockForm::Cleared => " cleared",
        BlockForm::Truncated => " cut",
        BlockForm::Synthetic => " made",
    };
    format!("{}{form}", spaced_name(&kind))
}

/// Returns the serialised name with spaces instead of underscores.
pub fn spaced_name(name: &impl Serialize) -> String {
    serde_json::to_value(name)
        .ok()
        .and_then(|v| v.as_str().map(|s| s.replace('_', " ")))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{Draft, MessageId, Role};

    fn block(kind: BlockKind, text: &str) -> Arc<Block> {
        Draft::text(kind, Role::User, text).build(MessageId(0), vec![])
    }

    fn summarize(all: &[Portion]) -> Vec<(&str, u64, Vec<&str>)> {
        all.iter()
            .map(|p| (&*p.kind, p.blocks, p.texts.iter().map(|t| &*t.text).collect()))
            .collect()
    }

    #[test]
    fn what_stays_is_neither_gone_nor_new() {
        let stays = block(BlockKind::User, "mend the login");
        let long = block(BlockKind::Output, &"a long result ".repeat(40));
        let short = block(BlockKind::Output, "a  short\nresult");
        let summary = block(BlockKind::Summary, "the login\nis mended");
        let (went, came) = between(
            &[stays.clone(), long.clone(), short.clone(), short.clone()],
            &[summary, stays, short],
            &Counting::O200K,
            &mut 10_000,
        );
        // One of two equal results was removed.
        assert_eq!(went.len(), 1);
        assert_eq!((went[0].kind.as_str(), went[0].blocks), ("output", 2));
        assert_eq!(went[0].texts[0].text.chars().count(), EXCERPT);
        assert_eq!(went[0].texts[1].text, "a short result");
        assert_eq!(summarize(&came), [("summary", 1, vec!["the login\nis mended"])]);
    }

    #[test]
    fn summaries_are_long_and_a_run_has_room_for_some() {
        let summary = block(BlockKind::Summary, &"ä".repeat(5_000));
        let mut room = 4_500;
        let (_, came) = between(&[], std::slice::from_ref(&summary), &Counting::O200K, &mut room);
        assert_eq!(came[0].texts[0].text.chars().count(), SUMMARY_TEXT);
        assert_eq!(room, 500);
        // The next one has no room for an excerpt, but its size is reported.
        let (_, came) = between(&[], &[summary], &Counting::O200K, &mut room);
        assert_eq!((came[0].blocks, came[0].texts.len(), room), (1, 0, 500));
    }

    #[test]
    fn a_recorded_summary_is_kept_and_an_empty_one_is_none() {
        let kept = recorded_summary(Some(" what was done "), 4);
        assert_eq!(summarize(&kept), [("summary", 1, vec!["what was done"])]);
        assert_eq!(recorded_summary(Some("  "), 0), []);
    }
}
