//! OpenOxide: the blueprint (docs/sources/openoxide.md).
//!
//! Every request is counted before it is sent. If it is too large, three tiers run in order:
//! clearing old tool results, summarising finished turns with the weak model (normally in the
//! background after a turn), and summarising the whole session. `phases=two` is the older form
//! (docs/sources/openoxide.md §1.3). `openoxide@provider-side` asks the provider to make room and
//! uses the tiers if the request is still too large.

mod budget;
#[cfg(test)]
mod figures_tests;
#[cfg(test)]
mod session_tests;
mod summary;
#[cfg(test)]
mod tests;
mod view;

use crate::descriptor::{Known, Requirement};
use ctxbench_core::prelude::*;
use ctxbench_kit::monitor::Reminders;

use crate::openoxide::budget::{
    OpenOxideSettings, Oversize, OxideWords, Phases, PromptChunks, PromptPart, estimate,
};
use crate::openoxide::summary::BackgroundSummary;
use crate::openoxide::view::{
    fixed_chunks, is_conversation, memory_index, newest_message, newest_turn, newest_user,
    prunable, server_compaction,
};
use crate::scoped::Scoped;

/// Minimum trigger that the provider accepts, in tokens (docs/sources/anthropic-api.md §2.3).
const MIN_COMPACT_TRIGGER: u64 = 50_000;
/// Names of memory files that apply to their folder. Benchmark sessions use the last name.
const OF_FOLDERS: [&str; 3] = ["OPENOXIDE.md", "MEMORY.md", "CLAUDE.md"];
/// Maximum retries after a transient failure, as in Codex and OpenCode. The blueprint does not
/// specify a number.
pub(crate) const RETRIES: u32 = 5;

/// Version that asks the provider to free space, as far as possible. The design describes both; no
/// program implements it.
const PROVIDER_SIDE: &str = "provider-side";

pub(crate) const OPENOXIDE: Known = Known {
    needs: |b| {
        (b.version.name == PROVIDER_SIDE).then_some(Requirement {
            is_met: |c| c.context_editing,
            reason: "a provider that clears tool results exists on the Anthropic API only",
        })
    },
    ..Known::new(include_str!("about.toml"), |b| {
        let (s, words) = (b.settings::<OpenOxideSettings>(), b.texts::<OxideWords>());
        Box::new(OpenOxideStrategy {
            system_tokens: 0,
            scale: b.scale,
            reminders: Reminders { budget: words.budget.clone(), usage: words.usage.clone() },
            words,
            pinned: PromptChunks::default(),
            scoped: Scoped::default(),
            job: None,
            undo: UndoStack::default(),
            paused: false,
            provider_side: b.version.name == PROVIDER_SIDE,
            settings: s,
        })
    })
};

pub(crate) struct OpenOxideStrategy {
    pub(crate) settings: OpenOxideSettings,
    /// Tokens of the system prompt with tools.
    system_tokens: u64,
    pub(crate) scale: f64,
    pub(crate) words: OxideWords,
    reminders: Reminders,
    /// Repository map, memory and files, as shown.
    pinned: PromptChunks,
    /// Memory files that apply to some paths. Each is shown as long as the call that made it
    /// appear.
    scoped: Scoped,
    /// Summary that is being written in the background.
    pub(crate) job: Option<BackgroundSummary>,
    /// Earlier views, each with its newest message.
    undo: UndoStack,
    /// Whether the provider stopped after a compaction that it made.
    paused: bool,
    /// Whether to ask the provider to free space.
    provider_side: bool,
}

/// Ways to make room, cheapest first.
#[derive(Clone, Copy)]
enum Tier {
    Prune,
    History,
    Session,
}

const TIERS: [Tier; 3] = [Tier::Prune, Tier::History, Tier::Session];

impl OpenOxideStrategy {
    /// Returns true for the older form (docs/sources/openoxide.md §1.3).
    pub(crate) fn two_phases(&self) -> bool {
        self.settings.phases == Phases::Two
    }

    /// Returns true if the strategy must report its budget to the model, because the provider does
    /// not (docs/sources/openoxide.md §2.7).
    fn reports_budget(&self, s: &Engine) -> bool {
        self.settings.awareness && !s.model.capabilities.awareness
    }

    /// Returns the tokens available to finished turns: the rest after the parts that are allocated
    /// before them, up to their cap (docs/sources/openoxide.md §2.2, allocation step 6).
    pub(crate) fn history_room(&self, s: &Engine, open: usize) -> u64 {
        let cap = self.settings.history_cap(s.model.window);
        let mut parts = PromptChunks::split(s.context.blocks(), open).demand(self.system_tokens);
        parts[PromptPart::ChatHistory] = cap;
        let given = self.settings.allocate(s.model.window, &parts);
        // Without any room the gate's tiers decide. They need a target size.
        given.map(|a| a.chat_history).filter(|n| *n > 0).unwrap_or(cap)
    }

