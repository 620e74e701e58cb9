//! Aider's hooks, as released, as intended and as described (docs/sources/aider.md §1).

mod architect;
mod background;

use std::collections::HashMap;

use background::{KeepAlive, PendingSummary};
use ctxbench_core::compaction::tools::is_edit;
use ctxbench_core::model::Model;
use ctxbench_core::prelude::*;

use super::chunks::{Chunks, Created, block, cut_map, edits, map_budget, map_tokens, written};
use super::rules::{
    AiderSettings, AiderWords, CONTENTS, ChatLine, EXACT, Oversize, Reminder, TokenCount,
    history_budget,
};
use crate::aider::markdown;
use crate::aider::rules::{in_list, list_tokens};
use crate::descriptor::BuildRequest;

/// Number of attempts at a request that fails temporarily. The pauses double from 0.25 s to a
/// minute (docs/sources/aider.md §1.1).
const ATTEMPTS: u32 = 8;

pub(crate) struct AiderProgram {
    settings: AiderSettings,
    /// True for the released program, which discards a finished summary if the history grew
    /// meanwhile.
    as_released: bool,
    /// True for the published description, which differs from the program as told in
    /// `mod.rs`.
    described: bool,
    keep_alive: KeepAlive,
    scale: f64,
    words: AiderWords,
    /// The prompt in parts. The reminder is added only to requests.
    chunks: Chunks,
    /// True if an editing tool was called in this turn.
    edited: bool,
    /// Files in the chat created by the model.
    created: Created,
    /// True if files were created or changed since the prompt was built.
    newer_files: bool,
    pending: Option<PendingSummary>,
    counted: MessageTokens,
}

impl AiderProgram {
    pub(crate) fn new(b: &BuildRequest<'_>) -> Self {
        AiderProgram {
            settings: b.settings(),
            as_released: b.version.name == "0.86",
            described: b.version.is_description(),
            keep_alive: KeepAlive::default(),
            scale: b.scale,
            words: b.texts(),
            chunks: Chunks::default(),
            edited: false,
            created: Created::default(),
            newer_files: false,
            pending: None,
            counted: MessageTokens::default(),
        }
    }

    /// Returns whether a prompt is sent. If it does not fit, the user is asked, regardless of the
    /// model that receives it (docs/sources/aider.md §1.2, `check_tokens`).
    fn sends(&self, s: &mut Engine, blocks: &[Arc<Block>], believed: u64, limit: u64) -> bool {
        if believed < limit || (believed == limit && self.described) {
            return true;
        }
        let billed = s.tokens_of(blocks);
        s.note(Event::Trigger { check: "check_tokens", believed, billed, limit });
        let decline = self.settings.oversize == Oversize::Decline;
        let answer = if decline { "no" } else { "yes" };
        s.note(Event::Intervention(format!(
            "{believed} tokens for a window of {limit}: send anyway? {answer}"
        )));
        !decline
    }

    fn budget(&self, s: &Engine) -> f64 {
        let AiderSettings { history_least, history_most, .. } = self.settings;
        let by_window = || history_budget(max_input(&s.model), history_least, history_most);
        self.settings.max_chat_history_tokens.map_or_else(by_window, |n| n as f64)
    }

    fn count(&self) -> TokenCount {
        if self.described { CONTENTS } else { EXACT }
    }

    /// Returns the models for a summary, the weak one first.
    fn models(&self, s: &Engine) -> Vec<Arc<str>> {
        let weak = self.settings.weak_model.clone().unwrap_or_else(|| s.model.weak.clone());
        if self.described { vec![weak] } else { vec![weak, s.model.name.clone()] }
    }

    /// Returns a part of the prompt followed by the assistant's assent, or nothing if the part is
    /// empty.
    fn assented(&self, blocks: &[Arc<Block>]) -> Vec<Arc<Block>> {
        let mut out: Vec<_> = blocks.iter().map(|b| b.map_draft(|d| d.role = Role::User)).collect();
        if !out.is_empty() {
            out.push(ephemeral_block(BlockKind::Assistant, Role::Assistant, self.words.ok.clone()));
        }
        out
    }

