//! The tool runner of the Anthropic SDK for Python 2.12: the caller requests a compaction, and the
//! provider performs it.
//!
//! Facts: docs/sources/anthropic-sdk.md §2.4. If the caller requests a compaction while it handles
//! a reply, the compaction runs before the next request, with the tool results, or after the last
//! reply of a turn, but never while a turn is paused. Its request contains the whole history with
//! system prompt and tools, and a block from the provider replaces the history. The provider keeps
//! the conversation as a thread: a request sends only new messages and the id of the previous
//! reply. A replaced history starts a new thread.
//!
//! If the provider supports neither, the runner sends the whole conversation and never compacts.

use ctxbench_core::host::CallerAction;
use ctxbench_core::prelude::*;
use ctxbench_core::request::Thread;
use serde_json::{Map, Value};

use super::{CLIENT_RETRIES, Edits, Raised, SdkSettings, admit};
use crate::descriptor::BuildRequest;

/// State of the provider's thread.
struct ThreadState {
    /// Id of the last reply.
    after: Arc<str>,
    /// Number of blocks of the view that the thread contains.
    blocks: usize,
}

#[derive(Default)]
pub(crate) struct Runner {
    settings: SdkSettings,
    edits: Vec<ServerEdit>,
    /// Number of replies in the current turn.
    replies: u64,
    held: Option<ThreadState>,
    /// Instructions of a compaction that the caller requested; empty without any.
    asked: Option<Arc<str>>,
    paused: bool,
    /// Length of the view before a refused reply, which is removed from the history.
    refused_at: Option<usize>,
    /// True if the last reply of the turn ended with calls that are not run. `None` until that
    /// reply.
    last: Option<bool>,
    /// True if the caller appended the reply itself and is therefore responsible for the results of
    /// its calls.
    appended: bool,
}

impl Runner {
    pub(crate) fn new(b: &BuildRequest<'_>) -> Self {
        let (settings, scale): (SdkSettings, _) = (b.settings(), b.scale);
        // Defaults of the API, docs/sources/anthropic-sdk.md §3.
        let edits = match settings.edits {
            Edits::ClearToolUses => {
                let trigger = ClearTrigger::InputTokens(scale_tokens(100_000, scale));
                vec![ServerEdit::clear(trigger, 3, 0)]
            }
            Edits::Compact => vec![ServerEdit::compact(scale_tokens(150_000, scale))],
            Edits::None => Vec::new(),
        };
        Runner { settings, edits, ..Runner::default() }
    }

    fn threads(&self, s: &Engine) -> bool {
        self.settings.threads && s.model.capabilities.message_threads
    }

    /// Returns an error if a compaction is not allowed: a compaction block cannot be combined with
    /// a compaction edit, which already compacts on its own.
    fn may_compact(&self, s: &Engine) -> Result<(), String> {
        let given = s.fixed.params.get("context_management").and_then(|c| c["edits"].as_array());
        let kinds = given.into_iter().flatten().filter_map(|e| e["type"].as_str());
        let compacts = kinds.into_iter().any(|k| k.starts_with("compact_"));
        if compacts || self.edits.iter().any(|e| matches!(e, ServerEdit::Compact { .. })) {
            return Err(Raised::CompactionBesideEdit.to_string());
        }
        Ok(())
    }

    /// Handles the caller's actions after a reply. The simulated caller requests a compaction if
    /// the usage reaches `compact_at` and the provider supports it.
    async fn caller(&mut self, s: &mut Engine, reply: &Reply) -> Result<(), String> {
        while let Some(act) = s.host().caller().await {
            match act {
                CallerAction::Compact { instructions } => {
                    self.may_compact(s)?;
                    self.asked = Some(instructions.unwrap_or_default());
                }
                CallerAction::Append { .. } => self.appended = true,
            }
        }
        let used = reply.usage.prompt() + reply.usage.output;
        let able = s.model.capabilities.server_compaction;
        if able
            && self.settings.compact_at > 0
            && used >= self.settings.compact_at
            && self.may_compact(s).is_ok()
        {
            s.trigger("after_reply", used, self.settings.compact_at);
            self.asked = Some("".into());
        }
        Ok(())
    }

    /// Requests a summary of the whole history by the provider, and replaces the history by its
    /// block. Without a block, the history stays.
    async fn compact(
        &mut self,
        s: &mut Engine,
        instructions: Arc<str>,
        phase: Phase,
    ) -> Result<(), String> {
        let mut blocks = s.context.blocks().to_vec();
        blocks.push(ephemeral_block(BlockKind::CompactionTrigger, Role::User, instructions));
        let mut request = s.summary_request(phase, blocks, true);
        request.max_tokens = self.settings.max_tokens;
        request.keep_messages = true;
        request.params = compaction_params(&s.fixed.params);
        request.thread = self.threads(s).then_some(Thread::Create);
        let reply = s.send(&request).await.map_err(|e| e.to_string())?;
        while let Some(act) = s.host().caller().await {
            // Another request during the compaction has no effect.
            if let CallerAction::Append { .. } = act {
                return Err(Raised::ChangedWhileCompacted.to_string());
            }
        }
        let Some(summary) = reply.compaction().filter(|c| !c.is_empty()).cloned() else {
            return Ok(());
        };
        let shown = view_after_compaction(s, summary);
        self.held = None;
        s.compacted(CompactionKind::Summarise, "compact_before_next_turn", phase, shown)
            .map_err(|e| e.to_string())
    }
}

