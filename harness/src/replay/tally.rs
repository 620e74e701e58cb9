//! What a replay counts while it runs: requests, prefixes, hard failures. What the model could know stands in [`super::retention`].

use std::collections::HashSet;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role, total_tokens};
use ctxbench_core::descriptor::Recovery;
use ctxbench_core::engine::{Action, ToolOutcome};
use ctxbench_core::provider::{self, Model};
use ctxbench_core::record::{IntegrityFailure, RequestRecord};
use ctxbench_core::request::{ModelError, Purpose, Reply, ReplyPart, Request, StopReason, Usage};
use ctxbench_core::session::{Millis, Session};
use ctxbench_core::strategy::is_system;

use super::Options;
use super::integrity;
use super::path::{Move, Path};
use super::retention::Retention;
use super::rewinds::Rewinds;
use super::trace::Tracer;

/// What a request was answered with.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// A recorded reply, by its id.
    Step(Arc<str>),
    /// A call that fetches again what the next recorded reply needs, with its result.
    Reread {
        /// The reply that needs it.
        before: Arc<str>,
        /// What the tool returns.
        outcome: Box<ToolOutcome>,
    },
    /// A short neutral reply: nothing was recorded here.
    Neutral,
    /// A summary.
    Summary,
    /// Keeping the cache warm.
    Ping,
    /// Nothing yet: the provider compacted and waits to be asked to go on.
    Paused,
}

pub(super) struct Tally {
    pub(super) requests: Vec<RequestRecord>,
    pub(super) trace: Vec<String>,
    pub(super) usages: Vec<(Arc<str>, Usage)>,
    pub(super) integrity: Vec<IntegrityFailure>,
    pub(super) retention: Retention,
    pub(super) steps_done: u64,
    pub(super) steps_total: u64,
    pub(super) interventions: u64,
    pub(super) overflows: u64,
    pub(super) blocked_ms: Millis,
    /// Since the newest restart, until the first answer: summary calls, and what was waited for before it.
    resuming: Option<(u64, Millis)>,
    /// Summary calls and waiting after each restart.
    pub(super) resumes: Vec<(u64, Millis)>,
    pub(super) common: u64,
    pub(super) earlier: u64,
    pub(super) later: u64,
    pub(super) peak: u64,
    pub(super) failure: Option<String>,
    pub(super) livelock: bool,
    tracer: Option<Tracer>,
    /// Scenario and strategy, for trace lines.
    label: (String, String),
    pub(super) rewinds: Rewinds,
    /// The subagent whose window this is.
    agent: Option<String>,
    previous: Vec<Arc<Block>>,
    previous_hashes: HashSet<u64>,
    newest_user: Option<MessageId>,
    /// The provider stopped after this compaction and has not been asked to go on.
    paused: Option<Arc<str>>,
    reasoned: HashSet<MessageId>,
    most_requests: u64,
    model: Arc<Model>,
}

/// Tokens that were shown before and had to be written or sent again, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Again {
    /// The cache had held them, and their lifetime was over.
    expired: u64,
    /// Something before them had changed.
    changed: u64,
    /// They stood behind the last breakpoint, in a prompt too small for the cache, or where nothing is cached at all.
    other: u64,
}

const COMPACTION_STOP: &str = "a compaction stop not handled";

/// Requests per recorded step after which a run counts as going round in circles; plus a floor.
const REQUESTS_PER_STEP: u64 = 6;
const REQUESTS_FLOOR: u64 = 200;

impl Tally {
    pub(super) fn new(session: &Session, path: &Path, model: &Arc<Model>, recovery: Recovery, options: &Options) -> Self {
        Tally {
            requests: Vec::new(),
            trace: Vec::new(),
            usages: Vec::new(),
            integrity: Vec::new(),
            retention: Retention::new(session, path, recovery),
            rewinds: Rewinds::new(session),
            steps_done: 0,
            steps_total: path.steps,
            interventions: 0,
            overflows: 0,
            blocked_ms: 0,
            resuming: None,
            resumes: Vec::new(),
            common: 0,
            earlier: 0,
            later: 0,
            peak: 0,
            failure: None,
            livelock: false,
            tracer: options.trace.then(Tracer::default),
            label: Default::default(),
            agent: None,
            previous: Vec::new(),
            previous_hashes: HashSet::new(),
            newest_user: None,
            paused: None,
            reasoned: HashSet::new(),
            most_requests: REQUESTS_FLOOR + REQUESTS_PER_STEP * path.steps,
            model: model.clone(),
        }
    }

