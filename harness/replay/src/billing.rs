//! Calls that several sessions of a command share: forks, resumed copies and backups repeat the calls
//! of another session. A call is billed to one of them, and all of them count as one session in
//! comparisons.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;

use ctxbench_core::Millis;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::tokens::content_hash;
use ctxbench_scenarios::Scenario;
use ctxbench_scenarios::formats::millis;
use ctxbench_session::{Entry, RecordedUsage, Session};
use ctxbench_util::plural::pluralize;
use rapidhash::quality::RapidHasher;

/// Returns what identifies the call of each entry within its session: its id, or else its time, content
/// and counters. Calls without id and time are known by the content of the
/// whole recording. `None` for entries without a call, and for sessions that are no recordings.
pub fn call_hashes(session: &Session) -> Vec<Option<u64>> {
    let began = session.header.started.as_deref().and_then(millis);
    let whole = OnceCell::new();
    let mut equal: HashMap<u64, usize> = HashMap::new();
    let hash = |entry: &Entry| {
        let (usage, at) = call(entry)?;
        if let Some(CallNames { name, scope, .. }) = CallNames::of_entry(entry) {
            return Some(name ^ scope.unwrap_or_default());
        }
        session.header.source.as_ref()?;
        let place = match began.zip(at) {
            Some((began, at)) => began.saturating_add_unsigned(at),
            None => *whole.get_or_init(|| whole_hash(session)) as i64,
        };
        let found = hash_of((place, format!("{usage:?}"), model_of(entry), entry.content()));
        // Equal calls of one session are several calls.
        let n = equal.entry(found).or_default();
        *n += 1;
        Some(found ^ *n as u64)
    };
    session.entries.iter().map(hash).collect()
}

/// Returns the counters and the time of an entry's call, ms since the session began.
pub fn call(entry: &Entry) -> Option<(Option<&RecordedUsage>, Option<Millis>)> {
    match entry {
        Entry::Assistant(a) => Some((a.usage.as_ref(), a.at)),
        Entry::RecordedCall(c) => Some((Some(&c.usage), c.at)),
        Entry::RecordedCompaction(c) => Some((Some(c.usage.as_ref()?), c.at)),
        _ => None,
    }
}

/// Returns the model that answered a call, as recorded.
fn model_of(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::Assistant(a) => a.model.as_deref(),
        Entry::RecordedCall(c) => c.model.as_deref(),
        Entry::RecordedCompaction(c) => c.model.as_deref(),
        _ => None,
    }
}

/// What identifies a session among others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionCalls {
    shared: SharedCalls,
    /// Smallest hashes of the messages of a recording, a sample that copies share.
    messages: Vec<u64>,
    replies: usize,
}

impl SessionCalls {
    /// Reads the calls of a session.
    pub fn new(session: &Session) -> SessionCalls {
        let shared = SharedCalls::new(session, call_hashes(session));
        let is_recording = session.header.source.is_some();
        let is_reply = |e: &&Entry| matches!(e, Entry::Assistant(a) if a.agent.is_none());
        let replies = session.entries.iter().filter(is_reply).count();
        let messages = is_recording.then(|| message_hashes(session)).into_iter().flatten();
        let messages: BTreeSet<u64> = messages.collect();
        SessionCalls { shared, messages: messages.into_iter().take(SAMPLE).collect(), replies }
    }
}

/// Hashes of the names of a call. Copies of it have one of the first two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CallNames {
    name: u64,
    alias: Option<u64>,
    /// The thread or request, without which calls of any have this name. `None` = unknown.
    scope: Option<u64>,
}

impl CallNames {
    /// Returns the names that a recording gives to the call of an entry.
    fn of_entry(entry: &Entry) -> Option<CallNames> {
        let billing = &call(entry)?.0?.billing;
        let hash = |name: &Arc<str>| content_hash(name.as_bytes());
        let name = billing.call_id.as_ref().map(hash)?;
        let [alias, scope] = [&billing.call_alias, &billing.call_in].map(|n| n.as_ref().map(hash));
        Some(CallNames { name, alias, scope })
    }
}

/// What copies of a session have, too: its [`call_hashes`], each once, with the names of the call. A
/// recording without calls has that of its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedCalls(BTreeMap<u64, CallNames>);

impl SharedCalls {
    pub fn new(session: &Session, calls: Vec<Option<u64>>) -> SharedCalls {
        let bare = |name| CallNames { name, ..CallNames::default() };
        let named = |(entry, hash): (&Entry, Option<u64>)| {
            Some((hash?, CallNames::of_entry(entry).unwrap_or(bare(hash?))))
        };
        let mut all: BTreeMap<_, _> = session.entries.iter().zip(calls).filter_map(named).collect();
        if all.is_empty() && session.header.source.is_some() {
            let whole = whole_hash(session);
            all.insert(whole, bare(whole));
        }
        SharedCalls(all)
    }
}

