//! The engine: what a strategy sees and edits.

use std::borrow::Cow;
use std::sync::Arc;

use crate::block::{Block, BlockKind, Draft, Form, MessageId, Origin, Origins, Role, total_tokens};
use crate::compaction::CompactionKind;
use crate::content::{Part, ToolCall};
use crate::context::{Context, EditError};
use crate::context_editing;
use crate::history::History;
use crate::ledger::Ledger;
use crate::model::Model;
use crate::request::{
    Applied, ModelError, Phase, Purpose, Reply, Request, ServerEdit, Tools, Ttl, Usage,
};
use crate::session::{Millis, RewindMode};
use crate::strategy::{DEFAULT_TTL, Strategy, default_breakpoints};

pub use crate::world::{
    Action, BackgroundStep, CallerAct, Event, Incoming, RewindStatus, Stamped, Task, World,
};

/// What is always shown: given by the session, placed by the strategy.
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
    /// Tool definitions.
    pub tools: Option<Arc<Tools>>,
    /// System prompt of summary requests where a product has one of its own.
    pub summary_base: Vec<Arc<Block>>,
    /// What a product repeats behind the newest words, instead of its own text for it.
    pub reminder: Option<Arc<str>>,
    /// Request parameters that the caller of the product sets for normal requests.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// The context edits among [`Fixed::params`], as the wire reads them.
    pub server_edits: Vec<ServerEdit>,
}

/// Names of what a provider clears in its own view of a request.
const SERVER_CLEARS: [&str; 2] = ["clear_tool_uses", "clear_thinking"];

/// Whether a compaction of this name happened in the provider's view only; the context kept here
/// stays as it is.
pub fn is_server_clear(mechanism: &str) -> bool {
    SERVER_CLEARS.contains(&mechanism)
}

/// History, context, budget and clock of one conversation.
pub struct Engine {
    /// The append-only log.
    pub history: History,
    /// The view that the next request shows.
    pub context: Context,
    /// What is always shown.
    pub fixed: Fixed,
    /// The model, limits scaled.
    pub model: Arc<Model>,
    /// Usage and cost of every request.
    pub ledger: Ledger,
    /// What happened besides requests.
    pub events: Vec<Arc<Stamped>>,
    /// Whether `events` is filled, which keeps the blocks of all earlier views alive. The host gets
    /// every event in any case.
    pub keeps_events: bool,
    /// Usage of the last normal reply.
    pub last_usage: Option<Usage>,
    /// Model of every summary request, whatever the product's own rule says.
    pub summary_model: Option<Arc<Model>>,
    /// Put breakpoints at the default places where a product has no rule of its own for the
    /// provider.
    pub default_breakpoints: bool,
    /// Lifetime asked of the prompt cache where a product has no rule of its own.
    pub ttl: Ttl,
    world: Box<dyn World>,
    requests: u64,
    /// What the provider was asked to edit in the last request, and what it cleared of it.
    server_cleared: (Vec<ServerEdit>, Applied),
    /// Tokens of a reply that is not in the context yet.
    unrecorded: u64,
}

/// How many of the last blocks of a view are among these that no request has shown. The block with
/// which a provider compacts is there because of it.
fn count_new(view: &[Arc<Block>], unsent: &[Arc<Block>]) -> usize {
    let is_new = |b: &&Arc<Block>| {
        b.kind != BlockKind::Compaction && unsent.iter().any(|u| Arc::ptr_eq(u, b))
    };
    view.iter().rev().take_while(is_new).count()
}

impl Engine {
    /// An engine for one conversation.
    pub fn new(model: Arc<Model>, world: Box<dyn World>) -> Self {
        Engine {
            history: History::default(),
            context: Context::new(model.counting),
            fixed: Fixed::default(),
            ledger: Ledger::default(),
            events: Vec::new(),
            keeps_events: true,
            last_usage: None,
            summary_model: None,
            default_breakpoints: true,
            ttl: DEFAULT_TTL,
            model,
            world,
            requests: 0,
            server_cleared: Default::default(),
            unrecorded: 0,
        }
    }

    /// The world.
    pub fn world(&mut self) -> &mut dyn World {
        &mut *self.world
    }

    /// Gives the world back when the session is over.
    pub fn into_parts(self) -> (Box<dyn World>, Ledger, Vec<Arc<Stamped>>, History) {
        (self.world, self.ledger, self.events, self.history)
    }

