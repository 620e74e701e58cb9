//! pi as released, 1.5, and 0.14 (docs/sources/pi.md; comments name the sections).
//!
//! The program decides whether to compact after each batch of tool calls, after a run and before a
//! prompt. If the provider refuses a request for its length, or a reply was cut off below its
//! limit, the program hides that message, compacts and retries the run once.

use ctxbench_core::model::Provider;
use ctxbench_core::prelude::*;

use super::log::{CompactionPlan, EntryContent, Log, LogEntry, PiCompaction, Report};
use super::rules::{
    FileLists, PiSettings, PiWords, base_chars, by_three_and_a_half, focused, history_prompt,
    is_overflow, is_retryable, largest_reply, quarter, transcript, turn_prompt,
};
use crate::descriptor::BuildRequest;
use crate::shared::{is_fixed, summary_base};

#[derive(Default)]
pub(crate) struct PiProgram {
    settings: PiSettings,
    words: PiWords,
    scale: f64,
    /// Whether it follows 0.14 (docs/sources/pi.md §10).
    is_old: bool,
    log: Log,
    /// Report of the reply that arrived but is not recorded yet.
    report: Option<Report>,
    /// Tools have run, so the threshold is checked before the next request.
    batch_done: bool,
    /// Whether the current run was already retried after a compaction.
    recovered: bool,
    /// Number of retries of the current request.
    retried: u64,
}

/// Reasons of compactions.
const THRESHOLD: &str = "threshold";
const OVERFLOW: &str = "overflow";
const MANUAL: &str = "manual";

impl PiProgram {
    pub(crate) fn new(b: &BuildRequest<'_>) -> Self {
        let (mut settings, words): (PiSettings, PiWords) = (b.settings(), b.texts());
        let is_old = b.version.name == "0.14";
        settings.retries = if is_old { 0 } else { settings.retries };
        PiProgram { settings, words, scale: b.scale, is_old, ..PiProgram::default() }
    }

    fn base(&self, s: &Engine) -> u64 {
        self.settings.base_estimate.unwrap_or_else(|| quarter(base_chars(s).iter().sum()))
    }

    fn limit(&self, s: &Engine) -> u64 {
        s.model.window.saturating_sub(self.settings.reserve)
    }

    fn view(&self, s: &Engine) -> Vec<Arc<Block>> {
        let fixed = s.context.blocks().iter().filter(|b| is_fixed(b)).cloned();
        fixed.chain(self.log.visible_blocks()).collect()
    }

    /// Shows the blocks that the log sends, where the change is not a compaction.
    fn update_view(&mut self, s: &mut Engine) {
        // Messages are removed as a whole and results stay after their calls, so the edit is always
        // valid.
        let _ = s.set_view(self.view(s));
    }

    /// Compacts if the view exceeds the threshold (docs/sources/pi.md §1).
    async fn check_threshold(&mut self, s: &mut Engine, phase: Phase, tokens: u64) {
        if self.settings.auto && tokens > self.limit(s) {
            self.compaction(s, THRESHOLD, phase, None).await;
        }
    }

    /// Performs the checks that follow a run and precede a prompt (docs/sources/pi.md §1, §5).
    /// Returns true if the run continues.
    async fn check_reply(&mut self, s: &mut Engine, at: usize, phase: Phase) -> bool {
        if !self.settings.auto || self.log.compaction().is_some_and(|(c, _)| at < c) {
            return false;
        }
        let EntryContent::Message(m) = &self.log.0[at].content else { return false };
        if self.is_old {
            let tokens = m.report.total();
            self.check_threshold(s, phase, tokens).await;
            return false;
        }
        let (usage, window) = (m.report.usage, s.model.window);
        let failed = m.report.failed.as_ref();
        let cut_off = m.report.cut_off;
        let calls = m.blocks.iter().any(|b| b.kind == BlockKind::Call);
        let over = failed.is_none() && !cut_off && !calls;
        let projected = self.log.is_projected(at);
        let edited = self.log.0[at + 1..].iter().any(LogEntry::is_edit);
        let input = usage.input + usage.cache_read;
        // Some providers accept a prompt that is too large; others truncate it and have no room for
        // a reply.
        let silent = projected
            && !edited
            && ((over && input > window)
                || (cut_off && usage.output == 0 && input as f64 >= window as f64 * 0.99));
        let refused = !m.hidden && failed.is_some_and(is_overflow);
        let short = projected && cut_off && usage.output < s.model.max_output;
        if refused || silent || short {
            return self.recover(s, at, phase, over).await;
        }
        let base = self.base(s);
        let tokens = if self.log.has_edits() {
            self.log.tokens(base)
        } else if m.report.total() > 0 {
            m.report.total()
        } else {
            // Counters from before the newest compaction say nothing about the view.
            let Some(tokens) = self.log.tokens_across_edits(base) else { return false };
            tokens
        };
        self.check_threshold(s, phase, tokens).await;
        false
    }

