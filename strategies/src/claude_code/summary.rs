//! Claude Code's summary request: the same prefix with the instruction at the end. If the request
//! itself is too long, it leaves parts out (docs/sources/claude-code.md §1.3, §1.5).
//!
//! The session memory keeps notes during the conversation that can replace a summary (§1.5, grade C,
//! off on every machine surveyed). A background request over the same prefix updates the notes and is
//! charged like any other. When the context is full, notes and a verbatim tail replace the
//! conversation without a model call, unless the result is still too large.

use std::collections::HashMap;

use ctxbench_core::prelude::*;
use ctxbench_core::usage::Ttl;

use super::rules::{
    CacheTtl, ClaudeCodeSettings, ClaudeCodeWords, Conduct, Trim, estimate, excess, kept_summary,
    tail_start,
};

/// Summary requests with the texts and limits of the settings.
pub(crate) struct Summaries {
    pub settings: ClaudeCodeSettings,
    pub words: ClaudeCodeWords,
    pub conduct: Conduct,
    /// Results that the provider removes from the prefix.
    pub deleted: Deleted,
}

/// Reasons for a failure when only one group of messages is left to summarise.
const NO_BEGINNING: &str = "the conversation is too long even without its beginning";
const NO_END: &str = "the conversation is too long even without its end";

pub(crate) struct FinishedSummary {
    pub text: String,
    /// End of the summarised history. Later blocks stay.
    pub upto: usize,
}

impl Summaries {
    /// Returns the requested lifetime of the prompt cache; by default that of the recorded session.
    pub fn ttl(&self, s: &Engine) -> Ttl {
        match self.settings.cache_ttl {
            CacheTtl::Auto => s.options().ttl,
            CacheTtl::FiveMinutes => Ttl::FiveMinutes,
            CacheTtl::OneHour => Ttl::OneHour,
        }
    }

    /// Builds a request with these blocks, of which the last is the instruction.
    fn request(&self, s: &Engine, phase: Phase, blocks: &[Arc<Block>]) -> Request {
        let (blocks, server_edits) = self.deleted.as_sent(blocks);
        let mut request = s.summary_request(phase, blocks, true);
        if self.conduct == Conduct::Driven {
            // The instruction and its message are not cached.
            request.breakpoints.pop();
        }
        let max_tokens = Some(self.settings.summary_max_tokens);
        Request { max_tokens, ttl: self.ttl(s), server_edits, ..request }
    }

    /// Returns the instruction with the user's additions from `/compact`.
    pub fn instruction(&self, extra: Option<&str>) -> Arc<Block> {
        let prompt = &self.words.summary_prompt;
        let text = match extra.map(str::trim).filter(|t| !t.is_empty()) {
            Some(extra) => format!("{prompt}\n\nThe user adds for this summary:\n{extra}").into(),
            None => prompt.clone(),
        };
        ephemeral_block(BlockKind::SummaryPrompt, Role::User, text)
    }

    /// Requests a summary. Each time that the request is too long, one end of the history is left
    /// out. `over` = tokens by which the provider found an earlier prompt too large.
    pub async fn ask(
        &self,
        s: &mut Engine,
        phase: Phase,
        extra: Option<&str>,
        mut over: Option<u64>,
        (fixed, history): (&[Arc<Block>], &[Arc<Block>]),
    ) -> Result<FinishedSummary, String> {
        let prompt = self.instruction(extra);
        let (mut from, mut upto, mut tries) = (0, history.len(), 0);
        loop {
            if let Some(n) = over.take() {
                let n = n + bytes_div4_up(&prompt.text);
                let shown = &history[from..upto];
                match self.settings.trim {
                    Trim::Oldest => from += without_oldest(shown, n).ok_or(NO_BEGINNING)?,
                    Trim::Tail => upto = from + without_newest(shown, n).ok_or(NO_END)?,
                }
            }
            let mut blocks = fixed.to_vec();
            if from > 0 {
                let left_out = self.words.left_out.clone();
                blocks.push(ephemeral_block(BlockKind::Marker, Role::User, left_out));
            }
            blocks.extend_from_slice(&history[from..upto]);
            blocks.push(prompt.clone());
            let request = self.request(s, phase, &blocks);
            match s.send(&request).await {
                Ok(reply) => {
                    let text = reply
                        .text()
                        .and_then(|t| kept_summary(&t))
                        .ok_or("the answer holds no summary")?;
                    return Ok(FinishedSummary { text, upto });
                }
                Err(e) if e.is_overflow() && tries < self.settings.overflow_retries => {
                    tries += 1;
                    over = Some(excess(&e.message).unwrap_or(0));
                }
                Err(e) => return Err(e.to_string()),
            }
        }
    }

