//! What the agent's model says, and what the agent asked of it.
//!
//! The place in the session is the number of the move and of the replies given in it. A request is
//! the agent's own work or something beside it; the same body again is a retry.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::HeaderMap;
use ctxbench_core::content::Part;
use ctxbench_core::request::{ErrorKind, ModelError, Reply, StopReason};
use ctxbench_core::session::Millis;
use ctxbench_core::tokens;
use ctxbench_provider::wire::Wire;
use ctxbench_provider::{Content, Prompt};
use ctxbench_scenarios::{FaultOn, ProviderFault};
use serde_json::Value;
use tokio::sync::Notify;

use super::agent::{Agent, Purpose, Side};
use super::faults::Made;
use super::plan::{Plan, Planned};
use crate::replay::{NEUTRAL, text_of as text_of_tokens};
use crate::serve::{Arrived, ModelAnswer, RequestOutcome, Speaker};

/// Requests without a new reply of the session after which an agent goes round in circles: work
/// beyond the session, retries, summaries, side requests and what the server refuses by itself
/// alike. Each is kept until the row is made.
const MOST_IDLE: u64 = 400;

/// What the model says when it is asked for a title or the like.
const ASIDE: &str = "Work on the project";

/// A request with what became of it.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The move during which it came.
    pub(super) step: usize,
    pub(super) purpose: Purpose,
    /// Its number among those for the same purpose, from 1.
    pub(super) nth: u64,
    pub(super) wire: Option<Wire>,
    /// What the agent itself says of it.
    pub(super) label: Option<String>,
    pub(super) prompt: Option<Prompt>,
    /// HTTP status.
    pub(super) http: u16,
    pub(super) outcome: Result<Reply, ModelError>,
    /// The session's id of the reply; `None` beside the work and beyond the session.
    pub(super) key: Option<Arc<str>>,
    /// The body came before.
    pub(super) again: bool,
    /// A fault decided what became of it.
    pub(super) on_purpose: bool,
}

/// What is given to a request.
#[derive(Clone)]
struct Given {
    said: Told,
    key: Option<Arc<str>>,
    tools_ms: Millis,
}

#[derive(Clone)]
enum Told {
    Parts(Vec<Part>),
    Summary,
}

impl Given {
    /// Whether a request shows a call of it.
    fn is_shown(&self, asked: &Prompt) -> bool {
        let Told::Parts(parts) = &self.said else { return false };
        let shows = |part: &Part| match part {
            Part::Call(call) => asked.items.iter().any(|i| match &*i.content {
                Content::Call { id, .. } => **id == *call.id,
                _ => false,
            }),
            _ => false,
        };
        parts.iter().any(shows)
    }
}

pub(super) struct Director {
    plan: Arc<Plan>,
    sides: Vec<Side>,
    has_tool: bool,
    /// What the provider does not answer as usual.
    faults: Vec<ProviderFault>,
    /// Requests so far, by what they were for.
    counted: BTreeMap<Purpose, u64>,
    label: Option<String>,
    step: usize,
    reply: usize,
    /// What was given, by the hash of path and body.
    given: HashMap<u64, Given>,
    /// What is being given: nobody else is answered until it is.
    giving: Option<(u64, Given)>,
    /// The newest reply of the session, where it broke off on its way.
    broken: Option<Given>,
    /// Places of the exchanges that are not over yet, by the server's number of the request.
    open: HashMap<u64, usize>,
    /// Hashes of all bodies so far.
    heard: HashSet<u64>,
    /// Requests since the newest reply of the session.
    idle: u64,
    pub(super) exchanges: Vec<Exchange>,
    /// Why nothing more is answered or kept.
    pub(super) stuck: Option<String>,
    /// Told when that is so.
    gives_up: Arc<Notify>,
    pub(super) now: Millis,
}

/// The director as server and driver share it.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Director>>);