    /// Handles a full window. Returns true if the run continues.
    async fn recover(&mut self, s: &mut Engine, at: usize, phase: Phase, answered: bool) -> bool {
        if answered {
            // The reply is complete, so there is nothing to continue.
            self.compaction(s, OVERFLOW, phase, None).await;
            return false;
        }
        if self.recovered {
            // The program reports a failed compaction although it starts none.
            s.trigger(OVERFLOW, self.log.tokens(self.base(s)), s.model.window);
            return false;
        }
        self.recovered = true;
        self.log.hide(at);
        self.update_view(s);
        self.compaction(s, OVERFLOW, phase, None).await
    }

    /// Summarises the messages before the tail and shows the result. Returns true on success.
    async fn compaction(
        &mut self,
        s: &mut Engine,
        reason: &'static str,
        phase: Phase,
        focus: Option<&str>,
    ) -> bool {
        let keep = self.settings.keep_recent;
        let plan = if self.is_old { self.log.plan_of_turns(keep) } else { self.log.plan(keep) };
        if plan.is_none() && reason != MANUAL {
            return false;
        }
        s.trigger(reason, self.log.tokens(self.base(s)), self.limit(s));
        // A manual compaction reports to the user that there is nothing to compact.
        let Some(plan) = plan else { return false };
        let Some(summary) = self.summary(s, &plan, phase, focus).await else { return false };
        let covered = || plan.history.iter().chain(&plan.turn).copied();
        let files = if self.is_old { FileLists::default() } else { self.log.files(covered()) };
        let summary = summary + &files.render();
        let before = self.log.compaction().map(|(_, c)| c.block.origin.clone());
        let messages = covered().filter_map(|i| self.log.0[i].visible());
        let messages = messages.flat_map(|m| m.blocks.iter().map(|b| &b.origin));
        let origin: Origins = before.iter().chain(messages).collect();
        let text = format!("{}{summary}{}", self.words.summary_head, self.words.summary_tail);
        let block = s.synthetic(BlockKind::Summary, Role::User, text, origin);
        let block = block.map_draft(|d| d.as_list = true);
        let first_kept = plan.first_kept;
        self.log.push_compaction(PiCompaction { block, summary, first_kept, files });
        let view = self.view(s);
        let _ = s.compacted(CompactionKind::Summarise, "summary", phase, view);
        s.note(Event::Estimated(self.log.estimate(self.base(s))));
        true
    }

    /// Requests the summary for a plan, without the file lists: one of whole turns, and one of the
    /// beginning of a split turn (docs/sources/pi.md §2, §3).
    async fn summary(
        &self,
        s: &mut Engine,
        plan: &CompactionPlan,
        phase: Phase,
        focus: Option<&str>,
    ) -> Option<String> {
        let words = &self.words;
        let prior = self.log.compaction().map(|(_, c)| c.summary.as_str());
        let told = |entries: &[usize]| {
            let messages = entries.iter().filter_map(|&i| self.log.0[i].visible());
            transcript(messages.map(|m| (m.role, &m.blocks[..])))
        };
        if self.is_old {
            return self.ask(s, phase, self.old_request(plan, focus)).await;
        }
        let base = summary_base(s, Role::System, &words.summary_system);
        let under_base = |prompt: Draft| [&base[..], &[prompt.ephemeral()]].concat();
        let history = if plan.history.is_empty() {
            prior.unwrap_or(&words.no_history).to_string()
        } else {
            let prompt = history_prompt(words, &told(&plan.history), prior, focus);
            self.ask(s, phase, under_base(prompt)).await?
        };
        if !plan.split {
            return Some(history);
        }
        let prompt = turn_prompt(words, &told(&plan.turn), focus);
        let turn = self.ask(s, phase, under_base(prompt)).await?;
        Some(format!("{history}{}{turn}", words.split_join))
    }

    /// Returns the blocks of a summary request of 0.14: the summary before, the messages as they were
    /// sent, and what is asked, without a system prompt.
    fn old_request(&self, plan: &CompactionPlan, focus: Option<&str>) -> Vec<Arc<Block>> {
        let prior = self.log.compaction().map(|(_, c)| {
            let mut told = Transcript::default();
            told.instruct(&self.words.prior);
            told.recall(&Transcript::quoted(BlockKind::Summary, &c.summary));
            told.draft(BlockKind::Summary, Role::User).ephemeral()
        });
        let messages = plan.history.iter().filter_map(|&i| self.log.0[i].visible());
        let mut asked = Transcript::default();
        asked.instruct(&self.words.checkpoint);
        let asked = focused(&self.words, asked, focus).ephemeral();
        let messages = messages.flat_map(|m| m.blocks.iter().cloned());
        prior.into_iter().chain(messages).chain([asked]).collect()
    }

