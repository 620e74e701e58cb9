//! One account per wire, and who decides what its models say.

use std::sync::Arc;

use ctxbench_core::content::Part;
use ctxbench_core::model::{self, DEFAULT_MODEL, Model};
use ctxbench_core::request::{ModelError, Reply, StopReason};
use ctxbench_core::session::Millis;
use ctxbench_provider::wire::{self, ALL, Asked, Wire};
use ctxbench_provider::{Content, Prompt};

use super::limit::limit;
use super::script::Script;
use super::{echo, errors};
use crate::mock::{Live, PlannedReply, ProviderModel, ProviderOptions};
use crate::summarise::{Summariser, SummaryDesk};

/// The accounts, one per wire for which there are models. Wires share nothing, not even a cache:
/// their prompts are not the same bytes.
pub(super) struct Desk {
    accounts: Vec<ProviderModel>,
    script: Option<Script>,
    live: Live,
    replies: u64,
}

impl Desk {
    pub(super) fn new(script: Option<Script>, window: Option<u64>) -> Self {
        let live = Live { window };
        let accounts = ALL.iter().filter_map(|w| options(*w));
        let accounts = accounts.map(|o| ProviderModel::live(o, live)).collect();
        Desk { accounts, script, live, replies: 0 }
    }

    /// The model of a name, also with a date behind it, as far as the wire speaks of it.
    pub(super) fn model(&self, wire: Wire, name: &str) -> Result<Model, ModelError> {
        let found = model::find_recorded(name).filter(|m| speaks(wire, m));
        found.map(|m| self.live.model(m)).ok_or_else(|| errors::no_model(wire.api(), name))
    }

    fn account(&mut self, wire: Wire) -> &mut ProviderModel {
        let account = self.accounts.iter_mut().find(|a| a.wire() == wire);
        account.expect("whoever asks has found a model of the wire")
    }

    /// Tokens of a prompt after and before the edits that it asks for.
    pub(super) fn count(&mut self, wire: Wire, prompt: &Prompt) -> (u64, Option<u64>) {
        self.account(wire).count(prompt)
    }

    /// Answers a prompt. Whoever asks for a compaction gets one; else the script answers, or an
    /// echo.
    pub(super) fn answer(
        &mut self,
        wire: Wire,
        prompt: Prompt,
        asked: Asked,
        most: u64,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        self.replies += 1;
        let number = self.replies;
        let on_demand =
            prompt.items.iter().any(|i| matches!(i.content, Content::CompactionTrigger(_)));
        let mut found = None;
        let plan = if on_demand {
            PlannedReply::Summarise
        } else {
            let parts = match &self.script {
                None => echo::echo(wire, &prompt, number),
                Some(script) => {
                    found = Some(script.find(&prompt).ok_or_else(ModelError::ended)?);
                    found.as_ref().map(|f| f.parts.clone()).unwrap_or_default()
                }
            };
            let (parts, stop) = limit(
                &self.account(wire).model(&prompt.model).counting,
                thoughts(parts, wire, asked, &prompt),
                Some(prompt.max_tokens.unwrap_or(most)),
            );
            PlannedReply::Say { parts, stop }
        };
        let mut reply = self.account(wire).answer(prompt, plan, now)?;
        // A provider that stopped after its compaction has not said what was planned.
        if let (Some(f), Some(script)) = (&found, &mut self.script)
            && reply.stop != StopReason::Compaction
        {
            script.gave(f);
        }
        reply.id.get_or_insert_with(|| wire.reply_id(number).into());
        Ok(reply)
    }
}

fn speaks(wire: Wire, model: &Model) -> bool {
    wire::of(model).api() == wire.api()
}

fn options(wire: Wire) -> Option<ProviderOptions> {
    let default = model::find(DEFAULT_MODEL).ok().filter(|m| speaks(wire, m));
    let model = default.or_else(|| model::catalogue().iter().find(|m| speaks(wire, m)))?;
    Some(ProviderOptions {
        model: Arc::new(Model { wire: wire.name().into(), ..model.clone() }),
        unlimited: false,
        summariser: Summariser::Extractive,
        facts: Arc::from(Vec::new()),
        seed: 0,
        scale: 1.0,
        desk: SummaryDesk::default(),
    })
}

/// Thinking comes first where the request allows it, and not at all where it does not. Chat shows
/// what a script holds.
fn thoughts(mut parts: Vec<Part>, wire: Wire, asked: Asked, prompt: &Prompt) -> Vec<Part> {
    let thinks = |p: &Part| matches!(p, Part::Reasoning { .. });
    if wire.always_thinks() {
        return parts;
    }
    if !asked.thinking {
        parts.retain(|p| !thinks(p));
    } else if !parts.iter().any(thinks) {
        parts.insert(0, echo::thinking(prompt));
    }
    parts
}

/// What an overflow of a prompt is told as, whatever its size.
pub(super) fn overflow(wire: Wire, prompt: &Prompt, model: &Model) -> ModelError {
    let window = model.input_limit.unwrap_or(model.window);
    wire.overflow(prompt.tokens(&model.counting).max(window.saturating_add(1)), window)
}
