//! Generational collection, after the garbage collectors of programming languages: what is young
//! stays as it is, what is old becomes a journal of exact lines, and it is collected when the garbage
//! has cost as much as collecting it. Not a product; docs/systems/generational.md describes it.

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

use crate::descriptor::Plain;
use crate::persist::OURS;
use crate::shared::is_fixed;
use journal::{Journal, Line};

pub(crate) const GENERATIONAL: Plain = Plain {
    about: include_str!("about.toml"),
    build: |b| Box::new(Generational::new(b.settings(), b.texts())),
    formats: OURS,
};

/// Shares of the window: above the first the view is shrunk, to at most the second.
const HIGH: f64 = 0.85;
const LOW: f64 = 0.6;

/// Number of ever smaller views that are tried when the window is nearly full.
const STEPS: u32 = 6;

/// Minimum share of the view that a collection frees.
const WORTHWHILE: f64 = 0.02;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    young: usize,
    journal: u64,
    rent: u64,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    header: String,
}

struct Generational {
    settings: Settings,
    words: Words,
    journal: Journal,
    /// Cost of reading garbage since the last collection, in tokens times USD per million.
    paid: f64,
    /// Time of the last request, ms.
    requested_at: Option<Millis>,
    undo: UndoStack,
}

/// A part of the view after a collection.
enum Piece {
    /// Blocks that stay as they are.
    Shown(Arc<Block>),
    /// Lines of the journal.
    Chunk {
        lines: Vec<Arc<Line>>,
        /// The blocks that they replace.
        sources: Vec<Arc<Block>>,
        /// Whether `sources` is a block of the journal with exactly these lines.
        is_written: bool,
    },
}

/// A collection that could take place. Sizes in tokens.
struct Plan {
    pieces: Vec<Piece>,
    /// Size of the journal after the collection, if it must be cut.
    cut_to: Option<u64>,
    /// Size of the view after the collection.
    after: u64,
    /// Size of what changes in it, which the provider writes to its cache again.
    rewritten: u64,
}

impl Generational {
    fn new(settings: Settings, words: Words) -> Self {
        let (journal, undo) = (Journal::default(), UndoStack::default());
        Generational { settings, words, journal, paid: 0.0, requested_at: None, undo }
    }

    /// Plans a collection of all but the newest `young` replies and what follows them; `None` if there
    /// are not more. `is_tight`: earlier messages of the user become lines as well.
    fn plan(&self, s: &Engine, young: usize, budget: u64, is_tight: bool) -> Option<Plan> {
        let blocks = s.context.blocks();
        let replies = step_starts(blocks);
        let first = replies.len().checked_sub(young.max(1)).filter(|n| *n > 0)?;
        let (old, new) = blocks.split_at(replies[first]);
        let asked = blocks.iter().rev().find(|b| b.kind == BlockKind::User).map(|b| b.message);
        let is_user = |b: &Block| {
            let of_user = |m: &Message| m.role == Role::User;
            s.history.get(b.message).is_some_and(|m| of_user(m) && !m.synthetic)
        };
        let mut known: HashSet<u64> = HashSet::new();
        let mut pieces: Vec<Piece> = Vec::new();
        for message in old.chunk_by(|a, b| a.message == b.message && is_fixed(a) == is_fixed(b)) {
            let (b, id) = (&message[0], message[0].message);
            let is_kept = is_user(b) && (!is_tight || Some(id) == asked);
            if is_fixed(b) || is_kept {
                pieces.extend(message.iter().cloned().map(Piece::Shown));
                continue;
            }
            let is_written = b.kind == BlockKind::Reminder && b.form == BlockForm::Synthetic;
            let is_new = |l: &&Arc<Line>| known.insert(l.hash);
            let added: Vec<Arc<Line>> =
                self.journal.lines(id).iter().filter(is_new).cloned().collect();
            match pieces.last_mut() {
                Some(Piece::Chunk { lines, sources, is_written: false }) if !is_written => {
                    lines.extend(added);
                    sources.extend_from_slice(message);
                }
                _ => {
                    let sources = message.to_vec();
                    pieces.push(Piece::Chunk { lines: added, sources, is_written });
                }
            }
        }
        pieces.extend(new.iter().cloned().map(Piece::Shown));
        Some(self.measured(s, pieces, budget))
    }

    /// Computes the sizes of a plan. A journal over `budget` is cut to half of it.
    fn measured(&self, s: &Engine, pieces: Vec<Piece>, budget: u64) -> Plan {
        let text_of = |lines: &[Arc<Line>]| lines.iter().map(|l| l.tokens).sum::<u64>();
        let size = |p: &Piece| match p {
            Piece::Shown(b) => b.tokens(&s.model.counting),
            Piece::Chunk { lines, .. } => {
                s.model.counting.block(Size { text: text_of(lines), ..Size::default() })
            }
        };
        let (mut journal, mut after, mut rewritten, mut fixed) = (0, 0, 0, 0);
        for p in &pieces {
            after += size(p);
            match p {
                Piece::Shown(b) if is_fixed(b) => fixed += size(p),
                Piece::Chunk { is_written, .. } => {
                    journal += size(p);
                    rewritten += if *is_written { 0 } else { size(p) };
                }
                Piece::Shown(_) => rewritten += if rewritten > 0 { size(p) } else { 0 },
            }
        }
        let cut_to = (journal > budget).then_some(budget / 2);
        if let Some(left) = cut_to {
            after -= journal - left;
            rewritten = after - fixed;
        }
        Plan { pieces, cut_to, after, rewritten }
    }

