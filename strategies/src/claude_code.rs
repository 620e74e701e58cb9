//! Claude Code: old tool results go first, then one summary on the warm prefix replaces the conversation and recent files come back.
//!
//! Follows what is documented, measured and reported of 2.1 (facts/claude-code-and-apis.md §1). The program is closed: every setting
//! names its grade, A documented, B measured, C reported. Two layers before a request, judged by the last usage plus an estimate of what
//! is new: above the warning level old tool results are cleared, above the threshold the conversation is summarised by the same model over
//! the same prefix. An overflow error does the same, with the oldest part left out.
//!
//! Left out: background preparation, notes kept beside the session, compaction of idle sessions on the one-hour cache, skills, plans and
//! subagents (facts §1.4, §1.5).

use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::block::{Block, BlockKind, Draft, Form, MessageId, Origin, Role};
use ctxbench_core::compaction::{clear_outputs, group_starts, recent_files};
use ctxbench_core::descriptor::Build;
use ctxbench_core::engine::{Engine, Event};
use ctxbench_core::history::{History, Part};
use ctxbench_core::record::CompactionKind;
use ctxbench_core::request::{ErrorKind, ModelError, Phase, Reply, Request, Ttl};
use ctxbench_core::session::Millis;
use ctxbench_core::strategy::{Flow, Strategy, Unsupported};
use ctxbench_core::tokens::bytes_div4_up;

use crate::claude_code_rules::{LevelRule, Levels, Restored, clearable, estimate, excess, kept_summary, restorable};
use crate::common::is_fixed;
use crate::tool_names::folded;

/// Attempts at a request that fails for a passing reason; ours.
const ATTEMPTS: u32 = 10;
/// A compaction is followed "right after" by another one if at most this many replies lie between; ours (facts §1.5 gives no number).
const RIGHT_AFTER: u32 = 1;

pub(crate) fn build(b: &Build<'_>) -> Box<dyn Strategy> {
    let s = b.settings;
    let text = |name: &str| b.wording.get(&format!("claude-code.{name}"));
    Box::new(ClaudeCode {
        auto: s.flag("auto"),
        rule: LevelRule {
            window: s.int("auto_compact_window"),
            reserve: s.num("output_reserve"),
            buffer: s.num("buffer"),
            warning: s.num("warning_distance"),
            percent: s.num("threshold_percent"),
        },
        blocking: s.num("blocking_buffer"),
        micro: Micro::of(s.word("microcompact")),
        micro_keep: s.num("micro_keep") as usize,
        micro_minimum: s.num("micro_minimum"),
        micro_gap: s.num("micro_gap_ms"),
        micro_gap_keep: s.num("micro_gap_keep") as usize,
        output_limit: s.num("output_chars") as usize,
        summary_tokens: s.num("summary_max_tokens"),
        files: s.num("restore_files") as usize,
        file_tokens: s.num("restore_file_tokens"),
        files_tokens: s.num("restore_total_tokens"),
        max_failures: s.num("max_failures") as u32,
        max_refills: s.num("max_refills") as u32,
        overflow_retries: s.num("overflow_retries") as u32,
        ttl: if s.word("cache_ttl") == Some("1h") { Ttl::OneHour } else { Ttl::FiveMinutes },
        words: Words {
            prompt: text("summary_prompt"),
            lead_in: text("lead_in"),
            go_on: text("go_on"),
            cleared: text("cleared"),
            left_out: text("left_out"),
        },
        state: State::default(),
    })
}

/// Which rule clears old tool results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Micro {
    Off,
    Count,
    Time,
}

impl Micro {
    fn of(word: Option<&str>) -> Self {
        match word {
            Some("count") => Micro::Count,
            Some("time") => Micro::Time,
            _ => Micro::Off,
        }
    }
}

struct Words {
    prompt: Arc<str>,
    lead_in: Arc<str>,
    go_on: Arc<str>,
    cleared: Arc<str>,
    left_out: Arc<str>,
}

