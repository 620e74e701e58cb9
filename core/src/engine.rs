//! The engine: the state of one conversation that a strategy reads and edits.

use std::borrow::Cow;
use std::sync::Arc;

use crate::block::{
    Block, BlockForm, BlockKind, Draft, MessageId, Origin, Origins, Role, total_tokens,
};
use crate::breakpoints::{DEFAULT_TTL, default_breakpoints};
use crate::compaction::CompactionKind;
use crate::content::Part;
use crate::context::{Context, EditError};
use crate::context_editing;
use crate::history::History;
use crate::host::{BackgroundStep, Event, Host, Incoming, Task, TimedEvent};
use crate::ledger::Ledger;
use crate::model::Model;
use crate::request::{Applied, ModelError, Phase, Purpose, Reply, Request, ServerEdit, Tools};
use crate::time::Millis;
use crate::usage::{Ttl, Usage};

/// Blocks and parameters of every request: given by the session, placed by the strategy.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    /// System prompt.
    pub base: Vec<Arc<Block>>,
    /// Memory files, environment, permissions.
    pub context: Vec<Arc<Block>>,
    /// Overview of the code base.
    pub repo_map: Vec<Arc<Block>>,
    /// Files in the chat.
    pub files: Vec<Arc<Block>>,
    pub tools: Option<Arc<Tools>>,
    /// System prompt of summary requests, for products with a separate one.
    pub summary_base: Vec<Arc<Block>>,
    /// Replaces the reminder that a product repeats after the newest message.
    pub reminder: Option<Arc<str>>,
    /// Request parameters that the caller of the product sets for normal requests.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// The context edits among [`Fixed::params`], as the wire reads them.
    pub server_edits: Vec<ServerEdit>,
}

impl Fixed {
    /// Returns the blocks of every request, in the order in which they are shown.
    pub fn blocks(&self) -> impl Iterator<Item = &Arc<Block>> {
        self.base.iter().chain(&self.repo_map).chain(&self.context).chain(&self.files)
    }
}

/// Names of the provider's own clearing mechanisms.
const SERVER_CLEARS: [&str; 2] = ["clear_tool_uses", "clear_thinking"];

/// Returns whether a compaction of this name changes the provider's view only, and not the context.
pub fn is_server_clear(mechanism: &str) -> bool {
    SERVER_CLEARS.contains(&mechanism)
}

#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Whether [`Engine::events`] are kept, with the blocks of all earlier views. The host receives
    /// every event in either case.
    pub keeps_events: bool,
    /// Overrides the model of every summary request.
    pub summary_model: Option<Arc<Model>>,
    /// Whether requests have the default breakpoints. Applies where a product has no rule for the
    /// provider.
    pub default_breakpoints: bool,
    /// Lifetime of prompt-cache entries, where a product has no rule for it.
    pub ttl: Ttl,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            keeps_events: true,
            summary_model: None,
            default_breakpoints: true,
            ttl: DEFAULT_TTL,
        }
    }
}

/// History, context, budget and clock of one conversation.
pub struct Engine {
    /// The append-only log. [`Engine::append`] and the loop add to it.
    pub history: History,
    /// The view of the next request. [`Engine::set_view`], [`Engine::show`] and
    /// [`Engine::compacted`] edit it.
    pub context: Context,
    pub fixed: Fixed,
    /// The model with scaled limits.
    pub model: Arc<Model>,
    options: EngineOptions,
    ledger: Ledger,
    events: Vec<Arc<TimedEvent>>,
    last_usage: Option<Usage>,
    host: Box<dyn Host>,
    requests: u64,
    /// The provider's edits in the last request, and the amounts that it cleared.
    server_cleared: (Vec<ServerEdit>, Applied),
    /// Output tokens of a reply that the context does not contain yet.
    unrecorded: u64,
}

/// Returns the number of blocks at the end of `view` that have not been sent yet. The provider's
/// compaction block does not count.
fn count_new(view: &[Arc<Block>], unsent: &[Arc<Block>]) -> usize {
    let is_new = |b: &&Arc<Block>| {
        b.kind != BlockKind::Compaction && unsent.iter().any(|u| Arc::ptr_eq(u, b))
    };
    view.iter().rev().take_while(is_new).count()
}

impl Engine {
    pub fn new(model: Arc<Model>, host: Box<dyn Host>) -> Self {
        Engine::with_options(model, host, EngineOptions::default())
    }

    pub fn with_options(model: Arc<Model>, host: Box<dyn Host>, options: EngineOptions) -> Self {
        Engine {
            options,
            history: History::default(),
            context: Context::new(model.counting),
            fixed: Fixed::default(),
            ledger: Ledger::default(),
            events: Vec::new(),
            last_usage: None,
            model,
            host,
            requests: 0,
            server_cleared: Default::default(),
            unrecorded: 0,
        }
    }

