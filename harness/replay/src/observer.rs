//! Observes a running conversation: compares each request with the previous one, checks the rules
//! and the facts, and logs the results.

use std::borrow::Cow;
use std::collections::HashMap;

use ctxbench_core::context_editing;
use ctxbench_core::host::{Event as Noted, TimedEvent};
use ctxbench_core::model::{self, Model};
use ctxbench_core::prelude::*;
use ctxbench_provider::wire;
use ctxbench_reports::record::{
    CompactionRecord, IntegrityFailure, RequestRecord, RequestStatus, RewindRecord, Rule,
};
use ctxbench_session::{Entry, RecordedUsage, Session, Surcharge};
use rapidhash::{HashSetExt, RapidHashSet as HashSet};

use super::conversation::{Conversation, NeedContexts, SharedConversation};
use super::integrity::{self, PairedPrefix};
use super::path::{Move, Path};
use super::prefix::{Prefix, Served, SharedPrefix};
use super::recall::RecallTracker;
use super::rewinds::Rewinds;
use super::trace::Tracer;
use super::{compactions, exchange};
use crate::scene::{Scene, Start};

/// Source of the answer to a request.
#[derive(Clone, Debug)]
pub(super) enum AnswerSource {
    /// A recorded reply, by id.
    Step(Arc<str>),
    /// A call that fetches a fact again, because the next recorded reply needs it.
    Reread {
        /// Id of the reply that needs it.
        before: Arc<str>,
        /// Result of the tool.
        result: Box<Incoming>,
    },
    /// A short neutral reply after the end of the recording.
    Neutral,
    /// A summary, or other side work.
    Aside,
    /// No answer yet: the provider compacted and waits for the next request.
    Paused,
}

pub(super) struct Observer {
    pub(super) log: SharedConversation,
    pub(super) recall: RecallTracker,
    pub(super) rewinds: Rewinds,
    /// Number of characters that excerpts of compactions may still use.
    room: usize,
    prefix: Prefix,
    paired: PairedPrefix,
    tracer: Option<Tracer>,
    /// Subagent of this window; `None` for the main conversation.
    pub(super) agent: Option<Arc<str>>,
    model: Arc<Model>,
    /// Number of the newest normal request.
    pub(super) newest_sample: Option<u64>,
    most_requests: u64,
    newest_user: Option<MessageId>,
    /// Compaction after which the provider stopped, until the strategy asks it to continue.
    paused: Option<Arc<str>>,
    /// Number of restarts of the session that are still to come.
    restarts: usize,
    /// Messages with reasoning that later requests must show.
    reasoned: HashSet<MessageId>,
    omits_reasoning: bool,
    /// Counters of recorded replies with fees that do not depend on the prompt.
    with_fees: HashMap<String, RecordedUsage>,
}

/// Requests per recorded step after which a run counts as a livelock, in addition to
/// [`REQUESTS_FLOOR`].
const REQUESTS_PER_STEP: u64 = 6;
const REQUESTS_FLOOR: u64 = 200;

/// Id of the reply that is not in the history yet.
const COMING: MessageId = MessageId(u32::MAX);

impl Observer {
    /// Begins to observe a conversation.
    pub(super) fn new(
        scene: &Scene<'_>,
        path: &Path,
        start: Start,
        log: SharedConversation,
    ) -> Self {
        let Scene { scenario, session, agent, spec, model, options, known, .. } = scene;
        let (recall, facts) = RecallTracker::new(known.clone(), path, log.clone());
        *log.lock() = Conversation {
            at_ms: start.at_ms,
            by_request: start.by_request,
            all_steps: path.steps,
            facts,
            contexts: scene.keeps_events.then(NeedContexts::new),
            lives: agent.map_or_else(|| known.lives(session).to_vec(), |_| Vec::new()),
            ..Conversation::default()
        };
        Observer {
            recall,
            rewinds: Rewinds::new(session, model.counting),
            room: exchange::WORDS,
            prefix: Prefix::default(),
            paired: PairedPrefix::default(),
            tracer: options.trace.then(|| Tracer::new(&scenario.id, &spec.label())),
            agent: agent.map(Arc::from),
            model: (*model).clone(),
            newest_sample: None,
            most_requests: REQUESTS_FLOOR + REQUESTS_PER_STEP * path.steps,
            newest_user: None,
            paused: None,
            restarts: path.moves.iter().filter(|m| matches!(m.action, Action::Restart)).count(),
            reasoned: HashSet::new(),
            omits_reasoning: spec.descriptor.omits_reasoning,
            with_fees: with_fees(session),
            log,
        }
    }