    /// Names that stand in trace lines.
    pub(super) fn set_label(&mut self, scenario: &str, strategy: &str, agent: Option<&str>) {
        self.label = (scenario.to_string(), strategy.to_string());
        self.agent = agent.map(str::to_string);
    }

    /// A move of the session begins.
    pub(super) fn begin(&mut self, m: &Move) {
        self.unhandled("something else happened before the model was asked to go on");
        if matches!(m.action, Action::User(_)) {
            self.retention.begin(&m.keys);
            self.newest_user = None;
        }
    }

    /// A compaction stop that nobody answered, if there is one.
    fn unhandled(&mut self, detail: &str) {
        if self.paused.take().is_some() {
            let request = self.requests.len().saturating_sub(1) as u64;
            self.integrity.push(IntegrityFailure { request, rule: COMPACTION_STOP.into(), detail: detail.into() });
        }
    }

    /// Number of the newest normal request.
    pub(super) fn newest_sample(&self) -> Option<u64> {
        self.requests.iter().rfind(|r| r.purpose == Purpose::Sample).map(|r| r.seq)
    }

    /// Whether the run goes round in circles.
    pub(super) fn livelocked(&mut self) -> bool {
        self.livelock |= self.requests.len() as u64 >= self.most_requests;
        self.livelock
    }

    /// The run is over.
    pub(super) fn close(&mut self) {
        self.resumed();
        self.unhandled("the session ended before the model was asked to go on");
        self.retention.close();
    }

    /// The program ended and is started again.
    pub(super) fn restarted(&mut self) {
        self.resumed();
        self.resuming = Some((0, self.blocked_ms));
    }

    /// What a restart brought with it is over.
    fn resumed(&mut self) {
        if let Some((calls, before)) = self.resuming.take() {
            self.resumes.push((calls, self.blocked_ms - before));
        }
    }

    /// A request was answered, or refused after `took` ms; `waits` = the conversation waited for it.
    pub(super) fn request(
        &mut self,
        request: &Request,
        result: &Result<Reply, ModelError>,
        asked: &Asked,
        (at, took): (Millis, Millis),
        waits: bool,
    ) {
        let sample = request.purpose == Purpose::Sample;
        if sample {
            self.resumed();
        } else if let Some((calls, _)) = self.resuming.as_mut().filter(|_| request.purpose == Purpose::Summary) {
            *calls += 1;
        }
        let reply = result.as_ref().ok();
        let billed = reply.map_or(Usage::default(), |r| r.billed);
        let shown = reply.map_or(request.tokens(), |r| r.usage.prompt());
        if let Some(r) = reply.filter(|r| r.compaction().is_some()) {
            self.retention.provider_compacted(&provider::edited_view(request, r.applied));
        }
        let logical = logical_view(request, reply);
        let (common, again) = if sample { self.prefix(request, &logical, reply) } else { Default::default() };
        let model = provider::find(&request.model).ok();
        let cost_usd = reply.map_or(0.0, |r| model.map_or(0.0, |m| price(m, r)));
        let latency_ms = took;
        let inside = reply.zip(model).and_then(|(r, m)| provider_compaction(m, r));
        self.blocked_ms += inside.map_or(0, |c| c.ms);
        if request.purpose == Purpose::Summary && waits {
            self.blocked_ms += latency_ms;
        }
        if let Err(e) = result {
            self.overflows += u64::from(e.is_overflow());
        }
        let seq = self.requests.len() as u64;
        let record = RequestRecord {
            seq,
            agent: self.agent.clone(),
            purpose: request.purpose,
            phase: request.phase,
            model: request.model.to_string(),
            step: self.steps_done,
            extra: matches!(asked, Asked::Neutral | Asked::Reread { .. } | Asked::Paused),
            input_tokens: billed.prompt(),
            cache_read: billed.cache_read,
            cache_write: billed.cache_write + billed.cache_write_1h,
            output_tokens: billed.output,
            context_tokens: shown,
            cost_usd,
            compaction_usd: inside.map_or(0.0, |c| c.usd),
            compaction_ms: inside.map_or(0, |c| c.ms),
            at_ms: at,
            latency_ms,
            common_prefix_tokens: common,
            invalidated_tokens: again.expired + again.changed + again.other,
            invalidated_expired_tokens: again.expired,
            invalidated_changed_tokens: again.changed,
            status: match result {
                Ok(_) => "ok".into(),
                Err(e) => serde_json::to_value(e.kind).ok().and_then(|v| v.as_str().map(str::to_string)).unwrap_or_default(),
            },
        };
        if sample {
            // A refusal that a scenario's fault puts into the provider's mouth is no fault of the strategy.
            let limit = self.model.input_limit.unwrap_or(self.model.window);
            if result.as_ref().is_err_and(ModelError::is_overflow) && request.tokens() > limit {
                let detail = format!("{} tokens in a window of {}", request.tokens(), self.model.window);
                self.integrity.push(IntegrityFailure { request: seq, rule: "prompt over the window".into(), detail });
            }
            self.answered_pause(request, reply);
            self.sample(&logical, reply, asked, seq);
        }
        if let Some(t) = &mut self.tracer {
            self.trace.push(t.line(&self.label.0, &self.label.1, request, &record));
        }
        let priced = reply.into_iter().flat_map(provider::iterations);
        self.usages.extend(priced.map(|u| (request.model.clone(), u)));
        self.requests.push(record);
    }