    pub fn host(&mut self) -> &mut dyn Host {
        &mut *self.host
    }

    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Returns usage and cost of all requests.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns all events, if they are kept.
    pub fn events(&self) -> &[Arc<TimedEvent>] {
        &self.events
    }

    /// Returns the usage of the last normal reply.
    pub fn last_usage(&self) -> Option<Usage> {
        self.last_usage
    }

    /// Replaces the view without recording a compaction, unless that would separate a call from its
    /// result.
    pub fn set_view(&mut self, blocks: Vec<Arc<Block>>) -> Result<(), EditError> {
        self.context.set(blocks)
    }

    /// Appends a block to the view.
    pub fn show(&mut self, block: Arc<Block>) {
        self.context.push(block);
    }

    /// Records a message that the strategy made, without showing it.
    pub fn append(&mut self, role: Role, parts: Vec<Part>) -> MessageId {
        self.history.append("", role, parts, true)
    }

    /// Records a user message without showing it.
    pub fn append_unseen(&mut self, msg: &Incoming) -> MessageId {
        self.history.append(msg.key.clone(), Role::User, msg.parts.clone(), false)
    }

    /// Returns virtual time in ms.
    pub fn now(&self) -> Millis {
        self.host.now()
    }

    /// Appends the fixed blocks to an empty view.
    pub fn show_fixed(&mut self) {
        for b in self.fixed.blocks() {
            self.context.push(b.clone());
        }
    }

    /// Empties the view for another session. The history continues.
    pub fn reset_view(&mut self) {
        // An empty view separates nothing.
        let _ = self.context.set(Vec::new());
        self.last_usage = None;
    }

    /// Returns the billed tokens of the next normal request: context and tools.
    pub fn billed_tokens(&self) -> u64 {
        self.prompt_tokens(self.context.blocks())
    }

    /// Returns the billed tokens of a normal request with these blocks.
    pub fn prompt_tokens(&self, blocks: &[Arc<Block>]) -> u64 {
        let edits = &self.fixed.server_edits;
        self.tools_tokens() + context_editing::prompt_tokens(&self.model, edits, blocks)
    }

    /// Returns the billed tokens of the tool definitions.
    pub fn tools_tokens(&self) -> u64 {
        self.fixed.tools.as_ref().map_or(0, |t| t.tokens(&self.model.counting))
    }

