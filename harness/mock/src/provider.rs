//! The provider model: usage, prompt cache, overflow, context editing and summaries, as the
//! provider would.
//!
//! It sees decoded prompts only; all it knows of a request came over the wire. A plan decides the
//! content of replies.

use std::collections::HashMap;

use ctxbench_core::model::{self, Counting, Latency};
use ctxbench_core::prelude::*;
use ctxbench_core::request::Applied;
use ctxbench_core::tokens::Size;
use ctxbench_core::{Model, context_editing};
use ctxbench_provider::wire::{self, LastPrompt, Wire};
use ctxbench_provider::{Item, Prefix, Prompt, PromptCache, plain};
use ctxbench_session::fact::Fact;
use ctxbench_util::lru_map::LruMap;

use super::threads::{LIVE, Threads};
use super::{Door, PlannedReply, pairs, rules};
use crate::summarise::{ASK, Summariser, Summary, SummaryDesk, SummaryJob, summarise};

#[derive(Clone, Debug)]
pub struct ProviderOptions {
    /// The model that the run uses, limits scaled.
    pub model: Arc<Model>,
    /// No limit on prompts: for the hypothetical reference only.
    pub unlimited: bool,
    pub summariser: Summariser,
    /// Facts that an ideal summariser looks for; no other part sees them.
    pub facts: Arc<[Fact]>,
    pub seed: u64,
    /// Multiplies the limits of every other model.
    pub scale: f64,
    pub desk: SummaryDesk,
    /// Serves foreign clients and not a run.
    pub live: Option<Live>,
}

impl ProviderOptions {
    /// Returns the settings of a provider of this model: unscaled limits and extractive summaries.
    pub fn new(model: Arc<Model>) -> Self {
        ProviderOptions {
            model,
            unlimited: false,
            summariser: Summariser::default(),
            facts: Arc::default(),
            seed: 0,
            scale: 1.0,
            desk: SummaryDesk::default(),
            live: None,
        }
    }
}

/// One account at one provider.
pub struct ProviderModel {
    options: ProviderOptions,
    wire: Wire,
    caches: HashMap<Arc<str>, PromptCache>,
    last: LastPrompt,
    replies: u64,
    threads: Threads,
    /// Tokens of the last prompt that the cache dropped when their time was over.
    expired: u64,
    /// Compactions made on demand, by the hash of their content: the signature by which the
    /// provider knows its own block.
    signed: LruMap<u64, ()>,
}

/// Behaviour towards foreign clients: replies begin at once, and broken conversations are refused.
/// In a run these are measured instead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live {
    /// Window that replaces the window of every model, tokens.
    pub window: Option<u64>,
}

impl Live {
    /// A model as a client meets it.
    pub fn model(&self, model: &Model) -> Model {
        let mut m = Model {
            latency: Latency { a_ms: 0.0, b_ms: 0.0, c_ms: 0.0, d_ms: 0.0 },
            ..model.clone()
        };
        if let Some(window) = self.window {
            m.window = window;
            m.input_limit = None;
        }
        m
    }
}

/// Most tokens of a summary made by the provider; assumed.
const SERVER_SUMMARY_TOKENS: u64 = 4_096;

/// Maximum number of compactions on demand that an account recognises, far more than a run makes. A
/// forgotten block may appear anywhere.
const MAX_SIGNED: usize = 100_000;

impl ProviderModel {
    pub fn new(options: ProviderOptions) -> Self {
        ProviderModel {
            wire: wire::for_model(&options.model),
            threads: Threads::within(if options.live.is_some() { LIVE } else { usize::MAX }),
            options,
            caches: HashMap::new(),
            last: LastPrompt::default(),
            replies: 0,
            expired: 0,
            signed: LruMap::new(MAX_SIGNED),
        }
    }

    /// Returns whether the run's model has a counting endpoint.
    pub(super) fn has_counting(&self) -> bool {
        self.options.model.capabilities.counting
    }

    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Returns the model of a name as the account serves it; the run's model if the name is unknown.
    pub fn model(&self, name: &str) -> Arc<Model> {
        let model = self.listed_model(name);
        match &self.options.live {
            Some(live) => Arc::new(live.model(&model)),
            None => model,
        }
    }

    fn listed_model(&self, name: &str) -> Arc<Model> {
        if *self.options.model.name == *name {
            return self.options.model.clone();
        }
        match model::find(name) {
            // The models of an account count alike.
            Ok(m) => Arc::new(Model {
                counting: self.options.model.counting,
                ..m.scaled(self.options.scale)
            }),
            Err(_) => self.options.model.clone(),
        }
    }