    /// Records the begin of a move of the session.
    pub(super) fn moved(&mut self, m: &Move) {
        self.log
            .lock()
            .unanswered("something else happened before the model was asked to continue");
        self.paused = None;
        self.restarts -= usize::from(matches!(m.action, Action::Restart));
        if matches!(m.action, Action::User(_)) {
            self.recall.begin(&m.keys);
            self.newest_user = None;
        }
    }

    /// Returns whether the run sends requests without progress.
    pub(super) fn livelocked(&self) -> bool {
        let mut log = self.log.lock();
        log.livelocked = log.requests.len() as u64 >= self.most_requests;
        log.livelocked
    }

    /// Handles an event of the engine.
    pub(super) fn noted(&mut self, noted: &Arc<TimedEvent>) {
        match &noted.event {
            Noted::Compaction { kind, mechanism, phase, before, after, new } => {
                let sizes = compactions::measured(&self.model, before, after, *new, &mut self.room);
                let mut record = CompactionRecord {
                    kind: *kind,
                    mechanism: mechanism.to_string(),
                    phase: *phase,
                    before_request: noted.before_request,
                    at_ms: noted.at_ms,
                    ..sizes
                };
                self.recall.compacted(before, after, &mut record);
                self.log.lock().compactions.push(record);
                // Stores of sessions need the compactions until the last restart.
                if self.restarts == 0 {
                    return;
                }
            }
            Noted::Rewound { to, status, before, after, .. } => {
                let measured = self.rewinds.measure(to, before, after);
                let (before_request, at_ms) = (noted.before_request, noted.at_ms);
                let status = *status;
                let record = RewindRecord { before_request, at_ms, status, ..measured };
                self.log.lock().rewound.push(record);
                return;
            }
            Noted::ProgramLog(text) => {
                if let Some(tracer) = &mut self.tracer {
                    tracer.said.push(text.clone());
                }
            }
            Noted::NewSession { shown } => self.recall.crossed(shown),
            _ => {}
        }
        self.log.lock().note(noted);
    }

