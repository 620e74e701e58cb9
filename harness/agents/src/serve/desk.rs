//! Server state: one account per wire, and the speaker that decides the replies of its models.

use std::sync::Arc;

use ctxbench_core::model::{self, DEFAULT_MODEL};
use ctxbench_core::{Millis, Model, ModelError, Reply, StopReason};
use ctxbench_provider::Prompt;
use ctxbench_provider::wire::{self, ALL, Api, Wire};

use super::ServeOptions;
use super::echo::Echo;
use super::faults::Faults;
use super::limit::limit;
use super::log::RequestLog;
use super::speaker::{Arrived, ModelAnswer, Speaker};
use ctxbench_mock::summarise::SummaryDesk;
use ctxbench_mock::{Live, PlannedReply, ProviderModel, ProviderOptions};

/// The accounts, one per wire for which there are models. Wires share nothing, not even a cache:
/// their prompts are not the same bytes.
pub(super) struct ServerState {
    accounts: Vec<ProviderModel>,
    pub(super) speaker: Box<dyn Speaker>,
    pub(super) faults: Faults,
    pub(super) log: RequestLog,
    live: Live,
    replies: u64,
}

impl ServerState {
    pub(super) fn new(options: ServeOptions) -> Self {
        let desk = SummaryDesk::default();
        let accounts = ALL.iter().filter_map(|w| account(w, &options, &desk));
        let accounts = accounts.map(ProviderModel::new).collect();
        ServerState {
            accounts,
            speaker: options.speaker.unwrap_or_else(|| Box::new(Echo::default())),
            faults: Faults::new(options.faults),
            log: RequestLog::new(options.log),
            live: Live { window: options.window },
            replies: 0,
        }
    }

    /// Returns the model of a name, with or without a date suffix, if the wire serves it.
    pub(super) fn model(&self, wire: Wire, name: &str) -> Result<Model, ModelError> {
        let found = model::find_recorded(name).filter(|m| speaks(wire, m));
        found.map(|m| self.live.model(m)).ok_or_else(|| no_model(wire.api, name))
    }

    fn account(&mut self, wire: Wire) -> &mut ProviderModel {
        let account = self.accounts.iter_mut().find(|a| a.wire() == wire);
        account.expect("the caller has found a model of the wire")
    }

    /// Tokens of a prompt after and before the edits that it asks for.
    pub(super) fn count(&mut self, wire: Wire, prompt: &Prompt) -> (u64, Option<u64>) {
        self.account(wire).count_prompt(prompt)
    }

    /// Answers a prompt, which may contain more than the request sent. A request for a compaction
    /// gets one.
    pub(super) fn answer(
        &mut self,
        request: &Arrived,
        mut prompt: Prompt,
        most: u64,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        self.replies += 1;
        let (wire, number) = (request.wire, self.replies);
        let plan = match self.speaker.answer(request, &prompt)? {
            ModelAnswer::Summary(marked) => {
                prompt = marked;
                PlannedReply::Summarise
            }
            ModelAnswer::Parts(parts) => {
                let counting = &self.account(wire).model(&prompt.model).counting;
                let (parts, stop) = limit(counting, parts, prompt.max_tokens.unwrap_or(most));
                PlannedReply::Say { parts, stop, output: 0 }
            }
        };
        let mut reply = self.account(wire).answer(prompt, plan, now)?;
        // A provider that stopped after its compaction has not sent the planned reply.
        if reply.stop != StopReason::Compaction {
            self.speaker.mark_delivered();
        }
        reply.id.get_or_insert_with(|| format!("{}{number:04}", wire.reply_id).into());
        Ok(reply)
    }
}

pub(super) fn no_model(api: Api, name: &str) -> ModelError {
    let (code, message) = (api.unknown_model)(name);
    api.refusal(404, Some(code.into()), message)
}

fn speaks(wire: Wire, model: &Model) -> bool {
    wire::for_model(model).api == wire.api
}

fn account(wire: Wire, options: &ServeOptions, desk: &SummaryDesk) -> Option<ProviderOptions> {
    let default = model::find(DEFAULT_MODEL).ok().filter(|m| speaks(wire, m));
    let model = default.or_else(|| model::catalogue().iter().find(|m| speaks(wire, m)))?;
    let model = Arc::new(Model { wire: wire.name.into(), ..model.clone() });
    Some(ProviderOptions {
        summariser: options.summariser.clone(),
        facts: options.facts.clone(),
        desk: desk.clone(),
        live: Some(Live { window: options.window }),
        ..ProviderOptions::new(model)
    })
}