    /// Virtual time, ms.
    pub fn now(&self) -> Millis {
        self.world.now()
    }

    /// Puts base and context at the beginning of an empty view.
    pub fn show_fixed(&mut self) {
        for b in self
            .fixed
            .base
            .iter()
            .chain(&self.fixed.repo_map)
            .chain(&self.fixed.context)
            .chain(&self.fixed.files)
        {
            self.context.push(b.clone());
        }
    }

    /// Empties the view for another session; the log, which measures, goes on.
    pub fn begin_anew(&mut self) {
        // An empty view separates nothing.
        let _ = self.context.set(Vec::new());
        self.last_usage = None;
    }

    /// Billed tokens of the next normal request: context and tools.
    pub fn billed_tokens(&self) -> u64 {
        self.prompt_tokens(self.context.blocks())
    }

    /// Billed tokens of a normal request that shows these blocks.
    pub fn prompt_tokens(&self, blocks: &[Arc<Block>]) -> u64 {
        let edits = &self.fixed.server_edits;
        self.tools_tokens() + context_editing::prompt_tokens(&self.model, edits, blocks)
    }

    /// Billed tokens of the tool definitions.
    pub fn tools_tokens(&self) -> u64 {
        self.fixed.tools.as_ref().map_or(0, |t| t.tokens(&self.model.counting))
    }