struct ClaudeCode {
    auto: bool,
    rule: LevelRule,
    blocking: u64,
    micro: Micro,
    micro_keep: usize,
    micro_minimum: u64,
    micro_gap: Millis,
    micro_gap_keep: usize,
    output_limit: usize,
    summary_tokens: u64,
    files: usize,
    file_tokens: u64,
    files_tokens: u64,
    max_failures: u32,
    max_refills: u32,
    overflow_retries: u32,
    ttl: Ttl,
    words: Words,
    state: State,
}

#[derive(Default)]
struct State {
    /// Tokens of the last reply's prompt and output, less what was cleared since; `None` after a compaction.
    reported: Option<u64>,
    /// Virtual time of the last reply, ms.
    last_reply: Option<Millis>,
    /// Failures of automatic compactions in a row.
    failures: u32,
    /// Replies since the last automatic compaction.
    since: Option<u32>,
    /// Compactions in a row that came right after another one.
    refills: u32,
    /// The view before each compaction, with the message of its summary.
    undo: Vec<(MessageId, Vec<Arc<Block>>)>,
}

impl ClaudeCode {
    fn levels(&self, s: &Engine) -> Levels {
        self.rule.levels(s.model.window, s.model.max_output)
    }

    /// First block that the last usage does not know of.
    fn new_from(blocks: &[Arc<Block>]) -> usize {
        let made = |b: &Block| matches!(b.kind, BlockKind::Assistant | BlockKind::Reasoning | BlockKind::Call);
        blocks.iter().rposition(|b| made(b)).map_or(0, |i| i + 1)
    }

    /// Last usage + four bytes a token of what is new; without a usage everything is estimated, tools included.
    fn believed(&self, s: &Engine) -> u64 {
        let blocks = s.context.blocks();
        match self.state.reported {
            Some(n) => n + estimate(&blocks[Self::new_from(blocks)..]),
            None => estimate(blocks) + s.fixed.tools.as_ref().map_or(0, |t| bytes_div4_up(t.json.get())),
        }
    }

    fn gave_up(&self) -> bool {
        !self.auto || self.state.failures >= self.max_failures || self.state.refills >= self.max_refills
    }

    /// Clears old tool results if they are many enough (facts §1.2).
    fn micro_compact(&mut self, s: &mut Engine, check: &'static str, keep: usize, minimum: u64, limit: u64) {
        let (at, _) = clearable(s.context.blocks(), keep, minimum, &self.words.cleared);
        if at.is_empty() {
            return;
        }
        s.trigger(check, self.believed(s), limit);
        let cleared = clear_outputs(s.context.blocks(), &at, &self.words.cleared);
        let known = Self::new_from(&cleared);
        let gone = estimate(&s.context.blocks()[..known]) - estimate(&cleared[..known]);
        self.state.reported = self.state.reported.map(|n| n.saturating_sub(gone));
        // Clearing separates nothing.
        let _ = s.compacted(CompactionKind::Clear, "microcompact", Phase::MidTurn, cleared);
    }

    /// One compaction: summary request over the same prefix, then summary and recent files in place of the conversation.
    /// `over` = tokens by which the provider found the prompt too large.
    async fn compaction(&mut self, s: &mut Engine, phase: Phase, instructions: Option<&str>, over: Option<u64>) -> Result<(), String> {
        let before = s.context.blocks().to_vec();
        let (fixed, history): (Vec<_>, Vec<_>) = before.iter().cloned().partition(|b| is_fixed(b));
        if history.is_empty() {
            return Err("there are not enough messages to compact".into());
        }
        let text = self.summarise(s, phase, instructions, over, &fixed, &history).await?;
        let origin = history.iter().flat_map(|b| b.origin.iter().copied()).collect();
        let text = format!("{}\n\n{text}\n\n{}", self.words.lead_in, self.words.go_on);
        let summary = s.synthetic(BlockKind::Summary, Role::User, text, origin);
        self.state.undo.push((summary.message, before));
        let mut blocks = fixed;
        blocks.push(summary);
        blocks.extend(self.restored(s));
        s.compacted(CompactionKind::Summarise, "compact", phase, blocks).map_err(|e| e.to_string())?;
        self.state.reported = None;
        Ok(())
    }

