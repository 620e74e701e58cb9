//! Baselines: no compaction at all, with an unlimited or the real window, nothing kept at all, and lists
//! that state nothing. And two techniques, a sliding window and observation masking.

use std::collections::HashSet;

use ctxbench_core::block::is_fixed;
use ctxbench_core::breakpoints::frontier_breakpoints;
use ctxbench_core::prelude::*;
use ctxbench_core::strategy::PASSING_RETRIES;
use ctxbench_core::tokens;
use serde::Deserialize;

use crate::descriptor::Known;
use crate::shared::Places;

/// No compaction in an unlimited window: the 100 % row.
pub(crate) const REFERENCE: Known =
    Known::new(include_str!("controls/reference.toml"), |_| Box::new(Nothing));

/// No compaction in the real window.
pub(crate) const NO_COMPACTION: Known =
    Known::new(include_str!("controls/none.toml"), |_| Box::new(Nothing));

/// Keeps only the newest message and step.
pub(crate) const KEEP_NOTHING: Known =
    Known::new(include_str!("controls/keep-nothing.toml"), |_| Box::new(KeepNothing));

/// Keeps the newest message and step, and of the rest every long word once, in order.
pub(crate) const WORD_LIST: Known = Known::new(include_str!("controls/word-list.toml"), |b| {
    Box::new(WordList { settings: b.settings(), is_shuffled: false })
});

/// Like [`WORD_LIST`], in no order.
pub(crate) const SHUFFLED_LIST: Known =
    Known::new(include_str!("controls/shuffled-list.toml"), |b| {
        Box::new(WordList { settings: b.settings(), is_shuffled: true })
    });

/// When the window is nearly full, the oldest whole turns (or, in the newest turn, the oldest whole
/// steps) are dropped until a share of the window is free again. Calls and results are always dropped
/// together.
pub(crate) const SLIDING_WINDOW: Known =
    Known::new(include_str!("sliding_window.toml"), |b| Box::new(b.settings::<Window>()));

/// Every tool result except the newest M shows a placeholder.
///
/// This is the baseline of "The Complexity Trap" (arXiv 2508.21433, M = 10), which halved the cost
/// and solved as many tasks as a run without compaction (docs/sources/peers-and-metrics.md §1b).
/// Results are masked in batches, because masking one result per step would break the prompt cache
/// each time.
pub(crate) const OBSERVATION_MASKING: Known =
    Known::new(include_str!("observation_masking.toml"), |b| {
        Box::new(Masking { settings: b.settings(), words: b.texts() })
    });

struct Nothing;

#[async_trait]
impl Strategy for Nothing {
    // Nothing is forgotten, even at the end of a session.
    async fn on_new_session(&mut self, _s: &mut Engine) {}
}

/// Returns the fixed blocks, the newest user message and the newest step.
fn newest(blocks: &[Arc<Block>]) -> Vec<Arc<Block>> {
    let last_user = blocks.iter().rposition(|b| b.kind == BlockKind::User);
    let last_message = last_user.map(|i| blocks[i].message);
    let steps = step_starts(blocks);
    let step = steps.last().copied().filter(|i| Some(*i) > last_user).unwrap_or(blocks.len());
    kept(blocks, |i, b| is_fixed(b) || Some(b.message) == last_message || i >= step)
}

struct KeepNothing;

#[async_trait]
impl Strategy for KeepNothing {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let kept = newest(s.context.blocks());
        if kept.len() < s.context.blocks().len() {
            // Whole steps are removed, so the edit is always valid.
            let _ = s.compacted(CompactionKind::Drop, "drop_all", Phase::MidTurn, kept);
        }
        Flow::Proceed
    }
}

struct WordList {
    settings: ListSettings,
    is_shuffled: bool,
}

/// Values of the settings in `word-list.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListSettings {
    limit: f64,
}

/// Minimum length of a listed word, bytes.
const LONG: usize = 8;