    /// Returns the maximum prompt size in tokens.
    fn limit(&self, s: &Engine) -> u64 {
        if self.two_phases() {
            s.model.window.saturating_sub(self.settings.compaction_buffer)
        } else {
            self.settings.limit(s.model.window)
        }
    }

    /// Builds the view in assembly order from a history and an open turn. The provider ignores
    /// messages before its own compaction, so a history with one precedes the fixed part.
    pub(crate) fn assemble(
        &self,
        s: &Engine,
        chat_history: Vec<Arc<Block>>,
        current: Vec<Arc<Block>>,
    ) -> Vec<Arc<Block>> {
        use PromptPart::{ChatHistory, Current, System};
        let mut chunks = self.pinned.clone();
        chunks[System] = s.context.blocks().iter().filter(|b| is_system(b)).cloned().collect();
        chunks[Current] = current;
        let first = server_compaction(&chat_history).is_some();
        chunks[if first { System } else { ChatHistory }].extend(chat_history);
        chunks.all_messages()
    }

    /// Checks the size of the next request, counted by the provider or exactly, before it is sent.
    async fn gate(&mut self, s: &mut Engine) -> Result<(), Oversize> {
        let request = self.request(s);
        let total = s.count(&request).await;
        let limit = self.limit(s);
        if limit == 0 {
            let reserve = if self.two_phases() {
                self.settings.compaction_buffer
            } else {
                self.settings.output_reserve
            };
            return Err(Oversize::no_room(s.model.window, reserve));
        }
        let open = newest_turn(&request.blocks).unwrap_or(request.blocks.len());
        PromptChunks::split(&request.blocks, open).check(&s.model.counting, total, limit)
    }

    async fn tier(&mut self, s: &mut Engine, tier: Tier, phase: Phase) -> bool {
        match tier {
            Tier::Prune => self.prune(s, phase),
            // The running summary, or else a new one, is waited for.
            Tier::History => {
                self.settle(s, true, phase).await
                    || (!self.two_phases()
                        && self.start_history(s, phase, 0, true).await
                        && self.settle(s, true, phase).await)
            }
            Tier::Session => self.session_now(s, phase, None).await,
        }
    }

    fn prune(&mut self, s: &mut Engine, phase: Phase) -> bool {
        let (blocks, set) = (s.context.blocks(), &self.settings);
        let (protect, minimum) = (set.prune_protect, set.prune_minimum);
        let rule = PruneRule { protect, minimum, minimum_suffices: true };
        let (turns, placeholder) = (set.keep_turns as usize, self.words.placeholder.len());
        let at = prunable(blocks, rule, turns, placeholder, set.prune_order);
        let cleared = clear_outputs(blocks, &at, &self.words.placeholder);
        !at.is_empty() && self.compacted(s, CompactionKind::Clear, "prune", phase, cleared)
    }

    /// Shows these blocks and stores the previous view for undo.
    pub(crate) fn compacted(
        &mut self,
        s: &mut Engine,
        kind: CompactionKind,
        mechanism: &'static str,
        phase: Phase,
        blocks: Vec<Arc<Block>>,
    ) -> bool {
        let view = s.context.blocks().to_vec();
        let done = s.compacted(kind, mechanism, phase, blocks).is_ok();
        if let Some(newest) = newest_message(&view).filter(|_| done) {
            self.undo.push(newest, view);
        }
        done
    }

    pub(crate) fn cancel(&mut self, s: &mut Engine) {
        if let Some(job) = self.job.take() {
            s.cancel(job.task);
        }
    }

    /// Returns the phase of a request: before a turn's first reply, or between its steps.
    fn moment(s: &Engine) -> Phase {
        let blocks = s.context.blocks();
        match (newest_user(blocks).last(), blocks.last()) {
            (Some(said), Some(last)) if Arc::ptr_eq(said, last) => Phase::PreTurn,
            _ => Phase::MidTurn,
        }
    }
}

#[async_trait]
impl Strategy for OpenOxideStrategy {
    async fn on_start(&mut self, s: &mut Engine) {
        self.cancel(s);
        self.undo = UndoStack::default();
        self.settings.output_reserve = self.settings.output_reserve.min(s.model.max_output);
        self.scoped = Scoped::set_aside(s, &OF_FOLDERS);
        let f = &s.fixed;
        let mut fixed: Vec<_> =
            f.base.iter().chain(&f.context).chain(&f.repo_map).chain(&f.files).cloned().collect();
        fixed.retain(|b| !self.scoped.holds(b));
        for b in &mut fixed {
            *b = memory_index(b, self.settings.memory_index_lines as usize);
        }
        if self.reports_budget(s) {
            fixed.push(self.reminders.opening(s.model.window));
        }
        let system = s.tokens_of(fixed.iter().filter(|b| is_system(b)));
        self.system_tokens = system + s.tools_tokens();
        let chunks = fixed_chunks(&fixed, &self.settings, self.system_tokens, s.model.window);
        for b in chunks.all_messages() {
            s.show(b);
        }
        self.pinned = chunks;
    }

