//! Generational collection, after the garbage collectors of programming languages: what is young
//! stays as it is, what is old becomes a journal of exact lines, and it is collected when the garbage
//! has cost as much as collecting it. Not a product; README.md describes it.

mod journal;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use ctxbench_core::breakpoints::frontier_breakpoints;
use ctxbench_core::history::Message;
use ctxbench_core::prelude::*;
use ctxbench_core::strategy::PASSING_RETRIES;
use ctxbench_core::tokens::Size;
use ctxbench_core::usage::Ttl;
use serde::Deserialize;

use crate::descriptor::Known;
use crate::shared::is_fixed;
use journal::{Journal, Line};

pub(crate) const GENERATIONAL: Known = Known::new(include_str!("about.toml"), |b| {
    Box::new(Generational { settings: b.settings(), ..Generational::default() })
});

/// Shares of the window after system prompt and tools: above the first the view is shrunk, to at most
/// the second.
const HIGH: f64 = 0.85;
const LOW: f64 = 0.6;

/// First line of each block of the journal.
const HEADER: &str =
    "(Journal of earlier work: exact lines of messages, calls (>) and results; some are left out.)";

/// Number of ever smaller views that are tried when the window is nearly full, with young replies and
/// then without.
const STEPS: u32 = 6;

/// Minimum share of the view that a collection frees.
const WORTHWHILE: f64 = 0.02;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    young: usize,
    journal: u64,
    rent: u64,
}

#[derive(Default)]
struct Generational {
    settings: Settings,
    journal: Journal,
    /// Cost of reading garbage since the last collection, in tokens times USD per million.
    paid: f64,
    /// Time of the last request, ms.
    requested_at: Option<Millis>,
    undo: UndoStack,
}

/// A part of the view after a collection.
struct Piece {
    kind: PieceKind,
    /// The blocks that are shown, or that lines replace.
    blocks: Vec<Arc<Block>>,
    lines: Vec<Arc<Line>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    /// Blocks that stay.
    Shown,
    /// A block of the journal that stays.
    Written,
    /// Lines that become a block of the journal.
    New,
}

/// A collection that could take place. Sizes in tokens.
struct Plan {
    pieces: Vec<Piece>,
    /// Size of the view after the collection.
    after: u64,
    /// Size of what the provider then writes to its cache again.
    rewritten: u64,
}

impl Generational {
    /// Plans a collection of all but the newest `young` replies and what follows them; `None` if there
    /// are not more. A journal over `budget` is cut to half of it. `is_tight`: earlier messages of the
    /// user become lines as well.
    fn plan(&self, s: &Engine, young: usize, budget: u64, is_tight: bool) -> Option<Plan> {
        let blocks = s.context.blocks();
        let replies = step_starts(blocks);
        let first = replies.len().checked_sub(young).filter(|n| *n > 0)?;
        let (old, new) = blocks.split_at(replies.get(first).copied().unwrap_or(blocks.len()));
        let mut pieces = self.old_pieces(s, old, is_tight);
        pieces.push(Piece { kind: PieceKind::Shown, blocks: new.to_vec(), lines: Vec::new() });
        let counting = &s.model.counting;
        let size = |p: &Piece| match p.kind {
            PieceKind::New => {
                let text = p.lines.iter().map(|l| l.tokens).sum();
                counting.block(Size { text, ..Size::default() })
            }
            PieceKind::Shown | PieceKind::Written => s.tokens_of(&p.blocks),
        };
        let journal: u64 = pieces.iter().filter(|p| p.kind != PieceKind::Shown).map(size).sum();
        if journal > budget {
            let lines: Vec<_> = pieces.iter().flat_map(|p| &p.lines).collect();
            let kept = self.journal.lines_to_keep(&lines, counting.fitting(budget / 2));
            for p in pieces.iter_mut().filter(|p| p.kind != PieceKind::Shown) {
                p.kind = PieceKind::New;
                p.lines.retain(|l| kept.contains(&l.hash));
            }
        }
        let after = pieces.iter().map(size).sum();
        let changed = pieces.iter().skip_while(|p| p.kind != PieceKind::New);
        let rewritten = changed.map(size).sum();
        Some(Plan { pieces, after, rewritten })
    }

    /// Divides the blocks before the young ones. No two lines are equal.
    fn old_pieces(&self, s: &Engine, old: &[Arc<Block>], is_tight: bool) -> Vec<Piece> {
        let is_user = |m: &&Message| m.role == Role::User && !m.synthetic;
        let asked = s.history.messages().iter().rev().find(is_user).map(|m| m.id);
        let is_kept = |id: MessageId| {
            s.history.get(id).is_some_and(|m| is_user(&m)) && (!is_tight || Some(id) == asked)
        };
        let mut known: HashSet<u64> = HashSet::new();
        let mut pieces: Vec<Piece> = Vec::new();
        for part in old.chunk_by(|a, b| a.message == b.message && is_fixed(a) == is_fixed(b)) {
            let (b, id) = (&part[0], part[0].message);
            let is_journal = b.kind == BlockKind::Reminder && b.form == BlockForm::Synthetic;
            let kind = match (is_fixed(b) || is_kept(id), is_journal) {
                (true, _) => PieceKind::Shown,
                (_, true) => PieceKind::Written,
                (_, false) => PieceKind::New,
            };
            let of = self.journal.lines.get(&id).filter(|_| kind != PieceKind::Shown);
            let lines = of.into_iter().flatten().filter(|l| known.insert(l.hash)).cloned();
            match pieces.last_mut() {
                Some(last) if last.kind == PieceKind::New && kind == PieceKind::New => {
                    last.lines.extend(lines);
                    last.blocks.extend_from_slice(part);
                }
                _ => pieces.push(Piece { kind, lines: lines.collect(), blocks: part.to_vec() }),
            }
        }
        pieces
    }