    /// Returns the editable files: those of the session and those made by the model. If there are
    /// none, returns a message that says so (docs/sources/aider.md §1.4).
    fn chat_files(&self, s: &mut Engine) -> Vec<Arc<Block>> {
        if self.described || (self.created.is_empty() && !s.fixed.files.is_empty()) {
            return self.assented(&s.fixed.files);
        }
        let words = &self.words;
        let (text, assent) = match (self.created.is_empty(), self.chunks.repo.is_empty()) {
            (false, _) => {
                let text = format!("{}{}", words.files, self.created.listing());
                (s.synthetic(BlockKind::File, Role::User, text, vec![]), &words.files_ok)
            }
            (true, true) => (as_user(&words.no_files), &words.ok),
            (true, false) => (as_user(&words.no_files_but_map), &words.no_files_but_map_ok),
        };
        let files = s.fixed.files.iter().map(|b| b.map_draft(|d| d.role = Role::User));
        let assent = ephemeral_block(BlockKind::Assistant, Role::Assistant, assent.clone());
        files.chain([text, assent]).collect()
    }

    fn update_view(&self, s: &mut Engine) {
        // `set` cannot fail: the chunks contain no calls that could be separated from their
        // results.
        let _ = s.set_view(self.chunks.all());
    }

    /// Moves the current turns to the history, and adds two messages after an edit
    /// (docs/sources/aider.md §1.2, `move_back_cur_messages`).
    async fn move_back(&mut self, s: &mut Engine, edited: bool) {
        let mut cur = std::mem::take(&mut self.chunks.cur);
        self.chunks.done.append(&mut cur);
        self.summarize_start(s).await;
        if edited && !self.described {
            let AiderWords { edited, committed, updated, ok, .. } = &self.words;
            let notice = match &self.settings {
                AiderSettings { architect: true, .. } => edited,
                AiderSettings { auto_commits: true, .. } => committed,
                _ => updated,
            };
            let notice = s.synthetic(BlockKind::User, Role::User, notice.clone(), vec![]);
            let ok = s.synthetic(BlockKind::Assistant, Role::Assistant, ok.clone(), vec![]);
            self.chunks.done.extend([notice, ok]);
        }
        self.update_view(s);
    }

    /// Returns the prompt: the context with the reminder. An architect writes no edits and gets no
    /// reminder (docs/sources/aider.md §1.6).
    fn prompt(&mut self, s: &Engine) -> Vec<Arc<Block>> {
        let blocks = s.context.blocks().to_vec();
        if self.settings.architect {
            return blocks;
        }
        let from = self.chunks.len_before_cur().min(blocks.len());
        self.reminded(s, blocks, from, max_input(&s.model))
    }

    /// Adds the reminder to a prompt if there is room for it. The current messages, which begin at
    /// `from`, count twice in this decision (docs/sources/aider.md §1.4).
    fn reminded(
        &mut self,
        s: &Engine,
        mut blocks: Vec<Arc<Block>>,
        from: usize,
        limit: u64,
    ) -> Vec<Arc<Block>> {
        let words = s.fixed.reminder.as_ref().unwrap_or(&self.words.reminder);
        let reminder = ephemeral_block(BlockKind::Reminder, Role::System, words.clone());
        let parts = [&blocks[..], std::slice::from_ref(&reminder), &blocks[from..]];
        if parts.iter().map(|p| self.counted.list(p)).sum::<u64>() >= limit {
            return blocks;
        }
        if self.settings.reminder == Reminder::Sys {
            blocks.push(reminder);
            return blocks;
        }
        // Only added to a final message of the user. An image has no text to add it to.
        if let Some(last) =
            blocks[from..].last_mut().filter(|b| b.role == Role::User && b.media.is_none())
        {
            *last = last.map_draft(|d| d.text = format!("{}\n\n{words}", d.text).into());
        }
        blocks
    }