/// Returns the parameters of a compaction request, without those that only affect an answer.
fn compaction_params(given: &Map<String, Value>) -> Map<String, Value> {
    let mut params = given.clone();
    for name in ["context_management", "stop_sequences", "output_format"] {
        params.remove(name);
    }
    if params.get("tool_choice").is_some_and(|t| t["type"] == "any" || t["type"] == "tool") {
        params.remove("tool_choice");
    }
    let without_format = |config: &mut Value| config.as_object_mut().map(|o| o.remove("format"));
    params.get_mut("output_config").and_then(without_format);
    for fallback in params.get_mut("fallbacks").and_then(Value::as_array_mut).into_iter().flatten()
    {
        fallback.get_mut("output_config").and_then(without_format);
    }
    params
}

/// Records a compaction that the provider started itself. Its view shrinks, although the history
/// here is sent back unchanged.
fn note_server_compaction(s: &mut Engine, summary: &Arc<str>) {
    let before = s.context.blocks().to_vec();
    let origin = origins(&before);
    let mut after: Vec<_> = before.iter().filter(|b| is_system(b)).cloned().collect();
    after.push(
        Draft::synthetic(BlockKind::Compaction, Role::Assistant, summary.clone())
            .build(MessageId(u32::MAX), origin),
    );
    s.note(Event::Compaction {
        kind: CompactionKind::Summarise,
        mechanism: "compact_20260112",
        phase: Phase::MidTurn,
        before,
        after,
        new: 0,
    });
}

/// Error codes of a continued thread after which the whole history is sent again.
const REPLAY: [&str; 3] =
    ["thread_not_found", "thread_already_continued", "thread_continue_in_flight"];

#[async_trait]
impl Strategy for Runner {
    fn admit(&self, raw: Draft) -> Draft {
        admit(raw)
    }

    async fn on_start(&mut self, s: &mut Engine) {
        (self.held, self.asked, self.paused) = (None, None, false);
        s.show_fixed();
    }

    async fn on_user(&mut self, s: &mut Engine, _msg: &Incoming) -> Flow {
        self.replies = 0;
        self.paused = false;
        if s.fixed.params.get("compaction").is_some_and(|c| !c.is_null()) {
            return Flow::FailTurn(Raised::CompactionOfEveryRequest.to_string());
        }
        Flow::Proceed
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        self.last = None;
        self.appended = false;
        if self.settings.is_over(self.replies) {
            self.asked = None;
            return Flow::EndTurn;
        }
        // A paused turn is resumed first, because a conversation that ends within it cannot be
        // compacted.
        let asked = if self.paused { None } else { self.asked.take() };
        match asked {
            None => Flow::Proceed,
            Some(asked) => match self.compact(s, asked, Phase::MidTurn).await {
                Ok(()) => Flow::Again,
                Err(e) => Flow::FailTurn(e),
            },
        }
    }

    fn request(&mut self, s: &Engine) -> Request {
        let thread = self.threads(s).then(|| match &self.held {
            Some(h) => Thread::Continue { after: h.after.clone(), held: h.blocks },
            None => Thread::Create,
        });
        let mut request = s.sample_request();
        if s.model.capabilities.context_editing && request.server_edits.is_empty() {
            request.server_edits = self.edits.clone();
        }
        Request { max_tokens: self.settings.max_tokens, keep_messages: true, thread, ..request }
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> ReplyFlow {
        self.replies += 1;
        let len = s.context.blocks().len();
        let refused = reply.stop == StopReason::Refusal;
        // The provider may keep a refused turn in its thread, so the next turn starts a new one.
        let id = reply.id.clone().filter(|_| !refused && self.threads(s));
        self.held = id.map(|after| ThreadState { after, blocks: len + reply.parts.len() });
        if let Err(e) = self.caller(s, reply).await {
            return ReplyFlow::FailTurn(e);
        }
        if let Some(summary) = reply.compaction().filter(|c| !c.is_empty()) {
            note_server_compaction(s, summary);
        }
        // Without threads, a refused reply stays as well, because only the thread's record leaves
        // it out.
        self.refused_at = (refused && !self.appended && self.threads(s)).then_some(len);
        self.paused = matches!(reply.stop, StopReason::PauseTurn | StopReason::Compaction);
        if self.paused {
            return ReplyFlow::Resume;
        }
        if reply.stop == StopReason::ToolUse && reply.has_calls() {
            return ReplyFlow::Proceed;
        }
        // Missing and unknown reasons end the turn.
        self.last = Some(reply.has_calls() && !self.appended);
        ReplyFlow::EndTurn
    }

    async fn after_step(&mut self, s: &mut Engine, _had_calls: bool) -> Flow {
        if self.appended
            && let Some(h) = &mut self.held
        {
            // The calls ran, but the caller owns the history and their results are not sent.
            h.blocks = s.context.blocks().len();
        }
        Flow::Proceed
    }

    async fn on_error(&mut self, _s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        let code = e.code.as_deref().unwrap_or("");
        if code == "thread_unsupported_request" && self.settings.threads {
            (self.settings.threads, self.held) = (false, None);
            return Flow::Again;
        }
        let lost = REPLAY.contains(&code);
        if lost && self.held.take().is_some() {
            Flow::Again
        } else {
            again_if_passing(e, attempt, CLIENT_RETRIES)
        }
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        if let Some(len) = self.refused_at.take() {
            // A reply's calls and results are removed together.
            let _ = s.set_view(s.context.blocks()[..len].to_vec());
        }
        let Some(unanswered) = self.last.take() else { return };
        let Some(asked) = self.asked.take().filter(|_| !unanswered) else { return };
        if let Err(e) = self.compact(s, asked, Phase::PostTurn).await {
            s.note(Event::TurnFailed(e));
        }
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        // A history that differs from the provider's thread starts a new one.
        self.held = None;
        s.truncate_after(to);
    }
}
