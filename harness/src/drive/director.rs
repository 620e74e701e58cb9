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

use super::agent::{Agent, Purpose, Side};
use super::plan::{Plan, Planned};
use crate::replay::{NEUTRAL, text_of as text_of_tokens};
use crate::serve::{Arrived, Said, Seen, Speaker};

/// Requests without a new reply of the session after which an agent goes round in circles: work
/// beyond the session, retries, summaries and side requests alike. Each is kept until the row is
/// made.
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
            Part::Call(call) => asked.items.iter().any(|i| match &i.content {
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
    giving: Option<(u64, Given)>,
    /// The newest reply of the session, where it broke off on its way.
    broken: Option<Given>,
    /// What is being said now is a fault's.
    faulty: bool,
    /// Hashes of all bodies so far.
    heard: HashSet<u64>,
    /// Requests since the newest reply of the session.
    idle: u64,
    pub(super) exchanges: Vec<Exchange>,
    /// Why nothing more is answered.
    pub(super) stuck: Option<String>,
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
            faulty: false,
            heard: HashSet::new(),
            idle: 0,
            exchanges: Vec::new(),
            stuck: None,
            now: 0,
        })))
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

    /// What a request is for.
    fn purpose(&self, asks: &Asks<'_>) -> Option<Purpose> {
        if let Some(side) = self.sides.iter().find(|s| asks.fit(s)) {
            return Some(side.purpose);
        }
        (asks.prompt.tools.is_some() || !self.has_tool).then_some(Purpose::Work)
    }
}

fn aside(text: &str) -> Given {
    Given { said: Told::Parts(vec![Part::Text(text.into())]), key: None, tools_ms: 0 }
}

/// What a request is known by.
struct Asks<'a> {
    header: &'a dyn Fn(&str) -> Option<String>,
    body: &'a [u8],
    prompt: &'a Prompt,
    compaction: bool,
}

impl Asks<'_> {
    fn fit(&self, side: &Side) -> bool {
        let Side { purpose, header, body, system, last, tools } = side;
        if self.compaction {
            return *purpose == Purpose::Summary;
        }
        let has_tools = self.prompt.tools.is_some();
        header
            .as_ref()
            .is_none_or(|[name, piece]| (self.header)(name).is_some_and(|v| v.contains(piece)))
            && body.as_ref().is_none_or(|[path, piece]| self.field(path, piece))
            && system.as_ref().is_none_or(|piece| self.system(piece))
            && last.as_ref().is_none_or(|piece| self.last(piece))
            && tools.is_none_or(|wanted| wanted == has_tools)
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
fn disturbed(fault: ProviderFault, wire: Wire) -> Result<Said, ModelError> {
    let ProviderFault { status, code, message, text, tokens, .. } = fault;
    if let Some(status) = status {
        let message = message.unwrap_or_else(|| "the provider failed".into());
        return Err(wire.api().refusal(status, code, message));
    }
    let text = tokens.map(text_of_tokens).or(text).unwrap_or_default();
    let parts = if text.is_empty() { vec![] } else { vec![Part::Text(text.into())] };
    Ok(Said::Parts(parts))
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
    fn say(&mut self, arrived: &Arrived<'_>) -> Result<Said, ModelError> {
        let mut d = self.lock();
        if let Some(why) = &d.stuck {
            return Err(refused(format!("ctxbench: {why}")));
        }
        d.idle += 1;
        if d.idle > MOST_IDLE {
            let why = format!("it made {MOST_IDLE} requests without going on with the session");
            d.stuck = Some(why.clone());
            return Err(refused(format!("ctxbench: {why}")));
        }
        let header = |name: &str| text_of(arrived.headers, name);
        let asks = Asks {
            header: &header,
            body: arrived.body,
            prompt: arrived.prompt,
            compaction: arrived.wants_compaction(),
        };
        let hash = key(arrived.path, arrived.body);
        let purpose = d.purpose(&asks);
        let fault = purpose.and_then(|p| d.fault(p));
        d.faulty = fault.is_some();
        if let Some(fault) = fault {
            d.now = d.now.saturating_add(fault.after_ms);
            d.giving = None;
            return disturbed(fault, arrived.wire);
        }
        let given = match (d.given.get(&hash).cloned(), purpose) {
            (Some(given), _) => Ok(given),
            (None, Some(Purpose::Work)) => Ok(d.next(arrived.prompt)),
            (None, Some(Purpose::Summary)) => {
                Ok(Given { said: Told::Summary, key: None, tools_ms: 0 })
            }
            (None, Some(_)) => Ok(aside(ASIDE)),
            (None, None) if arrived.wants_compaction() => {
                Ok(Given { said: Told::Summary, key: None, tools_ms: 0 })
            }
            (None, None) => Err(unknown(arrived)),
        };
        match given {
            Err(why) => {
                d.stuck = Some(why.clone());
                Err(refused(format!("ctxbench: {why}")))
            }
            Ok(given) => {
                let said = given.said.clone();
                d.giving = Some((hash, given));
                Ok(match said {
                    Told::Parts(parts) => Said::Parts(parts),
                    Told::Summary => Said::Summary,
                })
            }
        }
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

    fn saw(&mut self, seen: Seen) {
        let mut d = self.lock();
        let Seen { wire, path, headers, body, prompt, http, on_purpose, outcome, .. } = seen;
        let header = |name: &str| headers.get(name).cloned();
        let purpose = prompt.as_ref().and_then(|prompt| {
            let compaction = path.ends_with("/compact");
            d.purpose(&Asks { header: &header, body: &body, prompt, compaction })
        });
        let purpose = purpose.unwrap_or(Purpose::Other);
        let label = d.label.as_ref().and_then(|at| field(&body, at));
        let hash = key(&path, &body);
        let outcome = outcome.unwrap_or_else(|| Err(refused("nothing was said".into())));
        // What the server refused by itself has not been counted.
        if on_purpose && !matches!(&outcome, Err(e) if e.kind == ErrorKind::Stream) {
            *d.counted.entry(purpose).or_default() += 1;
        }
        let on_purpose = on_purpose || std::mem::take(&mut d.faulty);
        let key = match &outcome {
            Ok(reply) if reply.stop != StopReason::Compaction && !on_purpose => {
                d.given.get(&hash).and_then(|g| g.key.clone())
            }
            _ => None,
        };
        if matches!(&outcome, Err(e) if e.kind == ErrorKind::Stream) {
            d.broken = d.given.get(&hash).filter(|g| g.key.is_some()).cloned();
        }
        let again = !d.heard.insert(hash);
        let (step, nth) = (d.step, d.counted.get(&purpose).copied().unwrap_or_default());
        d.exchanges.push(Exchange {
            step,
            purpose,
            nth,
            wire,
            label,
            prompt,
            http,
            outcome,
            key,
            again,
            on_purpose,
        });
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
