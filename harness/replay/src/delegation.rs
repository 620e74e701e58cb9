//! Work delegated to subagents: a record for each subagent, and the (fact, need) pairs of all
//! windows.

use std::collections::HashMap;

use ctxbench_core::content::joined_text;
use ctxbench_core::model::Counting;
use ctxbench_core::tokens::o200k;
use ctxbench_reports::record::{Delegation, FactRecord, RequestRecord, Status};
use ctxbench_session::fact::{Fact, Match, fold};
use ctxbench_session::{Entry, Session};

use super::agents::Subagent;
use super::conversation::Conversation;
use super::needs::Needs;
use super::path::Path;
use super::windows::window;
use crate::scene::FinishedRun;

/// Returns a record for each subagent. `parts` = the conversations, `facts` = the pairs of all
/// windows.
pub(super) fn records(
    run: &FinishedRun<'_>,
    parts: &[Option<Conversation>],
    facts: &[FactRecord],
) -> Vec<Delegation> {
    if run.subagents.all.is_empty() {
        return vec![];
    }
    let agents = run.subagents.all.iter().zip(parts);
    let offsets: HashMap<&str, u64> =
        agents.filter_map(|(a, part)| Some((a.id.as_str(), part.as_ref()?.offset))).collect();
    let handed = Handed::from_session(run.scene.session, facts);
    let row = |(agent, part): (&Subagent, &Option<Conversation>)| {
        let row =
            Delegation { waited: agent.waits, ..handed.over(agent, &run.scene.model.counting) };
        let Some(c) = part else {
            return Delegation { status: Status::NotApplicable, ..row };
        };
        let sum = |of: fn(&RequestRecord) -> u64| c.requests.iter().map(of).sum::<u64>();
        let caller = row.caller.as_deref().map_or(Some(0), |id| offsets.get(id).copied());
        Delegation {
            request: c.by_request.zip(caller).map(|(n, o)| n + o),
            status: c.status().0,
            steps: c.steps,
            requests: c.requests.len() as u64,
            compactions: c.compactions.len() as u64,
            input_tokens: sum(|r| r.input_tokens),
            cache_read_tokens: sum(|r| r.cache_read),
            cache_write_tokens: sum(|r| r.cache_write),
            output_tokens: sum(|r| r.output_tokens),
            cost_usd: c.cost_usd(),
            started_ms: c.at_ms,
            duration_ms: c.took_ms,
            blocked_ms: c.blocked_ms,
            peak_context_tokens: c.peak(),
            ..row
        }
    };
    run.subagents.all.iter().zip(parts).map(row).collect()
}

/// Facts that are passed to subagents and back, according to the session and the pairs.
struct Handed<'a> {
    /// First result of each call.
    results: HashMap<&'a str, &'a Entry>,
    /// Facts that arise in each subagent's window.
    facts: HashMap<&'a str, Vec<&'a Fact>>,
    /// For each subagent: the number of pairs with a fact that arises in its window and is needed
    /// in another one, and how many of them were found.
    outside: HashMap<&'a str, (u64, u64)>,
}

impl<'a> Handed<'a> {
    fn from_session(session: &'a Session, pairs: &[FactRecord]) -> Handed<'a> {
        let mut windows: HashMap<&str, &str> = HashMap::new();
        let mut results: HashMap<&str, &Entry> = HashMap::new();
        for e in &session.entries {
            windows.extend(e.key().zip(e.agent()));
            if let Entry::Tool(t) = e {
                results.entry(&t.call_id).or_insert(e);
            }
        }
        let mut facts: HashMap<&str, Vec<&Fact>> = HashMap::new();
        let mut arises: HashMap<&str, &str> = HashMap::new();
        for fact in &session.facts {
            let Some(window) = windows.get(fact.arises.as_str()) else { continue };
            arises.insert(&fact.id, window);
            facts.entry(window).or_default().push(fact);
        }
        let mut outside: HashMap<&str, (u64, u64)> = HashMap::new();
        for pair in pairs {
            let Some(window) = arises.get(pair.fact.as_str()) else { continue };
            if windows.get(&*pair.need) != Some(window) {
                let (needed, kept) = outside.entry(window).or_default();
                *needed += 1;
                *kept += u64::from(pair.found > Match::Absent);
            }
        }
        Handed { results, facts, outside }
    }

    fn over(&self, agent: &Subagent, by: &Counting) -> Delegation {
        let facts = self.facts.get(&*agent.id).map_or(&[][..], Vec::as_slice);
        let result = agent.call.as_ref().and_then(|c| self.results.get(&*c.id));
        let result = result.map(|e| joined_text(&e.content(), "\n"));
        let folded = result.as_deref().map(fold).unwrap_or_default();
        let back =
            |f: &&&Fact| result.as_deref().is_some_and(|r| f.matches(r, &folded) > Match::Absent);
        let (needed, kept) = self.outside.get(&*agent.id).copied().unwrap_or_default();
        Delegation {
            agent: agent.id.clone(),
            call: agent.call.as_ref().map(|c| c.id.clone()),
            caller: agent.call.as_ref().and_then(|c| c.caller.clone()),
            result_tokens: result.as_deref().map(|r| by.text(o200k(r))),
            delegated_facts: facts.len() as u64,
            returned_facts: facts.iter().filter(back).count() as u64,
            needed_outside: needed,
            kept_outside: kept,
            ..Delegation::default()
        }
    }
}

/// Returns the pairs of all windows.
pub(super) fn facts(
    run: &FinishedRun<'_>,
    main: &Conversation,
    parts: &[Option<Conversation>],
) -> Vec<FactRecord> {
    let mut out = main.facts.clone();
    for (agent, part) in run.subagents.all.iter().zip(parts) {
        match part {
            Some(part) => out.extend(part.facts.iter().map(|f| {
                let request = f.request.map(|n| n + part.offset);
                FactRecord { request, ..f.clone() }
            })),
            // Pairs of a subagent that never began were not checked.
            None => {
                let own = window(run.scene.session, &agent.id);
                out.extend(Needs::new(&run.scene.known, &Path::recorded(&own)).1);
            }
        }
    }
    out.sort_by(|a, b| (&a.fact, &a.need, a.request).cmp(&(&b.fact, &b.need, b.request)));
    for pair in out.iter_mut().filter(|pair| pair.found == Match::Absent) {
        pair.undelivered = !run.subagents.delivered(&pair.fact, &pair.need);
    }
    out
}
