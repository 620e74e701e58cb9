//! OpenCode according to docs/sources/opencode-vs-claude-code.md (§2 and §7 there),
//! `opencode@described-001`; `program.rs` follows the releases.
//!
//! Before a request the tokens of the last reply are compared with the window minus the largest
//! reply, "100 % overflow". Above it, the model gets the whole conversation with a plain request
//! for a summary, and the summary becomes the first message. After a turn, results of old tool
//! calls are cleared. The last two user turns and the newest 40,000 tokens stay, and clearing must
//! free more than 20,000 tokens. Only the summary stays, nothing is repeated, no tool is exempt.
//! The description does not mention a provider that refuses a prompt, so the turn fails then.

use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::block::{BlockKind, Role};
use ctxbench_core::compaction::{CompactionKind, PruneRule, clear_outputs, origins};
use ctxbench_core::engine::Engine;
use ctxbench_core::request::{ModelError, Phase, Reply, Request, Usage};
use ctxbench_core::settings::scale_tokens;
use ctxbench_core::strategy::{Flow, Strategy, Unsupported, again_if_passing};

use super::log::CLEARED;
use super::request::{WholeSummary, breakpoints};
use super::rules::{ModelLimits, OUTPUT_CAP, RETRIES, max_output, prune_rule, prune_view};
use super::settings::OpenCodeSettings;
use super::words::OpenCodeWords;

pub(crate) struct DescribedComparison {
    auto: bool,
    prune: Option<PruneRule>,
    /// Output limit that is subtracted from the window, tokens.
    cap: u64,
    system: Arc<str>,
    prompt: Arc<str>,
    marker: Arc<str>,
    /// Tokens of the last reply; 0 after a summary, which is never compared with the window.
    count: u64,
}

/// Returns the input, cached input and output tokens. This description ignores tokens written to a
/// cache.
fn count(u: &Usage) -> u64 {
    u.input + u.cache_read + u.output
}

impl DescribedComparison {
    pub(crate) fn new(s: &OpenCodeSettings, words: OpenCodeWords, scale: f64) -> Self {
        let words = words.headed(s.prompt);
        DescribedComparison {
            auto: s.auto,
            prune: s.prune.unwrap_or(true).then(|| prune_rule(s)),
            cap: scale_tokens(OUTPUT_CAP, scale),
            system: words.summary_system,
            prompt: words.plain_prompt,
            marker: words.marker,
            count: 0,
        }
    }

    fn largest_reply(&self, s: &Engine) -> u64 {
        max_output(
            ModelLimits { context: s.model.window, output: s.model.max_output, input: None },
            self.cap,
        )
    }

    async fn summarise(&mut self, s: &mut Engine, phase: Phase) {
        let asked = WholeSummary {
            system: &self.system,
            prompt: &self.prompt,
            most: self.largest_reply(s),
        };
        let marker = &self.marker;
        let done = asked.replace(s, phase, |s, text, talk| {
            let marker = s.synthetic(BlockKind::Marker, Role::User, marker.clone(), vec![]);
            let origin = origins(talk);
            vec![marker, s.synthetic(BlockKind::Summary, Role::Assistant, text, origin)]
        });
        if done.await {
            self.count = 0;
        }
    }
}

#[async_trait]
impl Strategy for DescribedComparison {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let window = s.model.window;
        let usable = window.saturating_sub(self.largest_reply(s));
        if self.auto && window > 0 && self.count > usable {
            s.trigger("overflow", self.count, usable);
            let said = s.context.blocks().last().is_some_and(|b| b.role == Role::User);
            self.summarise(s, if said { Phase::PreTurn } else { Phase::MidTurn }).await;
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        r.max_tokens = Some(self.largest_reply(s));
        r.breakpoints = breakpoints(s, &r.blocks);
        r
    }

    async fn on_reply(&mut self, _s: &mut Engine, reply: &Reply) -> Flow {
        self.count = count(&reply.usage);
        Flow::Proceed
    }

    async fn on_error(&mut self, _s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        again_if_passing(e, attempt, RETRIES)
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        let Some(rule) = self.prune else { return };
        let blocks = s.context.blocks();
        let at: Vec<usize> = prune_view(blocks, rule, &[]).into_iter().map(|(i, _)| i).collect();
        if !at.is_empty() {
            let cleared = clear_outputs(blocks, &at, &CLEARED.into());
            // Calls keep their results, so the edit is always valid.
            let _ = s.compacted(CompactionKind::Clear, "prune", Phase::PostTurn, cleared);
        }
    }

    async fn compact(
        &mut self,
        s: &mut Engine,
        _instructions: Option<&str>,
    ) -> Result<(), Unsupported> {
        self.summarise(s, Phase::StandaloneTurn).await;
        Ok(())
    }
}