    /// After a pause the next request must show the compaction; a reply may pause again.
    fn answered_pause(&mut self, request: &Request, reply: Option<&Reply>) {
        if let Some(summary) = &self.paused {
            if !request.blocks.iter().any(|b| b.kind == BlockKind::Compaction && b.text == *summary) {
                self.unhandled("the next request does not show the compaction");
            }
            self.paused = None;
        }
        self.paused = reply.filter(|r| r.stop == StopReason::Compaction).and_then(|r| r.compaction().cloned());
    }

    fn sample(&mut self, logical: &[Arc<Block>], reply: Option<&Reply>, asked: &Asked, seq: u64) {
        if let Some(r) = reply {
            self.peak = self.peak.max(r.usage.prompt());
        }
        let (answers, reread) = match asked {
            Asked::Step(key) => (Some(key), None),
            Asked::Reread { before, outcome } => (Some(before), Some(&**outcome)),
            _ => (None, None),
        };
        self.retention.shown(seq, logical, answers.filter(|_| reply.is_some()).map(|k| &**k), reread);
        if let Some(b) = logical.iter().rfind(|b| b.kind == BlockKind::User) {
            self.newest_user = self.newest_user.max(Some(b.message));
        }
        let reasoned = &self.reasoned;
        for (rule, detail) in integrity::check(logical, self.newest_user, |m| reasoned.contains(&m)) {
            self.integrity.push(IntegrityFailure { request: seq, rule: rule.into(), detail });
        }
        if reply.is_some_and(|r| r.parts.iter().any(|p| matches!(p, ReplyPart::Reasoning { .. }))) {
            self.reasoned.insert(MessageId(u32::MAX));
        }
    }

    /// Tokens shared with the request before at the beginning, system part left out, and tokens that had to be written again.
    fn prefix(&mut self, request: &Request, logical: &[Arc<Block>], reply: Option<&Reply>) -> (u64, Again) {
        // `cache_edits` leaves results out behind the prefix: the cache sees the request as it was sent.
        let kept = request.server_edits.iter().any(|e| !provider::deleted_results(e).is_empty());
        let sent = if kept { &request.blocks } else { logical };
        let talk: Vec<Arc<Block>> = sent.iter().filter(|b| !is_system(b)).cloned().collect();
        let same = ctxbench_core::block::common_prefix(&self.previous, &talk);
        let common = total_tokens(&talk[..same]);
        let first = self.previous.is_empty();
        if !first {
            self.common += common;
            self.earlier += total_tokens(&self.previous);
            self.later += total_tokens(&talk);
        }
        let mut again = Again::default();
        if let (false, Some(r)) = (first, reply) {
            // What the cache served ends somewhere; whatever of the request before lies behind it was written or sent again.
            let mut at = request.tools.as_ref().map_or(0, |t| t.tokens);
            let mut unchanged = same;
            for (b, seen) in sent.iter().zip(logical) {
                at += seen.tokens();
                let stands = is_system(b) || unchanged > 0;
                unchanged = unchanged.saturating_sub(usize::from(!is_system(b)));
                if at <= r.usage.cache_read || !self.previous_hashes.contains(&b.hash) {
                    continue;
                }
                let cause = match () {
                    () if at <= r.usage.cache_read + r.expired => &mut again.expired,
                    () if stands => &mut again.other,
                    () => &mut again.changed,
                };
                *cause += seen.tokens();
            }
        }
        if reply.is_some() {
            self.previous_hashes = sent.iter().map(|b| b.hash).collect();
            self.previous = talk;
        }
        (common, again)
    }

    /// The reply to the last normal request entered the history.
    pub(super) fn recorded(&mut self, key: &str, message: MessageId) {
        if !key.is_empty() {
            self.steps_done += 1;
        }
        if self.reasoned.remove(&MessageId(u32::MAX)) {
            self.reasoned.insert(message);
        }
        self.retention.recorded(key, message);
    }
}