    /// Asks for the summary; each time that the request itself is too long the oldest groups are left out (facts §1.5).
    async fn summarise(
        &self,
        s: &mut Engine,
        phase: Phase,
        instructions: Option<&str>,
        mut over: Option<u64>,
        fixed: &[Arc<Block>],
        history: &[Arc<Block>],
    ) -> Result<String, String> {
        let own = |kind, text: &str| Draft::synthetic(kind, Role::User, text).build(MessageId(u32::MAX), vec![]);
        let prompt = match instructions.map(str::trim).filter(|t| !t.is_empty()) {
            Some(extra) => own(BlockKind::SummaryPrompt, &format!("{}\n\nThe user adds for this summary:\n{extra}", self.words.prompt)),
            None => own(BlockKind::SummaryPrompt, &self.words.prompt),
        };
        let mut from = 0;
        let mut tries = 0;
        loop {
            if let Some(n) = over.take() {
                let next = from_after(&history[from..], n + bytes_div4_up(&prompt.text));
                from += next.ok_or_else(|| "the conversation is too long even without its beginning".to_string())?;
            }
            let mut blocks = fixed.to_vec();
            if from > 0 {
                blocks.push(own(BlockKind::Marker, &self.words.left_out));
            }
            blocks.extend_from_slice(&history[from..]);
            blocks.push(prompt.clone());
            let mut request = s.summary_request(phase, blocks, true);
            request.max_tokens = Some(self.summary_tokens);
            request.ttl = self.ttl;
            match s.send(&request).await {
                Ok(reply) => {
                    return reply.text().and_then(|t| kept_summary(&t)).ok_or_else(|| "the answer holds no summary".to_string());
                }
                Err(e) if e.is_overflow() && tries < self.overflow_retries => {
                    tries += 1;
                    over = Some(excess(&e.message).unwrap_or(0));
                }
                Err(e) => return Err(e.to_string()),
            }
        }
    }

    /// The files worked on last, newest first, as far as the budget goes (facts §1.4).
    fn restored(&self, s: &mut Engine) -> Vec<Arc<Block>> {
        let files = recent_files(&s.history, self.files);
        let sizes: Vec<Option<u64>> = files.iter().map(|f| f.text.as_ref().map(|t| bytes_div4_up(t))).collect();
        let shown = restorable(&sizes, self.file_tokens, self.files_tokens);
        let mut out = Vec::new();
        for (f, how) in files.iter().zip(shown) {
            let (text, origin) = match (how, &f.text) {
                (Restored::Nothing, _) => continue,
                (Restored::Whole, Some(t)) => (format!("{} as it was read before:\n{t}", f.path), origin_of(&s.history, t)),
                _ => (format!("{} was worked on before; read it again if it is needed.", f.path), Vec::new()),
            };
            out.push(s.synthetic(BlockKind::File, Role::User, text, origin));
        }
        out
    }

    /// An automatic compaction with its two guards (facts §1.5).
    async fn auto_compact(&mut self, s: &mut Engine) -> Flow {
        let right_after = self.state.since.is_some_and(|n| n <= RIGHT_AFTER);
        self.state.refills = if right_after { self.state.refills + 1 } else { 0 };
        if self.state.refills >= self.max_refills {
            return Flow::FailTurn("the context was full again right after each compaction; it is not compacted by itself any more".into());
        }
        match self.compaction(s, Phase::MidTurn, None, None).await {
            Ok(()) => {
                self.state.failures = 0;
                self.state.since = Some(0);
            }
            // The request is sent as it is; the provider may still take it.
            Err(_) => self.state.failures += 1,
        }
        Flow::Proceed
    }
}

/// Start of the first group behind which at least `tokens` have been left out, else of the last; `None` when there is but one group.
fn from_after(history: &[Arc<Block>], tokens: u64) -> Option<usize> {
    let starts: Vec<usize> = group_starts(history).into_iter().filter(|&i| i > 0).collect();
    starts.iter().copied().find(|&i| estimate(&history[..i]) >= tokens).or(starts.last().copied())
}

