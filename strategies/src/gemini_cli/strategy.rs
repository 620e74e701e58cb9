//! Gemini CLI as released, 0.61 (docs/sources/gemini-cli.md; comments name the sections).
//!
//! Before every request, including those between tool calls, the program compares the last prompt
//! size that the provider reported with half of the window. Pending content, which is about to be
//! sent, is not part of the history yet.

use std::collections::HashMap;

use ctxbench_core::prelude::*;

use super::preview::{masked, pretty};
use super::rules::{
    ContentMessage, GeminiCliSettings, GeminiCliWords, Sizes, cut_results, messages, side, split,
    stable_id, to_mask,
};
use crate::shared::{interrupted, is_fixed, summary_base};

/// Maximum attempts at a summary request, including the first (docs/sources/gemini-cli.md §4).
const SUMMARY_ATTEMPTS: u64 = 5;
/// Maximum attempts at a request with a broken stream or an empty answer
/// (docs/sources/gemini-cli.md §4).
const STREAM_ATTEMPTS: u64 = 4;

/// Folder of saved results, as long as the program's (docs/sources/gemini-cli.md §5).
const SAVED_RESULTS: &str = "/home/user/.gemini/tmp/project/tool-outputs/\
    session-0c6e4f1a-7d42-4b9e-8a66-2f1d90c7b384";

/// Start of a snapshot in a text (docs/sources/gemini-cli.md §2).
const SNAPSHOT: &str = "<state_snapshot>";

#[derive(Default)]
pub(crate) struct GeminiCliProgram {
    settings: GeminiCliSettings,
    words: GeminiCliWords,
    /// Tokens of the last prompt as reported, or an estimate of the history.
    count: u64,
    /// A compression made the history larger, so no automatic compression follows in this chat.
    failed: bool,
    copies: Copies,
    /// Number of results written to files.
    files: u64,
    /// The next request repeats the last one.
    again: bool,
    /// Number of consecutive empty answers.
    empty: u64,
    sizes: Sizes,
}

impl GeminiCliProgram {
    pub(crate) fn new(settings: GeminiCliSettings, words: GeminiCliWords) -> Self {
        GeminiCliProgram { settings, words, ..GeminiCliProgram::default() }
    }

    /// Returns the blocks of the history before an index, without duplicates of resumed results.
    fn history(s: &Engine, end: usize) -> Vec<Arc<Block>> {
        s.context.blocks()[..end].iter().filter(|b| side(b).is_some()).cloned().collect()
    }

    /// Estimates the tokens of a history from its texts.
    fn estimate(&mut self, history: &[Arc<Block>]) -> u64 {
        self.sizes.estimate(self.copies.spread(history))
    }

    /// Builds a view: the fixed blocks, then a history without its fixed blocks, then the pending
    /// blocks.
    fn view(s: &Engine, history: Vec<Arc<Block>>, pending: usize) -> Vec<Arc<Block>> {
        let blocks = s.context.blocks();
        let fixed = blocks[..pending].iter().filter(|b| is_fixed(b)).cloned();
        let rest = history.into_iter().filter(|b| !is_fixed(b));
        fixed.chain(rest).chain(blocks[pending..].iter().cloned()).collect()
    }

