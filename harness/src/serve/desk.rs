//! One account per wire, and who decides what its models say.

use std::sync::Arc;

use ctxbench_core::provider::{self, Content, DEFAULT_MODEL, Model, Prompt, Provider, Wire};
use ctxbench_core::request::{ModelError, Reply, ReplyPart, StopReason};
use ctxbench_core::session::Millis;

use super::asked::Asked;
use super::limit::limit;
use super::script::Script;
use super::{echo, errors};
use crate::mock::{Live, Plan, ProviderModel, ProviderOptions};
use crate::summarise::{Summariser, SummaryDesk};

/// The wires, in the order of the accounts.
const WIRES: [Wire; 3] = [Wire::AnthropicMessages, Wire::OpenaiResponses, Wire::OpenaiChat];

/// The accounts. Wires share nothing, not even a cache: their prompts are not the same bytes.
pub(super) struct Desk {
    accounts: [ProviderModel; 3],
    script: Option<Script>,
    live: Live,
    replies: u64,
}

impl Desk {
    pub(super) fn new(script: Option<Script>, window: Option<u64>) -> Self {
        let live = Live { window };
        let account = |wire| ProviderModel::live(options(wire), live);
        Desk { accounts: WIRES.map(account), script, live, replies: 0 }
    }

    /// The model of a name, also with a date behind it, as far as the wire speaks of it.
    pub(super) fn model(&self, wire: Wire, name: &str) -> Result<Model, ModelError> {
        let found = provider::find_recorded(name).filter(|m| speaks(wire, m));
        found.map(|m| self.live.model(m)).ok_or_else(|| errors::no_model(wire, name))
    }

    fn account(&mut self, wire: Wire) -> &mut ProviderModel {
        let at = WIRES.iter().position(|w| *w == wire).expect("every wire has an account");
        &mut self.accounts[at]
    }

    /// Tokens of a prompt after and before the edits that it asks for.
    pub(super) fn count(&mut self, prompt: &Prompt) -> (u64, Option<u64>) {
        self.account(Wire::AnthropicMessages).count(prompt)
    }

    /// Answers a prompt. Whoever asks for a compaction gets one; else the script answers, or an echo.
    pub(super) fn answer(&mut self, wire: Wire, prompt: Prompt, asked: Asked, most: u64, now: Millis) -> Result<Reply, ModelError> {
        self.replies += 1;
        let number = self.replies;
        let on_demand = prompt.items.iter().any(|i| matches!(i.content, Content::CompactionTrigger(_)));
        let mut found = None;
        let plan = if on_demand {
            Plan::Summarise
        } else {
            let parts = match &self.script {
                None => echo::echo(&prompt, number),
                Some(script) => {
                    found = Some(script.find(&prompt).ok_or_else(ModelError::ended)?);
                    found.as_ref().map(|f| f.parts.clone()).unwrap_or_default()
                }
            };
            let (parts, stop) = limit(thoughts(parts, wire, asked, &prompt), Some(prompt.max_tokens.unwrap_or(most)));
            Plan::Say { parts, stop }
        };
        let mut reply = self.account(wire).answer(prompt, plan, now)?;
        // A provider that stopped after its compaction has not said what was planned.
        if let (Some(f), Some(script)) = (&found, &mut self.script)
            && reply.stop != StopReason::Compaction
        {
            script.gave(f);
        }
        let prefix = if wire == Wire::OpenaiChat { "chatcmpl" } else { "resp" };
        reply.id.get_or_insert_with(|| format!("{prefix}_{number:04}").into());
        Ok(reply)
    }
}

fn speaks(wire: Wire, model: &Model) -> bool {
    (model.provider == Provider::Anthropic) == (wire == Wire::AnthropicMessages)
}

fn options(wire: Wire) -> ProviderOptions {
    let default = provider::find(DEFAULT_MODEL).ok().filter(|m| speaks(wire, m));
    let model =
        default.or_else(|| provider::catalogue().iter().find(|m| speaks(wire, m))).expect("the catalogue holds models of each wire");
    ProviderOptions {
        model: Arc::new(Model { wire, ..model.clone() }),
        unlimited: false,
        summariser: Summariser::Extractive,
        facts: Arc::from(Vec::new()),
        seed: 0,
        scale: 1.0,
        desk: SummaryDesk::default(),
    }
}

/// Thinking comes first where the request allows it, and not at all where it does not. Chat shows what a script holds.
fn thoughts(mut parts: Vec<ReplyPart>, wire: Wire, asked: Asked, prompt: &Prompt) -> Vec<ReplyPart> {
    let thinks = |p: &ReplyPart| matches!(p, ReplyPart::Reasoning { .. });
    if wire == Wire::OpenaiChat {
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
    provider::overflow(wire, prompt.tokens().max(window.saturating_add(1)), window)
}
