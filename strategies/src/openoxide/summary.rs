//! OpenOxide's two summaries: of finished turns by the weak model, and of the whole session by the
//! session's own model.

use ctxbench_core::model;
use ctxbench_core::prelude::*;
use ctxbench_core::tokens::Size;

use crate::openoxide::budget::estimate;
use crate::openoxide::view::{
    conversation, head_end, is_conversation, newest_turn, newest_user, transcript,
};
use crate::openoxide::{OpenOxideStrategy, RETRIES};
use crate::scoped::{remember, sections};

/// Maximum number of times that a summary that is still too large is summarised again
/// (docs/sources/openoxide.md §2.4: Aider's recursion, depth 3).
const MAX_DEPTH: u32 = 3;
/// Maximum number of times that a session summary is requested again with the oldest part omitted,
/// after the provider found it too long.
const MAX_TRIMS: u32 = 4;

/// Number of characters that the instruction quotes from the message after the seam. The number is
/// our choice.
const QUOTED: usize = 80;

/// Names of the project's memory file, to which lasting facts are added. Benchmark sessions use the
/// last name.
const OF_PROJECT: [&str; 3] = ["OPENOXIDE.md", ".openoxide/MEMORY.md", "CLAUDE.md"];

/// Sections of a session summary that outlast the session: wishes, decisions, files and open tasks
/// (docs/sources/opencode-vs-claude-code.md §10.3).
const DURABLE: [&str; 4] = [
    "Constraints and wishes of the user",
    "Decisions and why",
    "Files and what is in them",
    "Next steps",
];

/// A summary that is being written in the background.
pub(crate) struct BackgroundSummary {
    pub(crate) task: Task,
    request: Request,
    /// Blocks that the summary will replace.
    covered: Vec<Arc<Block>>,
    depth: u32,
    mechanism: &'static str,
}

impl OpenOxideStrategy {
    /// Returns the conversation of finished turns: everything after a turn, otherwise the part
    /// before the open turn.
    fn finished(s: &Engine, phase: Phase) -> Vec<Arc<Block>> {
        conversation(s.context.blocks(), Self::open(s, phase))
    }

    /// Returns the index at which the open turn begins, or the end of the view if none is open.
    fn open(s: &Engine, phase: Phase) -> usize {
        let blocks = s.context.blocks();
        let open = if phase == Phase::PostTurn { None } else { newest_turn(blocks) };
        open.unwrap_or(blocks.len())
    }

    /// Starts the summary of finished turns if they exceed their budget: in the background, or in
    /// the current phase if the caller will wait for it (`waited`).
    pub(crate) async fn start_history(
        &mut self,
        s: &mut Engine,
        phase: Phase,
        depth: u32,
        waited: bool,
    ) -> bool {
        if self.job.is_some() || depth > MAX_DEPTH {
            return false;
        }
        let history = Self::finished(s, phase);
        let cap = self.history_room(s, Self::open(s, phase));
        let believed = estimate(&history);
        if believed <= cap {
            return false;
        }
        let model = self.settings.weak_model.clone().unwrap_or_else(|| s.model.weak.clone());
        let window =
            model::find(&model).map_or(s.model.window, |m| scale_tokens(m.window, self.scale));
        let end = head_end(
            &history,
            cap,
            window.saturating_sub(2 * cap),
            self.settings.transcript_output as usize,
        );
        if end == 0 {
            return false;
        }
        s.note(Event::Trigger {
            check: "history_cap",
            believed,
            billed: s.tokens_of(&history),
            limit: cap,
        });
        let base =
            ephemeral_block(BlockKind::Base, Role::System, self.words.history_system.clone());
        let text = transcript(&history[..end], self.settings.transcript_output as usize);
        // A summary that is waited for does not run concurrently with the conversation.
        let when = if waited { phase } else { Phase::Background };
        let text = text.draft(BlockKind::SummaryPrompt, Role::User).ephemeral();
        let mut request = s.summary_request(when, vec![base, text], false);
        // The prefix of this request is not used again.
        request.breakpoints.clear();
        request.model = s.model.named(&model);
        request.max_tokens = Some(cap);
        let task = s.spawn(&request).await;
        self.job = Some(BackgroundSummary {
            task,
            request,
            covered: history[..end].to_vec(),
            depth,
            mechanism: "history_summary",
        });
        true
    }

    /// Starts the summary of the whole session in the background.
    pub(crate) async fn start_session(&mut self, s: &mut Engine) {
        if self.job.is_some() {
            return;
        }
        let covered = Self::finished(s, Phase::PostTurn);
        let (blocks, window) = (s.context.blocks(), s.model.window);
        let Some(request) = self.session_request(s, Phase::Background, None, window, blocks) else {
            return;
        };
        let task = s.spawn(&request).await;
        self.job = Some(BackgroundSummary {
            task,
            request,
            covered,
            depth: 0,
            mechanism: "session_summary",
        });
    }