impl Shared {
    pub(super) fn new(plan: Arc<Plan>, agent: &Agent, faults: &[ProviderFault]) -> Shared {
        Shared(Arc::new(Mutex::new(Director {
            plan,
            sides: agent.side.clone(),
            has_tool: agent.tool.is_some(),
            faults: faults.to_vec(),
            counted: BTreeMap::new(),
            label: agent.label.clone(),
            step: 0,
            reply: 0,
            given: HashMap::new(),
            giving: None,
            broken: None,
            open: HashMap::new(),
            heard: HashSet::new(),
            idle: 0,
            exchanges: Vec::new(),
            stuck: None,
            gives_up: Arc::default(),
            now: 0,
        })))
    }

    /// Ready when nothing more is answered: why.
    pub(super) async fn gave_up(&self) -> String {
        let gives_up = self.lock().gives_up.clone();
        gives_up.notified().await;
        self.lock().stuck.clone().unwrap_or_default()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Director> {
        // Nothing panics while it holds the lock; what it left is sound all the same.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Director {
    /// A move begins.
    pub(super) fn begin(&mut self, step: usize) {
        (self.step, self.reply, self.broken) = (step, 0, None);
        self.now = self.now.saturating_add(self.plan.moves[step].gap_ms);
    }

    /// Replies of the present move that were not asked for, or did not arrive.
    pub(super) fn left(&self) -> usize {
        let broken = usize::from(self.broken.is_some());
        (self.plan.moves[self.step].replies.len() + broken).saturating_sub(self.reply)
    }

    /// Replies of the session that arrived so far, and would again.
    pub(super) fn arrived(&self) -> usize {
        self.reply.saturating_sub(usize::from(self.broken.is_some()))
    }

    fn next(&mut self, asked: &Prompt) -> Given {
        // What broke off is said again, unless as much of it arrived as the agent goes on with.
        let broken = self.broken.take();
        if broken.is_some_and(|given| !given.is_shown(asked)) {
            self.reply = self.reply.saturating_sub(1);
        }
        let planned = self.plan.moves[self.step].replies.get(self.reply);
        if let Some(Planned { key, parts, tools_ms, .. }) = planned {
            let said = Told::Parts(parts.clone());
            self.idle = 0;
            return Given { said, key: Some(key.clone()), tools_ms: *tools_ms };
        }
        aside(NEUTRAL)
    }

    /// Counts a request, and finds the fault that hits it.
    fn fault(&mut self, purpose: Purpose) -> Option<ProviderFault> {
        let n = self.counted.entry(purpose).or_default();
        *n += 1;
        let on = match purpose {
            Purpose::Work => FaultOn::Sample,
            Purpose::Summary => FaultOn::Summary,
            _ => return None,
        };
        self.faults.iter().find(|f| f.hits(on, *n)).cloned()
    }

    /// How many requests it heard, where so many exchanges were kept.
    pub(super) fn made(&self, exchanges: usize) -> Made {
        let of = |purpose| self.counted.get(&purpose).copied().unwrap_or_default();
        let (summaries, work) = (of(Purpose::Summary), of(Purpose::Work));
        Made { all: exchanges as u64, summaries, work }
    }

    /// What a request is for; `None` = its description does not know.
    fn purpose(&self, asks: &Asks<'_>) -> Option<Purpose> {
        if asks.compaction {
            return Some(Purpose::Summary);
        }
        if let Some(side) = self.sides.iter().find(|s| asks.fit(s)) {
            return Some(side.purpose);
        }
        (asks.prompt.tools.is_some() || !self.has_tool).then_some(Purpose::Work)
    }
}

impl Director {
    /// A request has come. An error is why it is neither answered nor kept.
    fn hear(&mut self) -> Result<(), String> {
        if let Some(why) = &self.stuck {
            return Err(why.clone());
        }
        self.idle += 1;
        if self.idle > MOST_IDLE {
            return Err(format!("it made {MOST_IDLE} requests without going on with the session"));
        }
        Ok(())
    }

    /// Answers nothing more.
    fn give_up(&mut self, why: String) -> ModelError {
        let error = refused(format!("ctxbench: {why}"));
        self.stuck.get_or_insert(why);
        self.gives_up.notify_one();
        error
    }

    /// Begins an exchange, of which it is not known yet what becomes. Returns its place: in the
    /// order in which requests were answered, whichever is over first.
    fn begin_exchange(
        &mut self,
        purpose: Option<Purpose>,
        wire: Option<Wire>,
        (path, body): (&str, &[u8]),
        on_purpose: bool,
    ) -> usize {
        let purpose = purpose.unwrap_or(Purpose::Other);
        self.exchanges.push(Exchange {
            step: self.step,
            purpose,
            nth: self.counted.get(&purpose).copied().unwrap_or_default(),
            wire,
            label: self.label.as_ref().and_then(|at| field(body, at)),
            prompt: None,
            http: 0,
            outcome: Err(refused("nothing was said".into())),
            key: None,
            again: !self.heard.insert(key(path, body)),
            on_purpose,
        });
        self.exchanges.len() - 1
    }

    /// What a request is answered; an outer error is why nothing is answered any more.
    fn answer(&mut self, arrived: &Arrived<'_>) -> Result<Result<ModelAnswer, ModelError>, String> {
        self.hear()?;
        let header = |name: &str| text_of(arrived.headers, name);
        let compaction = arrived.wants_compaction();
        let (body, prompt) = (arrived.body, arrived.prompt);
        let purpose = self.purpose(&Asks { header: &header, body, prompt, compaction });
        let fault = purpose.and_then(|p| self.fault(p));
        let sent = (arrived.path, body);
        let at = self.begin_exchange(purpose, Some(arrived.wire), sent, fault.is_some());
        self.open.insert(arrived.id, at);
        if let Some(fault) = fault {
            self.now = self.now.saturating_add(fault.after_ms);
            self.giving = None;
            return Ok(disturbed(fault, arrived.wire));
        }
        let hash = key(arrived.path, body);
        let given = match (self.given.get(&hash).cloned(), purpose) {
            (Some(given), _) => given,
            (None, Some(Purpose::Work)) => self.next(prompt),
            (None, Some(Purpose::Summary)) => summary(),
            (None, Some(_)) => aside(ASIDE),
            (None, None) => return Err(unknown(arrived)),
        };
        let said = match &given.said {
            Told::Parts(parts) => ModelAnswer::Parts(parts.clone()),
            Told::Summary => ModelAnswer::Summary,
        };
        self.giving = Some((hash, given));
        Ok(Ok(said))
    }
}

fn summary() -> Given {
    Given { said: Told::Summary, key: None, tools_ms: 0 }
}

fn aside(text: &str) -> Given {
    Given { said: Told::Parts(vec![Part::Text(text.into())]), key: None, tools_ms: 0 }
}

/// What a request is known by.
struct Asks<'a> {
    header: &'a dyn Fn(&str) -> Option<String>,
    body: &'a [u8],
    prompt: &'a Prompt,
    /// It asks the provider itself for a compaction: whatever else it says, it is for a summary.
    compaction: bool,
}

impl Asks<'_> {
    fn fit(&self, side: &Side) -> bool {
        let Side { purpose: _, header, body, system, last, tools } = side;
        let has_tools = self.prompt.tools.is_some();
        header
            .as_ref()
            .is_none_or(|[name, piece]| self.headed(name).is_some_and(|v| v.contains(piece)))
            && body.as_ref().is_none_or(|[path, piece]| self.field(path, piece))
            && system.as_ref().is_none_or(|piece| self.system(piece))
            && last.as_ref().is_none_or(|piece| self.last(piece))
            && tools.is_none_or(|wanted| wanted == has_tools)
    }

