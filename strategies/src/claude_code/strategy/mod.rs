//! Claude Code 2.1 (docs/sources/claude-code.md §1).

mod idle;

use ctxbench_core::block::is_fixed;
use ctxbench_core::prelude::*;

use super::restore::{OF_FOLDERS, cut_indexes, restored};
use super::rules::{
    ClaudeCodeSettings, ClaudeCodeWords, Conduct, Levels, Micro, Trigger, believed, clearable,
    estimate, excess, is_too_long, last_messages, levels, new_from, newest_reply, too_much,
};
use super::summary::{Deleted, FinishedSummary, Prepared, SessionMemory, Summaries};
use crate::scoped::Scoped;

use idle::Pause;

/// Number of attempts at a request that fails temporarily; ours.
const ATTEMPTS: u32 = 10;
/// Maximum number of replies between two compactions for the second one to count as "right after"
/// the first. Our choice: docs/sources/claude-code.md §1.5 gives no number.
const RIGHT_AFTER: u32 = 1;

/// Number of characters that the instruction quotes of the message before the split; ours.
const QUOTED: usize = 80;

pub(crate) struct ClaudeCodeProgram {
    pub asked: Summaries,
    pub memory: SessionMemory,
    pub state: ProgramState,
}

#[derive(Default)]
pub(crate) struct ProgramState {
    /// Tokens of the last reply's prompt and output, minus those cleared later; `None` after a
    /// compaction.
    pub reported: Option<u64>,
    /// Virtual time of the last reply, ms.
    last_reply: Option<Millis>,
    /// Number of successive failures of automatic compactions.
    pub failures: u64,
    /// Number of replies since the last automatic compaction.
    since: Option<u32>,
    /// Number of replies since the last message of the user.
    in_turn: u32,
    /// Number of successive compactions that came right after another one.
    refills: u64,
    /// Views to restore when a rewind crosses a compaction (docs/sources/claude-code.md §1.5).
    undo: UndoStack,
    /// Summary in progress before it is needed.
    pub prepared: Prepared,
    /// Work during a pause of the user.
    pub pause: Pause,
    scoped: Scoped,
}

/// Replaces a result by a note that it was saved to a file.
fn to_file(d: &mut Draft) {
    d.text =
        format!("[{} bytes of output, too large to show; saved to a file]", d.text.len()).into();
    d.form = BlockForm::Truncated;
}

impl ClaudeCodeProgram {
    pub fn new(settings: ClaudeCodeSettings, words: ClaudeCodeWords, conduct: Conduct) -> Self {
        ClaudeCodeProgram {
            asked: Summaries { settings, words, conduct, deleted: Deleted::default() },
            memory: SessionMemory::default(),
            state: ProgramState::default(),
        }
    }

    fn settings(&self) -> &ClaudeCodeSettings {
        &self.asked.settings
    }

    fn words(&self) -> &ClaudeCodeWords {
        &self.asked.words
    }

    pub fn levels(&self, s: &Engine) -> Levels {
        levels(self.settings(), s.model.window, s.model.max_output)
    }

    pub fn believed(&self, s: &Engine) -> u64 {
        believed(s, self.state.reported)
    }

    /// Returns the index from which blocks stay after a summary: the newest `keep` messages, or without
    /// a number those of the version.
    fn tail_start(&self, history: &[Arc<Block>], keep: Option<usize>) -> usize {
        match (keep, self.asked.conduct) {
            (Some(n), _) => last_messages(history, n),
            (None, Conduct::Driven) => newest_reply(history),
            (None, _) => last_messages(history, self.settings().keep_messages as usize),
        }
    }

    pub fn gave_up(&self) -> bool {
        !self.settings().auto
            || self.state.failures >= self.settings().max_failures
            || self.state.refills >= self.settings().max_refills
    }