    /// Compresses the history before `pending` when it is too large or `force` is given.
    async fn compress(
        &mut self,
        s: &mut Engine,
        pending: usize,
        phase: Phase,
        force: bool,
    ) -> Result<(), String> {
        let history = Self::history(s, pending);
        let limit = self.settings.threshold * s.model.window as f64;
        if history.is_empty() || (!force && (self.count as f64) < limit) {
            return Ok(());
        }
        let whole: Vec<Arc<Block>> = self.copies.spread(&history).cloned().collect();
        let cut = self.cut(s, whole.clone());
        if self.failed && !force {
            self.only_cut(s, &history, &cut, pending, phase);
            return Ok(());
        }
        let parts = messages(cut.iter());
        let at = split(&parts, 1.0 - self.settings.keep, &mut self.sizes);
        if at == 0 {
            return Ok(());
        }
        s.trigger(if force { "manual" } else { "threshold" }, self.count, limit as u64);
        let uncut = messages(whole.iter());
        let tokens = self.sizes.estimate(uncut[..at].iter().flat_map(|m| &m.parts));
        let head = if tokens < s.model.window { &uncut[..at] } else { &parts[..at] };
        let summary = self.snapshot(s, head, phase).await?;
        let first = parts.get(at).and_then(|m| m.parts.first());
        // A tail begins with a prompt. A prompt is never cut and occurs only once in the history.
        let from = first.and_then(|f| history.iter().position(|b| Arc::ptr_eq(b, f)));
        let mut tail = history[from.unwrap_or(history.len())..].to_vec();
        take_over(&mut tail, &cut);
        let replaced = history[..from.unwrap_or(history.len())].iter().filter(|b| !is_fixed(b));
        let origin: Origins = replaced.map(|b| &b.origin).collect();
        let summary = s.synthetic(BlockKind::Summary, Role::User, summary, origin);
        let ack = s.synthetic(BlockKind::Ack, Role::Assistant, self.words.ack.clone(), vec![]);
        let context = history.iter().filter(|b| is_fixed(b)).cloned();
        let new: Vec<Arc<Block>> = context.chain([summary, ack]).chain(tail).collect();
        let tokens = self.estimate(&new);
        if tokens > self.count {
            // The result is larger than the history, so it is discarded.
            self.failed |= !force;
            s.note(Event::CompactionFailed { mechanism: "snapshot", dangling: false });
            return Ok(());
        }
        let view = Self::view(s, new, pending);
        let _ = s.compacted(CompactionKind::Summarise, "snapshot", phase, view);
        (self.count, self.failed) = (tokens, false);
        self.copies.rewritten(true);
        s.note(Event::Estimated(tokens));
        Ok(())
    }

    /// Cuts the results that exceed the budget, as before a compression.
    fn cut(&mut self, s: &Engine, blocks: Vec<Arc<Block>>) -> Vec<Arc<Block>> {
        let left = 4 * s.model.window.saturating_sub(self.count);
        let GeminiCliSettings { results_budget, cut_to, .. } = self.settings;
        let (most, note) = (cut_to.min(left) as usize, &self.words.cut_note);
        cut_results(blocks, results_budget, most, note, &mut self.sizes, &mut self.files)
    }

    /// Cuts results if that makes the history smaller, and does nothing else. Used after a failed
    /// compression.
    fn only_cut(
        &mut self,
        s: &mut Engine,
        history: &[Arc<Block>],
        cut: &[Arc<Block>],
        pending: usize,
        phase: Phase,
    ) {
        let tokens = self.sizes.estimate(cut);
        if tokens >= self.count {
            return;
        }
        let mut new = history.to_vec();
        take_over(&mut new, cut);
        let view = Self::view(s, new, pending);
        let _ = s.compacted(CompactionKind::Truncate, "cut_results", phase, view);
        self.count = tokens;
        self.copies.rewritten(false);
    }

    /// Creates the snapshot of a head: requests a draft, then a second request checks and corrects
    /// it (docs/sources/gemini-cli.md §2).
    async fn snapshot(
        &self,
        s: &mut Engine,
        head: &[ContentMessage],
        phase: Phase,
    ) -> Result<String, String> {
        let mut blocks = summary_base(s, Role::Instructions, &self.words.summary_system);
        for (id, m) in (0..).map(MessageId).zip(head) {
            blocks.extend(m.parts.iter().map(|b| placed(b, id)));
        }
        let mut said = head.iter().flat_map(|m| &m.parts).filter(|b| b.call.is_none());
        let anchored = said.any(|b| b.text.contains(SNAPSHOT));
        let words = &self.words;
        let prompt = if anchored { &words.prompt_anchored } else { &words.prompt_new };
        let ask =
            |words: &Arc<str>| ephemeral_block(BlockKind::SummaryPrompt, Role::User, words.clone());
        let drafting = [&blocks[..], &[ask(prompt)]].concat();
        let draft = self.ask(s, phase, drafting).await?;
        blocks.push(ephemeral_block(BlockKind::Summary, Role::Assistant, draft.as_str()));
        blocks.push(ask(&self.words.prompt_verify));
        let checked = self.ask(s, phase, blocks).await?;
        // `ask` returns an error instead of a blank text.
        Ok(checked.trim().to_string())
    }

    /// Sends a summary request and returns the answer. Retries transient failures and blank
    /// answers.
    async fn ask(
        &self,
        s: &mut Engine,
        phase: Phase,
        blocks: Vec<Arc<Block>>,
    ) -> Result<String, String> {
        let mut request = s.summary_request(phase, blocks, false);
        // Keeps the draft as a separate message even if the message before it has the same role.
        request.keep_messages = true;
        for left in (0..SUMMARY_ATTEMPTS).rev() {
            match s.send(&request).await {
                Err(e) if left > 0 && is_retryable(&e) => {}
                Err(e) => return Err(e.to_string()),
                Ok(reply) => match reply_text(&reply) {
                    text if text.trim().is_empty() => {}
                    text => return Ok(text),
                },
            }
        }
        Err(format!("no text came in {SUMMARY_ATTEMPTS} attempts at a summary"))
    }