/// The result that a restored text comes from.
fn origin_of(history: &History, text: &Arc<str>) -> Vec<Origin> {
    for m in history.messages().iter().rev() {
        for (i, p) in m.parts.iter().enumerate() {
            if matches!(p, Part::Result { output, .. } if Arc::ptr_eq(output, text)) {
                return vec![Origin { message: m.id, part: i as u32 }];
            }
        }
    }
    Vec::new()
}

#[async_trait]
impl Strategy for ClaudeCode {
    fn admit(&self, mut raw: Draft) -> Draft {
        if raw.kind == BlockKind::Output && self.output_limit > 0 && raw.text.len() > self.output_limit {
            let name = raw.call.as_ref().map(|c| folded(&c.name)).unwrap_or_default();
            // Reading a file never leads to another file (facts §1.2 speaks of tool results in general; ours).
            if !matches!(name.as_str(), "read" | "readfile") {
                raw.text = format!("[{} bytes of output, too large to show; saved to a file]", raw.text.len()).into();
                raw.form = Form::Truncated;
            }
        }
        raw
    }

    async fn on_start(&mut self, s: &mut Engine) {
        self.state = State::default();
        s.show_fixed();
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let levels = self.levels(s);
        let idle = self.state.last_reply.map_or(0, |at| s.now().saturating_sub(at));
        match self.micro {
            Micro::Count if self.believed(s) >= levels.warning => {
                self.micro_compact(s, "warning_level", self.micro_keep, self.micro_minimum, levels.warning);
            }
            Micro::Time if idle > self.micro_gap => self.micro_compact(s, "idle_gap", self.micro_gap_keep, 0, 0),
            _ => {}
        }
        let believed = self.believed(s);
        if !self.gave_up() && believed >= levels.compact {
            s.trigger("auto_compact", believed, levels.compact);
            return self.auto_compact(s).await;
        }
        let blocked = levels.effective.saturating_sub(self.blocking);
        if self.gave_up() && believed >= blocked {
            s.trigger("blocking_limit", believed, blocked);
            s.note(Event::Intervention("the context is full: /compact or /clear".into()));
            return Flow::FailTurn(format!("the context is full: {believed} tokens, blocked from {blocked}"));
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        Request { ttl: self.ttl, ..s.sample_request() }
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> Flow {
        self.state.reported = Some(reply.usage.prompt() + reply.usage.output);
        self.state.last_reply = Some(s.now());
        self.state.since = self.state.since.map(|n| n + 1);
        Flow::Proceed
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        let passing = matches!(e.kind, ErrorKind::RateLimited | ErrorKind::Server | ErrorKind::Stream);
        if passing && attempt <= ATTEMPTS {
            return Flow::Again;
        }
        if !e.is_overflow() || self.gave_up() || attempt > self.overflow_retries {
            return Flow::FailTurn(e.to_string());
        }
        s.trigger("provider_overflow", self.believed(s), s.model.window);
        match self.compaction(s, Phase::MidTurn, None, excess(&e.message)).await {
            Ok(()) => {
                self.state.failures = 0;
                self.state.since = Some(0);
                Flow::Again
            }
            Err(why) => {
                self.state.failures += 1;
                Flow::FailTurn(format!("the prompt is too long and the automatic compaction failed: {why}"))
            }
        }
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        // The transcript keeps what a compaction replaced, so going back behind one brings it back (facts §1.5).
        while let Some((_, view)) = self.state.undo.pop_if(|(summary, _)| *summary > to) {
            // A view that was shown before is always valid.
            let _ = s.context.set(view);
        }
        s.truncate_after(to);
        self.state.reported = None;
        self.state.since = None;
    }

    async fn compact(&mut self, s: &mut Engine, instructions: Option<&str>) -> Result<(), Unsupported> {
        // A failed manual compaction changes nothing and is shown to the user.
        if self.compaction(s, Phase::StandaloneTurn, instructions, None).await.is_ok() {
            (self.state.failures, self.state.refills, self.state.since) = (0, 0, None);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "claude_code_tests.rs"]
mod tests;