    /// Runs the first layer before every request (docs/sources/claude-code.md §1.2).
    fn micro_compact(&mut self, s: &mut Engine, levels: &Levels) {
        let idle = self.state.last_reply.map_or(0, |at| s.now().saturating_sub(at));
        let set = self.settings();
        let old =
            |keep, minimum| clearable(s.context.blocks(), keep, minimum, &self.words().cleared);
        match set.microcompact {
            Micro::Count if self.believed(s) >= levels.warning => {
                let at = old(set.micro_keep, set.micro_minimum);
                self.clear(s, &at, Some(("warning_level", levels.warning)));
            }
            Micro::Time if idle > set.micro_gap_ms => {
                let at = old(set.micro_gap_keep, 0);
                self.clear(s, &at, Some(("idle_gap", 0)));
            }
            Micro::CacheEdits if s.model.capabilities.context_editing => {
                let at = old(set.micro_active, 0);
                self.asked.deleted.remember(s.context.blocks(), &at);
                self.clear(s, &at, None);
            }
            _ => {}
        }
    }

    /// Replaces results with the placeholder.
    pub fn clear(&mut self, s: &mut Engine, at: &[usize], check: Option<(&'static str, u64)>) {
        if at.is_empty() {
            return;
        }
        if let Some((check, limit)) = check {
            s.trigger(check, self.believed(s), limit);
        }
        let view = clear_outputs(s.context.blocks(), at, &self.words().cleared);
        // The last usage includes the cleared tokens.
        let known = new_from(&view);
        let freed = estimate(&s.context.blocks()[..known]).saturating_sub(estimate(&view[..known]));
        self.state.reported = self.state.reported.map(|n| n.saturating_sub(freed));
        let by_provider = self.settings().microcompact == Micro::CacheEdits;
        let mechanism = if by_provider { "cache_edits" } else { "microcompact" };
        // Smaller results do not separate a call from its result.
        let _ = s.compacted(CompactionKind::Clear, mechanism, Phase::MidTurn, view);
    }

    /// Saves results of one message to files if they are too large together, though each is small
    /// enough.
    fn fit_results(&self, s: &mut Engine) {
        let blocks = s.context.blocks();
        let gone = too_much(blocks, new_from(blocks), self.settings().results_chars);
        if gone.is_empty() {
            return;
        }
        let mut view = blocks.to_vec();
        gone.iter().for_each(|&i| view[i] = view[i].map_draft(to_file));
        // A shorter result does not separate a call from its result.
        let _ = s.set_view(view);
    }

    /// Splits the view into the blocks that always stay and the conversation. A rule for some paths
    /// belongs to the conversation and is lost with it.
    pub fn split_fixed(&self, s: &Engine) -> (Vec<Arc<Block>>, Vec<Arc<Block>>) {
        s.context.blocks().iter().cloned().partition(|b| is_fixed(b) && !self.state.scoped.holds(b))
    }

    /// Runs a compaction: a summary request over the same prefix, followed by a view of the
    /// summary, recent files and the verbatim tail. `over` = tokens by which the provider found the
    /// prompt too large; `keep` = number of newest messages that stay; `None` = those of the version.
    async fn compaction(
        &mut self,
        s: &mut Engine,
        phase: Phase,
        extra: Option<&str>,
        over: Option<u64>,
        keep: Option<usize>,
    ) -> Result<(), String> {
        let (fixed, history) = self.split_fixed(s);
        let kept = self.tail_start(&history, keep);
        if kept == 0 || history.is_empty() {
            return Err("there are not enough messages to compact".into());
        }
        let mut ready = None;
        if phase == Phase::MidTurn && over.is_none() && self.settings().hook_before.is_none() {
            let prepared = &mut self.state.prepared;
            ready = prepared.take(s, &history, false).await;
            // A summary that is not ready is not waited for.
            prepared.missed(s);
            prepared.cancel(s);
        }
        let extra = self.settings().instructions(extra);
        let written = match ready {
            Some(written) => written,
            None => {
                let (shown, rest) = history.split_at(self.summary_end(&history, kept));
                // The prompt that was too large showed the rest, too.
                let over = over.map(|n| n.saturating_sub(estimate(rest))).filter(|n| *n > 0);
                self.asked.ask(s, phase, extra.as_deref(), over, (&fixed, shown)).await?
            }
        };
        self.install_summary(s, phase, &written, fixed, &history, kept)
    }

    /// Returns the end of the part of the history that a summary request shows. In 2.1.332 the request
    /// is the previous one with the instruction from the second reply of a turn on. Before that, it
    /// also shows the newest reply with its results (docs/sources/claude-code.md §1.3).
    fn summary_end(&self, history: &[Arc<Block>], kept: usize) -> usize {
        match (self.asked.conduct, self.state.in_turn) {
            (Conduct::Driven, 2..) => kept,
            (Conduct::Driven, _) => {
                history.iter().rposition(|b| b.kind != BlockKind::User).map_or(0, |i| i + 1)
            }
            _ => history.len(),
        }
    }

    /// Replaces the summarised blocks by the summary; those from `kept` on stay verbatim.
    pub fn install_summary(
        &mut self,
        s: &mut Engine,
        phase: Phase,
        written: &FinishedSummary,
        fixed: Vec<Arc<Block>>,
        history: &[Arc<Block>],
        kept: usize,
    ) -> Result<(), String> {
        let (gone, tail) = history.split_at(kept.min(written.upto));
        let summary = self.asked.block(s, &written.text, gone);
        let mut restored = restored(self.settings(), s, tail);
        restored.extend(self.settings().hook_block(s));
        self.replace(s, "compact", phase, [&fixed[..], &[summary], &restored, tail].concat())?;
        self.drop_background(s);
        Ok(())
    }

    /// Replaces the conversation with the session notes, without a model call. Returns false if the
    /// notes are missing or would not free enough space.
    async fn replaced_by_notes(&mut self, s: &mut Engine, limit: u64) -> Result<bool, String> {
        let (fixed, history) = self.split_fixed(s);
        let Some((text, from)) = self.memory.stand_in(s, &self.asked.settings, &history).await
        else {
            return Ok(false);
        };
        let (gone, tail) = history.split_at(from);
        // Do not use notes that are larger than the blocks they replace. This is our choice.
        let lead_in = self.words().notes_lead_in.clone();
        let freed = estimate(gone).saturating_sub(bytes_div4_up(&text) + bytes_div4_up(&lead_in));
        if freed == 0 || believed(s, None).saturating_sub(freed) >= limit {
            return Ok(false);
        }
        let text = format!("{lead_in}\n\n{text}");
        let notes = s.synthetic(BlockKind::Summary, Role::User, text, origins(gone));
        let view = [&fixed[..], &[notes], tail].concat();
        self.replace(s, "session_memory", Phase::MidTurn, view)?;
        self.memory.used(self.believed(s));
        Ok(true)
    }

    fn replace(
        &mut self,
        s: &mut Engine,
        mechanism: &'static str,
        phase: Phase,
        view: Vec<Arc<Block>>,
    ) -> Result<(), String> {
        let before = s.context.blocks().to_vec();
        let by = view
            .iter()
            .find(|b| b.kind == BlockKind::Summary)
            .map_or(MessageId(u32::MAX), |b| b.message);
        s.compacted(CompactionKind::Summarise, mechanism, phase, view)
            .map_err(|e| e.to_string())?;
        self.state.undo.push(by, before);
        self.state.reported = None;
        Ok(())
    }

    /// Runs an automatic compaction with its two guards (docs/sources/claude-code.md §1.5).
    async fn auto_compact(&mut self, s: &mut Engine, limit: u64) -> Flow {
        let right_after = self.state.since.is_some_and(|n| n <= RIGHT_AFTER);
        self.state.refills = if right_after { self.state.refills + 1 } else { 0 };
        if self.state.refills >= self.settings().max_refills {
            let times = self.state.refills;
            return Flow::FailTurn(format!(
                "the context was full again right after each of the last {times} compactions, so \
                 it is no longer compacted by itself; \
                 something that is always shown, or one message, may be too large: /compact or \
                 /clear"
            ));
        }
        let done = match self.replaced_by_notes(s, limit).await {
            Ok(false) => self.compaction(s, Phase::MidTurn, None, None, None).await,
            done => done.map(|_| ()),
        };
        // After a failure the request is sent unchanged, because the provider may still accept it.
        self.count_outcome(done.is_ok());
        Flow::Proceed
    }

    /// Summarises one side of the conversation, split right after a message: "summarise from here" and
    /// "summarise up to here" of the rewind menu (docs/sources/claude-code.md §1.5, versions 2.1.32 and
    /// 2.1.141, grade A). Recent files are not restored afterwards, because no source says that they
    /// are. A failure changes nothing.
    async fn summarise_side(
        &mut self,
        s: &mut Engine,
        to: MessageId,
        mode: RewindMode,
        instructions: Option<&str>,
    ) -> Result<(), String> {
        let (fixed, history) = self.split_fixed(s);
        // The split is after the last block of the message. A summary that replaces it has a newer
        // id but an earlier position.
        let seam = history.iter().rposition(|b| b.message <= to).map_or(0, |i| i + 1);
        let (before, after) = history.split_at(seam);
        let from_here = mode == RewindMode::SummarizeFrom;
        let (gone, shown) = if from_here { (after, &history[..]) } else { (before, before) };
        if gone.is_empty() {
            return Err("there is nothing to summarise on this side".into());
        }
        let only = before.last().filter(|_| from_here).map(|b| {
            let quoted: String = b.text.chars().take(QUOTED).collect();
            format!(
                "Summarise only what comes after the message that begins with \"{quoted}\"; \
                 everything up to it stays in the conversation."
            )
        });
        let extra: Vec<&str> = only.iter().map(String::as_str).chain(instructions).collect();
        let extra = extra.join("\n");
        let phase = Phase::StandaloneTurn;
        let written = self.asked.ask(s, phase, Some(&extra), None, (&fixed, shown)).await?;
        if written.upto < shown.len() {
            return Err("the conversation is too long to be summarised at once".into());
        }
        let summary = [self.asked.block(s, &written.text, gone)];
        let sides = if from_here { [before, &summary] } else { [&summary, after] };
        self.replace(s, mode.word(), phase, [&fixed[..], sides[0], sides[1]].concat())?;
        self.memory.forget(s);
        self.state.prepared.cancel(s);
        Ok(())
    }

    /// Cancels background work because the conversation changed.
    fn drop_background(&mut self, s: &mut Engine) {
        self.memory.forget(s);
        self.state.prepared.cancel(s);
        self.state.pause.cancel(s);
    }

    /// Counts the outcome of an automatic compaction for its guards.
    fn count_outcome(&mut self, done: bool) {
        if done {
            (self.state.failures, self.state.since) = (0, Some(0));
        } else {
            self.state.failures += 1;
        }
    }
}

#[async_trait]
impl Strategy for ClaudeCodeProgram {
    fn admit(&self, mut raw: Draft) -> Draft {
        let tool = raw.call.as_ref().map_or("", |c| &c.name);
        if raw.kind == BlockKind::Output
            && is_too_long(self.settings(), tool, raw.text.len() as u64)
        {
            to_file(&mut raw);
        }
        raw
    }