    /// Tokens of a prompt after the edits that its request asks for, and before them where it asks
    /// for any.
    pub fn count_prompt(&self, prompt: &Prompt) -> (u64, Option<u64>) {
        let model = self.model(&prompt.model);
        let original = prompt.tools_tokens(&model.counting)
            + context_editing::prompt_tokens(&model, &prompt.server_edits, &prompt.items);
        let asked = !prompt.server_edits.is_empty();
        let (edited, _) = edited(&model, prompt.clone());
        (edited.tokens(&model.counting), asked.then_some(original))
    }

    /// Answers a prompt at a virtual time.
    pub fn answer(
        &mut self,
        prompt: Prompt,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        if let PlannedReply::Refuse { status, code, message } = plan {
            return Err(self.wire.api.refusal(status, code, message));
        }
        let model = self.model(&prompt.model);
        let whole = self.threads.expand(prompt)?;
        let kept = whole.thread.is_some().then(|| whole.clone());
        let mut reply = self.answer_whole(whole, plan, now, &model)?;
        reply.expired = self.expired;
        if model.capabilities.message_threads {
            let id = self.next_id();
            if let Some(whole) = kept {
                self.threads.keep(whole, &id, &reply);
            }
            reply.id = Some(id);
        }
        Ok(reply)
    }

    /// Passes on the prefixes of the prompt of a request, if that is sent as it is.
    fn with_prefixes<T>(
        &mut self,
        request: &Request,
        model: &Model,
        then: impl FnOnce(&mut ProviderModel, &[Prefix]) -> T,
    ) -> Option<T> {
        let is_edited = |b: &Block| match b.kind {
            BlockKind::Reasoning => !model.keeps_thinking,
            kind => matches!(kind, BlockKind::Compaction | BlockKind::CompactionTrigger),
        };
        // The blocks of the last prompt were not edited.
        let new = &request.blocks[self.last.common(request)..];
        let is_sent = request.thread.is_none() && request.server_edits.is_empty();
        (is_sent && !new.iter().any(|b| is_edited(b))).then(|| {
            let mut last = std::mem::take(&mut self.last);
            let out = then(self, self.wire.prefixes_of(request, &mut last));
            self.last = last;
            out
        })
    }

    fn check_size(&self, tokens: u64, model: &Model) -> Result<(), ModelError> {
        let limit = model.input_limit.unwrap_or(model.window);
        if tokens > limit && !self.options.unlimited {
            return Err((self.wire.overflow)(tokens, limit));
        }
        Ok(())
    }

    fn next_id(&mut self) -> Arc<str> {
        let id = format!("{}{:04}", self.wire.reply_id, self.replies).into();
        self.replies += 1;
        id
    }

    fn answer_whole(
        &mut self,
        prompt: Prompt,
        plan: PlannedReply,
        now: Millis,
        model: &Model,
    ) -> Result<Reply, ModelError> {
        if self.options.live.is_some() {
            pairs::check(self.wire, model, &prompt)?;
        }
        if model.capabilities.context_editing {
            rules::check(&prompt, &self.signed, self.options.scale)?;
        }
        let (prompt, applied) = edited(model, prompt);
        let all = prompt.prefixes(&model.counting);
        self.check_size(total(&all), model)?;
        let (usage, first_token) = self.bill(&all, model, now)?;
        let reply = if let Some(due) = compaction_due(&prompt, total(&all)) {
            self.compact_and_answer(prompt, due, plan, model, (usage, first_token), now)?
        } else {
            let (parts, stop, output) = match plan {
                PlannedReply::Say { parts, stop, output } => (parts, stop, output),
                _ if prompt.asks_for_compaction() => {
                    return self.compact_on_demand(&prompt, usage, first_token, model);
                }
                _ => {
                    let Summary { text, stop } = self.write_summary(&prompt)?;
                    // A reply without text has no parts on any wire.
                    let said = (!text.is_empty()).then(|| Part::Text(text.into()));
                    (said.into_iter().collect(), stop, 0)
                }
            };
            finish((parts, output), stop, usage, first_token, model)
        };
        Ok(Reply { applied, ..reply })
    }