    /// Records a request that was answered, or that was refused after `took` ms. `waits` = whether
    /// the conversation waited for it.
    pub(super) fn request(
        &mut self,
        request: &Request,
        result: &Result<Reply, ModelError>,
        asked: &AnswerSource,
        (at_ms, latency_ms): (Millis, Millis),
        waits: bool,
    ) {
        let sample = request.purpose == Purpose::Sample;
        let reply = result.as_ref().ok();
        let billed = reply.map_or(Usage::default(), |r| r.billed);
        let model = &request.model;
        let summarised = reply.filter(|r| r.compaction().is_some());
        let summarised = summarised.map(|r| context_editing::edited_view(request, r.applied));
        if let Some(prompt) = &summarised {
            self.recall.provider_compacted(prompt);
        }
        // A request that only summarises has no separate compaction part.
        let inside = reply.filter(|_| sample).and_then(|r| provider_compaction(model, r));
        let logical = logical_view(request, reply);
        let shared = match sample {
            true => self.compare(request, reply, inside.zip(summarised.as_deref()), &logical),
            false => Default::default(),
        };
        let (seq, step) = {
            let log = self.log.lock();
            (log.requests.len() as u64, log.steps)
        };
        let fee = match asked {
            AnswerSource::Step(key) => self.with_fees.get(&**key),
            _ => None,
        };
        let fee = fee.map_or(0.0, |usage| Surcharge::new(model, usage).fees_usd);
        let record = RequestRecord {
            seq,
            agent: self.agent.clone(),
            purpose: request.purpose,
            phase: request.phase,
            model: model.name.clone(),
            step,
            extra: matches!(
                asked,
                AnswerSource::Neutral | AnswerSource::Reread { .. } | AnswerSource::Paused
            ),
            input_tokens: billed.prompt(),
            cache_read: billed.cache_read,
            cache_write: billed.cache_write + billed.cache_write_1h,
            cache_write_1h: billed.cache_write_1h,
            output_tokens: billed.output,
            context_tokens: reply.map_or_else(|| request.tokens(), visible_tokens),
            cost_usd: reply.map_or(0.0, |r| model::cost_of_reply(model, r).total() + fee),
            compaction_usd: inside.map_or(0.0, |c| c.usd),
            compaction_ms: inside.map_or(0, |c| c.ms),
            compaction_tokens: inside.map_or(0, |c| c.tokens),
            at_ms,
            latency_ms,
            common_prefix_tokens: shared.common,
            invalidated_tokens: shared.expired + shared.changed + shared.other,
            invalidated_expired_tokens: shared.expired,
            invalidated_changed_tokens: shared.changed,
            status: result
                .as_ref()
                .map_or_else(|e| RequestStatus::Failed(e.kind), |_| RequestStatus::Ok),
        };
        let waited = waits && request.purpose == Purpose::Summary;
        let blocked_ms = record.compaction_ms + if waited { latency_ms } else { 0 };
        let resumes = self.resumes(request);
        let mut broken = Vec::new();
        if sample {
            broken.extend(self.over_the_window(request, result));
            self.paused = reply
                .filter(|r| r.stop == StopReason::Compaction)
                .and_then(|r| r.compaction().cloned());
            broken.extend(self.sample(seq, &logical, reply, asked));
            self.newest_sample = Some(seq);
        }
        let mut log = self.log.lock();
        log.trace.extend(self.tracer.as_mut().map(|t| t.line(request, &record)));
        if let Some(earlier) = shared.earlier_tokens {
            log.shared_tokens.0 += shared.common;
            log.shared_tokens.1 += earlier;
        }
        log.request(record, resumes, sample && self.paused.is_some());
        log.blocked(blocked_ms, u64::from(request.purpose == Purpose::Summary));
        let broken = broken.into_iter();
        log.integrity.extend(broken.map(|(rule, detail)| IntegrityFailure {
            request: seq,
            rule,
            detail,
        }));
    }

    /// Compares a normal request with the previous one. A provider that compacts inside the request
    /// processes two prompts: the one that it summarises, and the one with the summary. If the
    /// provider pauses in between, the second prompt belongs to the next request.
    fn compare(
        &mut self,
        request: &Request,
        reply: Option<&Reply>,
        inside: Option<(Inside, &[Arc<Block>])>,
        logical: &[Arc<Block>],
    ) -> SharedPrefix {
        let served = reply.map(|r| Served { read: r.usage.cache_read, expired: r.expired });
        let (Some((inside, summarised)), Some(served)) = (inside, served) else {
            return self.prefix.compare(request, logical, served);
        };
        let whole = Served { read: inside.cache_read, ..served };
        let first = self.prefix.compare(request, summarised, Some(whole));
        if reply.is_some_and(|r| r.stop == StopReason::Compaction) {
            return first;
        }
        let then = self.prefix.compare(request, logical, Some(Served { expired: 0, ..served }));
        first.followed_by(then)
    }

    /// Returns whether a request shows the compaction after which the provider had stopped.
    fn resumes(&self, request: &Request) -> bool {
        let shows = |summary: &Arc<str>| {
            request.blocks.iter().any(|b| b.kind == BlockKind::Compaction && b.text == *summary)
        };
        self.paused.as_ref().is_some_and(shows)
    }

    /// Checks that the prompt fits into the window. Ignores a refusal that is a fault of the
    /// scenario.
    fn over_the_window(
        &self,
        request: &Request,
        result: &Result<Reply, ModelError>,
    ) -> Option<(Rule, String)> {
        let limit = self.model.input_limit.unwrap_or(self.model.window);
        let overflow = result.as_ref().is_err_and(ModelError::is_overflow);
        let shown = overflow.then(|| context_editing::shown_tokens(request))?;
        (shown > limit).then(|| {
            let detail = format!("{shown} tokens in a window of {}", self.model.window);
            (Rule::OverTheWindow, detail)
        })
    }

