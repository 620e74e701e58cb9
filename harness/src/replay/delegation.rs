//! What was handed to subagents: a row for each, and the (fact, need) pairs of all windows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctxbench_core::content::joined_text;
use ctxbench_core::fact::{Fact, Match, fold};
use ctxbench_core::model::Counting;
use ctxbench_core::session::{Entry, Session};
use ctxbench_core::tokens::o200k;
use ctxbench_reports::record::{Delegation, FactRecord, RequestRecord, Status};

use super::needs::{Needs, unreached};
use super::path::{Defaults, Path};
use super::record::{ConversationRecord, Run};
use super::showings::Showings;
use super::windows::{Subagent, own};

/// A row for each subagent; `parts` are their conversations, `facts` the pairs of all windows.
pub(super) fn records(
    run: &Run<'_>,
    parts: &[Option<ConversationRecord>],
    facts: &[FactRecord],
) -> Vec<Delegation> {
    let session = &run.scenario.session;
    let offset = |id: &str| {
        let (_, part) = run.agents.iter().zip(parts).find(|(a, _)| a.id == id)?;
        part.as_ref().map(|p| p.offset)
    };
    let row = |(agent, part): (&Subagent, &Option<ConversationRecord>)| {
        let row = Delegation {
            waited: agent.waits,
            ..handed_over(agent, session, &run.model.counting, facts)
        };
        let Some(part) = part else {
            return Delegation { status: Status::NotApplicable, ..row };
        };
        let c = &part.conversation;
        let sum = |of: fn(&RequestRecord) -> u64| c.requests().map(of).sum::<u64>();
        let begun = c.begun();
        let caller = row.caller.as_deref().map_or(Some(0), offset);
        Delegation {
            request: begun.and_then(|b| b.by_request).zip(caller).map(|(n, o)| n + o),
            status: part.status,
            steps: c.steps(),
            requests: c.requests().count() as u64,
            compactions: part.compactions.len() as u64,
            input_tokens: sum(|r| r.input_tokens),
            cache_read_tokens: sum(|r| r.cache_read),
            cache_write_tokens: sum(|r| r.cache_write),
            output_tokens: sum(|r| r.output_tokens),
            cost_usd: c.cost_usd(),
            started_ms: begun.map_or(0, |b| b.at_ms),
            duration_ms: c.took_ms(),
            blocked_ms: c.blocked_ms(),
            peak_context_tokens: c.peak(),
            ..row
        }
    };
    run.agents.iter().zip(parts).map(row).collect()
}

/// What went to a subagent and came back, by the session and the pairs alone.
fn handed_over(
    agent: &Subagent,
    session: &Session,
    by: &Counting,
    pairs: &[FactRecord],
) -> Delegation {
    let ids = ids(session, &agent.id);
    let facts: Vec<&Fact> =
        session.facts.iter().filter(|f| !f.distractor && ids.contains(f.arises.as_str())).collect();
    let result = agent.call.as_ref().and_then(|c| result(session, &c.id));
    let folded = result.as_deref().map(fold).unwrap_or_default();
    let back =
        |f: &&&Fact| result.as_deref().is_some_and(|r| f.matches(r, &folded) > Match::Absent);
    // Pairs that another window needs than the one in which their fact arises.
    let arises: HashMap<&str, &str> =
        session.facts.iter().map(|f| (f.id.as_str(), f.arises.as_str())).collect();
    let outside = |p: &&FactRecord| {
        arises.get(p.fact.as_str()).is_some_and(|a| ids.contains(a)) && !ids.contains(&*p.need)
    };
    let outside: Vec<&FactRecord> = pairs.iter().filter(outside).collect();
    Delegation {
        agent: agent.id.clone(),
        call: agent.call.as_ref().map(|c| c.id.clone()),
        caller: agent.call.as_ref().and_then(|c| c.caller.clone()),
        result_tokens: result.as_deref().map(|r| by.text(o200k(r))),
        delegated_facts: facts.len() as u64,
        returned_facts: facts.iter().filter(back).count() as u64,
        needed_outside: outside.len() as u64,
        kept_outside: outside.iter().filter(|p| p.found > Match::Absent).count() as u64,
        ..Delegation::default()
    }
}

/// Ids of the messages and results in a window.
fn ids<'a>(session: &'a Session, agent: &str) -> HashSet<&'a str> {
    session.entries.iter().filter(|e| e.agent() == Some(agent)).filter_map(Entry::key).collect()
}

/// What a call returned, as text.
fn result(session: &Session, call: &str) -> Option<String> {
    session.entries.iter().find_map(|e| match e {
        Entry::Tool(t) if t.call_id == call => Some(joined_text(&t.content(), "\n")),
        _ => None,
    })
}

/// The pairs of all windows.
pub(super) fn facts(
    run: &Run<'_>,
    main: &ConversationRecord,
    parts: &[Option<ConversationRecord>],
) -> Vec<FactRecord> {
    let session = &run.scenario.session;
    let mut out = main.conversation.facts(session);
    for (agent, part) in run.agents.iter().zip(parts) {
        match part {
            Some(part) => out.extend(part.conversation.facts(session).into_iter().map(|f| {
                let request = f.request.map(|n| n + part.offset);
                FactRecord { request, ..f }
            })),
            // Nobody looked at those of a subagent that was never started.
            None => {
                let own = own(session, &agent.id);
                let path = Path::recorded(&own, &Defaults::STATED);
                let showings = Arc::new(Showings::new(&path, &run.known.of(&own)));
                let pairs = Needs::new(&own, &path, showings).pairs();
                out.extend(pairs.iter().map(|p| unreached(&session.facts[p.fact], p, 0)));
            }
        }
    }
    out.sort_by(|a, b| (&a.fact, &a.need, a.request).cmp(&(&b.fact, &b.need, b.request)));
    if run.agents.is_empty() {
        return out;
    }
    let undelivered = |p: &FactRecord| {
        let fact = session.facts.iter().find(|f| f.id == p.fact);
        p.found == Match::Absent && fact.is_some_and(|f| !delivered(session, f, &p.need))
    };
    out.into_iter().map(|p| FactRecord { undelivered: undelivered(&p), ..p }).collect()
}

/// Whether a fact that arises in another window is said by a user or a tool in the window of a need
/// before it. What a model says there without having seen it counts for nobody.
fn delivered(session: &Session, fact: &Fact, need: &str) -> bool {
    let place = |id: &str| session.entries.iter().position(|e| e.key() == Some(id));
    let (Some(from), Some(at)) = (place(&fact.arises), place(need)) else { return true };
    let here = session.entries[at].agent();
    if session.entries[from].agent() == here {
        return true;
    }
    let user = matches!(session.entries[at], Entry::User(_));
    let before = &session.entries[..at + usize::from(user)];
    let told = |e: &&Entry| e.agent() == here && matches!(e, Entry::User(_) | Entry::Tool(_));
    before.iter().filter(told).any(|e| {
        let text = joined_text(&e.content(), "\n");
        fact.matches(&text, &fold(&text)) > Match::Absent
    })
}