    /// On demand the provider answers with a compaction item. Its encryption is not imitated: the
    /// payload is the text. Anthropic reports the work as an iteration, with top-level tokens of 0
    /// (docs/sources/anthropic-sdk.md §3).
    fn compact_on_demand(
        &mut self,
        prompt: &Prompt,
        mut usage: Usage,
        first_token: Millis,
        model: &Model,
    ) -> Result<Reply, ModelError> {
        let summary: Arc<str> = self.write_summary(prompt)?.text.into();
        self.signed.insert(rules::signature(&summary), ());
        if !model.capabilities.context_editing {
            let parts = vec![Part::Compaction(Some(summary))];
            return Ok(finish((parts, 0), StopReason::Compaction, usage, first_token, model));
        }
        usage.output = model.counting.block(Size::text(&summary));
        Ok(paused(summary, usage, first_token, model))
    }

    /// The provider summarises first and then answers from its summary (`compact_20260112`). `bill` is
    /// that of the compaction's prompt.
    fn compact_and_answer(
        &mut self,
        mut prompt: Prompt,
        due: Due,
        plan: PlannedReply,
        model: &Model,
        (mut compaction, first): (Usage, Millis),
        now: Millis,
    ) -> Result<Reply, ModelError> {
        let expired = self.expired;
        let max_tokens = prompt.max_tokens.replace(SERVER_SUMMARY_TOKENS);
        let words = due.instructions.unwrap_or_else(|| ASK.into());
        let ask = Draft::synthetic(BlockKind::SummaryPrompt, Role::User, words.clone());
        let mut item = Item::new(Role::User, plain(words), usize::MAX, None);
        item.shows = Some(ask.build(MessageId(u32::MAX), vec![]));
        prompt.items.push(item);
        let summary: Arc<str> = self.write_summary(&prompt)?.text.into();
        compaction.output = model.counting.block(Size::text(&summary));
        if due.pause {
            return Ok(paused(summary, compaction, first, model));
        }
        prompt.max_tokens = max_tokens;
        prompt.items.retain(|i| i.message == 0);
        let block = Draft::text(BlockKind::Compaction, Role::Assistant, summary.clone());
        prompt.items.push(Item::new(Role::Assistant, block, 1, None));
        let later = now.saturating_add(latency(model, &compaction, first));
        let (usage, second) = self.bill(&prompt.prefixes(&model.counting), model, later)?;
        // The entry that the first prompt wrote has not expired yet.
        self.expired = expired;
        let mut parts = vec![Part::Compaction(Some(summary))];
        let (stop, output) = match plan {
            PlannedReply::Say { parts: said, stop, output } => {
                parts.extend(said);
                (stop, output)
            }
            _ => (StopReason::Compaction, 0),
        };
        let mut reply = finish((parts, output), stop, usage, second, model);
        reply.billed.add(&compaction);
        reply.latency_ms += later - now;
        Ok(reply)
    }

    fn write_summary(&mut self, prompt: &Prompt) -> Result<Summary, ModelError> {
        let (facts, index) = (&self.options.facts, self.options.desk.next());
        let job = SummaryJob {
            prompt,
            counting: self.options.model.counting,
            facts,
            seed: self.options.seed,
            index,
        };
        summarise(&self.options.summariser, &job).map_err(|e| {
            self.options.desk.fail(&e.0);
            ModelError { message: e.0, ..ModelError::ended() }
        })
    }

    /// Input tokens of a prompt by kind, and the time to the first token.
    fn bill(
        &mut self,
        all: &[Prefix],
        model: &Model,
        now: Millis,
    ) -> Result<(Usage, Millis), ModelError> {
        let live = self.options.live.is_some();
        let new = || PromptCache::new(model.cache);
        let cache = self.caches.entry(model.name.clone()).or_insert_with(new);
        cache.validate(all)?;
        if live {
            cache.forget_expired(now);
        }
        // An entry is usable when the reply begins, which is never before the fixed part of the
        // latency has passed.
        let usable = now.saturating_add(model.latency.a_ms.round() as Millis);
        let usage = cache.use_prefixes(all, now, usable);
        self.expired = cache.expired();
        let fresh = usage.prompt() - usage.cache_read;
        let first = model.latency.a_ms
            + model.latency.b_ms * fresh as f64
            + model.latency.c_ms * usage.cache_read as f64;
        Ok((usage, first.round() as Millis))
    }
}

