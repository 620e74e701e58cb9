//! Answers as the agent's model and records its requests.
//!
//! The position in the session is the number of the move and of the replies in it. A request is the
//! agent's own work or a side request. A request with the same body is a retry.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctxbench_core::prelude::*;
use ctxbench_core::{request, tokens};
use ctxbench_provider::{Item, Prompt, Wire};
use ctxbench_scenarios::{FaultOn, ProviderFault};
use serde_json::Value;
use tokio::sync::Notify;

use super::agent::{Agent, Purpose, ShellTool, Side};
use super::plan::{Delivery, DrivePlan, Planned};
use super::words;
use crate::quotes;
use crate::serve::{Arrived, ModelAnswer, RequestOutcome, Speaker, offered_tools};
use ctxbench_mock::summarise;
use ctxbench_replay::{NEUTRAL, text_of};

/// Maximum number of requests without a new reply of the session: work beyond the session, retries,
/// summaries, side requests and refused requests. Each is kept until the row is built.
const MAX_IDLE_REQUESTS: u64 = 400;

/// Reply to a request for a title or a similar text.
const ASIDE: &str = "Work on the project";

/// A request and its outcome.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The server's number of the request.
    pub(super) id: u64,
    /// Number of the move in which it arrived.
    pub(super) step: usize,
    pub(super) purpose: Purpose,
    /// Number among requests with this purpose, from 1.
    pub(super) nth: u64,
    pub(super) wire: Wire,
    /// Purpose that the agent gives.
    pub(super) label: Option<String>,
    pub(super) prompt: Option<Prompt>,
    pub(super) http: u16,
    pub(super) outcome: Result<Reply, ModelError>,
    /// Id of the session's reply. `None` for side requests and beyond the session.
    pub(super) key: Option<Arc<str>>,
    /// True if the same body arrived before.
    pub(super) again: bool,
    /// True if a fault decided the outcome.
    pub(super) on_purpose: bool,
}

impl Exchange {
    /// Returns whether it is no side request.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.purpose, Purpose::Work | Purpose::Summary)
    }

    /// Returns the purpose as recorded cases name it.
    pub(super) fn purpose_in_cases(&self) -> request::Purpose {
        match self.purpose {
            Purpose::Summary => request::Purpose::Summary,
            _ => request::Purpose::Sample,
        }
    }

    /// Returns the prompt tokens that were billed.
    pub(super) fn input(&self) -> u64 {
        self.outcome.as_ref().map_or(0, |r| r.billed.prompt())
    }
}

#[derive(Clone, Default)]
struct PlannedReply {
    /// `None` = a summary.
    parts: Option<Vec<Part>>,
    key: Option<Arc<str>>,
    tools_ms: Millis,
}

impl PlannedReply {
    /// Returns whether a request contains a call of this reply.
    fn is_shown(&self, asked: &Prompt) -> bool {
        let own = self.parts.iter().flatten().filter_map(Part::as_call);
        let own: Vec<&str> = own.map(|call| &*call.id).collect();
        let mut calls = asked.items.iter().filter(|i| i.kind == BlockKind::Call);
        calls.any(|i| i.call_id().is_some_and(|id| own.contains(&id)))
    }
}

#[derive(Default)]
pub(super) struct Director {
    plan: Arc<DrivePlan>,
    sides: Vec<Side>,
    /// Name of the shell tool.
    tool: Option<String>,
    /// Call with which a turn ends.
    end: Option<ShellTool>,
    faults: Vec<ProviderFault>,
    /// Number of requests by purpose.
    counted: BTreeMap<Purpose, u64>,
    label: Option<String>,
    step: usize,
    reply: usize,
    /// Replies by the hash of path and body.
    given: HashMap<u64, PlannedReply>,
    /// Reply that is being sent. Other requests wait for it.
    giving: Option<(u64, PlannedReply)>,
    /// The last reply of the session, if its stream was aborted.
    broken: Option<PlannedReply>,
    /// Hashes of all request bodies.
    heard: HashSet<u64>,
    /// Number of requests since the last reply of the session.
    idle: u64,
    pub(super) exchanges: Vec<Exchange>,
    /// Reason why no more requests are answered or recorded.
    pub(super) stuck: Option<String>,
    /// Notified when `stuck` is set.
    gives_up: Arc<Notify>,
    pub(super) now: Millis,
}

#[derive(Clone)]
pub(super) struct SharedDirector(Arc<Mutex<Director>>);