    async fn on_restart(&mut self, s: &mut Engine) {
        // A background summary ends with the program.
        self.cancel(s);
    }

    async fn on_new_session(&mut self, s: &mut Engine) {
        let before = self.summary_for_next(s).await;
        s.reset_view();
        self.on_start(s).await;
        before.into_iter().for_each(|summary| s.show(summary));
    }

    async fn on_user(&mut self, s: &mut Engine, _msg: &Incoming) -> Flow {
        // Finished turns join the history, and the files in the chat follow it again.
        let history = s.context.blocks().iter().filter(|b| is_conversation(b)).cloned().collect();
        let view = self.assemble(s, history, Vec::new());
        // Only fixed blocks move, so no call loses its result.
        let _ = s.set_view(view);
        Flow::Proceed
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let phase = Self::moment(s);
        self.settle(s, false, phase).await;
        self.scoped.follow(s);
        let Err(mut error) = self.gate(s).await else { return Flow::Proceed };
        let limit = self.limit(s);
        s.trigger("before_request", limit + error.over, limit);
        for tier in TIERS {
            if self.tier(s, tier, phase).await {
                self.scoped.follow(s);
                match self.gate(s).await {
                    Ok(()) => return Flow::Proceed,
                    Err(e) => error = e,
                }
            }
        }
        Flow::FailTurn(error.reason)
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        if self.provider_side {
            let (can, set) = (s.model.capabilities, &self.settings);
            let trigger = ClearTrigger::InputTokens(set.clear_trigger);
            let at_least = set.clear_at_least.unwrap_or(0);
            let clear = ServerEdit::clear(trigger, set.clear_keep as usize, at_least);
            let trigger = set.compact_trigger.max(scale_tokens(MIN_COMPACT_TRIGGER, self.scale));
            r.server_edits.extend(can.context_editing.then_some(clear));
            r.server_edits.extend(can.server_compaction.then(|| ServerEdit::compact(trigger)));
        }
        if self.reports_budget(s) {
            let used = estimate(&r.blocks);
            self.reminders.append_usage(&mut r, used, s.model.window);
        }
        r
    }

    async fn on_reply(&mut self, _s: &mut Engine, reply: &Reply) -> ReplyFlow {
        self.paused = reply.stop == StopReason::Compaction;
        ReplyFlow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        let blocks = s.context.blocks();
        if let Some(i) =
            server_compaction(blocks).filter(|&i| blocks[..i].iter().any(|b| !is_system(b)))
        {
            let kept = kept(blocks, |k, b| k >= i || is_system(b));
            let phase = if had_calls { Phase::MidTurn } else { Phase::PostTurn };
            self.compacted(s, CompactionKind::Summarise, "server_compaction", phase, kept);
        }
        if std::mem::take(&mut self.paused) && !had_calls { Flow::Again } else { Flow::Proceed }
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if e.is_passing() && attempt <= RETRIES {
            return Flow::Again;
        }
        if e.is_overflow() {
            s.trigger("provider_overflow", s.model.window, self.limit(s));
            for tier in TIERS {
                if self.tier(s, tier, Phase::MidTurn).await {
                    return Flow::Again;
                }
            }
        }
        Flow::FailTurn(e.to_string())
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        if self.provider_side {
            return;
        }
        self.settle(s, false, Phase::PostTurn).await;
        if self.two_phases() {
            self.prune(s, Phase::PostTurn);
            let size = estimate(s.context.blocks());
            if size > self.limit(s) {
                self.start_session(s).await;
            }
        } else {
            self.start_history(s, Phase::PostTurn, 0, false).await;
        }
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        self.cancel(s);
        self.undo.restore_before(s, to);
        let upto = |to: MessageId| -> Vec<Arc<Block>> {
            s.context
                .blocks()
                .iter()
                .filter(|b| b.origin.iter().all(|o| o.message <= to))
                .cloned()
                .collect()
        };
        let (kept, fewer) = (upto(to), upto(MessageId(to.0.saturating_sub(1))));
        if s.set_view(kept).is_err() {
            // A cut between a call and its result moves back by one message.
            let _ = s.set_view(fewer);
        }
    }

    async fn summarise_at(
        &mut self,
        s: &mut Engine,
        to: MessageId,
        mode: RewindMode,
        instructions: Option<&str>,
    ) -> Result<bool, Unsupported> {
        Ok(self.summarise_side(s, to, mode, instructions).await)
    }

    async fn compact(&mut self, s: &mut Engine, instructions: Option<&str>) -> Manual {
        self.session_now(s, Phase::StandaloneTurn, instructions).await;
        Ok(())
    }
}