    /// Replaces old results by previews (docs/sources/gemini-cli.md §5).
    fn mask(&mut self, s: &mut Engine, pending: usize, phase: Phase) {
        if !self.settings.mask {
            return;
        }
        let mut new = Self::history(s, pending);
        let GeminiCliSettings { mask_protect: protect, mask_minimum: minimum, .. } = self.settings;
        let rule = PruneRule { protect, minimum, minimum_suffices: true };
        let chosen = to_mask(&messages(self.copies.spread(&new)), rule, &mut self.sizes);
        let mut smaller = false;
        for b in new.iter_mut().filter(|b| b.kind == BlockKind::Output) {
            let Some(call) = b.call.clone().filter(|c| chosen.contains(&c.id)) else { continue };
            let file = format!("{SAVED_RESULTS}/{}_{}_5x0qz.txt", call.name, call.id);
            let whole = pretty(&b.text, b.is_error);
            let text = masked(&call.name, &b.text, &whole, &self.words.masked_note, &file);
            let preview = b.with_text(BlockForm::Cleared, text);
            if self.sizes.estimate([&preview]) < self.sizes.estimate([&*b]) {
                *b = preview;
                smaller = true;
            }
        }
        if !smaller {
            return;
        }
        self.copies.rewritten(false);
        self.count = self.estimate(&new);
        let view = Self::view(s, new, pending);
        let _ = s.compacted(CompactionKind::Clear, "mask_results", phase, view);
    }

    /// Removes the newest prompt from the history. Pending results stay with their calls.
    fn remove_prompt(s: &mut Engine) {
        let at = pending(s.context.blocks());
        if is_prompt(&s.context.blocks()[at..]) {
            let kept = s.context.blocks()[..at].to_vec();
            let _ = s.set_view(kept);
        }
    }

    /// Fails the prompt and removes it from the history.
    fn fail(s: &mut Engine, reason: String) -> Flow {
        Self::remove_prompt(s);
        Flow::FailTurn(reason)
    }

    /// Adds a result that reports the interruption to each call without a result.
    fn close_calls(&self, s: &mut Engine) {
        for b in unanswered(s.context.blocks()) {
            let result = interrupted(s, &b, &self.words.interrupted);
            s.show(result);
        }
    }

    fn recount(&mut self, s: &Engine) {
        self.count = self.estimate(&Self::history(s, s.context.blocks().len()));
    }
}

/// Returns the index of the first pending block: the results after the last reply, or the newest
/// message.
fn pending(blocks: &[Arc<Block>]) -> usize {
    let Some(last) = blocks.last() else { return 0 };
    let results = blocks.iter().rev().take_while(|b| b.role != Role::Assistant);
    let results = results.take_while(|b| !is_fixed(b)).any(|b| b.kind == BlockKind::Output);
    let belongs = |b: &Arc<Block>| {
        !is_fixed(b) && b.role != Role::Assistant && (results || b.message == last.message)
    };
    blocks.len() - blocks.iter().rev().take_while(|b| belongs(b)).count()
}

/// Returns whether pending blocks are a prompt, and not results.
fn is_prompt(pending: &[Arc<Block>]) -> bool {
    pending.iter().all(|b| b.kind != BlockKind::Output)
}

/// Replaces results with their cut versions. If a result has several copies, the newest one counts.
fn take_over(blocks: &mut [Arc<Block>], cut: &[Arc<Block>]) {
    let results =
        cut.iter().filter(|b| b.form == BlockForm::Truncated && b.kind == BlockKind::Output);
    let by_call: HashMap<&str, &Arc<Block>> =
        results.filter_map(|b| Some((b.call_id()?, b))).collect();
    for b in blocks.iter_mut().filter(|b| b.kind == BlockKind::Output) {
        if let Some(now) = b.call_id().and_then(|id| by_call.get(id)) {
            *b = Arc::clone(now);
        }
    }
}

/// Puts a copy of a block into the given message. Its call gets the ID that the history uses, which
/// includes the tool name.
fn placed(b: &Arc<Block>, message: MessageId) -> Arc<Block> {
    let mut draft = Draft::clone(b);
    if let Some(c) = &b.call {
        draft.call = Some(Arc::new(CallRef { id: stable_id(b).into(), name: c.name.clone() }));
    }
    draft.build(message, b.origin.clone())
}