impl SharedDirector {
    pub(super) fn new(
        plan: Arc<DrivePlan>,
        agent: &Agent,
        faults: &[ProviderFault],
    ) -> SharedDirector {
        SharedDirector(Arc::new(Mutex::new(Director {
            plan,
            sides: agent.side.clone(),
            tool: agent.tool.as_ref().map(|t| t.name.clone()),
            end: agent.end.clone(),
            faults: faults.to_vec(),
            label: agent.label.clone(),
            ..Director::default()
        })))
    }

    /// Waits until no more requests are answered, and returns the reason.
    pub(super) async fn gave_up(&self) -> String {
        let gives_up = self.lock().gives_up.clone();
        gives_up.notified().await;
        self.lock().stuck.clone().unwrap_or_default()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Director> {
        // The data is valid even if a thread panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Director {
    pub(super) fn begin(&mut self, step: usize) {
        (self.step, self.reply, self.broken) = (step, 0, None);
        self.now = self.now.saturating_add(self.plan.moves[step].gap_ms);
    }

    /// Returns the number of replies of the current move that were not requested or did not arrive.
    pub(super) fn open_replies(&self) -> usize {
        let broken = usize::from(self.broken.is_some());
        (self.plan.moves[self.step].replies.len() + broken).saturating_sub(self.reply)
    }

    /// Returns the number of replies of the move that arrived.
    pub(super) fn arrived(&self) -> usize {
        self.reply.saturating_sub(usize::from(self.broken.is_some()))
    }

    fn next(&mut self, asked: &Prompt) -> PlannedReply {
        // An aborted reply is sent again, unless the request contains a part of it.
        let broken = self.broken.take();
        if broken.is_some_and(|given| !given.is_shown(asked)) {
            self.reply = self.reply.saturating_sub(1);
        }
        let planned = self.plan.moves[self.step].replies.get(self.reply);
        let Some(Planned { key, parts, tools_ms, .. }) = planned else {
            let mut beyond = aside(NEUTRAL);
            if let Some(end) = &self.end {
                let (id, arguments) = (format!("end_{}", self.heard.len()), &end.arguments);
                let call = ToolCall::new(id, &*end.name, arguments.to_string());
                beyond.parts.get_or_insert_default().push(Part::Call(call));
            }
            return beyond;
        };
        self.idle = 0;
        let (parts, key) = (Some(parts.clone()), Some(key.clone()));
        PlannedReply { parts, key, tools_ms: *tools_ms }
    }

    /// Counts a request and returns its fault.
    fn fault(&mut self, purpose: Purpose) -> Option<ProviderFault> {
        let n = self.counted.entry(purpose).or_default();
        *n += 1;
        let on = purpose.fault_on()?;
        self.faults.iter().find(|f| f.hits(on, *n)).cloned()
    }

    /// Returns the number of requests that a fault of this kind may hit.
    pub(super) fn counted(&self, on: FaultOn) -> u64 {
        self.counted.iter().find(|(p, _)| p.fault_on() == Some(on)).map_or(0, |(_, n)| *n)
    }

    /// Returns the purpose of a request. `None` if no rule of the description matches.
    fn purpose(&self, request: &Arrived, prompt: &Prompt) -> Option<Purpose> {
        if request.wants_compaction() {
            return Some(Purpose::Summary);
        }
        if let Some(side) = self.sides.iter().find(|side| fits(side, request, prompt)) {
            return Some(side.purpose);
        }
        (prompt.tools.is_some() || self.tool.is_none()).then_some(Purpose::Work)
    }

    /// Counts an arrived request. An error means that it is neither answered nor recorded.
    fn hear(&mut self) -> Result<(), String> {
        self.idle += 1;
        match &self.stuck {
            Some(why) => Err(why.clone()),
            None if self.idle <= MAX_IDLE_REQUESTS => Ok(()),
            None => {
                Err(format!("it made {MAX_IDLE_REQUESTS} requests without continuing the session"))
            }
        }
    }

    /// Stops answering.
    fn give_up(&mut self, why: String) -> ModelError {
        let error = ModelError::invalid(format!("ctxbench: {why}"));
        self.stuck.get_or_insert(why);
        self.gives_up.notify_one();
        error
    }

    /// Begins an exchange. The order is that of the answers, whichever ends first.
    fn begin_exchange(&mut self, purpose: Option<Purpose>, request: &Arrived, on_purpose: bool) {
        let purpose = purpose.unwrap_or(Purpose::Other);
        self.exchanges.push(Exchange {
            id: request.id,
            step: self.step,
            purpose,
            nth: self.counted.get(&purpose).copied().unwrap_or_default(),
            wire: request.wire,
            label: self.label.as_ref().and_then(|at| field(&request.body, at)),
            prompt: None,
            http: 0,
            outcome: Err(ModelError::invalid("no reply")),
            key: None,
            again: !self.heard.insert(key(request)),
            on_purpose,
        });
    }

    /// Returns what the user and the model have said, the outputs of calls, and all summaries.
    fn conversation(&self) -> Vec<Arc<Block>> {
        let mut out = Vec::new();
        for (i, m) in self.plan.moves.iter().enumerate().take(self.step + 1) {
            if let Delivery::Say(words) = &m.what {
                out.push(Draft::text(BlockKind::User, Role::User, words.as_str()));
            }
            let given = if i == self.step { self.reply } else { m.replies.len() };
            for part in m.replies.iter().take(given).flat_map(|r| &r.parts) {
                let Part::Call(c) = part else {
                    let (kind, role) = (BlockKind::Assistant, Role::Assistant);
                    out.push(Draft::text(kind, role, part.text()));
                    continue;
                };
                let (id, name) = (c.id.clone(), c.name.clone());
                out.push(Draft::call(id.clone(), name.clone(), c.arguments.clone()));
                let printed = self.plan.printed(&c.id).unwrap_or_default();
                out.push(Draft::output(id, name, printed.into(), false));
            }
        }
        let summaries = self.exchanges.iter().filter(|e| e.purpose == Purpose::Summary);
        let summaries = summaries.filter_map(|e| e.outcome.as_ref().ok());
        out.extend(summaries.map(|r| Draft::text(BlockKind::Summary, Role::User, words(r))));
        out.into_iter().map(Draft::ephemeral).collect()
    }

    /// Returns a request for a summary with the quotes of the conversation marked, whatever its form.
    fn marked(&self, prompt: &Prompt) -> Result<Prompt, String> {
        let mut prompt = prompt.clone();
        quotes::mark(&mut prompt, &self.conversation());
        match summarise::unread(&prompt) {
            Some(why) => Err(format!("{why}; its last message begins {:?}", beginning(&prompt))),
            None => Ok(prompt),
        }
    }

    /// Checks that a request offers the tools that its reply calls.
    fn check_tools(&self, wire: Wire, prompt: &Prompt, given: &PlannedReply) -> Result<(), String> {
        let offered = prompt.tools.as_ref().map_or("", |t| t.json.get());
        let has = |name: &str| offered.contains(&format!("\"name\":{}", Value::from(name)));
        let calls = given.parts.iter().flatten().filter_map(Part::as_call);
        let missing = calls.map(|c| &*c.name).find(|name| !has(name));
        missing.map_or(Ok(()), |name| {
            let names = offered_tools(wire, prompt).join(", ");
            Err(format!(
                "its description calls the tool `{name}`, which the agent does not offer to its \
                 model; offered: {names}; correct `[tool]` or `[end]` of the description"
            ))
        })
    }

    /// Returns the answer to a request. The outer error ends the drive.
    fn answer(
        &mut self,
        request: &Arrived,
        prompt: &Prompt,
    ) -> Result<Result<ModelAnswer, ModelError>, String> {
        self.hear()?;
        let purpose = self.purpose(request, prompt);
        let fault = purpose.and_then(|p| self.fault(p));
        self.begin_exchange(purpose, request, fault.is_some());
        if let Some(fault) = fault {
            self.now = self.now.saturating_add(fault.after_ms);
            self.giving = None;
            return Ok(disturbed(fault, request.wire));
        }
        let hash = key(request);
        let given = match (self.given.get(&hash).cloned(), purpose) {
            (Some(given), _) => given,
            (None, Some(Purpose::Work)) => self.next(prompt),
            (None, Some(Purpose::Summary)) => PlannedReply::default(),
            (None, Some(_)) => aside(ASIDE),
            (None, None) => return Err(unknown(prompt)),
        };
        if purpose == Some(Purpose::Work) {
            self.check_tools(request.wire, prompt, &given)?;
        }
        let said = match &given.parts {
            Some(parts) => ModelAnswer::Parts(parts.clone()),
            None => ModelAnswer::Summary(self.marked(prompt)?),
        };
        self.giving = Some((hash, given));
        Ok(Ok(said))
    }
}

fn aside(text: &str) -> PlannedReply {
    PlannedReply { parts: Some(vec![Part::Text(text.into())]), ..PlannedReply::default() }
}

/// Returns whether a request meets all conditions of a rule.
fn fits(side: &Side, request: &Arrived, prompt: &Prompt) -> bool {
    let Side { purpose: _, header, body, system, last, tools } = side;
    let header_has = |[name, piece]: &[String; 2]| {
        let value = request.headers.get(name.as_str());
        value.is_some_and(|v| String::from_utf8_lossy(v.as_bytes()).contains(piece))
    };
    let body_has = |[path, piece]: &[String; 2]| {
        field(&request.body, path).is_some_and(|value| value.contains(piece))
    };
    let instructs =
        |i: &Item| matches!(i.role, Role::Instructions | Role::System | Role::Developer);
    let message = prompt.items.last().map(|i| i.message);
    let is_last = |i: &Item| Some(i.message) == message;
    let any_has = |piece: &String, of: &dyn Fn(&Item) -> bool| {
        prompt.items.iter().any(|i| of(i) && i.text().contains(piece))
    };
    header.as_ref().is_none_or(header_has)
        && body.as_ref().is_none_or(body_has)
        && system.as_ref().is_none_or(|piece| any_has(piece, &instructs))
        && last.as_ref().is_none_or(|piece| any_has(piece, &is_last))
        && tools.is_none_or(|wanted| wanted == prompt.tools.is_some())
}

/// Returns the answer of a fault.
fn disturbed(fault: ProviderFault, wire: Wire) -> Result<ModelAnswer, ModelError> {
    let ProviderFault { status, code, message, text, tokens, .. } = fault;
    if let Some(status) = status {
        let message = message.unwrap_or_else(|| "the provider failed".into());
        return Err(wire.api.refusal(status, code, message));
    }
    let text = tokens.map(text_of).or(text).filter(|text| !text.is_empty());
    Ok(ModelAnswer::Parts(text.map(|text| Part::Text(text.into())).into_iter().collect()))
}

/// Returns a field of a body, with dots between names. A value that is not a string is returned as
/// JSON.
fn field(body: &[u8], path: &str) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let found = path.split('.').try_fold(&body, |v, name| v.get(name))?;
    Some(found.as_str().map_or_else(|| found.to_string(), str::to_string))
}

/// Returns the hash of path and body.
fn key(request: &Arrived) -> u64 {
    tokens::content_hash(&[request.path.as_bytes(), b"\n", &request.body].concat())
}

impl Speaker for SharedDirector {
    fn answer(&mut self, request: &Arrived, prompt: &Prompt) -> Result<ModelAnswer, ModelError> {
        let mut d = self.lock();
        d.answer(request, prompt).unwrap_or_else(|why| Err(d.give_up(why)))
    }

