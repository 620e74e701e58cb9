//! Calls that several sessions of a command share: forks, resumed copies and backups repeat the calls
//! of another session. A call is billed to one of them, and all of them count as one session in
//! comparisons.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ctxbench_core::tokens::content_hash;
use ctxbench_scenarios::Scenario;
use ctxbench_session::{Entry, RecordedUsage, Session};
use ctxbench_util::plural::pluralize;

/// Returns the hash of the identity of a call.
pub fn call_hash(usage: &RecordedUsage) -> Option<u64> {
    usage.billing.call_id.as_deref().map(|id| content_hash(id.as_bytes()))
}

/// What identifies a session among others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionCalls {
    /// Hashes of its calls, each once.
    calls: Vec<u64>,
    /// Hash of the content of a recording without identified calls, so that its copies are recognised.
    content: Option<u64>,
    replies: usize,
}

impl SessionCalls {
    /// Reads the calls of a session.
    pub fn new(session: &Session) -> SessionCalls {
        let usage = |e: &Entry| match e {
            Entry::Assistant(a) => a.usage.as_ref().and_then(call_hash),
            Entry::RecordedCall(c) => call_hash(&c.usage),
            Entry::RecordedCompaction(c) => c.usage.as_ref().and_then(call_hash),
            _ => None,
        };
        let calls: BTreeSet<u64> = session.entries.iter().filter_map(usage).collect();
        let is_reply = |e: &&Entry| matches!(e, Entry::Assistant(a) if a.agent.is_none());
        SessionCalls {
            content: (calls.is_empty() && session.header.source.is_some())
                .then(|| content(session)),
            calls: calls.into_iter().collect(),
            replies: session.entries.iter().filter(is_reply).count(),
        }
    }

    /// Returns the hash of the content of a recording without identified calls.
    pub fn content(&self) -> Option<u64> {
        self.content
    }

    /// Returns the hashes that copies of the session have, too.
    pub fn identities(&self) -> impl Iterator<Item = u64> {
        self.calls.iter().copied().chain(self.content)
    }
}

/// Hashes what was said in a session, and when it began.
fn content(session: &Session) -> u64 {
    let said = session.entries.iter().filter(|e| e.key().is_some());
    let began = session.header.started.clone().unwrap_or_default();
    let texts = said.map(|e| format!("{:?}", e.content()));
    let texts: Vec<String> = std::iter::once(began).chain(texts).collect();
    content_hash(texts.join("\0").as_bytes())
}

/// Calls that were billed, each with the session that it was billed to.
#[derive(Debug, Default)]
pub struct BilledCalls(HashMap<u64, usize>);

impl BilledCalls {
    /// Bills calls to a session. Returns those that are billed to other sessions already, with
    /// these sessions.
    pub fn bill(
        &mut self,
        session: usize,
        calls: impl Iterator<Item = u64>,
    ) -> HashMap<u64, usize> {
        let owner = |call| (call, *self.0.entry(call).or_insert(session));
        calls.map(owner).filter(|(_, by)| *by != session).collect()
    }
}

/// Bills each call to the first session that has it, and names the session that each group of
/// sessions with the same calls is counted as: the one with the most replies.
pub fn bill_once(sessions: &mut [Scenario], calls: &[SessionCalls]) {
    let mut billed = BilledCalls::default();
    let mut groups = Groups((0..sessions.len()).collect());
    for (at, own) in calls.iter().enumerate() {
        let elsewhere = billed.bill(at, own.identities());
        elsewhere.values().for_each(|by| groups.join(at, *by));
        sessions[at].billed_elsewhere =
            own.calls.iter().copied().filter(|call| elsewhere.contains_key(call)).collect();
    }
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    (0..sessions.len()).for_each(|at| members.entry(groups.root(at)).or_default().push(at));
    for group in members.into_values().filter(|g| g.len() > 1) {
        // The first of several with the most replies.
        let longest = group.iter().copied().rev().max_by_key(|at| calls[*at].replies);
        let Some(longest) = longest else { continue };
        let name = sessions[longest].id.clone();
        for at in group.into_iter().filter(|at| *at != longest) {
            sessions[at].counted_as = Some(name.clone());
        }
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
                r#"{{"type":"assistant","id":"a{n}","text":"x","usage":{{"input":9,"call_id":"{call}"}}}}"#
            )
        };
        let lines: Vec<String> =
            [header, user].into_iter().chain(calls.iter().enumerate().map(reply)).collect();
        ctxbench_scenarios::parse(lines.join("\n").as_bytes(), "s.jsonl").unwrap()
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
        assert_eq!(billed, [0, 0, 2, 1, 0, 0]);
        let counted: Vec<Option<&str>> = all.iter().map(|s| s.counted_as.as_deref()).collect();
        assert_eq!(counted, [Some("fork"), None, None, Some("fork"), None, Some("bare")]);
        let told = notes(&all);
        assert_eq!(told.len(), 2);
        assert!(told[1].starts_with("fork and 2 other sessions share calls"), "{told:?}");
    }
}