/// Requests in process, without a wire.
#[async_trait]
impl Door for ProviderModel {
    /// Answers a request as its decoded prompt, which is built only if more than its prefixes
    /// decides: the provider edits, compacts or summarises it, or keeps the conversation.
    async fn send(
        &mut self,
        request: &Request,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        let model = self.model(&request.model.name);
        let billed = matches!(plan, PlannedReply::Say { .. }).then(|| {
            self.with_prefixes(request, &model, |provider, all| {
                provider.check_size(total(all), &model)?;
                provider.bill(all, &model, now)
            })
        });
        let (billed, said, stop) = match (billed.flatten(), plan) {
            (Some(billed), PlannedReply::Say { parts, stop, output }) => {
                (billed, (parts, output), stop)
            }
            (_, plan) => return self.answer(self.wire.prompt_of(request), plan, now),
        };
        let (usage, first_token) = billed?;
        let reply = finish(said, stop, usage, first_token, &model);
        let id = model.capabilities.message_threads.then(|| self.next_id());
        Ok(Reply { id, expired: self.expired, ..reply })
    }

    /// Counts the whole conversation of a request, whatever the provider keeps of it.
    async fn count(&mut self, request: &Request) -> Option<u64> {
        if !self.has_counting() {
            return None;
        }
        let model = self.model(&request.model.name);
        if let Some(tokens) = self.with_prefixes(request, &model, |_, all| total(all)) {
            return Some(tokens);
        }
        let whole = Request { thread: None, ..request.clone() };
        Some(self.count_prompt(&self.wire.prompt_of(&whole)).0)
    }
}

/// Returns the tokens of a prompt.
fn total(all: &[Prefix]) -> u64 {
    all.last().map_or(0, |p| p.tokens)
}

/// Returns the prompt as the model sees it, and the edits of the provider.
fn edited(model: &Model, mut prompt: Prompt) -> (Prompt, Applied) {
    let (items, fixed) = (std::mem::take(&mut prompt.items), prompt.tools_tokens(&model.counting));
    let (items, applied) = context_editing::apply(model, &prompt.server_edits, fixed, items);
    (Prompt { items, ..prompt }, applied)
}

/// A compaction that the provider has to make before it answers.
struct Due {
    instructions: Option<Arc<str>>,
    pause: bool,
}

/// The compaction that the request asks for, if the prompt has reached its trigger.
fn compaction_due(prompt: &Prompt, total: u64) -> Option<Due> {
    prompt.server_edits.iter().find_map(|e| match e {
        ServerEdit::Compact { trigger, instructions, pause } if total >= *trigger => {
            Some(Due { instructions: instructions.clone(), pause: *pause })
        }
        _ => None,
    })
}

/// A reply that is nothing but a compaction: billed, but no tokens of an answer.
fn paused(summary: Arc<str>, billed: Usage, first_token: Millis, model: &Model) -> Reply {
    let latency_ms = latency(model, &billed, first_token);
    let parts = vec![Part::Compaction(Some(summary))];
    Reply { parts, billed, stop: StopReason::Compaction, latency_ms, ..Reply::default() }
}

/// Output tokens of reply contents, by the same yardstick as input.
fn output_tokens(by: &Counting, parts: &[Part]) -> (u64, u64) {
    let mut reasoning = 0;
    let all = parts
        .iter()
        .map(|p| match p {
            // A compaction before an answer is billed as a separate iteration; alone it is the
            // answer.
            Part::Compaction(_) if parts.len() > 1 => 0,
            Part::Compaction(None) => 0,
            _ => {
                let tokens = by.block(p.size());
                reasoning += if matches!(p, Part::Reasoning { .. }) { tokens } else { 0 };
                tokens
            }
        })
        .sum();
    (all, reasoning)
}

fn latency(model: &Model, usage: &Usage, first_token: Millis) -> Millis {
    first_token + (model.latency.d_ms * usage.output as f64).round() as Millis
}

/// Returns a reply of these parts, with at least `least` tokens of output.
fn finish(
    (parts, least): (Vec<Part>, u64),
    stop: StopReason,
    mut usage: Usage,
    first_token: Millis,
    model: &Model,
) -> Reply {
    let (output, reasoning) = output_tokens(&model.counting, &parts);
    let unseen = least.saturating_sub(output);
    (usage.output, usage.reasoning) = (output + unseen, reasoning + unseen);
    let latency_ms = latency(model, &usage, first_token);
    Reply { parts, usage, billed: usage, stop, latency_ms, ..Reply::default() }
}