    pub fn block(&self, s: &mut Engine, text: &str, replaced: &[Arc<Block>]) -> Arc<Block> {
        let mut text = format!("{}\n\n{text}\n\n{}", self.words.lead_in, self.words.go_on);
        if self.conduct == Conduct::Driven {
            text.push_str("\n\n");
            text.push_str(&self.words.newest_follow);
        }
        s.synthetic(BlockKind::Summary, Role::User, text, origins(replaced))
    }
}

/// A text written in the background before it is needed (docs/sources/claude-code.md §1.5, grade
/// A).
#[derive(Default)]
pub(crate) struct Prepared(Option<(Task, Request, MessageId)>);

impl Prepared {
    /// Starts a request that shows the current conversation and then these blocks, unless one is in
    /// progress. Returns whether it started.
    pub async fn begin(
        &mut self,
        s: &mut Engine,
        asked: &Summaries,
        last: impl IntoIterator<Item = Arc<Block>>,
    ) -> bool {
        let mut blocks = s.context.blocks().to_vec();
        let newest = blocks.iter().rev().find(|b| !b.origin.is_empty()).map(|b| b.message);
        let (None, Some(upto)) = (&self.0, newest) else { return false };
        blocks.extend(last);
        let request = asked.request(s, Phase::Background, &blocks);
        let task = s.spawn(&request).await;
        self.0 = Some((task, request, upto));
        true
    }

    pub fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    /// Records that the text is needed now, but not ready.
    pub fn missed(&self, s: &mut Engine) {
        if let Some((task, ..)) = &self.0 {
            s.note_background(*task, BackgroundStep::Missed);
        }
    }

    /// Returns the text if it is ready (with `wait`, after waiting for it), and the newest message that
    /// it covers; drops a failed or empty answer.
    pub async fn answer(
        &mut self,
        s: &mut Engine,
        wait: bool,
    ) -> Option<(Task, String, MessageId)> {
        let (task, request, upto) = self.0.take()?;
        let Some(answer) = s.collect(task, &request, wait).await else {
            if wait {
                s.note_background(task, BackgroundStep::Missed);
                s.cancel(task);
            } else {
                self.0 = Some((task, request, upto));
            }
            return None;
        };
        let text = answer.ok()?.text().and_then(|t| kept_summary(&t));
        if text.is_none() {
            s.note_background(task, BackgroundStep::Unusable);
        }
        Some((task, text?, upto))
    }

    /// Returns the text as a summary of the history. Later messages stay after it.
    pub async fn take(
        &mut self,
        s: &mut Engine,
        history: &[Arc<Block>],
        wait: bool,
    ) -> Option<FinishedSummary> {
        let (task, text, upto) = self.answer(s, wait).await?;
        let upto = history.iter().rposition(|b| b.message <= upto).map_or(0, |i| i + 1);
        if upto == 0 {
            s.note_background(task, BackgroundStep::Stale);
            return None;
        }
        Some(FinishedSummary { text, upto })
    }

    /// Cancels the request because the conversation was replaced.
    pub fn cancel(&mut self, s: &mut Engine) {
        if let Some((task, ..)) = self.0.take() {
            s.cancel(task);
        }
    }
}

/// Returns the start of the first group with at least `tokens` before it, or else of the last
/// group. `None` if there is only one group.
fn without_oldest(history: &[Arc<Block>], tokens: u64) -> Option<usize> {
    let starts: Vec<usize> = group_starts(history).into_iter().filter(|&i| i > 0).collect();
    starts.iter().copied().find(|&i| estimate(&history[..i]) >= tokens).or(starts.last().copied())
}

/// Returns the start of the last group with at least `tokens` from it on, or else of the second
/// group. `None` if there is only one group.
fn without_newest(history: &[Arc<Block>], tokens: u64) -> Option<usize> {
    let starts: Vec<usize> = group_starts(history).into_iter().filter(|&i| i > 0).collect();
    starts.iter().copied().rfind(|&i| estimate(&history[i..]) >= tokens).or(starts.first().copied())
}

