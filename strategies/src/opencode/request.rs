//! What OpenCode and the descriptions of it send beside the messages themselves: prompts,
//! breakpoints, parts.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
use ctxbench_core::compaction::{CompactionKind, Transcript};
use ctxbench_core::engine::{Engine, Event};
use ctxbench_core::model::Provider;
use ctxbench_core::request::Phase;
use ctxbench_core::wording::Wording;

/// The texts of the program.
pub(crate) struct Words {
    pub(crate) system: Arc<str>,
    intro: Arc<str>,
    first: Arc<str>,
    prior: (Arc<str>, Arc<str>),
    template: Arc<str>,
    pub(crate) marker: Arc<str>,
    pub(crate) go_on: Arc<str>,
    /// The same after a refusal, complete.
    pub(crate) overflow: Arc<str>,
    /// 1.3: the request for a summary behind the conversation.
    pub(crate) old_prompt: Arc<str>,
    /// 1.3: what stands around a message that arrived while it was at work.
    pub(crate) wrapper: (Arc<str>, Arc<str>),
}

impl Words {
    /// The texts, with the headings of the program or the five sections of
    /// docs/sources/opencode-vs-claude-code.md §8.
    pub(crate) fn new(wording: &Wording, sdk: bool) -> Self {
        let text = |name: &str| wording.get(&format!("opencode.{name}"));
        let headings = |own: &str| text(if sdk { "template_sdk" } else { own });
        Words {
            system: text("summary_system"),
            intro: text("intro"),
            first: text("first"),
            prior: (text("prior_open"), text("prior_close")),
            template: headings("template"),
            marker: text("marker"),
            go_on: text("continue"),
            overflow: text("continue_overflow"),
            old_prompt: headings("old_prompt"),
            wrapper: (text("wrapper_open"), text("wrapper_close")),
        }
    }

    /// The summary request around a transcript and the summary before it (docs/sources/opencode.md
    /// §3.2.7).
    pub(crate) fn prompt(&self, transcript: &Transcript, prior: Option<&str>) -> Transcript {
        let ask = |words: &str| Transcript::of(BlockKind::SummaryPrompt, words);
        let mut out = ask(&self.intro);
        out.append(transcript);
        match prior {
            None => out.append(&ask(&self.first)),
            Some(p) => {
                out.append(&ask(&self.prior.0));
                out.recall(&Transcript::of(BlockKind::Summary, p));
                out.append(&ask(&self.prior.1));
            }
        }
        out.append(&ask(&self.template));
        out
    }
}

/// A block of a request that is in no history.
pub(crate) fn own(kind: BlockKind, role: Role, text: impl Into<Arc<str>>) -> Arc<Block> {
    Draft::synthetic(kind, role, text).build(MessageId(u32::MAX), vec![])
}

/// Parts as one text with the places where the second and further ones begin.
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

/// Whether a block is always shown.
pub(crate) fn is_fixed(b: &Block) -> bool {
    matches!(b.kind, BlockKind::Base | BlockKind::Context | BlockKind::RepoMap | BlockKind::File)
}

/// Anthropic only: the first two system messages and the last two others (docs/sources/opencode.md
/// §6).
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

/// A summary of the whole conversation as the older descriptions have it: a system prompt, the
/// messages, a request for a summary.
pub(crate) struct WholeSummary<'a> {
    /// Of the agent that summarises.
    pub(crate) system: &'a Arc<str>,
    /// The request behind the conversation.
    pub(crate) prompt: &'a Arc<str>,
    /// Largest reply, tokens.
    pub(crate) most: u64,
}

impl WholeSummary<'_> {
    /// Asks for it and shows what is always shown and then what `view` makes of the text and the
    /// conversation. False if there was no text.
    pub(crate) async fn replace(
        &self,
        s: &mut Engine,
        phase: Phase,
        view: impl FnOnce(&mut Engine, String, &[Arc<Block>]) -> Vec<Arc<Block>> + Send,
    ) -> bool {
        let (fixed, talk): (Vec<Arc<Block>>, Vec<Arc<Block>>) =
            s.context.blocks().iter().cloned().partition(|b| is_fixed(b));
        let mut blocks = vec![own(BlockKind::Base, Role::System, self.system.clone())];
        blocks.extend(talk.iter().cloned());
        blocks.push(own(BlockKind::SummaryPrompt, Role::User, self.prompt.clone()));
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