    /// Returns the session's repository map, cut to the budget: one text, or nothing.
    fn repo_map(&self, s: &Engine) -> Vec<Arc<Block>> {
        let Some(first) = s.fixed.repo_map.first() else { return Vec::new() };
        let (window, set) = (max_input(&s.model), &self.settings);
        let tokens = set.map_tokens.map_or_else(|| map_tokens(window, self.scale), |n| n as f64);
        if tokens == 0.0 {
            return Vec::new();
        }
        let (files, multiplier) = (!s.fixed.files.is_empty(), set.map_multiplier_no_files);
        let budget = map_budget(tokens, files, multiplier, window, self.scale);
        let text = s.fixed.repo_map.iter().map(|b| &*b.text).collect::<Vec<_>>().join("\n");
        let cut = cut_map(&text, budget, cl100k).map(|t| first.map_draft(|d| d.text = t.into()));
        cut.into_iter().collect()
    }
}

fn max_input(model: &Model) -> u64 {
    model.input_limit.unwrap_or(model.window)
}

/// Returns the successive blocks that form each of Aider's messages, which have a common message and
/// role.
fn groups(blocks: &[Arc<Block>]) -> impl Iterator<Item = &[Arc<Block>]> {
    blocks.chunk_by(|a, b| a.message == b.message && a.role == b.role)
}

fn as_user(text: &Arc<str>) -> Arc<Block> {
    ephemeral_block(BlockKind::User, Role::User, text.clone())
}

fn has_edit(reply: &Reply) -> bool {
    let says = |text: String| edits(&text).next().is_some();
    reply.calls().any(|c| is_edit(&c.name)) || reply.text().is_some_and(says)
}

/// Converts calls and outputs to texts of the two roles. Leaves other drafts unchanged.
fn as_text(mut raw: Draft) -> Draft {
    let name = raw.call.as_ref().map_or("", |c| &c.name);
    if raw.kind == BlockKind::Output && is_edit(name) && raw.text.is_empty() && !raw.is_error {
        return Draft::text(BlockKind::User, Role::User, "");
    }
    if raw.kind == BlockKind::Call
        && let Some(file) = written(name, &raw.text)
    {
        let as_text = Draft::text(BlockKind::Assistant, raw.role, block(&file));
        return Draft { form: raw.form, ..as_text };
    }
    let mut text = Transcript::default();
    let (kind, role) = match raw.kind {
        BlockKind::Call => {
            text.push(&format!("{name} "));
            (BlockKind::Assistant, raw.role)
        }
        BlockKind::Output => {
            text.push(&format!("{name}{}:\n", if raw.is_error { " failed" } else { "" }));
            (BlockKind::User, Role::User)
        }
        _ => {
            raw.splits.clear();
            if raw.kind == BlockKind::Assistant {
                raw.text = raw.text.trim().into();
            }
            return raw;
        }
    };
    text.push_block(&raw);
    let as_text = text.draft(kind, role);
    Draft { form: raw.form, opaque: raw.opaque, media: raw.media, as_list: raw.as_list, ..as_text }
}

/// Returns the message that blocks of one role form.
fn message(blocks: &[Arc<Block>]) -> ChatLine {
    let role = if blocks[0].role == Role::Assistant { "assistant" } else { "user" };
    let mut text = Transcript::default();
    for (i, b) in blocks.iter().enumerate() {
        text.push(if i > 0 { "\n" } else { "" });
        text.push_block(b);
    }
    ChatLine::new(role, text)
}

fn messages(blocks: &[Arc<Block>]) -> Vec<ChatLine> {
    groups(blocks).map(message).collect()
}