    /// Returns whether the garbage has cost `rent` times as much as the collection, or the next request
    /// reads nothing from the cache anyway.
    fn is_due(&mut self, s: &Engine, plan: &Plan) -> bool {
        let (cache, prices, ttl) = (&s.model.cache, &s.model.prices, s.options().ttl);
        let write = match ttl {
            Ttl::FiveMinutes => prices.write_5m,
            Ttl::OneHour => prices.write_1h,
        };
        let garbage = s.context.tokens().saturating_sub(plan.after) as f64;
        self.paid += garbage * prices.read;
        let fee = plan.rewritten as f64 * (write - prices.read);
        let is_cold = self.requested_at.is_some_and(|at| s.now() - at > cache.lifetime(ttl));
        garbage >= WORTHWHILE * s.context.tokens() as f64
            && (is_cold || self.paid >= self.settings.rent as f64 * fee)
    }

    /// Replaces the view as planned.
    fn collect(&mut self, s: &mut Engine, plan: Plan) -> bool {
        let Plan { pieces, cut_to, .. } = plan;
        let lines = |p: &Piece| match p {
            Piece::Chunk { lines, .. } => lines.clone(),
            Piece::Shown(_) => Vec::new(),
        };
        let all: Vec<Arc<Line>> = pieces.iter().flat_map(lines).collect();
        let newest_lines = cut_to.map(|left| {
            self.journal.newest(&all.iter().collect::<Vec<_>>(), s.model.counting.fitting(left))
        });
        let (mut view, mut at) = (Vec::new(), 0..);
        for piece in pieces {
            match piece {
                Piece::Shown(block) => view.push(block),
                Piece::Chunk { sources, is_written: true, .. } if newest_lines.is_none() => {
                    view.extend(sources);
                }
                Piece::Chunk { mut lines, sources, .. } => {
                    lines.retain(|_| {
                        let at = at.next().expect("a range without end");
                        newest_lines.as_ref().is_none_or(|kept: &HashSet<usize>| kept.contains(&at))
                    });
                    if !lines.is_empty() {
                        let text = lines.iter().map(|l| l.text.as_str());
                        let text: Vec<&str> =
                            [&*self.words.header].into_iter().chain(text).collect();
                        let (text, origin) = (text.join("\n"), origins(&sources));
                        let block = s.synthetic(BlockKind::Reminder, Role::User, text, origin);
                        self.journal.write(block.message, lines);
                        view.push(block);
                    }
                }
            }
        }
        let before = s.context.blocks().to_vec();
        let newest = before.iter().filter(|b| !b.origin.is_empty()).map(|b| b.message).max();
        let phase = if before.last().is_some_and(|b| b.kind == BlockKind::User) {
            Phase::PreTurn
        } else {
            Phase::MidTurn
        };
        let done = s.compacted(CompactionKind::Clear, "collect", phase, view).is_ok();
        if let Some(newest) = newest.filter(|_| done) {
            self.paid = 0.0;
            self.undo.push(newest, before);
        }
        done
    }

    /// Collects with ever smaller limits until the view has at most `target` tokens.
    fn shrink(&mut self, s: &mut Engine, target: u64) -> bool {
        let Settings { young, journal, .. } = self.settings;
        let target = target.saturating_sub(s.tools_tokens());
        let mut last = None;
        for step in 0..STEPS {
            let budget = journal.min(s.model.window / 2) >> step;
            let plan = self.plan(s, young >> step, budget, step >= 2);
            let fits = plan.as_ref().is_some_and(|p| p.after <= target);
            last = plan.or(last);
            if fits {
                break;
            }
        }
        let smaller = last.filter(|p| p.after < s.context.tokens());
        smaller.is_some_and(|plan| self.collect(s, plan))
    }
}

#[async_trait]
impl Strategy for Generational {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        self.journal.read(s.context.blocks());
        let Settings { young, journal, .. } = self.settings;
        let (used, limit) = (s.billed_tokens(), (s.model.window as f64 * HIGH) as u64);
        if used > limit {
            s.trigger("before_request", used, limit);
            self.shrink(s, (s.model.window as f64 * LOW) as u64);
        } else if let Some(plan) = self.plan(s, young, journal, false)
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
        let target = (s.model.window as f64 * LOW / f64::from(attempt)) as u64;
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

    async fn compact(&mut self, s: &mut Engine, _instructions: Option<&str>) -> Manual {
        self.journal.read(s.context.blocks());
        let Settings { young, journal, .. } = self.settings;
        if let Some(plan) = self.plan(s, young, journal, false) {
            self.collect(s, plan);
        }
        Ok(())
    }
}