    /// Returns the billed tokens of blocks, including thinking that the provider would leave out of a
    /// prompt.
    pub fn tokens_of<'a>(&self, blocks: impl IntoIterator<Item = &'a Arc<Block>>) -> u64 {
        total_tokens(&self.model.counting, blocks)
    }

    /// Builds a normal request with the context and the default breakpoints.
    pub fn sample_request(&self) -> Request {
        Request {
            tools: self.fixed.tools.clone(),
            breakpoints: self.breakpoints(self.context.blocks()),
            ttl: self.options.ttl,
            server_edits: self.fixed.server_edits.clone(),
            params: self.fixed.params.clone(),
            ..Request::new(self.model.clone(), self.context.blocks().to_vec())
        }
    }

    /// Builds a summary request with exactly these blocks, and with tools only if `tools`.
    pub fn summary_request(&self, phase: Phase, blocks: Vec<Arc<Block>>, tools: bool) -> Request {
        Request {
            purpose: Purpose::Summary,
            phase: Some(phase),
            tools: self.fixed.tools.clone().filter(|_| tools),
            breakpoints: self.breakpoints(&blocks),
            ttl: self.options.ttl,
            ..Request::new(self.model.clone(), blocks)
        }
    }

    /// Returns the default breakpoints of a request with these blocks, if requests have them.
    pub fn breakpoints(&self, blocks: &[Arc<Block>]) -> Vec<usize> {
        if self.options.default_breakpoints { default_breakpoints(blocks) } else { Vec::new() }
    }

    /// Sends a request and records usage and cost in the ledger.
    pub async fn send(&mut self, request: &Request) -> Result<Reply, ModelError> {
        let request = &*self.with_summary_model(request);
        self.unrecorded = 0;
        let reply = self.host.send(request).await;
        if let Ok(r) = &reply {
            self.note_server_clear(request, r.applied);
            self.ledger.add(request, r);
        }
        self.requests += 1;
        if request.purpose == Purpose::Sample {
            self.context.mark_sent();
            if let Ok(r) = &reply {
                self.last_usage = Some(r.usage);
                self.unrecorded = r.usage.output;
            }
        }
        reply
    }

    /// Sends a request again after failures that a retry may resolve, at most `max` times.
    pub async fn send_retrying(
        &mut self,
        request: &Request,
        max: u64,
        is_retryable: fn(&ModelError) -> bool,
    ) -> Result<Reply, ModelError> {
        let mut retried = 0;
        loop {
            match self.send(request).await {
                Err(e) if is_retryable(&e) && retried < max => retried += 1,
                result => return result,
            }
        }
    }

    /// Records a compaction if the provider cleared more than before. The context does not change.
    fn note_server_clear(&mut self, request: &Request, cleared: Applied) {
        if request.purpose != Purpose::Sample {
            return;
        }
        let now = (request.server_edits.clone(), cleared);
        let (_, known) = std::mem::replace(&mut self.server_cleared, now);
        let mechanism = match (
            cleared.cleared_tool_uses > known.cleared_tool_uses,
            cleared.cleared_thinking_turns > known.cleared_thinking_turns,
        ) {
            (true, _) => SERVER_CLEARS[0],
            (_, true) => SERVER_CLEARS[1],
            _ => return,
        };
        let before = context_editing::edited_view(request, known).into_owned();
        let after = context_editing::edited_view(request, cleared).into_owned();
        let new = count_new(&after, self.unsent());
        self.note(Event::Compaction {
            kind: CompactionKind::Clear,
            mechanism,
            phase: Phase::MidTurn,
            before,
            after,
            new,
        });
    }

    /// Returns the blocks of the view that have not been sent.
    fn unsent(&self) -> &[Arc<Block>] {
        &self.context.blocks()[self.context.changed_from()..]
    }

    /// Returns the provider's count of a request if it offers one, else the exact local count.
    pub async fn count(&mut self, request: &Request) -> u64 {
        match self.host.count(request).await {
            Some(n) => n,
            None => request.tokens(),
        }
    }

    /// Starts a background request.
    pub async fn spawn(&mut self, request: &Request) -> Task {
        let seq = self.requests;
        let task = self.start(request).await;
        if request.purpose == Purpose::Summary && request.phase == Some(Phase::Background) {
            self.note_background(task, BackgroundStep::Spawned { request: seq });
        }
        task
    }

    /// Starts the next request of a background summary, after `before`: another model, or another
    /// part.
    pub async fn spawn_next(&mut self, before: Task, request: &Request) -> Task {
        let task = self.start(request).await;
        self.note_background(before, BackgroundStep::Continued(task));
        task
    }

    async fn start(&mut self, request: &Request) -> Task {
        self.requests += 1;
        let request = self.with_summary_model(request);
        self.host.spawn(&request).await
    }

    /// Returns the request with the model of summaries, or with the model that the user switched to.
    fn with_summary_model<'a>(&self, request: &'a Request) -> Cow<'a, Request> {
        let of_summary =
            self.options.summary_model.as_ref().filter(|_| request.purpose == Purpose::Summary);
        let is_of_session = request.model.name == self.model.name;
        match of_summary.cloned().or_else(|| self.host.model().filter(|_| is_of_session)) {
            Some(model) => Cow::Owned(Request { model, ..request.clone() }),
            None => Cow::Borrowed(request),
        }
    }

    /// Returns the result of a background request if it has arrived; with `wait`, waits for it.
    pub async fn collect(
        &mut self,
        task: Task,
        request: &Request,
        wait: bool,
    ) -> Option<Result<Reply, ModelError>> {
        let asked = self.host.now();
        let result = self.host.collect(task, wait).await;
        if let Some(r) = &result {
            let waited_ms = self.host.now().saturating_sub(asked);
            self.note_background(task, BackgroundStep::Delivered { waited_ms, usable: r.is_ok() });
        }
        if let Some(Ok(r)) = &result {
            let request = self.with_summary_model(request);
            self.ledger.add(&request, r);
        }
        result
    }

    /// Cancels a background request.
    pub fn cancel(&mut self, task: Task) {
        self.host.cancel(task);
    }

    /// Records the progress of a background summary.
    pub fn note_background(&mut self, task: Task, step: BackgroundStep) {
        self.note(Event::Background(task, step));
    }

    pub fn note(&mut self, event: Event) {
        let (before_request, at_ms) = (self.requests, self.host.now());
        let event = Arc::new(TimedEvent { before_request, at_ms, event });
        self.host.on_event(&event);
        if self.options.keeps_events {
            self.events.push(event);
        }
    }

    /// Records that a check fired, with the strategy's own count and the tokens that would be billed,
    /// including the newest reply.
    pub fn trigger(&mut self, check: &'static str, believed: u64, limit: u64) {
        let billed = self.prompt_tokens(&self.provider_view()) + self.unrecorded;
        self.note(Event::Trigger { check, believed, billed, limit });
    }

    /// Records that a check of the provider fired.
    pub fn provider_trigger(&mut self, check: &'static str, billed: u64, limit: u64) {
        self.note(Event::Trigger { check, believed: billed, billed, limit });
    }

    /// Replaces the view and records a compaction. An edit that changes nothing is not recorded, unless
    /// it is a summary, which was paid for.
    pub fn compacted(
        &mut self,
        kind: CompactionKind,
        mechanism: &'static str,
        phase: Phase,
        blocks: Vec<Arc<Block>>,
    ) -> Result<(), EditError> {
        let before = self.provider_view();
        let view = self.context.blocks().to_vec();
        let new = count_new(&blocks, self.unsent());
        self.context.set(blocks)?;
        let after = self.context.blocks().to_vec();
        let changed =
            view.len() != after.len() || view.iter().zip(&after).any(|(a, b)| a.hash != b.hash);
        if kind == CompactionKind::Summarise {
            // The provider decides again about the new view.
            self.server_cleared = Default::default();
        }
        if changed || kind == CompactionKind::Summarise {
            self.note(Event::Compaction { kind, mechanism, phase, before, after, new });
        }
        Ok(())
    }

    /// Returns the view of the model: the blocks that were sent, as the provider edited them, and the
    /// unsent blocks without the provider's own compaction block.
    fn provider_view(&self) -> Vec<Arc<Block>> {
        let (edits, cleared) = &self.server_cleared;
        let (sent, new) = self.context.blocks().split_at(self.context.changed_from());
        let mut view = sent.to_vec();
        if *cleared != Applied::default() {
            let server_edits = edits.clone();
            let request = Request { server_edits, ..Request::new(self.model.clone(), view) };
            view = context_editing::edited_view(&request, *cleared).into_owned();
        }
        view.extend(new.iter().filter(|b| b.kind != BlockKind::Compaction).cloned());
        view
    }

    /// Returns the message with a session's id.
    pub fn message(&self, key: &str) -> Option<MessageId> {
        self.history.find(key).map(|m| m.id).or_else(|| self.host.message(key))
    }

    /// Reports the view to the host after message `key` was recorded.
    pub fn notify_view(&mut self, key: &str) {
        self.host.on_view(key, self.context.blocks());
    }

    /// Notifies the host that the history contains the last reply.
    pub(crate) fn reply_recorded(&mut self, id: MessageId) {
        self.unrecorded = 0;
        self.host.on_reply(id);
    }

    /// Returns the blocks of the newest recorded message in the view.
    pub fn newest_blocks(&self) -> Vec<Arc<Block>> {
        let newest = self.history.messages().last().map(|m| m.id);
        let blocks = self.context.blocks();
        // Fixed blocks have no origin.
        let belongs = |b: &&Arc<Block>| Some(b.message) == newest && !b.origin.is_empty();
        blocks[blocks.len() - blocks.iter().rev().take_while(belongs).count()..].to_vec()
    }

    /// Adds a part of a recorded message to the context.
    pub(crate) fn push_part(&mut self, id: MessageId, part: u32, draft: Draft) {
        let own = Origins::from(vec![Origin { message: id, part }]);
        // The provider's summary replaces the whole request; a failed one replaces nothing.
        let says = draft.kind == BlockKind::Compaction && !draft.text.is_empty();
        let shown = self.context.blocks().iter().filter(|_| says);
        let origin: Origins = shown.map(|b| &b.origin).chain([&own]).collect();
        self.context.push(draft.build(id, origin));
    }

    /// Records a message that the strategy made, and returns its block without adding it to the
    /// context.
    pub fn synthetic(
        &mut self,
        kind: BlockKind,
        role: Role,
        text: impl Into<Arc<str>>,
        origin: impl Into<Origins>,
    ) -> Arc<Block> {
        let text = text.into();
        let part = match kind {
            BlockKind::Summary => Part::Summary(text.clone()),
            BlockKind::Compaction => Part::Compaction(Some(text.clone())),
            _ => Part::Text(text.clone()),
        };
        let id = self.append(role, vec![part]);
        Draft { form: BlockForm::Synthetic, ..Draft::text(kind, role, text) }.build(id, origin)
    }

    /// Removes everything after a message from the view. The history does not change.
    pub fn truncate_after(&mut self, to: MessageId) {
        let is_kept: [fn(MessageId, MessageId) -> bool; 2] = [|m, to| m <= to, |m, to| m < to];
        for is_kept in is_kept {
            let is_kept = |b: &&Arc<Block>| b.origin.is_empty() || is_kept(b.message, to);
            let kept = self.context.blocks().iter().filter(is_kept).cloned().collect();
            // If this would separate a call from its result, cut one message earlier.
            if self.context.set(kept).is_ok() {
                return;
            }
        }
    }

    /// Returns the number of requests sent so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