    /// Returns whether the garbage has cost `rent` times as much as the collection, or the next request
    /// reads nothing from the cache anyway.
    fn is_due(&mut self, s: &Engine, plan: &Plan) -> bool {
        let (cache, prices, ttl) = (&s.model.cache, &s.model.prices, s.options().ttl);
        let write = if ttl == Ttl::OneHour { prices.write_1h } else { prices.write_5m };
        let garbage = s.context.tokens().saturating_sub(plan.after) as f64;
        self.paid += garbage * prices.read;
        let fee = plan.rewritten as f64 * (write - prices.read);
        let is_cold = self.requested_at.is_some_and(|at| s.now() - at > cache.lifetime(ttl));
        garbage >= WORTHWHILE * s.context.tokens() as f64
            && (is_cold || self.paid >= self.settings.rent as f64 * fee)
    }

    /// Replaces the view as planned.
    fn collect(&mut self, s: &mut Engine, plan: Plan) -> bool {
        let mut view = Vec::new();
        for Piece { kind, blocks, lines } in plan.pieces {
            if kind != PieceKind::New {
                view.extend(blocks);
            } else if !lines.is_empty() {
                let text = [HEADER].into_iter().chain(lines.iter().map(|l| l.text.as_str()));
                let text = text.collect::<Vec<_>>().join("\n");
                let block = s.synthetic(BlockKind::Reminder, Role::User, text, origins(&blocks));
                self.journal.lines.insert(block.message, lines);
                view.push(block);
            }
        }
        let before = s.context.blocks().to_vec();
        let at = before.iter().filter(|b| !b.origin.is_empty()).map(|b| b.message).max();
        let done = s.compacted(CompactionKind::Clear, "collect", Phase::MidTurn, view).is_ok();
        if let Some(at) = at.filter(|_| done) {
            self.paid = 0.0;
            self.undo.push(at, before);
        }
        done
    }

    /// Collects with ever smaller limits until the view has at most `target` tokens.
    fn shrink(&mut self, s: &mut Engine, target: u64) -> bool {
        let Settings { young, journal, .. } = self.settings;
        let mut last = None;
        for step in 0..2 * STEPS {
            // In the second half even the newest reply, whose results can be long, becomes lines.
            let young = if step < STEPS { (young >> step).max(1) } else { 0 };
            let budget = journal.min(s.model.window / 2) >> (step % STEPS);
            let plan = self.plan(s, young, budget, step >= 2);
            let fits = plan.as_ref().is_some_and(|p| p.after + s.tools_tokens() <= target);
            last = plan.or(last);
            if fits {
                break;
            }
        }
        let smaller = last.filter(|p| p.after < s.context.tokens());
        smaller.is_some_and(|plan| self.collect(s, plan))
    }
}

/// Returns the size of a prompt, tokens, that fills a share of the window after system prompt and tools.
fn share_of_window(s: &Engine, share: f64) -> u64 {
    let fixed = s.tools_tokens() + s.tokens_of(s.context.blocks().iter().filter(|b| is_fixed(b)));
    fixed + (s.model.window.saturating_sub(fixed) as f64 * share) as u64
}

#[async_trait]
impl Strategy for Generational {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        self.journal.read(s.context.blocks());
        let Settings { young, journal, .. } = self.settings;
        let (used, limit) = (s.billed_tokens(), share_of_window(s, HIGH));
        if used > limit {
            s.trigger("before_request", used, limit);
            self.shrink(s, share_of_window(s, LOW));
        } else if let Some(plan) = self.plan(s, young.max(1), journal, false)
            && self.is_due(s, &plan)
        {
            self.collect(s, plan);
        }
        self.requested_at = Some(s.now());
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        let is_journal = |b: &Arc<Block>| b.kind == BlockKind::Reminder;
        if s.options().default_breakpoints {
            let end = r.blocks.iter().rposition(is_journal).map(|at| at + 1);
            r.breakpoints = frontier_breakpoints(&r.blocks, end);
        }
        r
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        let target = share_of_window(s, LOW / f64::from(attempt));
        if e.is_overflow() && attempt <= 4 && self.shrink(s, target) {
            Flow::Again
        } else {
            again_if_passing(e, attempt, PASSING_RETRIES)
        }
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        self.undo.restore_before(s, to);
        s.truncate_after(to);
    }
}