    fn headed(&self, name: &str) -> Option<String> {
        // A server has their names in small letters.
        (self.header)(&name.to_ascii_lowercase())
    }

    fn field(&self, path: &str, piece: &str) -> bool {
        field(self.body, path).is_some_and(|v| v.contains(piece))
    }

    fn system(&self, piece: &str) -> bool {
        use ctxbench_core::block::Role;
        let mut head = self
            .prompt
            .items
            .iter()
            .filter(|i| matches!(i.role, Role::Instructions | Role::System | Role::Developer));
        head.any(|i| i.text().contains(piece))
    }

    fn last(&self, piece: &str) -> bool {
        let message = self.prompt.items.last().map(|i| i.message);
        let of_last = self.prompt.items.iter().rev().take_while(|i| Some(i.message) == message);
        of_last.into_iter().any(|i| i.text().contains(piece))
    }
}

/// What a fault says.
fn disturbed(fault: ProviderFault, wire: Wire) -> Result<ModelAnswer, ModelError> {
    let ProviderFault { status, code, message, text, tokens, .. } = fault;
    if let Some(status) = status {
        let message = message.unwrap_or_else(|| "the provider failed".into());
        return Err(wire.api().refusal(status, code, message));
    }
    let text = tokens.map(text_of_tokens).or(text).unwrap_or_default();
    let parts = if text.is_empty() { vec![] } else { vec![Part::Text(text.into())] };
    Ok(ModelAnswer::Parts(parts))
}