/// Results that the provider removes from its cached prefix. The view shows them cleared, like the
/// model sees them. The request contains them unchanged and lists them in an edit.
#[derive(Default)]
pub(crate) struct Deleted(HashMap<Arc<str>, Arc<Block>>);

impl Deleted {
    /// Remembers the results at these positions.
    pub fn remember(&mut self, blocks: &[Arc<Block>], at: &[usize]) {
        let by_call = |b: &Arc<Block>| Some((b.call_id()?.into(), b.clone()));
        self.0.extend(at.iter().filter_map(|&i| by_call(&blocks[i])));
    }

    /// Returns the blocks of the view for a request, with deleted results restored, and the edit
    /// that lists them.
    pub fn as_sent(&self, blocks: &[Arc<Block>]) -> (Vec<Arc<Block>>, Vec<ServerEdit>) {
        let mut results: Vec<Arc<str>> = Vec::new();
        let mut as_it_was = |b: &Arc<Block>| {
            let cleared = b.kind == BlockKind::Output && b.form == BlockForm::Cleared;
            let id = b.call_id().filter(|_| cleared);
            let Some((id, was)) = id.and_then(|id| self.0.get_key_value(id)) else {
                return b.clone();
            };
            results.push(id.clone());
            was.clone()
        };
        let blocks = blocks.iter().map(&mut as_it_was).collect();
        let edit = (!results.is_empty()).then_some(ServerEdit::CacheEdits { results });
        (blocks, edit.into_iter().collect())
    }
}

#[derive(Default)]
pub(crate) struct SessionMemory {
    /// Size of the context at the last update, tokens.
    updated_at: Option<u64>,
    running: Prepared,
    /// Notes about the conversation up to and including a message.
    notes: Option<(String, MessageId)>,
}

impl SessionMemory {
    /// Runs after a step: takes over finished notes, and starts the next update if the context has
    /// grown enough.
    pub async fn tend(&mut self, s: &mut Engine, asked: &Summaries, believed: u64) {
        let (set, words) = (&asked.settings, &asked.words);
        if !set.session_memory {
            return;
        }
        self.take_in(s).await;
        let grown = self.updated_at.is_none_or(|n| believed >= n + set.memory_growth_tokens);
        if believed < set.memory_start_tokens || !grown {
            return;
        }
        let so_far =
            self.notes.as_ref().map(|(text, _)| format!("{}\n\n{text}", words.memory_so_far));
        let so_far = so_far.map(|t| ephemeral_block(BlockKind::Summary, Role::User, t));
        let prompt = words.memory_prompt.clone();
        let prompt = ephemeral_block(BlockKind::SummaryPrompt, Role::User, prompt);
        if self.running.begin(s, asked, so_far.into_iter().chain([prompt])).await {
            self.updated_at = Some(believed);
        }
    }

    /// Takes over the answer of a finished update. After a failure the older notes stay, and the
    /// next update tries again.
    async fn take_in(&mut self, s: &mut Engine) {
        if let Some((_, text, upto)) = self.running.answer(s, false).await {
            self.notes = Some((text, upto));
        }
    }

    /// Returns notes that can replace the history, and the start of the verbatim tail after them.
    pub async fn stand_in(
        &mut self,
        s: &mut Engine,
        set: &ClaudeCodeSettings,
        history: &[Arc<Block>],
    ) -> Option<(String, usize)> {
        if !set.session_memory {
            return None;
        }
        self.take_in(s).await;
        // The earlier notes are used, or else a summary.
        self.running.missed(s);
        let (text, upto) = self.notes.as_ref()?;
        let unknown = history.iter().rposition(|b| b.message <= *upto).map_or(0, |i| i + 1);
        let from = tail_start(history, unknown, set);
        (from > 0).then(|| (text.clone(), from))
    }

    /// Records that notes replaced the conversation. Growth counts from here.
    pub fn used(&mut self, believed: u64) {
        self.updated_at = Some(believed);
    }

    /// Stops an update in progress because the program ended. The notes stay in their file.
    pub fn stop(&mut self, s: &mut Engine) {
        self.running.cancel(s);
    }

    /// Drops the notes because the conversation has changed.
    pub fn forget(&mut self, s: &mut Engine) {
        self.stop(s);
        self.notes = None;
        self.updated_at = None;
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
