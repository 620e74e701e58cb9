//! Prompts, breakpoints and parts that OpenCode and its descriptions send in addition to the
//! messages.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Role};
use ctxbench_core::compaction::{CompactionKind, ephemeral_block};
use ctxbench_core::engine::{Engine, Event};
use ctxbench_core::model::Provider;
use ctxbench_core::request::Phase;
use ctxbench_core::strategy;

use super::rules::ModelLimits;

/// Returns the limits of the session's model.
pub(crate) fn limits(s: &Engine) -> ModelLimits {
    ModelLimits { context: s.model.window, output: s.model.max_output, input: s.model.input_limit }
}

/// Concatenates parts. Returns the text and the positions at which the second and later parts
/// begin.
pub(crate) fn joined(parts: Vec<String>) -> (String, Vec<usize>) {
    let mut at = 0;
    let ends = parts.iter().map(|t| {
        at += t.len();
        at
    });
    let mut splits: Vec<usize> = ends.collect();
    splits.pop();
    (parts.concat(), splits)
}

/// Returns true if a block is always shown.
pub(crate) fn is_fixed(b: &Block) -> bool {
    strategy::is_fixed(b) || b.kind == BlockKind::File
}

/// Returns the breakpoints, which only Anthropic needs: the first two system messages and the last
/// two other messages (docs/sources/opencode.md §6).
pub(crate) fn breakpoints(s: &Engine, blocks: &[Arc<Block>]) -> Vec<usize> {
    if s.model.provider != Provider::Anthropic {
        return Vec::new();
    }
    let systems: Vec<usize> =
        (0..blocks.len()).filter(|&i| blocks[i].role == Role::System).take(2).collect();
    let ends = |i: usize| {
        i + 1 == blocks.len() || {
            let (a, b) = (&blocks[i], &blocks[i + 1]);
            !(a.message == b.message || (a.role == Role::Tool && b.role == Role::Tool))
        }
    };
    let mut last: Vec<usize> = (0..blocks.len())
        .rev()
        .filter(|&i| blocks[i].role != Role::System && ends(i))
        .take(2)
        .collect();
    last.reverse();
    systems.into_iter().chain(last).collect()
}

/// Summary of the whole conversation according to the older descriptions: a system prompt, the
/// messages, a request for a summary.
pub(crate) struct WholeSummary<'a> {
    /// System prompt of the agent that summarises.
    pub(crate) system: &'a Arc<str>,
    /// The request after the conversation.
    pub(crate) prompt: &'a Arc<str>,
    pub(crate) most: u64,
}

impl WholeSummary<'_> {
    /// Requests the summary and sets the view to the fixed blocks, followed by the result of `view`
    /// for the text and the conversation. Returns false without a text.
    pub(crate) async fn replace(
        &self,
        s: &mut Engine,
        phase: Phase,
        view: impl FnOnce(&mut Engine, String, &[Arc<Block>]) -> Vec<Arc<Block>> + Send,
    ) -> bool {
        let (fixed, talk): (Vec<Arc<Block>>, Vec<Arc<Block>>) =
            s.context.blocks().iter().cloned().partition(|b| is_fixed(b));
        let mut blocks = vec![ephemeral_block(BlockKind::Base, Role::System, self.system.clone())];
        blocks.extend(talk.iter().cloned());
        blocks.push(ephemeral_block(BlockKind::SummaryPrompt, Role::User, self.prompt.clone()));
        let mut request = s.summary_request(phase, blocks, false);
        request.max_tokens = Some(self.most);
        request.breakpoints = breakpoints(s, &request.blocks);
        let text = s.send(&request).await.ok().filter(|r| !r.has_calls()).and_then(|r| r.text());
        let Some(text) = text else {
            s.note(Event::CompactionFailed { mechanism: "summary", dangling: false });
            return false;
        };
        let shown = view(s, text, &talk);
        s.compacted(
            CompactionKind::Summarise,
            "summary",
            phase,
            fixed.into_iter().chain(shown).collect(),
        )
        .is_ok()
    }
}
