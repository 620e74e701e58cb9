//! Context management by the Anthropic API as an agent would use it (docs/sources/anthropic-api.md
//! §2.2 to §2.5).
//!
//! The history is sent unchanged, with edits that the provider applies on arrival. The client drops
//! the blocks that the provider's compaction replaced, continues after a pause with the newest
//! messages after the summary, and requests compactions on demand. Edits that a model's provider
//! does not support are left out. Without any, the conversation is never compacted.

#[cfg(test)]
mod tests;

use crate::descriptor::{Known, Requirement};
use ctxbench_core::breakpoints::frontier_breakpoints;
use ctxbench_core::context_editing::{edited_view, next_change, will_apply};
use ctxbench_core::prelude::*;
use ctxbench_core::request::{Applied, Tools};
use ctxbench_core::settings::AUTO;
use serde::Deserialize;

use crate::shared::Places;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiSettings {
    pub(crate) clear: bool,
    pub(crate) clear_trigger: u64,
    pub(crate) clear_trigger_uses: Option<u64>,
    pub(crate) clear_keep: u64,
    pub(crate) clear_at_least: u64,
    pub(crate) clear_exclude: Option<Arc<str>>,
    pub(crate) clear_inputs: Arc<str>,
    pub(crate) memory: bool,
    pub(crate) thinking: Thinking,
    pub(crate) thinking_keep: u64,
    pub(crate) compact: Compact,
    pub(crate) compact_trigger: u64,
    pub(crate) pause: bool,
    pub(crate) keep_last: u64,
    pub(crate) breakpoints: Places,
    pub(crate) instructions: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Thinking {
    Default,
    All,
    Turns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Compact {
    Threshold,
    OnDemand,
    Off,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiWords {
    pub(crate) memory_warning: Arc<str>,
    pub(crate) memory_saved: Arc<str>,
}

/// Name of the memory tool (docs/sources/anthropic-sdk.md §3).
const MEMORY: &str = "memory";
/// Number of successive pauses after which the summary is as large as the blocks that it replaced.
const MAX_PAUSES: u32 = 3;

pub(crate) const CLAUDE_CODE_API: Known = Known {
    needs: |_| {
        Some(Requirement {
            is_met: |c| c.context_editing,
            reason: "context editing of this kind exists on the Anthropic API only",
        })
    },
    formats: &[crate::claude_code::persist::FORMAT],
    ..Known::new(include_str!("about.toml"), |b| {
        let s: ApiSettings = b.settings();
        let names = |text: Option<&str>| -> Vec<String> {
            text.into_iter().flat_map(|t| t.split('+')).map(str::to_string).collect()
        };
        let memory = s.memory && s.clear;
        let mut exclude = names(s.clear_exclude.as_deref());
        exclude.extend(memory.then(|| MEMORY.into()));
        let clear = ServerEdit::ClearToolUses {
            trigger: match s.clear_trigger_uses {
                Some(n) => ClearTrigger::ToolUses(n),
                None => ClearTrigger::InputTokens(s.clear_trigger),
            },
            keep: s.clear_keep as usize,
            clear_at_least: s.clear_at_least,
            exclude,
            inputs: match &*s.clear_inputs {
                "none" | AUTO => ClearInputs::None,
                "all" => ClearInputs::All,
                some => ClearInputs::Of(names(Some(some))),
            },
        };
        let thinking = match s.thinking {
            Thinking::All => Some(None),
            Thinking::Turns => Some(Some(s.thinking_keep.max(1) as usize)),
            Thinking::Default => None,
        };
        let thinking = thinking.map(|keep| ServerEdit::ClearThinking { keep });
        Box::new(Api {
            clearing: thinking.into_iter().chain(s.clear.then_some(clear)).collect(),
            memory,
            words: b.texts(),
            settings: s,
            tools: None,
            pauses: 0,
            due: false,
            notes: 0,
            seen: 0,
            applied: Applied::default(),
        })
    })
};

pub(crate) struct Api {
    settings: ApiSettings,
    words: ApiWords,
    /// Clearing edits in the order that the API requires, thinking first.
    clearing: Vec<ServerEdit>,
    memory: bool,
    /// The session's tools with the memory tool.
    tools: Option<Arc<Tools>>,
    /// Number of pauses since the last answer.
    pauses: u32,
    /// True if a compaction on demand precedes the next request.
    due: bool,
    notes: u32,
    /// Number of clearable tool results when the last note was written, including cleared ones.
    seen: usize,
    /// Edits that the provider applied to the last request.
    applied: Applied,
}

impl Api {
    fn excluded(&self, b: &Block) -> bool {
        let tool = b.call.as_ref().map_or("", |c| &*c.name);
        self.clearing.iter().any(|e| matches!(e, ServerEdit::ClearToolUses { exclude, .. } if exclude.iter().any(|x| x == tool)))
    }

    /// Returns true if compactions are of this kind and the provider has them.
    fn compacts(&self, s: &Engine, how: Compact) -> bool {
        s.model.capabilities.server_compaction && self.settings.compact == how
    }

    /// Returns true if the model has the memory tool.
    fn has_memory(&self, s: &Engine) -> bool {
        self.memory && s.model.capabilities.context_editing
    }

    /// Drops the blocks before the provider's newest compaction. After a pause, the newest messages
    /// stay and are placed after it.
    fn settle(&mut self, s: &mut Engine, phase: Phase, keep: usize) -> Result<(), String> {
        let blocks = s.context.blocks();
        let Some(at) =
            blocks.iter().rposition(|b| b.kind == BlockKind::Compaction && !b.text.is_empty())
        else {
            return Ok(());
        };
        let old: Vec<Arc<Block>> = blocks[..at].iter().filter(|b| !is_system(b)).cloned().collect();
        if old.is_empty() {
            return Ok(());
        }
        let starts = group_starts(&old);
        let from = starts.get(starts.len().saturating_sub(keep)).copied().unwrap_or(old.len());
        let mut shown: Vec<_> = blocks[..at].iter().filter(|b| is_system(b)).cloned().collect();
        shown.push(blocks[at].clone());
        // A block of an earlier compaction would end the conversation a second time.
        shown.extend(old[from..].iter().filter(|b| b.kind != BlockKind::Compaction).cloned());
        shown.extend(blocks[at + 1..].iter().cloned());
        (self.seen, self.applied) = (0, Applied::default());
        s.compacted(CompactionKind::Summarise, "compact_20260112", phase, shown)
            .map_err(|e| e.to_string())
    }

    /// Requests a summary of everything from the provider, without edits, and replaces the
    /// conversation by its block.
    async fn compact_now(
        &mut self,
        s: &mut Engine,
        instructions: Option<Arc<str>>,
        phase: Phase,
    ) -> Result<(), String> {
        let mut blocks = s.context.blocks().to_vec();
        let words = instructions.or(self.settings.instructions.clone()).unwrap_or_default();
        blocks.push(ephemeral_block(BlockKind::CompactionTrigger, Role::User, words));
        let mut request = s.summary_request(phase, blocks, true);
        request.tools = self.tools.clone();
        let reply = s.send(&request).await.map_err(|e| e.to_string())?;
        let Some(summary) = reply.compaction().filter(|c| !c.is_empty()).cloned() else {
            return Ok(());
        };
        let shown = view_after_compaction(s, summary);
        (self.seen, self.applied) = (0, Applied::default());
        s.compacted(CompactionKind::Summarise, "on_demand", phase, shown).map_err(|e| e.to_string())
    }

    /// Warns the model and saves its note if the next request would clear results that no note
    /// covers. The model sees the conversation as the provider last showed it, so results cleared
    /// earlier stay cleared.
    async fn note(&mut self, s: &mut Engine) -> Result<(), String> {
        let next = self.request(s);
        if will_apply(&next).cleared_tool_uses <= self.seen {
            return Ok(());
        }
        let mut blocks = edited_view(&next, self.applied).into_owned();
        let warning = self.words.memory_warning.clone();
        blocks.push(ephemeral_block(BlockKind::SummaryPrompt, Role::User, warning));
        let mut request = s.summary_request(Phase::MidTurn, blocks, true);
        request.tools = self.tools.clone();
        let reply = s.send(&request).await.map_err(|e| e.to_string())?;
        self.seen =
            next.blocks.iter().filter(|b| b.kind == BlockKind::Output && !self.excluded(b)).count();
        self.notes += 1;
        let id: Arc<str> = format!("memory_{}", self.notes).into();
        let path = format!("/memories/notes-{}.md", self.notes);
        let text = reply.text().unwrap_or_default();
        let arguments = serde_json::json!({"command": "create", "path": path, "file_text": text});
        let call = ToolCall::new(id.clone(), MEMORY, arguments.to_string());
        let (name, output) = (call.name.clone(), self.words.memory_saved.clone());
        let result = Part::Result { id, name, output, is_error: false };
        for (role, part) in [(Role::Assistant, Part::Call(call)), (Role::Tool, result)] {
            let draft = part.draft(role).expect("calls and results have blocks");
            let draft = Draft { form: BlockForm::Synthetic, ..draft };
            let message = s.append(role, vec![part]);
            s.show(draft.build(message, vec![Origin { message, part: 0 }]));
        }
        Ok(())
    }

    /// Runs the compaction and the note that must precede the next request.
    async fn prepare(&mut self, s: &mut Engine) -> Result<(), String> {
        if self.pauses > MAX_PAUSES {
            return Err("the provider compacts again and again: what is kept behind its summary \
                reaches the trigger by itself"
                .into());
        }
        if self.pauses > 0 {
            self.settle(s, Phase::MidTurn, self.settings.keep_last as usize)?;
        }
        if std::mem::take(&mut self.due) {
            self.compact_now(s, None, Phase::MidTurn).await?;
        }
        if self.has_memory(s) {
            self.note(s).await?;
        }
        Ok(())
    }
}

/// Returns the session's tools followed by the memory tool.
fn with_memory(tools: Option<&Arc<Tools>>) -> Option<Arc<Tools>> {
    let mut all: Vec<serde_json::Value> =
        tools.and_then(|t| serde_json::from_str(t.json.get()).ok()).unwrap_or_default();
    all.push(serde_json::json!({"type": "memory_20250818", "name": MEMORY}));
    Tools::new(&all)
}

#[async_trait]
impl Strategy for Api {
    async fn on_start(&mut self, s: &mut Engine) {
        (self.pauses, self.due, self.seen, self.applied) = (0, false, 0, Applied::default());
        self.tools = if self.has_memory(s) {
            with_memory(s.fixed.tools.as_ref())
        } else {
            s.fixed.tools.clone()
        };
        s.show_fixed();
        // Messages before a compaction are ignored, so permanent content is moved to the system
        // prompt.
        let lift = |b: &Arc<Block>| {
            let lifted = matches!(b.kind, BlockKind::Context | BlockKind::RepoMap);
            if lifted {
                b.map_draft(|d| (d.kind, d.role) = (BlockKind::Context, Role::System))
            } else {
                b.clone()
            }
        };
        let (mut shown, rest): (Vec<_>, Vec<_>) =
            s.context.blocks().iter().map(lift).partition(|b| is_system(b));
        shown.extend(rest);
        // No calls are shown yet, so no call loses its result.
        let _ = s.set_view(shown);
    }

    async fn on_user(&mut self, _s: &mut Engine, _msg: &Incoming) -> Flow {
        self.pauses = 0;
        Flow::Proceed
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        match self.prepare(s).await {
            Ok(()) => Flow::Proceed,
            Err(e) => Flow::FailTurn(e),
        }
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        r.tools = self.tools.clone();
        if s.model.capabilities.context_editing {
            r.server_edits.extend(self.clearing.iter().cloned());
        }
        if self.compacts(s, Compact::Threshold) {
            let ApiSettings { compact_trigger: trigger, pause, .. } = self.settings;
            let instructions = self.settings.instructions.clone();
            r.server_edits.push(ServerEdit::Compact { trigger, instructions, pause });
        }
        if self.settings.breakpoints == Places::Frontier && s.options().default_breakpoints {
            r.breakpoints = frontier_breakpoints(&r.blocks, next_change(&r));
        }
        r
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> ReplyFlow {
        let trigger = self.settings.compact_trigger;
        if reply.compaction().is_some() && self.settings.compact == Compact::Threshold {
            let summarised = reply.billed.prompt() - reply.usage.prompt();
            s.provider_trigger("provider_compaction", summarised, trigger);
        }
        if reply.stop == StopReason::Compaction {
            self.pauses += 1;
            return ReplyFlow::Resume;
        }
        self.pauses = 0;
        self.applied = reply.applied;
        let used = reply.usage.prompt() + reply.usage.output;
        if used >= trigger && self.compacts(s, Compact::OnDemand) {
            s.trigger("after_reply", used, trigger);
            self.due = true;
        }
        if reply.stop == StopReason::PauseTurn { ReplyFlow::Resume } else { ReplyFlow::Proceed }
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        let phase = if had_calls { Phase::MidTurn } else { Phase::PostTurn };
        match self.settle(s, phase, 0) {
            Ok(()) => Flow::Proceed,
            Err(e) => Flow::FailTurn(e),
        }
    }

    async fn compact(&mut self, s: &mut Engine, instructions: Option<&str>) -> Manual {
        // A compaction on demand cannot be combined with a compaction edit.
        if self.settings.compact == Compact::Threshold
            || !s.model.capabilities.server_compaction
            || s.context.blocks().iter().all(|b| is_system(b))
        {
            return Err(Unsupported);
        }
        self.due = false;
        // A failed compaction changes nothing.
        let _ = self.compact_now(s, instructions.map(Arc::from), Phase::StandaloneTurn).await;
        Ok(())
    }
}
