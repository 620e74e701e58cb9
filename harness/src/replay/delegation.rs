//! What subagents add to the record of a run. What was paid counts wherever it was paid: requests, tokens and dollars of all windows.
//! What describes a window (peak, prefix, compactions, drift, steps, waiting) stays that of the main conversation.

use std::collections::{HashMap, HashSet};

use ctxbench_core::delegation::Delegation;
use ctxbench_core::fact::{Fact, Match, fold};
use ctxbench_core::record::{RunRecord, Status, Summary};
use ctxbench_core::session::{Entry, Session, SessionPart};
use ctxbench_core::tokens::o200k;

use super::agents::{Agent, window};
use super::crew::{Crew, Done};
use super::{Replayed, measure};

/// Adds the subagents to the record of the main conversation.
pub(super) fn add(replayed: &mut Replayed, crew: &Crew, session: &Session) {
    let record = &mut replayed.record;
    // Where the rows of each window begin.
    let mut from: HashMap<String, u64> = HashMap::new();
    let mut compacted = 0;
    for (agent, done) in crew.agents.iter().zip(crew.finish()) {
        let mut row = Delegation { waited: agent.waits, status: Status::NotApplicable, ..told(agent, session) };
        match done {
            Some(done) => {
                let offset = record.requests.len() as u64;
                from.insert(agent.id.clone(), offset);
                fill(&mut row, &done);
                compacted += row.compactions;
                replayed.trace.extend(done.trace.iter().cloned());
                take(record, &agent.id, done, offset);
            }
            None => record.facts.extend(crew.unreached(agent)),
        }
        record.delegation.push(row);
    }
    for row in &mut record.delegation {
        // The caller's window may begin behind its subagent's in the order of the session, so this comes last.
        let offset = row.caller.as_ref().map_or(Some(0), |c| from.get(c).copied());
        row.request = row.request.zip(offset).map(|(n, o)| n + o);
    }
    record.facts.sort_by(|a, b| (&a.fact, &a.need, a.request).cmp(&(&b.fact, &b.need, b.request)));
    outside(record, session);
    record.integrity.sort_by(|a, b| (a.request, &a.rule).cmp(&(b.request, &b.rule)));
    record.summary.integrity_failures = record.integrity.len() as u64;
    if record.status != Status::Completed {
        record.summary.task_tokens = None;
    }
    if compacted > 0 && record.compactions.is_empty() && record.note.is_some() {
        record.note = Some("compacted in subagents only".into());
    }
    measure::pairs_again(record);
}

/// What the session alone tells of a subagent.
fn told(agent: &Agent, session: &Session) -> Delegation {
    let ids = ids(session, &agent.id);
    let facts: Vec<&Fact> = session.facts.iter().filter(|f| !f.distractor && ids.contains(f.arises.as_str())).collect();
    let result = agent.call.as_ref().and_then(|c| result(session, &c.id));
    let folded = result.as_deref().map(fold).unwrap_or_default();
    let back = |f: &&&Fact| result.as_deref().is_some_and(|r| f.matches(r, &folded) > Match::Absent);
    Delegation {
        agent: agent.id.clone(),
        call: agent.call.as_ref().map(|c| c.id.clone()),
        caller: agent.call.as_ref().and_then(|c| c.caller.clone()),
        result_tokens: result.as_deref().map(o200k),
        delegated_facts: facts.len() as u64,
        returned_facts: facts.iter().filter(back).count() as u64,
        ..Delegation::default()
    }
}

/// Ids of the messages and results in a window.
fn ids<'a>(session: &'a Session, agent: &str) -> HashSet<&'a str> {
    session.entries.iter().filter(|e| window(e) == Some(agent)).filter_map(id_of).collect()
}

fn id_of(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::User(u) => Some(&u.id),
        Entry::Assistant(a) => Some(&a.id),
        Entry::Tool(t) => Some(&t.call_id),
        _ => None,
    }
}

/// What a call returned, as text.
fn result(session: &Session, call: &str) -> Option<String> {
    session.entries.iter().find_map(|e| match e {
        Entry::Tool(t) if t.call_id == call => Some(text(t.content())),
        _ => None,
    })
}

fn text(parts: Vec<SessionPart>) -> String {
    parts.into_iter().filter_map(SessionPart::into_text).collect::<Vec<_>>().join("\n")
}