#[async_trait]
impl Strategy for AiderProgram {
    fn admit(&self, raw: Draft) -> Draft {
        let call = raw.call.as_ref().filter(|_| raw.kind == BlockKind::Output);
        if self.settings.architect && call.is_some_and(|c| is_edit(&c.name)) {
            // The result of the edit stays with the editor.
            return Draft::synthetic(BlockKind::User, Role::User, self.words.edited.clone());
        }
        as_text(raw)
    }

    async fn on_start(&mut self, s: &mut Engine) {
        // A fresh conversation does not stop the worker. Its summary is awaited and discarded
        // (docs/sources/aider.md §1.2, `/clear`).
        self.edited = false;
        self.newer_files = false;
        self.created.clear();
        self.chunks = Chunks {
            system: s.fixed.base.iter().map(|b| b.map_draft(|d| d.role = Role::System)).collect(),
            readonly_files: self.assented(&s.fixed.context),
            repo: self.assented(&self.repo_map(s)),
            ..Chunks::default()
        };
        self.chunks.chat_files = self.chat_files(s);
        self.update_view(s);
    }

    /// Adds the message to the current turns, without reasoning.
    fn on_recorded(&mut self, s: &mut Engine, _id: MessageId) {
        let new = s.newest_blocks();
        // An edit without recorded output has no text for the model.
        let stays = |b: &&Arc<Block>| {
            b.kind != BlockKind::Reasoning && (!b.text.is_empty() || b.media.is_some())
        };
        self.chunks.cur.extend(new.iter().filter(stays).cloned());
        if !new.iter().all(|b| stays(&b)) {
            self.update_view(s);
        }
    }

    async fn on_restart(&mut self, s: &mut Engine) {
        self.keep_alive.stop();
        if let Some(p) = self.pending.take() {
            s.cancel(p.task);
        }
        self.on_start(s).await;
        if self.settings.restore {
            self.chunks.done = self.restored(s);
            self.update_view(s);
            // No message is appended after this summary, so it is applied even in the released
            // version.
            self.summarize_start(s).await;
        }
    }

    async fn on_new_session(&mut self, s: &mut Engine) {
        // The history file belongs to the project, so a new session is the same as a start of the
        // program.
        s.reset_view();
        self.on_restart(s).await;
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        self.keep_alive.settle(s).await;
        self.summarize_end(s).await;
        let blocks = self.prompt(s);
        let (believed, limit) = (self.counted.list(&blocks), max_input(&s.model));
        if self.sends(s, &blocks, believed, limit) {
            return Flow::Proceed;
        }
        Flow::FailTurn(format!("not sent: {believed} tokens do not fit into {limit}"))
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        r.tools = None;
        r.blocks = self.prompt(s);
        let explicit = s.model.cache.needs_breakpoints();
        r.breakpoints = if self.settings.cache_prompts && explicit {
            self.chunks.breakpoints()
        } else {
            Vec::new()
        };
        self.keep_alive.begin(s.now(), &r, &self.settings);
        r
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> ReplyFlow {
        if self.settings.architect && self.is_proposal(reply) {
            self.have_edited(s, reply).await;
            self.edited = true;
        }
        self.edited |= has_edit(reply);
        for call in reply.calls() {
            self.newer_files |= self.created.take(&call.name, &call.arguments);
        }
        for edit in edits(&reply.text().unwrap_or_default()) {
            self.newer_files |= self.created.apply(&edit);
        }
        ReplyFlow::Proceed
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        let edited = std::mem::take(&mut self.edited);
        if std::mem::take(&mut self.newer_files) {
            self.chunks.chat_files = self.chat_files(s);
            self.update_view(s);
        }
        if edited || self.described {
            self.move_back(s, edited).await;
        }
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if e.is_passing() && attempt <= ATTEMPTS {
            return Flow::Again;
        }
        if e.is_overflow() && s.context.blocks().last().is_some_and(|b| b.role == Role::User) {
            // The program answers in place of the model and changes nothing else
            // (docs/sources/aider.md §1.2).
            let text = self.words.too_long.clone();
            let block = s.synthetic(BlockKind::Assistant, Role::Assistant, text, vec![]);
            self.chunks.cur.push(block.clone());
            s.show(block);
        }
        Flow::FailTurn(e.to_string())
    }

    fn wakes_at(&self) -> Option<Millis> {
        self.keep_alive.due().into_iter().chain(self.pending.as_ref().map(|p| p.look_at)).min()
    }

    async fn on_wake(&mut self, s: &mut Engine) {
        if self.keep_alive.due().is_some_and(|due| due <= s.now()) {
            self.keep_alive.send(s).await;
        }
        self.on_idle(s, 0).await;
    }

    async fn on_idle(&mut self, s: &mut Engine, _gap_ms: u64) {
        // A second step may start in the background, as in the program's worker.
        while self.advance(s, false).await {}
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        let stays =
            |b: &Arc<Block>| b.origin.iter().map(|o| o.message).min().unwrap_or(b.message) <= to;
        self.chunks.done.retain(stays);
        self.chunks.cur.retain(stays);
        self.update_view(s);
    }
}

/// Cache of token counts of the messages in a list, keyed by the role and the hashes of their
/// blocks.
#[derive(Default)]
pub(super) struct MessageTokens(HashMap<(bool, Vec<u64>), u64>);

impl MessageTokens {
    /// Returns the tokens of blocks as messages, as [`EXACT`] counts a list.
    pub(super) fn list(&mut self, blocks: &[Arc<Block>]) -> u64 {
        list_tokens(groups(blocks).map(|g| self.message(g)))
    }