/// Concatenates the text parts of a reply.
fn reply_text(reply: &Reply) -> String {
    reply.parts.iter().filter_map(|p| p.as_text()).collect()
}

/// Returns true if a retry of the same request may succeed (docs/sources/gemini-cli.md §4).
fn is_retryable(e: &ModelError) -> bool {
    e.kind == ErrorKind::Stream
        || (e.kind == ErrorKind::Server && e.status == 0)
        || matches!(e.status, 429 | 499 | 500..=599)
}

#[async_trait]
impl Strategy for GeminiCliProgram {
    async fn on_start(&mut self, s: &mut Engine) {
        (self.failed, self.again, self.empty) = (false, false, 0);
        self.copies = Copies::default();
        s.show_fixed();
        self.recount(s);
    }

    async fn on_restart(&mut self, s: &mut Engine) {
        self.close_calls(s);
        self.copies.resumed();
        (self.failed, self.again, self.empty) = (false, false, 0);
        self.recount(s);
    }

    async fn on_user(&mut self, s: &mut Engine, _msg: &Incoming) -> Flow {
        self.close_calls(s);
        if s.context.blocks().last().is_some_and(|b| b.role == Role::Tool) {
            // Without this message, the prompt would merge with the unanswered results.
            let text = self.words.interrupted.clone();
            let closing = s.synthetic(BlockKind::Ack, Role::Assistant, text, vec![]);
            s.show(closing);
        }
        (self.again, self.empty) = (false, 0);
        Flow::Proceed
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        if std::mem::take(&mut self.again) {
            return Flow::Proceed;
        }
        let at = pending(s.context.blocks());
        let prompt = is_prompt(&s.context.blocks()[at..]);
        let phase = if prompt { Phase::PreTurn } else { Phase::MidTurn };
        if let Err(reason) = self.compress(s, at, phase, false).await {
            s.note(Event::CompactionFailed { mechanism: "snapshot", dangling: false });
            return Self::fail(s, reason);
        }
        let left = s.model.window.saturating_sub(self.count);
        let at = pending(s.context.blocks());
        self.mask(s, at, phase);
        let at = pending(s.context.blocks());
        let wanted = self.sizes.estimate(&s.context.blocks()[at..]);
        if wanted > left {
            let reason = format!(
                "the message is believed to have {wanted} tokens, and {left} are left in the window"
            );
            return Self::fail(s, reason);
        }
        Flow::Proceed
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> ReplyFlow {
        let thought = reply.parts.iter().any(|p| matches!(p, Part::Reasoning { .. }));
        let results = s.context.blocks().last().is_some_and(|b| b.role == Role::Tool);
        if !reply.has_calls() && reply_text(reply).trim().is_empty() && (thought || !results) {
            self.empty += 1;
            if self.empty < STREAM_ATTEMPTS {
                self.again = true;
                return ReplyFlow::DropReply;
            }
            Self::remove_prompt(s);
            return ReplyFlow::FailTurn("the model answered without a word".into());
        }
        self.empty = 0;
        if reply.usage.prompt() > 0 {
            self.count = reply.usage.prompt();
        }
        ReplyFlow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        let blocks = s.context.blocks();
        if had_calls {
            let at = pending(blocks);
            let results = blocks[at..].iter().filter(|b| b.kind == BlockKind::Output);
            let ids: Vec<String> = results.filter_map(|b| b.call_id()).map(Into::into).collect();
            self.copies.recorded(&ids);
        }
        // Reasoning is not sent again.
        if blocks.iter().rev().take(64).any(|b| b.kind == BlockKind::Reasoning) {
            let kept = |b: &&Arc<Block>| b.kind != BlockKind::Reasoning;
            let kept = blocks.iter().filter(kept).cloned().collect();
            let _ = s.set_view(kept);
        }
        Flow::Proceed
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        let most = match e.kind {
            ErrorKind::Stream => STREAM_ATTEMPTS,
            _ => self.settings.attempts,
        };
        if is_retryable(e) && u64::from(attempt) < most {
            self.again = true;
            return Flow::Again;
        }
        Self::fail(s, e.to_string())
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        // A message that a compression rewrote is not a rewind target.
        if s.context.blocks().iter().any(|b| b.message == to) {
            s.truncate_after(to);
            self.recount(s);
        }
    }

    async fn compact(&mut self, s: &mut Engine, _instructions: Option<&str>) -> Manual {
        self.close_calls(s);
        let end = s.context.blocks().len();
        if self.compress(s, end, Phase::StandaloneTurn, true).await.is_err() {
            s.note(Event::CompactionFailed { mechanism: "snapshot", dangling: false });
        }
        Ok(())
    }
}

/// Returns the name that recorded cases use for a request of a compression.
pub fn phase(request: &Request) -> Option<&'static str> {
    let draft = |b: &Arc<Block>| b.kind == BlockKind::Summary && b.role == Role::Assistant;
    let named = if request.blocks.iter().any(draft) { "verify" } else { "summary" };
    (request.purpose == Purpose::Summary).then_some(named)
}