    /// Puts a finished background summary in place; with `wait`, after waiting for it. Returns true
    /// if the view changed.
    pub(crate) async fn settle(&mut self, s: &mut Engine, wait: bool, phase: Phase) -> bool {
        let mut changed = false;
        while let Some(job) = self.job.take() {
            let result = match s.collect(job.task, &job.request, wait).await {
                Some(result) => result,
                None if wait => break,
                None => {
                    if phase != Phase::PostTurn {
                        // The next request is built without the summary.
                        s.note_background(job.task, BackgroundStep::Missed);
                    }
                    self.job = Some(job);
                    break;
                }
            };
            let text = result.ok().and_then(|r| r.text());
            let when = if wait { phase } else { Phase::Background };
            if !text.is_some_and(|t| self.swap(s, &job, &t, when)) {
                break;
            }
            changed = true;
            if !self.two_phases() {
                self.start_history(s, phase, job.depth + 1, wait).await;
            }
        }
        changed
    }

    /// Replaces the covered blocks with their summary if they are unchanged and the summary is
    /// smaller.
    fn swap(&mut self, s: &mut Engine, job: &BackgroundSummary, text: &str, phase: Phase) -> bool {
        let blocks = s.context.blocks();
        let places: Vec<usize> = (0..blocks.len())
            .filter(|&i| is_conversation(&blocks[i]))
            .take(job.covered.len())
            .collect();
        let same = |(i, c): (&usize, &Arc<Block>)| {
            Arc::ptr_eq(&blocks[*i], c) || blocks[*i].hash == c.hash
        };
        let untouched =
            places.len() == job.covered.len() && places.iter().zip(&job.covered).all(same);
        let Some(text) = self.summary_text(s, text, &job.covered, &[]) else {
            s.note_background(job.task, BackgroundStep::Unusable);
            return false;
        };
        if !untouched {
            s.note_background(job.task, BackgroundStep::Stale);
            return false;
        }
        let mut view = s.context.blocks().to_vec();
        let summary = self.summary_block(s, text, &job.covered);
        for &i in places[1..].iter().rev() {
            view.remove(i);
        }
        self.migrate(s, &summary.text);
        view[places[0]] = summary;
        self.compacted(s, CompactionKind::Summarise, job.mechanism, phase, view)
    }

    /// Merges the lasting facts of a session summary into the project's memory file on disk. The
    /// next session shows the file; this session has the summary.
    fn migrate(&self, s: &mut Engine, summary: &str) {
        if self.settings.migration {
            remember(&mut s.fixed.context, &OF_PROJECT, &sections(summary, &DURABLE));
        }
    }

    /// Returns a summary of this session for the next one. `None` if the conversation is empty or
    /// the summary failed.
    pub(crate) async fn summary_for_next(&self, s: &mut Engine) -> Option<Arc<Block>> {
        let shown = s.context.blocks().to_vec();
        let covered = conversation(&shown, shown.len());
        if !self.settings.cross_session || covered.is_empty() {
            return None;
        }
        let text = self.session_text(s, Phase::StandaloneTurn, None, &shown).await?;
        let text = format!("{}{}", self.words.before_prefix, text.trim());
        Some(self.summary_block(s, text, &covered))
    }

    /// Summarises the whole session now with its own model. The last user message stays verbatim.
    pub(crate) async fn session_now(
        &mut self,
        s: &mut Engine,
        phase: Phase,
        instructions: Option<&str>,
    ) -> bool {
        self.cancel(s);
        let blocks = s.context.blocks();
        let covered = conversation(blocks, blocks.len());
        let user = newest_user(blocks);
        let answered =
            covered.last().is_some_and(|b| user.last().is_none_or(|u| !Arc::ptr_eq(u, b)));
        if covered.len() == user.len() {
            return false;
        }
        let shown = s.context.blocks().to_vec();
        let asked = self.session_text(s, phase, instructions, &shown).await;
        let Some(text) = asked else { return false };
        let Some(text) = self.summary_text(s, &text, &covered, &user) else { return false };
        self.migrate(s, &text);
        let summary = self.summary_block(s, text, &covered);
        let view = if answered {
            // The summary follows the message, because it covers the work done for it.
            self.assemble(s, Vec::new(), user.into_iter().chain([summary]).collect())
        } else {
            self.assemble(s, vec![summary], user)
        };
        self.compacted(s, CompactionKind::Summarise, "session_summary", phase, view)
    }