    fn mark_delivered(&mut self) {
        let mut d = self.lock();
        let Some((hash, given)) = d.giving.take() else { return };
        d.now = d.now.saturating_add(given.tools_ms);
        let again = d.given.insert(hash, given.clone()).is_some();
        if given.key.is_some() {
            d.reply += usize::from(!again);
            d.broken = None;
        }
    }

    fn saw(&mut self, seen: RequestOutcome) {
        let mut d = self.lock();
        let RequestOutcome { request, http, on_purpose, outcome } = seen;
        let known = d.exchanges.iter().rposition(|e| e.id == request.id);
        if known.is_none() {
            // The server itself refused it.
            if let Err(why) = d.hear() {
                d.give_up(why);
                return;
            }
            let purpose = request.prompt.as_ref().and_then(|p| d.purpose(&request, p));
            if let Some(purpose) = purpose.filter(|_| on_purpose) {
                *d.counted.entry(purpose).or_default() += 1;
            }
            d.begin_exchange(purpose, &request, on_purpose);
        }
        let at = known.unwrap_or(d.exchanges.len() - 1);
        let hash = key(&request);
        let on_purpose = on_purpose || d.exchanges[at].on_purpose;
        let key = match &outcome {
            Ok(reply) if reply.stop != StopReason::Compaction && !on_purpose => {
                d.given.get(&hash).and_then(|g| g.key.clone())
            }
            _ => None,
        };
        if matches!(&outcome, Err(e) if e.kind == ErrorKind::Stream) {
            d.broken = d.given.get(&hash).filter(|g| g.key.is_some()).cloned();
        }
        let exchange = &mut d.exchanges[at];
        (exchange.prompt, exchange.http, exchange.outcome) = (request.prompt, http, outcome);
        (exchange.key, exchange.on_purpose) = (key, on_purpose);
    }
}

fn unknown(prompt: &Prompt) -> String {
    format!(
        "a request that its description does not recognise: it has no tools, and its last message \
         begins {:?}; add a [[side]] rule to the description",
        beginning(prompt)
    )
}

/// Returns the beginning of the last message of a prompt.
fn beginning(prompt: &Prompt) -> &str {
    let last = prompt.items.last().map_or("", |i| i.text());
    &last[..last.floor_char_boundary(160)]
}

#[cfg(test)]
#[path = "director_tests.rs"]
mod tests;