    /// Records the facts and the broken rules of a normal request.
    fn sample(
        &mut self,
        seq: u64,
        logical: &[Arc<Block>],
        reply: Option<&Reply>,
        asked: &AnswerSource,
    ) -> Vec<(Rule, String)> {
        let (answers, reread) = match asked {
            AnswerSource::Step(key) => (Some(key), None),
            AnswerSource::Reread { before, result } => (Some(before), Some(&**result)),
            _ => (None, None),
        };
        let answers = answers.filter(|_| reply.is_some()).map(|k| &**k);
        self.recall.record_request(seq, logical, answers, reread);
        if let Some(b) = logical.iter().rfind(|b| b.kind == BlockKind::User) {
            self.newest_user = self.newest_user.max(Some(b.message));
        }
        let reasoned = |m| self.reasoned.contains(&m);
        let wire = wire::for_model(&self.model);
        let before = &mut self.paired;
        let broken = integrity::broken(wire, logical, self.newest_user, reasoned, before);
        // A provider wants only the reasoning back that it signed. Programs show other thoughts to
        // the user alone.
        let signed = |p: &Part| matches!(p, Part::Reasoning { encrypted: Some(_), .. });
        if !self.omits_reasoning && reply.is_some_and(|r| r.parts.iter().any(signed)) {
            self.reasoned.insert(COMING);
        }
        broken
    }

    /// Records that the reply to the last normal request entered the history. `key` is empty for
    /// replies after the end of the recording.
    pub(super) fn recorded(&mut self, key: &str, message: MessageId) {
        if !key.is_empty() {
            self.log.lock().steps += 1;
        }
        if self.reasoned.remove(&COMING) {
            self.reasoned.insert(message);
        }
        self.recall.recorded(key, message);
    }
}

/// Returns the counters of recorded replies with fees, such as for searches of the web.
fn with_fees(session: &Session) -> HashMap<String, RecordedUsage> {
    let counters = |e: &Entry| {
        let reply = e.as_reply()?;
        let usage = reply.usage.as_ref().filter(|usage| usage.billing.web_searches > 0)?;
        Some((reply.id.clone(), usage.clone()))
    };
    session.entries.iter().filter_map(counters).collect()
}

/// A compaction that the provider made inside a reply: its cost, and its latency by the model's
/// stated latency.
#[derive(Clone, Copy)]
struct Inside {
    usd: f64,
    ms: Millis,
    /// Input and output tokens.
    tokens: u64,
    /// Part of the input that was read from the cache.
    cache_read: u64,
}

fn provider_compaction(model: &Model, reply: &Reply) -> Option<Inside> {
    reply.compaction()?;
    let answered = u64::from(reply.usage.prompt() + reply.usage.output > 0) as usize;
    let all: Vec<Usage> = model::iterations(reply).collect();
    let own = all.first().filter(|_| all.len() > answered)?;
    let l = model.latency;
    let fresh = own.input + own.cache_write + own.cache_write_1h;
    let ms = l.a_ms
        + l.b_ms * fresh as f64
        + l.c_ms * own.cache_read as f64
        + l.d_ms * own.output as f64;
    Some(Inside {
        usd: model::cost(model, own).total(),
        ms: ms.round() as Millis,
        tokens: own.prompt() + own.output,
        cache_read: own.cache_read,
    })
}

/// Returns the size of the prompt that a reply answers, in tokens. For a compaction, this is the
/// prompt that it summarises.
fn visible_tokens(reply: &Reply) -> u64 {
    match reply.usage.prompt() {
        0 => reply.billed.prompt(),
        own => own,
    }
}

/// Returns the blocks that the model saw: the request after the edits that the provider reports.
/// Without edits, these are the blocks that were sent.
fn logical_view<'a>(request: &'a Request, reply: Option<&Reply>) -> Cow<'a, [Arc<Block>]> {
    let Some(r) = reply else { return context_editing::edited_view(request, Default::default()) };
    let Some(summary) = r.compaction() else {
        return context_editing::edited_view(request, r.applied);
    };
    let origin = origins(&request.blocks);
    let mut blocks: Vec<Arc<Block>> =
        request.blocks.iter().filter(|b| is_system(b)).cloned().collect();
    blocks.push(
        Draft::synthetic(BlockKind::Compaction, Role::Assistant, summary.clone())
            .build(COMING, origin),
    );
    Cow::Owned(blocks)
}