fn price(model: &Model, reply: &Reply) -> f64 {
    provider::cost_of_reply(model, reply).total()
}

/// A compaction that the provider made inside a reply: what it cost and how long it took by the model's stated latency.
#[derive(Clone, Copy)]
struct Inside {
    usd: f64,
    ms: Millis,
}

fn provider_compaction(model: &Model, reply: &Reply) -> Option<Inside> {
    reply.compaction()?;
    let answered = u64::from(reply.usage.prompt() + reply.usage.output > 0) as usize;
    let all: Vec<Usage> = provider::iterations(reply).collect();
    let own = all.first().filter(|_| all.len() > answered)?;
    let l = model.latency;
    let fresh = own.input + own.cache_write + own.cache_write_1h;
    let ms = l.a_ms + l.b_ms * fresh as f64 + l.c_ms * own.cache_read as f64 + l.d_ms * own.output as f64;
    Some(Inside { usd: provider::cost(model, own).total(), ms: ms.round() as Millis })
}

/// What the model saw: the request after the edits that the provider says it made.
fn logical_view(request: &Request, reply: Option<&Reply>) -> Vec<Arc<Block>> {
    let Some(r) = reply else { return provider::edited_view(request, Default::default()) };
    let Some(summary) = r.compaction() else { return provider::edited_view(request, r.applied) };
    let origin = request.blocks.iter().flat_map(|b| b.origin.iter().copied()).collect();
    let mut blocks: Vec<Arc<Block>> = request.blocks.iter().filter(|b| is_system(b)).cloned().collect();
    blocks.push(Draft::synthetic(BlockKind::Compaction, Role::Assistant, summary.clone()).build(MessageId(u32::MAX), origin));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::engine::Incoming;

    fn paused() -> (Tally, Request) {
        let model = Arc::new(provider::find("claude-sonnet-4-6").unwrap().clone());
        let path = Path { moves: vec![], steps: 0 };
        let mut tally = Tally::new(&Session::default(), &path, &model, Recovery::Nothing, &Options::default());
        let world = ctxbench_core::engine::Engine::new(model, Box::new(Nowhere));
        let request = world.sample_request();
        let parts = vec![ReplyPart::Compaction(Some("S".into()))];
        let reply = Ok(Reply { parts, stop: StopReason::Compaction, ..Reply::default() });
        tally.request(&request, &reply, &Asked::Paused, (0, 0), true);
        (tally, request)
    }

    struct Nowhere;

    #[async_trait::async_trait]
    impl ctxbench_core::engine::World for Nowhere {
        async fn next(&mut self) -> Option<Action> {
            None
        }
        async fn send(&mut self, _: &Request) -> Result<Reply, ModelError> {
            Err(ModelError::ended())
        }
        async fn run(&mut self, _: &[ctxbench_core::engine::ToolCall]) -> Vec<ToolOutcome> {
            vec![]
        }
        async fn spawn(&mut self, _: &Request) -> ctxbench_core::engine::Task {
            ctxbench_core::engine::Task(0)
        }
        async fn collect(&mut self, _: ctxbench_core::engine::Task, _: bool) -> Option<Result<Reply, ModelError>> {
            None
        }
        fn now(&self) -> Millis {
            0
        }
    }

    fn rules(t: &Tally) -> Vec<&str> {
        t.integrity.iter().map(|i| i.rule.as_str()).collect()
    }

    #[test]
    fn a_compaction_stop_that_nobody_answers_is_reported() {
        let (mut ignored, request) = paused();
        ignored.request(&request, &Ok(Reply::default()), &Asked::Neutral, (0, 0), true);
        assert_eq!(rules(&ignored), [COMPACTION_STOP], "the next request does not show it");
        let (mut ended, _) = paused();
        ended.close();
        assert_eq!(rules(&ended), [COMPACTION_STOP], "the session ended");
        let (mut next, _) = paused();
        let action = Action::User(Incoming { key: "u".into(), parts: vec![] });
        next.begin(&Move { action, keys: vec![], gap_ms: 0, steps: vec![] });
        assert_eq!(rules(&next), [COMPACTION_STOP], "the turn ended");
        let (mut handled, mut request) = paused();
        request.blocks.push(Draft::synthetic(BlockKind::Compaction, Role::Assistant, "S").build(MessageId(1), vec![]));
        handled.request(&request, &Ok(Reply::default()), &Asked::Neutral, (0, 0), true);
        handled.close();
        assert!(rules(&handled).is_empty());
    }
}