/// Number of copies of each result in the history.
#[derive(Default)]
pub(super) struct Copies {
    /// Final numbers of copies, by call ID.
    settled: HashMap<String, usize>,
    /// Results that the file stores with their calls, by call ID.
    stored: HashMap<String, ResumedState>,
    /// No results are stored with calls after a compression in this process.
    rewritten: bool,
}

#[derive(Clone, Copy, Default)]
struct ResumedState {
    /// Number of times that the session was resumed since the result was stored.
    resumed: usize,
    /// Number of results in the same message.
    together: usize,
}

impl ResumedState {
    /// The first resume reads both copies. At each later one, every call of a message adds all of
    /// the message's results.
    fn copies(self) -> usize {
        match self.resumed {
            0 => 1,
            1 => 2,
            n => 2 + (n - 1) * self.together,
        }
    }
}

impl Copies {
    /// Records the results of one message, given their call IDs.
    pub(super) fn recorded(&mut self, ids: &[String]) {
        if !self.rewritten {
            let stored = ResumedState { resumed: 0, together: ids.len() };
            self.stored.extend(ids.iter().map(|id| (id.clone(), stored)));
        }
    }

    /// Records that the stored messages were rewritten from the history, without the results stored
    /// with calls. `ends` = a compression did it, after which no results are stored with calls
    /// until the process ends.
    pub(super) fn rewritten(&mut self, ends: bool) {
        for (id, stored) in self.stored.drain() {
            self.settled.insert(id, stored.copies());
        }
        self.rewritten |= ends;
    }

    /// Records that the session was opened again.
    pub(super) fn resumed(&mut self) {
        self.rewritten = false;
        self.stored.values_mut().for_each(|s| s.resumed += 1);
    }

    fn copies(&self, b: &Block) -> usize {
        let id = b.call_id().unwrap_or_default();
        let stored = self.stored.get(id).map(|s| s.copies());
        stored.or_else(|| self.settled.get(id).copied()).unwrap_or(1)
    }

    /// Repeats each result as often as it occurs in the history. The results of a message stay
    /// together.
    pub(super) fn spread<'a>(
        &'a self,
        blocks: &'a [Arc<Block>],
    ) -> impl Iterator<Item = &'a Arc<Block>> {
        let kind = |b: &Block| b.kind == BlockKind::Output;
        blocks.chunk_by(move |a, b| kind(a) == kind(b)).flat_map(move |run| {
            let most = match run.first() {
                Some(b) if kind(b) => run.iter().map(|b| self.copies(b)).max().unwrap_or(1),
                _ => 1,
            };
            (0..most).flat_map(move |k| run.iter().filter(move |b| !kind(b) || self.copies(b) > k))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::call_block;

    fn result(id: &str) -> Arc<Block> {
        call_block(BlockKind::Output, id, "t", "out")
    }

    fn ids(copies: &Copies, blocks: &[Arc<Block>]) -> Vec<String> {
        copies.spread(blocks).map(|b| b.call_id().unwrap().to_string()).collect()
    }

    #[test]
    fn a_resumed_result_stands_there_twice_unless_a_compression_came_before_it() {
        let mut copies = Copies::default();
        let blocks = [result("a"), result("b")];
        copies.recorded(&["a".into()]);
        assert_eq!(ids(&copies, &blocks), ["a", "b"]);
        copies.resumed();
        copies.rewritten(true);
        copies.recorded(&["b".into()]);
        assert_eq!(ids(&copies, &blocks), ["a", "b", "a"]);
        copies.resumed();
        assert_eq!(ids(&copies, &blocks), ["a", "b", "a"]);
        // The next process stores results with calls again.
        copies.recorded(&["c".into()]);
        copies.resumed();
        assert_eq!(ids(&copies, &[result("c")]), ["c", "c"]);
    }
}