    async fn on_start(&mut self, s: &mut Engine) {
        self.drop_background(s);
        self.state = ProgramState::default();
        self.asked.deleted = Deleted::default();
        cut_indexes(s);
        s.show_fixed();
        if self.settings().scoped_rules {
            self.state.scoped = Scoped::set_aside(s, &OF_FOLDERS);
        }
    }

    async fn on_restart(&mut self, s: &mut Engine) {
        if self.asked.conduct == Conduct::ThreeTiers {
            return;
        }
        // Background requests ended with the program.
        self.state.prepared.cancel(s);
        self.state.pause.cancel(s);
        self.memory.stop(s);
        self.offer(s).await;
    }

    async fn on_user(&mut self, s: &mut Engine, _msg: &Incoming) -> Flow {
        self.state.in_turn = 0;
        self.pause_ends(s).await;
        Flow::Proceed
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        if self.asked.conduct == Conduct::ThreeTiers {
            self.run_light_tiers(s);
        }
        let levels = self.levels(s);
        self.micro_compact(s, &levels);
        let believed = self.believed(s);
        if !self.gave_up()
            && self.settings().trigger != Trigger::Limit
            && believed >= levels.compact
        {
            if self.settings().blocks_compaction(false) {
                s.trigger("blocked_by_hook", believed, levels.compact);
                return Flow::Proceed;
            }
            s.trigger("auto_compact", believed, levels.compact);
            return self.auto_compact(s, levels.compact).await;
        }
        let blocked = levels.effective.saturating_sub(self.settings().blocking_buffer);
        if self.gave_up() && believed >= blocked {
            s.trigger("blocking_limit", believed, blocked);
            s.note(Event::Intervention("the context is full: /compact or /clear".into()));
            return Flow::FailTurn(format!(
                "the context is full: {believed} tokens, blocked from {blocked}"
            ));
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        let (blocks, server_edits) = self.asked.deleted.as_sent(s.context.blocks());
        let mut request = s.sample_request();
        if self.asked.conduct == Conduct::Driven && request.breakpoints.len() > 2 {
            // Of the messages, only the last one ends at a breakpoint.
            request.breakpoints.remove(1);
        }
        Request { ttl: self.asked.ttl(s), blocks, server_edits, ..request }
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> ReplyFlow {
        self.state.reported = Some(reply.usage.prompt() + reply.usage.output);
        self.state.last_reply = Some(s.now());
        self.state.since = self.state.since.map(|n| n + 1);
        self.state.in_turn += 1;
        ReplyFlow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        if had_calls {
            self.fit_results(s);
            self.state.scoped.add_to_view(s);
        }
        let believed = self.believed(s);
        self.memory.tend(s, &self.asked, believed).await;
        if self.settings().precompute && !self.gave_up() && believed >= self.levels(s).warning {
            let prompt = self.asked.instruction(None);
            self.state.prepared.begin(s, &self.asked, [prompt]).await;
        }
        Flow::Proceed
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if e.is_passing() && attempt <= ATTEMPTS {
            return Flow::Again;
        }
        let tries = e.is_overflow()
            && !self.gave_up()
            && u64::from(attempt) <= self.settings().overflow_retries;
        if tries && self.settings().blocks_compaction(false) {
            return Flow::FailTurn(format!("{e}; a hook blocked the compaction"));
        }
        if !tries {
            return Flow::FailTurn(e.to_string());
        }
        s.trigger("provider_overflow", self.believed(s), s.model.window);
        let over = excess(&e.message);
        let done = self.compaction(s, Phase::MidTurn, None, over, None).await;
        self.count_outcome(done.is_ok());
        match done {
            Ok(()) => Flow::Again,
            Err(why) => Flow::FailTurn(format!(
                "the prompt is too long and the automatic compaction failed: {why}"
            )),
        }
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        self.pause_begins(s);
    }

    fn wakes_at(&self) -> Option<Millis> {
        self.state.pause.at()
    }

    async fn on_wake(&mut self, s: &mut Engine) {
        self.pause_goes_on(s).await;
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        self.state.undo.restore_before(s, to);
        s.truncate_after(to);
        self.drop_background(s);
        self.state.reported = None;
        self.state.since = None;
    }

    async fn summarise_at(
        &mut self,
        s: &mut Engine,
        to: MessageId,
        mode: RewindMode,
        instructions: Option<&str>,
    ) -> Result<bool, Unsupported> {
        if self.asked.conduct == Conduct::ThreeTiers {
            return Err(Unsupported);
        }
        Ok(self.summarise_side(s, to, mode, instructions).await.is_ok())
    }

    async fn compact(&mut self, s: &mut Engine, instructions: Option<&str>) -> Manual {
        if self.settings().blocks_compaction(true) {
            s.trigger("blocked_by_hook", self.believed(s), 0);
            return Ok(());
        }
        // A failed manual compaction changes nothing and is shown to the user.
        let phase = Phase::StandaloneTurn;
        if self.compaction(s, phase, instructions, None, None).await.is_ok() {
            (self.state.failures, self.state.refills, self.state.since) = (0, 0, None);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "summarize_side_tests.rs"]
mod tests;