/// What a field of a body holds, its names joined by dots; as JSON where it is no string.
fn field(body: &[u8], path: &str) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let found = path.split('.').try_fold(&body, |v, name| v.get(name))?;
    Some(found.as_str().map_or_else(|| found.to_string(), str::to_string))
}

fn refused(message: String) -> ModelError {
    ModelError { kind: ErrorKind::Invalid, status: 400, code: None, message }
}

fn key(path: &str, body: &[u8]) -> u64 {
    tokens::content_hash(&[path.as_bytes(), b"\n", body].concat())
}

impl Speaker for Shared {
    fn say(&mut self, arrived: &Arrived<'_>) -> Result<ModelAnswer, ModelError> {
        let mut d = self.lock();
        d.answer(arrived).unwrap_or_else(|why| Err(d.give_up(why)))
    }

    fn given(&mut self) {
        let mut d = self.lock();
        let Some((hash, given)) = d.giving.take() else { return };
        d.now = d.now.saturating_add(given.tools_ms);
        let again = d.given.insert(hash, given.clone()).is_some();
        if given.key.is_some() {
            d.reply += usize::from(!again);
            d.broken = None;
        }
    }

    fn looks(&self) -> bool {
        true
    }

    fn saw(&mut self, seen: RequestOutcome) {
        let mut d = self.lock();
        let compaction = seen.wants_compaction();
        let RequestOutcome {
            id, wire, path, headers, body, prompt, http, on_purpose, outcome, ..
        } = seen;
        let at = match d.open.remove(&id) {
            Some(at) => at,
            // The server refused it by itself.
            None => {
                if let Err(why) = d.hear() {
                    d.give_up(why);
                    return;
                }
                let header = |name: &str| headers.get(name).cloned();
                let purpose = prompt.as_ref().and_then(|prompt| {
                    d.purpose(&Asks { header: &header, body: &body, prompt, compaction })
                });
                if let Some(purpose) = purpose.filter(|_| on_purpose) {
                    *d.counted.entry(purpose).or_default() += 1;
                }
                d.begin_exchange(purpose, wire, (&path, &body), on_purpose)
            }
        };
        let hash = key(&path, &body);
        let outcome = outcome.unwrap_or_else(|| Err(refused("nothing was said".into())));
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
        (exchange.prompt, exchange.http, exchange.outcome) = (prompt, http, outcome);
        (exchange.key, exchange.on_purpose) = (key, on_purpose);
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
}

fn unknown(arrived: &Arrived<'_>) -> String {
    let last = arrived.prompt.items.last().map_or("", |i| i.text());
    let end = last.floor_char_boundary(160);
    format!(
        "a request of a kind that its description does not know: it offers no tools, and its last \
         message begins {:?}; say what it is in a [[side]] of the description",
        &last[..end]
    )
}

/// How many requests there were beside the work, by what they were for.
pub(super) fn beside(exchanges: &[Exchange]) -> BTreeMap<Purpose, Vec<&Exchange>> {
    let mut all: BTreeMap<Purpose, Vec<&Exchange>> = BTreeMap::new();
    for e in exchanges.iter().filter(|e| !matches!(e.purpose, Purpose::Work | Purpose::Summary)) {
        all.entry(e.purpose).or_default().push(e);
    }
    all
}

#[cfg(test)]
#[path = "director_tests.rs"]
mod tests;