fn fill(row: &mut Delegation, done: &Done) {
    let s = &done.record.summary;
    row.request = done.request;
    row.status = done.record.status;
    row.steps = s.steps_completed;
    row.requests = s.requests;
    row.compactions = s.compactions;
    (row.input_tokens, row.output_tokens) = (s.input_tokens, s.output_tokens);
    (row.cache_read_tokens, row.cache_write_tokens) = (s.cache_read_tokens, s.cache_write_tokens);
    row.cost_usd = s.cost_usd;
    (row.started_ms, row.duration_ms, row.blocked_ms) = (done.started_ms, done.took_ms, s.blocked_ms);
    row.peak_context_tokens = s.peak_context_tokens;
}

/// Adds a subagent's rows, which are numbered on from `offset`, and its sums.
fn take(record: &mut RunRecord, agent: &str, done: Done, offset: u64) {
    let own = done.record;
    record.requests.extend(own.requests.into_iter().map(|mut r| {
        r.seq += offset;
        r
    }));
    record.facts.extend(own.facts.into_iter().map(|mut f| {
        f.request = f.request.map(|n| n + offset);
        f
    }));
    record.integrity.extend(own.integrity.into_iter().map(|mut i| {
        i.request += offset;
        i.detail = format!("subagent {agent}: {}", i.detail);
        i
    }));
    sums(&mut record.summary, &own.summary);
    // A session whose subagent did not come back was not finished.
    if record.status == Status::Completed && own.status != Status::Completed {
        record.status = own.status;
        record.error = Some(format!("subagent {agent}: {}", own.error.unwrap_or_default()));
    }
}

fn sums(all: &mut Summary, own: &Summary) {
    let both = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    all.requests += own.requests;
    all.summary_calls += own.summary_calls;
    all.input_tokens += own.input_tokens;
    all.cache_read_tokens += own.cache_read_tokens;
    all.cache_write_tokens += own.cache_write_tokens;
    all.output_tokens += own.output_tokens;
    all.task_tokens = all.task_tokens.zip(own.task_tokens).map(|(a, b)| a + b);
    all.cost_usd += own.cost_usd;
    all.cost_read_005_usd = both(all.cost_read_005_usd, own.cost_read_005_usd);
    all.cost_read_0025_usd = both(all.cost_read_0025_usd, own.cost_read_0025_usd);
    all.invalidated_tokens += own.invalidated_tokens;
    all.invalidated_expired_tokens += own.invalidated_expired_tokens;
    all.invalidated_changed_tokens += own.invalidated_changed_tokens;
    all.cache_read_ratio = (all.input_tokens > 0).then(|| all.cache_read_tokens as f64 / all.input_tokens as f64);
    all.reread_tokens += own.reread_tokens;
    all.extra_requests += own.extra_requests;
    all.provider_overflows += own.provider_overflows;
    all.user_interventions += own.user_interventions;
}

/// Pairs that another window needs than the one in which their fact arises: what of them came over.
fn outside(record: &mut RunRecord, session: &Session) {
    let arises: HashMap<&str, &str> = session.facts.iter().map(|f| (f.id.as_str(), f.arises.as_str())).collect();
    for row in &mut record.delegation {
        let own = ids(session, &row.agent);
        let of = |id: &str| own.contains(id);
        for p in record.facts.iter().filter(|p| arises.get(p.fact.as_str()).is_some_and(|a| of(a)) && !of(&p.need)) {
            row.needed_outside += 1;
            row.kept_outside += u64::from(p.found > Match::Absent);
        }
    }
    for p in record.facts.iter_mut().filter(|p| p.found == Match::Absent) {
        let fact = session.facts.iter().find(|f| f.id == p.fact);
        p.undelivered = fact.is_some_and(|f| !delivered(session, f, &p.need));
    }
}

/// Whether a fact that arises in another window is said by a user or a tool in the window of a need before it. What a model says there
/// without having seen it counts for nobody.
fn delivered(session: &Session, fact: &Fact, need: &str) -> bool {
    let place = |id: &str| session.entries.iter().position(|e| id_of(e) == Some(id));
    let (Some(from), Some(at)) = (place(&fact.arises), place(need)) else { return true };
    let here = window(&session.entries[at]);
    if window(&session.entries[from]) == here {
        return true;
    }
    let user = matches!(session.entries[at], Entry::User(_));
    let before = &session.entries[..at + usize::from(user)];
    before.iter().filter(|e| window(e) == here).any(|e| {
        let parts = match e {
            Entry::User(u) => u.content(),
            Entry::Tool(t) => t.content(),
            _ => return false,
        };
        let text = text(parts);
        fact.matches(&text, &fold(&text)) > Match::Absent
    })
}