#[async_trait]
impl Strategy for WordList {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let mut kept = newest(s.context.blocks());
        let limit = (s.model.window as f64 * self.settings.limit) as u64;
        if s.billed_tokens() < limit || kept.len() == s.context.blocks().len() {
            return Flow::Proceed;
        }
        let (mut listed, mut list) = (HashSet::new(), Vec::new());
        let old: Vec<Arc<Block>> =
            s.context.blocks().iter().filter(|b| !is_fixed(b)).cloned().collect();
        for word in old.iter().flat_map(|b| b.text.split_whitespace()) {
            if word.len() >= LONG && listed.insert(word) {
                list.push(word);
            }
        }
        if self.is_shuffled {
            list.sort_by_key(|w| tokens::content_hash(w.as_bytes()));
        }
        let at = kept.iter().take_while(|b| is_fixed(b)).count();
        let list = s.synthetic(BlockKind::Reminder, Role::User, list.join(" "), origins(&old));
        kept.insert(at, list);
        let _ = s.compacted(CompactionKind::Clear, "list_words", Phase::MidTurn, kept);
        Flow::Proceed
    }
}

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    /// Share of the window at which turns are dropped.
    high: f64,
    /// Share of the window that stays filled after dropping.
    low: f64,
}

impl Window {
    /// Drops the oldest turns, then the oldest steps of the newest turn, until `target` tokens are
    /// left or nothing more can be dropped.
    fn slide(s: &mut Engine, target: u64) -> bool {
        let blocks = s.context.blocks();
        let turns = turn_starts(blocks);
        let Some(&newest) = turns.last() else { return false };
        let user_end = newest
            + blocks[newest..].iter().take_while(|b| b.message == blocks[newest].message).count();
        let steps: Vec<usize> = step_starts(blocks).into_iter().filter(|&i| i > newest).collect();
        // Cut points: before each later turn, and then before each later step of the newest turn,
        // with its user message kept.
        let by_turn = turns.iter().skip(1).map(|&t| (t, t));
        let by_step = steps.iter().skip(1).map(|&p| (newest, p));
        let mut best = None;
        for (turn, step) in by_turn.chain(by_step) {
            let asked = |i| i >= turn && i < user_end && turn == newest;
            let kept = kept(blocks, |i, b| is_fixed(b) || i >= step || asked(i));
            let fits = s.prompt_tokens(&kept) <= target;
            best = Some(kept);
            if fits {
                break;
            }
        }
        match best {
            Some(kept) if kept.len() < blocks.len() => {
                s.compacted(CompactionKind::Drop, "slide", Phase::MidTurn, kept).is_ok()
            }
            _ => false,
        }
    }
}

#[async_trait]
impl Strategy for Window {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let used = s.billed_tokens();
        let limit = (s.model.window as f64 * self.high) as u64;
        if used >= limit {
            s.trigger("before_request", used, limit);
            let target = (s.model.window as f64 * self.low) as u64;
            Self::slide(s, target);
        }
        Flow::Proceed
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        let target = (s.model.window as f64 * self.low / f64::from(attempt + 1)) as u64;
        if e.is_overflow() && attempt <= 4 && Self::slide(s, target) {
            Flow::Again
        } else {
            again_if_passing(e, attempt, PASSING_RETRIES)
        }
    }
}

/// Texts in `observation_masking.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MaskingWords {
    placeholder: Arc<str>,
}

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MaskingSettings {
    keep: usize,
    batch: usize,
    breakpoints: Places,
}

struct Masking {
    settings: MaskingSettings,
    words: MaskingWords,
}

#[async_trait]
impl Strategy for Masking {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let blocks = s.context.blocks();
        let live: Vec<usize> = (0..blocks.len())
            .filter(|&i| {
                blocks[i].kind == BlockKind::Output && blocks[i].form != BlockForm::Cleared
            })
            .collect();
        let MaskingSettings { keep, batch, .. } = self.settings;
        if live.len() >= keep.saturating_add(batch.max(1)) {
            let old = &live[..live.len() - keep];
            let masked = clear_outputs(blocks, old, &self.words.placeholder);
            // Clearing does not separate calls from results.
            let _ = s.compacted(CompactionKind::Clear, "mask", Phase::MidTurn, masked);
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        if self.settings.breakpoints == Places::Frontier && s.options().default_breakpoints {
            let outputs =
                || r.blocks.iter().enumerate().filter(|(_, b)| b.kind == BlockKind::Output);
            // The oldest are masked first.
            let masked = outputs().take_while(|(_, b)| b.form == BlockForm::Cleared).count();
            let next = outputs().nth(masked).filter(|_| masked > 0).map(|(at, _)| at);
            r.breakpoints = frontier_breakpoints(&r.blocks, next);
        }
        r
    }
}