    /// Sends a summary request and returns the answer. Retries transient failures, and records any
    /// other failure.
    async fn ask(&self, s: &mut Engine, phase: Phase, blocks: Vec<Arc<Block>>) -> Option<String> {
        let input = blocks.iter().map(|b| by_three_and_a_half(utf16_len(&b.text))).sum();
        let mut request = s.summary_request(phase, blocks, false);
        request.max_tokens = Some(self.largest_reply(s, input));
        // A one-time prompt is not worth a cache entry (docs/sources/pi.md §8).
        request.breakpoints.retain(|_| self.is_old);
        match s.send_retrying(&request, self.settings.retries, is_retryable).await {
            Ok(reply) if reply.stop != StopReason::MaxTokens && !reply.has_calls() => {
                // An empty answer is a valid summary (docs/sources/pi.md §6).
                let texts: Vec<&str> = reply.parts.iter().filter_map(|p| p.as_text()).collect();
                return Some(texts.join("\n"));
            }
            // The session is over.
            Err(e) if e.kind == ErrorKind::SessionEnd => {}
            _ => s.note(Event::CompactionFailed { mechanism: "summary", dangling: false }),
        }
        None
    }

    fn largest_reply(&self, s: &Engine, input: u64) -> u64 {
        largest_reply(s.model.window, s.model.max_output, input, self.scale)
    }
}

#[async_trait]
impl Strategy for PiProgram {
    fn admit(&self, mut raw: Draft) -> Draft {
        // Prompts are sent as lists of parts.
        raw.as_list |= matches!(raw.kind, BlockKind::User | BlockKind::Image);
        raw
    }

    async fn on_start(&mut self, s: &mut Engine) {
        self.log = Log::default();
        (self.report, self.batch_done, self.recovered, self.retried) = (None, false, false, 0);
        s.show_fixed();
    }

    async fn on_restart(&mut self, _s: &mut Engine) {
        // The session is restored from its file, but the state of the process is lost.
        (self.batch_done, self.recovered, self.retried) = (false, false, 0);
    }

    fn on_recorded(&mut self, s: &mut Engine, id: MessageId) {
        let Some(role) = s.history.get(id).map(|m| m.role) else { return };
        let report = self.report.take_if(|_| role == Role::Assistant).unwrap_or_default();
        if self.log.push_message(id, role, s.newest_blocks(), report) {
            self.update_view(s);
        }
    }

    async fn on_user(&mut self, s: &mut Engine, _msg: &Incoming) -> Flow {
        if let Some(at) = self.log.newest_reply().filter(|_| !self.is_old) {
            self.check_reply(s, at, Phase::PreTurn).await;
        }
        if self.log.close_calls(s) {
            self.update_view(s);
        }
        (self.batch_done, self.recovered) = (false, false);
        Flow::Proceed
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        if std::mem::take(&mut self.batch_done) && s.model.window > 0 {
            let tokens = self.log.tokens(self.base(s));
            self.check_threshold(s, Phase::MidTurn, tokens).await;
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut request = s.sample_request();
        request.max_tokens = Some(self.largest_reply(s, self.log.input(base_chars(s))));
        if s.options().default_breakpoints && s.model.provider == Provider::Anthropic {
            let system = request.blocks.iter().take_while(|b| is_system(b)).count();
            let ends = [system.checked_sub(1), request.blocks.len().checked_sub(1)];
            request.breakpoints = ends.into_iter().flatten().collect();
            request.breakpoints.dedup();
        }
        request
    }

    async fn on_reply(&mut self, _s: &mut Engine, reply: &Reply) -> ReplyFlow {
        let report = Report::from_reply(reply);
        self.recovered &= report.cut_off;
        self.report = Some(report);
        self.retried = 0;
        ReplyFlow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        self.batch_done = had_calls && !self.is_old;
        let at = self.log.newest_reply().filter(|_| !self.batch_done);
        let phase = if had_calls { Phase::MidTurn } else { Phase::PostTurn };
        match at {
            Some(at) if self.check_reply(s, at, phase).await => Flow::Again,
            _ => Flow::Proceed,
        }
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, _attempt: u32) -> Flow {
        let at = self.log.push_failed(s, e);
        if is_retryable(e) && self.retried < self.settings.retries {
            self.retried += 1;
            self.log.hide(at);
            return Flow::Again;
        }
        self.retried = 0;
        again_if(self.check_reply(s, at, Phase::MidTurn).await, e)
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        self.log.rewind(to);
        self.update_view(s);
    }

    async fn compact(&mut self, s: &mut Engine, instructions: Option<&str>) -> Manual {
        self.compaction(s, MANUAL, Phase::StandaloneTurn, instructions).await;
        Ok(())
    }
}