    /// Billed tokens of blocks wherever they stand; thinking counts, whether or not the provider
    /// would leave it out of a prompt.
    pub fn tokens_of<'a>(&self, blocks: impl IntoIterator<Item = &'a Arc<Block>>) -> u64 {
        total_tokens(&self.model.counting, blocks)
    }

    /// A normal request that shows the context, with the default breakpoints.
    pub fn sample_request(&self) -> Request {
        Request {
            purpose: Purpose::Sample,
            phase: None,
            model: self.model.clone(),
            max_tokens: None,
            tools: self.fixed.tools.clone(),
            blocks: self.context.blocks().to_vec(),
            breakpoints: self.breakpoints(self.context.blocks()),
            ttl: self.ttl,
            server_edits: self.fixed.server_edits.clone(),
            keep_messages: false,
            params: self.fixed.params.clone(),
            thread: None,
        }
    }

    /// A request for a summary: these blocks, then nothing else is assumed. Tools only if `tools`.
    pub fn summary_request(&self, phase: Phase, blocks: Vec<Arc<Block>>, tools: bool) -> Request {
        Request {
            purpose: Purpose::Summary,
            phase: Some(phase),
            tools: self.fixed.tools.clone().filter(|_| tools),
            breakpoints: self.breakpoints(&blocks),
            blocks,
            params: serde_json::Map::new(),
            server_edits: Vec::new(),
            ..self.sample_request()
        }
    }

    fn breakpoints(&self, blocks: &[Arc<Block>]) -> Vec<usize> {
        if self.default_breakpoints { default_breakpoints(blocks) } else { Vec::new() }
    }

    /// Sends a request; usage and cost go to the ledger.
    pub async fn send(&mut self, request: &Request) -> Result<Reply, ModelError> {
        let request = &*self.with_summary_model(request);
        self.unrecorded = 0;
        let reply = self.world.send(request).await;
        if let Ok(r) = &reply {
            self.note_server_clear(request, r.applied);
        }
        self.requests += 1;
        if let Ok(r) = &reply {
            self.ledger.add(request, r);
        }
        if request.purpose == Purpose::Sample {
            self.context.mark_sent();
            if let Ok(r) = &reply {
                self.last_usage = Some(r.usage);
                self.unrecorded = r.usage.output;
            }
        }
        reply
    }

    /// The provider cleared more than before: a compaction, though the view that we keep stays as
    /// it is.
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

    /// Blocks of the view that no request has shown.
    fn unsent(&self) -> &[Arc<Block>] {
        &self.context.blocks()[self.context.changed_from()..]
    }

    /// The provider's count of a request if it offers one, else the exact local count. Never an
    /// estimate.
    pub async fn count(&mut self, request: &Request) -> u64 {
        match self.world.count(request).await {
            Some(n) => n,
            None => request.tokens(),
        }
    }

    /// Starts a request beside the conversation.
    pub async fn spawn(&mut self, request: &Request) -> Task {
        let seq = self.requests;
        let task = self.start(request).await;
        if request.purpose == Purpose::Summary && request.phase == Some(Phase::Background) {
            self.note_background(task, BackgroundStep::Spawned { request: seq });
        }
        task
    }

    /// Starts the next request of the background summary that `before` was a request of: another
    /// model, or a further part.
    pub async fn spawn_next(&mut self, before: Task, request: &Request) -> Task {
        let task = self.start(request).await;
        self.note_background(before, BackgroundStep::Continued(task));
        task
    }

    async fn start(&mut self, request: &Request) -> Task {
        self.requests += 1;
        let request = self.with_summary_model(request);
        self.world.spawn(&request).await
    }

    fn with_summary_model<'a>(&self, request: &'a Request) -> Cow<'a, Request> {
        match &self.summary_model {
            Some(m) if request.purpose == Purpose::Summary => {
                Cow::Owned(Request { model: m.clone(), ..request.clone() })
            }
            _ => Cow::Borrowed(request),
        }
    }

    /// The result of a started request if it is there; with `wait`, after waiting for it.
    pub async fn collect(
        &mut self,
        task: Task,
        request: &Request,
        wait: bool,
    ) -> Option<Result<Reply, ModelError>> {
        let asked = self.world.now();
        let result = self.world.collect(task, wait).await;
        if let Some(r) = &result {
            let waited_ms = self.world.now().saturating_sub(asked);
            self.note_background(task, BackgroundStep::Delivered { waited_ms, usable: r.is_ok() });
        }
        if let Some(Ok(r)) = &result {
            let request = self.with_summary_model(request);
            self.ledger.add(&request, r);
        }
        result
    }

    /// Gives a started request up.
    pub fn cancel(&mut self, task: Task) {
        self.world.cancel(task);
    }

    /// A background summary is needed now and is not there; the conversation goes on without it.
    pub fn missed(&mut self, task: Task) {
        self.note_background(task, BackgroundStep::Missed);
    }

    /// A background summary came and is thrown away, because what it covers no longer stands as it
    /// was.
    pub fn stale(&mut self, task: Task) {
        self.note_background(task, BackgroundStep::Stale);
    }

    /// A background summary came and holds nothing that could be used.
    pub fn unusable(&mut self, task: Task) {
        self.note_background(task, BackgroundStep::Unusable);
    }

    fn note_background(&mut self, task: Task, step: BackgroundStep) {
        self.note(Event::Background(task, step));
    }

    /// Notes an event with its place in the run.
    pub fn note(&mut self, event: Event) {
        let (before_request, at_ms) = (self.requests, self.world.now());
        let event = Arc::new(Stamped { before_request, at_ms, event });
        self.world.noted(&event);
        if self.keeps_events {
            self.events.push(event);
        }
    }

    /// Notes that a check fired: what the strategy believed beside what would be billed, the newest
    /// reply included.
    pub fn trigger(&mut self, check: &'static str, believed: u64, limit: u64) {
        let billed = self.prompt_tokens(&self.provider_view()) + self.unrecorded;
        self.note(Event::Trigger { check, believed, billed, limit });
    }

    /// The same of a check by the provider, which believes what it bills.
    pub fn provider_trigger(&mut self, check: &'static str, billed: u64, limit: u64) {
        self.note(Event::Trigger { check, believed: billed, billed, limit });
    }

    /// Shows these blocks from now on and notes the compaction. An edit that changes nothing is
    /// none; a summary was asked for and paid either way.
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
            // What the provider clears of the new view it decides anew.
            self.server_cleared = Default::default();
        }
        if changed || kind == CompactionKind::Summarise {
            self.note(Event::Compaction { kind, mechanism, phase, before, after, new });
        }
        Ok(())
    }

    /// What the model had before it: what was sent last as the provider showed it, in which results
    /// may be cleared that the view still holds, and what came since, but for the block with which
    /// the provider itself compacts all that.
    fn provider_view(&self) -> Vec<Arc<Block>> {
        let (edits, cleared) = &self.server_cleared;
        let (sent, new) = self.context.blocks().split_at(self.context.changed_from());
        let mut view = sent.to_vec();
        if *cleared != Applied::default() {
            let server_edits = edits.clone();
            let request = Request { blocks: view, server_edits, ..self.sample_request() };
            view = context_editing::edited_view(&request, *cleared).into_owned();
        }
        view.extend(new.iter().filter(|b| b.kind != BlockKind::Compaction).cloned());
        view
    }

    /// The message that a session's id stands for.
    pub fn message(&self, key: &str) -> Option<MessageId> {
        self.history.find(key).map(|m| m.id).or_else(|| self.world.message(key))
    }

    /// Tells the world what the context shows now that something entered the history.
    pub fn tell_shown(&mut self, key: &str) {
        self.world.shown(key, self.context.blocks());
    }

    /// Notes what a rewind did to the context, which was `before`.
    pub fn note_rewind(
        &mut self,
        to: String,
        mode: RewindMode,
        status: RewindStatus,
        before: Vec<Arc<Block>>,
    ) {
        let after = self.context.blocks().to_vec();
        self.note(Event::Rewound { to, mode, status, before, after });
    }

    /// Records a user message and shows it.
    pub fn record_user<S: Strategy + ?Sized>(&mut self, strategy: &S, msg: &Incoming) -> MessageId {
        self.record(strategy, msg.key.clone(), Role::User, msg.parts.clone())
    }

    /// Records a reply, shows it, and returns its calls.
    pub fn record_reply<S: Strategy + ?Sized>(
        &mut self,
        strategy: &S,
        reply: &Reply,
    ) -> (MessageId, Vec<ToolCall>) {
        let id = self.record(strategy, "".into(), Role::Assistant, reply.parts.clone());
        self.unrecorded = 0;
        self.world.recorded(id);
        (id, reply.calls().cloned().collect())
    }

    /// Records tool results and shows them. Returns false when the program was killed before one
    /// came.
    pub async fn record_results<S: Strategy + ?Sized>(
        &mut self,
        strategy: &mut S,
        results: Vec<Incoming>,
    ) -> bool {
        let mut complete = true;
        for Incoming { key, parts } in results {
            if parts.is_empty() {
                complete = false;
                continue;
            }
            let drafts = drafts(&parts, Role::Tool);
            let id = self.history.append(key, Role::Tool, parts, false);
            for (part, draft) in drafts {
                let draft = strategy.on_result(self, id, draft).await;
                self.show(id, part, draft);
            }
        }
        complete
    }

    fn record<S: Strategy + ?Sized>(
        &mut self,
        strategy: &S,
        key: Arc<str>,
        role: Role,
        parts: Vec<Part>,
    ) -> MessageId {
        let drafts = drafts(&parts, role);
        let id = self.history.append(key, role, parts, false);
        for (part, draft) in drafts {
            self.show(id, part, strategy.admit(draft));
        }
        id
    }

    /// Shows a part of a message of the log.
    fn show(&mut self, id: MessageId, part: u32, draft: Draft) {
        let own = Origins::from(vec![Origin { message: id, part }]);
        // A summary of the provider stands for all that the request showed; a failed one for
        // nothing.
        let says = draft.kind == BlockKind::Compaction && !draft.text.is_empty();
        let shown = self.context.blocks().iter().filter(|_| says);
        let origin: Origins = shown.map(|b| &b.origin).chain([&own]).collect();
        self.context.push(draft.build(id, origin));
    }

    /// Records a message that the strategy made and returns its block without showing it.
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
        let id = self.history.append("", role, vec![part], true);
        Draft { form: Form::Synthetic, ..Draft::text(kind, role, text) }.build(id, origin)
    }

    /// Takes everything after a message out of the view; the log stays.
    pub fn truncate_after(&mut self, to: MessageId) {
        let kept = self
            .context
            .blocks()
            .iter()
            .filter(|b| b.message <= to || b.origin.is_empty())
            .cloned()
            .collect();
        if self.context.set(kept).is_err() {
            let open: Vec<Arc<Block>> = self
                .context
                .blocks()
                .iter()
                .filter(|b| b.message < to || b.origin.is_empty())
                .cloned()
                .collect();
            // A cut that would separate a call from its result goes back one message further.
            let _ = self.context.set(open);
        }
    }

    /// Number of requests sent so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }
}

/// How a request shows the parts of a message that can be shown, each with its index.
fn drafts(parts: &[Part], role: Role) -> Vec<(u32, Draft)> {
    let drafts = parts.iter().zip(0..).filter_map(|(p, i)| Some((i, p.draft(role)?)));
    drafts.collect()
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