/// Hashes the messages of a session, and when it began.
fn whole_hash(session: &Session) -> u64 {
    hash_of((&session.header.started, message_hashes(session).collect::<Vec<u64>>()))
}

fn hash_of(what: impl Hash) -> u64 {
    let mut hasher = RapidHasher::default();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Maximum number of hashes of messages that a session keeps.
const SAMPLE: usize = 64;

/// Hashes role, texts, calls and results of each message, without ids and times.
fn message_hashes(session: &Session) -> impl Iterator<Item = u64> {
    let unnamed = |part| match part {
        Part::Call(call) => Part::Call(ToolCall { id: "".into(), ..call }),
        other => other,
    };
    session.entries.iter().filter(|e| e.key().is_some()).map(move |entry| {
        let parts: Vec<Part> = entry.content().into_iter().map(unnamed).collect();
        hash_of((discriminant(entry), parts))
    })
}

/// Calls that were billed, by name, each with the session that it was billed to.
#[derive(Debug, Default)]
pub struct BilledCalls {
    /// With the thread or request, as soon as a session tells it.
    first: HashMap<u64, (Option<u64>, usize)>,
    /// Calls with the name of the first one that were made in another thread or request.
    alike: HashMap<(u64, Option<u64>), usize>,
}

impl BilledCalls {
    /// Bills calls to a session. Returns those that are billed to other sessions already, with
    /// these sessions.
    pub fn bill(&mut self, session: usize, calls: &SharedCalls) -> HashMap<u64, usize> {
        let owner = |(hash, call): (&u64, &CallNames)| {
            let claim = |owner, name| self.claim(name, call.scope, owner);
            (*hash, call.alias.into_iter().chain([call.name]).fold(session, claim))
        };
        calls.0.iter().map(owner).filter(|(_, owner)| *owner != session).collect()
    }

    /// Returns the session that calls of this name are billed to: the first that claims it.
    fn claim(&mut self, name: u64, scope: Option<u64>, session: usize) -> usize {
        let (known, owner) = self.first.entry(name).or_insert((scope, session));
        if known.is_some() && scope.is_some() && *known != scope {
            return *self.alike.entry((name, scope)).or_insert(session);
        }
        *known = known.or(scope);
        *owner
    }
}

/// Maximum number of sessions that are compared for each message: the longest that have it.
const OWNERS: usize = 8;

/// Bills each call to the longest session that has it, the one with the most replies, and names this
/// session as the one that each group of sessions with the same calls is counted as. Sessions in
/// which nine tenths of the messages are the same are a group, too, whatever their ids and times.
pub fn bill_once(sessions: &mut [Scenario], calls: &[SessionCalls]) {
    let mut billed = BilledCalls::default();
    let mut groups = Groups((0..sessions.len()).collect());
    let mut messages: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut order: Vec<usize> = (0..sessions.len()).collect();
    order.sort_by_key(|at| Reverse(calls[*at].replies));
    for at in order.iter().copied() {
        let elsewhere = billed.bill(at, &calls[at].shared);
        elsewhere.values().for_each(|by| groups.join(at, *by));
        let mut same: BTreeMap<usize, usize> = BTreeMap::new();
        for hash in &calls[at].messages {
            let owners = messages.entry(*hash).or_default();
            owners.iter().for_each(|by| *same.entry(*by).or_default() += 1);
            if owners.len() < OWNERS {
                owners.push(at);
            }
        }
        let size = |at: usize| calls[at].messages.len();
        same.retain(|by, n| 10 * *n >= 9 * size(at).max(size(*by)));
        same.keys().for_each(|by| groups.join(at, *by));
        sessions[at].billed_elsewhere = elsewhere.into_keys().collect();
    }
    let mut longest: HashMap<usize, usize> = HashMap::new();
    for at in order {
        let named = *longest.entry(groups.root(at)).or_insert(at);
        sessions[at].counted_as = (named != at).then(|| sessions[named].id.clone());
    }
}

/// Groups of sessions: each points to a member of its group, and the first to itself.
struct Groups(Vec<usize>);

impl Groups {
    fn root(&self, mut at: usize) -> usize {
        while self.0[at] != at {
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (a, b) = (self.root(one), self.root(other));
        self.0[a.max(b)] = a.min(b);
    }
}

/// Returns notes on sessions that share calls: how many sessions count as how many.
pub fn notes(sessions: &[Scenario]) -> Vec<String> {
    /// Number of groups, and of sessions of each, that are named.
    const NAMED: usize = 3;
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for s in sessions {
        if let Some(name) = &s.counted_as {
            groups.entry(name).or_default().push(&s.id);
        }
    }
    let note = |(name, others): (&str, Vec<&str>)| {
        let named = others.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = if others.len() > NAMED { ", …" } else { "" };
        format!(
            "{name} and {} share calls or are copies ({named}{more}): each call is billed once, and \
             comparisons count them as one session, {name}",
            pluralize(others.len(), "other session")
        )
    };
    let more = groups.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| {
        format!("calls are shared by {} of sessions, too", pluralize(more, "further group"))
    });
    groups.into_iter().take(NAMED).map(note).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, calls: &[&str]) -> Scenario {
        let header = format!(
            r#"{{"type":"session","version":1,"id":"{id}","source":{{"format":"codex"}}}}"#
        );
        let user = r#"{"type":"user","id":"u","text":"go"}"#.to_string();
        let reply = |(n, call): (usize, &&str)| {
            format!(
                r#"{{"type":"assistant","id":"a{n}","text":"{call}","usage":{{"input":9,"call_id":"{call}"}}}}"#
            )
        };
        let lines: Vec<String> =
            [header, user].into_iter().chain(calls.iter().enumerate().map(reply)).collect();
        ctxbench_scenarios::parse(lines.join("\n").as_bytes(), "s.jsonl").unwrap()
    }

    /// Twelve copies of one text with ids and times of their own, and one message that differs.
    #[test]
    fn sessions_with_equal_messages_are_counted_once() {
        let copy = |n: usize, text: &str| {
            let mut lines = vec![
                format!(
                    r#"{{"type":"session","version":1,"id":"s{n}","title":"{n}","started":"2026-01-{:02}T00:00:00Z","source":{{"format":"codex"}}}}"#,
                    n + 1
                ),
                format!(r#"{{"type":"user","id":"u{n}","text":"go","at":{n}}}"#),
                format!(
                    r#"{{"type":"assistant","id":"a{n}","text":"{text}","at":{},"calls":[{{"id":"c{n}","name":"read","arguments":"{{}}"}}],"usage":{{"input":9,"call_id":"r{n}"}}}}"#,
                    n + 5
                ),
                format!(r#"{{"type":"tool","call_id":"c{n}","output":"done"}}"#),
            ];
            lines.extend((0..20).map(|i| {
                let text = if i == n { "other".into() } else { format!("{text}{i}") };
                format!(r#"{{"type":"user","id":"u{n}-{i}","text":"{text}"}}"#)
            }));
            ctxbench_scenarios::parse(lines.join("\n").as_bytes(), "s.jsonl").unwrap()
        };
        let mut all: Vec<Scenario> = (0..12).map(|n| copy(n, "x")).collect();
        all.push(copy(12, "y"));
        let calls: Vec<SessionCalls> = all.iter().map(|s| SessionCalls::new(&s.session)).collect();
        bill_once(&mut all, &calls);
        let counted: Vec<Option<&str>> = all.iter().map(|s| s.counted_as.as_deref()).collect();
        let mut want = vec![Some("s0"); 13];
        (want[0], want[12]) = (None, None);
        assert_eq!(counted, want);
        // Each paid for separate calls.
        assert!(all.iter().all(|s| s.billed_elsewhere.is_empty()));
    }

    #[test]
    fn sessions_that_share_calls_are_billed_and_counted_once() {
        let mut all = [
            session("parent", &["a", "b"]),
            session("other", &["c"]),
            session("fork", &["a", "b", "d"]),
            session("copy", &["d"]),
            session("bare", &[]),
            session("bare-too", &[]),
        ];
        let calls: Vec<SessionCalls> = all.iter().map(|s| SessionCalls::new(&s.session)).collect();
        bill_once(&mut all, &calls);
        let billed: Vec<usize> = all.iter().map(|s| s.billed_elsewhere.len()).collect();
        // Two calls of the parent are the fork's, and the copies have nothing of their own.
        assert_eq!(billed, [2, 0, 0, 1, 0, 1]);
        let counted: Vec<Option<&str>> = all.iter().map(|s| s.counted_as.as_deref()).collect();
        assert_eq!(counted, [Some("fork"), None, None, Some("fork"), None, Some("bare")]);
        let told = notes(&all);
        assert_eq!(told.len(), 2);
        assert!(told[1].starts_with("fork and 2 other sessions share calls"), "{told:?}");
    }
}