    fn message(&mut self, blocks: &[Arc<Block>]) -> u64 {
        let shown = blocks.iter().map(|b| b.hash).collect();
        let key = (blocks[0].role == Role::Assistant, shown);
        *self.0.entry(key).or_insert_with(|| in_list(&message(blocks)))
    }
}

impl AiderProgram {
    /// Returns the history as read from its file (docs/sources/aider.md §1.5).
    pub(super) fn restored(&self, s: &mut Engine) -> Vec<Arc<Block>> {
        let mut file = String::new();
        markdown::append_start(&mut file, "");
        let said = s.history.messages().iter().filter(|m| !m.synthetic);
        let parts = said.flat_map(|m| m.parts.iter().map(|p| (m.role, p)));
        // Reasoning and images are not in the file.
        let kept =
            parts.filter(|(_, p)| matches!(p, Part::Text(_) | Part::Call(_) | Part::Result { .. }));
        for draft in kept.filter_map(|(role, p)| p.draft(role)).map(|d| self.admit(d)) {
            let who = if draft.role == Role::Assistant { draft.role } else { Role::User };
            markdown::append(&mut file, who, &draft.text);
        }
        let block = |(role, text)| {
            let of_model = role == Role::Assistant;
            let kind = if of_model { BlockKind::Assistant } else { BlockKind::User };
            s.synthetic(kind, role, text, vec![])
        };
        markdown::split_chat_history_markdown(&file, false).into_iter().map(block).collect()
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_core::block::{BlockKind, Draft, MessageId};

    use super::*;

    #[test]
    fn known_messages_count_as_they_do_at_first() {
        let block = |role, text: &str, message| {
            Draft::text(BlockKind::User, role, text).build(MessageId(message), vec![])
        };
        let mut counted = MessageTokens::default();
        // The same text is a different message in the other role, or together with another text.
        let blocks = [
            block(Role::User, "a few words", 1),
            block(Role::Assistant, "a few words", 2),
            block(Role::Assistant, "and more", 2),
            block(Role::Assistant, "a few words", 3),
        ];
        for upto in [1, 2, 3, 4, 4] {
            let own = list_tokens(messages(&blocks[..upto]).iter().map(in_list));
            assert_eq!(counted.list(&blocks[..upto]), own, "{upto}");
        }
        assert_eq!(counted.0.len(), 3, "the last is the second as it was before it grew");
        assert_eq!(counted.list(&[]), 3);
    }
}