    /// Summarises one side of the seam after a message. The other side stays verbatim; if it is the
    /// earlier one, its cached prefix is kept too (docs/sources/openoxide.md §1.8). A failure
    /// changes nothing.
    pub(crate) async fn summarise_side(
        &mut self,
        s: &mut Engine,
        to: MessageId,
        mode: RewindMode,
        instructions: Option<&str>,
    ) -> bool {
        self.cancel(s);
        let blocks = s.context.blocks();
        let talk = conversation(blocks, blocks.len());
        // The seam follows the last block of the message. A summary of the message has a newer ID
        // but an earlier position.
        let seam = talk.iter().rposition(|b| b.message <= to).map_or(0, |i| i + 1);
        let (before, after) = talk.split_at(seam);
        let from_here = mode == RewindMode::SummarizeFrom;
        let gone = if from_here { after } else { before };
        if gone.is_empty() {
            return false;
        }
        let kept = |b: &Arc<Block>| !is_conversation(b) || before.iter().any(|k| Arc::ptr_eq(k, b));
        let shown: Vec<_> = blocks.iter().filter(|b| from_here || kept(b)).cloned().collect();
        let begins = after.first().filter(|_| from_here).map(|b| {
            let text: String = b.text.chars().take(QUOTED).collect();
            format!("{}{text:?}", self.words.session_from)
        });
        let wishes = [begins.as_deref(), instructions].into_iter().flatten().collect::<Vec<_>>();
        let wishes = (!wishes.is_empty()).then(|| wishes.join("\n"));
        let phase = Phase::StandaloneTurn;
        let asked = self.session_text(s, phase, wishes.as_deref(), &shown).await;
        let text = asked.and_then(|text| self.summary_text(s, &text, gone, &[]));
        let Some(text) = text else { return false };
        self.migrate(s, &text);
        let summary = vec![self.summary_block(s, text, gone)];
        let history = match from_here {
            true => [before.to_vec(), summary].concat(),
            false => [summary, after.to_vec()].concat(),
        };
        let view = self.assemble(s, history, Vec::new());
        self.compacted(s, CompactionKind::Summarise, mode.word(), phase, view)
    }

    async fn session_text(
        &self,
        s: &mut Engine,
        phase: Phase,
        instructions: Option<&str>,
        shown: &[Arc<Block>],
    ) -> Option<String> {
        let (mut room, mut trims, mut tries) = (s.model.window, 0, 0);
        loop {
            let request = self.session_request(s, phase, instructions, room, shown)?;
            match s.send(&request).await {
                Ok(reply) => return reply.text(),
                Err(e) if e.is_overflow() && trims < MAX_TRIMS => {
                    trims += 1;
                    room = request.tokens().min(room) * 3 / 4;
                }
                Err(e) if e.is_passing() && tries < RETRIES => tries += 1,
                Err(_) => return None,
            }
        }
    }

    /// Builds the request for a session summary: a view with a closing instruction. If it is larger
    /// than `room` less the reply, the oldest groups are left out.
    fn session_request(
        &self,
        s: &Engine,
        phase: Phase,
        instructions: Option<&str>,
        room: u64,
        blocks: &[Arc<Block>],
    ) -> Option<Request> {
        let wishes =
            instructions.map(|i| format!("{}{i}", self.words.session_wishes)).unwrap_or_default();
        let prompt = format!("{}{wishes}", self.words.session_prompt);
        let last = ephemeral_block(BlockKind::SummaryPrompt, Role::User, prompt);
        let tools = s.tools_tokens();
        let target = room.saturating_sub(self.settings.output_reserve.min(room / 4));
        let talk = conversation(blocks, blocks.len());
        let mut excess =
            (s.tokens_of(blocks) + tools + s.tokens_of([&last])).saturating_sub(target);
        let starts = group_starts(&talk);
        let mut first = 0;
        for (k, &start) in starts.iter().enumerate() {
            if excess == 0 {
                break;
            }
            first = starts.get(k + 1).copied().unwrap_or(talk.len());
            excess = excess.saturating_sub(s.tokens_of(&talk[start..first]));
        }
        let mut places = (0..blocks.len()).filter(|&i| is_conversation(&blocks[i]));
        let from = places.nth(first)?;
        let old = |(i, b): &(usize, &Arc<Block>)| *i < from && is_conversation(b);
        let shown = blocks.iter().enumerate().filter(|at| !old(at)).map(|(_, b)| b.clone());
        let shown = shown.chain([last]).collect();
        // Keeps the tools, so that the request reads the conversation's cached prefix.
        let mut request = s.summary_request(phase, shown, true);
        request.max_tokens = Some(self.settings.output_reserve);
        Some(request)
    }

    /// Returns the summary as it will be shown. `None` if it is empty or not smaller than the
    /// blocks that it replaces, which are `covered` without `stays`.
    fn summary_text(
        &self,
        s: &Engine,
        text: &str,
        covered: &[Arc<Block>],
        stays: &[Arc<Block>],
    ) -> Option<String> {
        let replaced = s.tokens_of(covered) - s.tokens_of(stays);
        let shown = format!("{}{}", self.words.summary_prefix, text.trim());
        (!text.trim().is_empty() && s.model.counting.block(Size::text(&shown)) < replaced)
            .then_some(shown)
    }

    fn summary_block(&self, s: &mut Engine, text: String, covered: &[Arc<Block>]) -> Arc<Block> {
        let origin = origins(covered);
        s.synthetic(BlockKind::Summary, Role::User, text, origin)
    }
}
