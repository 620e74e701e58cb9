//! Facts that recorded compactions put at risk, and what was left of them in the recorded summary and in
//! what followed it. What a program kept verbatim without recording it is not known.

use ctxbench_reports::record::{FactLife, FactMove, FactPlace, FactRecord};
use ctxbench_session::{Entry, FactKind, Match, Session};
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use crate::session_cache::SessionCache;
use crate::texts::{Lines, nearest};

/// Returns the needs behind a recorded compaction with a fact from before it, and the history of the
/// facts. The agent cannot have used what it no longer had: a reply that uses it has it from
/// elsewhere, so only what users ask for and what the agent fetches again can be lost.
pub(crate) fn facts(session: &Session) -> (Vec<FactRecord>, Vec<FactLife>) {
    if !session.entries.iter().any(|e| matches!(e, Entry::RecordedCompaction(_))) {
        return Default::default();
    }
    let known = SessionCache::from_session(session);
    let mut needing: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, fact) in known.facts.iter().enumerate() {
        fact.needs.iter().for_each(|need| needing.entry(need).or_default().push(i));
    }
    let (mut records, mut lives) = (Vec::new(), known.lives(session).to_vec());
    let mut seen = vec![false; known.fact_of().len()];
    let mut arisen: HashMap<&str, u64> = HashMap::new();
    let mut summary = "";
    let (mut compactions, mut requests) = (0, 0);
    for e in &session.entries {
        // Requests are counted as in the row: one for each call with counters.
        let request = requests;
        requests += u64::from(match e {
            Entry::Assistant(a) => a.usage.is_some(),
            Entry::RecordedCall(_) => true,
            Entry::RecordedCompaction(c) => c.usage.is_some(),
            _ => false,
        });
        if e.agent().is_some() {
            continue;
        }
        if let Entry::RecordedCompaction(c) = e {
            summary = c.summary.as_deref().unwrap_or_default();
            seen.fill(false);
            known.carried(summary).units().for_each(|(unit, _)| seen[unit] = true);
            compactions += 1;
        }
        let Some(key) = e.key() else { continue };
        let before = |fact: &usize| {
            arisen.get(known.facts[*fact].arises.as_str()).is_some_and(|c| *c < compactions)
        };
        for &n in needing.get(key).into_iter().flatten().filter(|fact| before(fact)) {
            let (fact, units) = (&known.facts[n], &seen[known.units(n)]);
            let share = units.iter().filter(|s| **s).count() as f64 / units.len() as f64;
            let is_kept = share == 1.0;
            if !is_kept {
                let after = nearest(fact, &lives[n].text, &Lines::from_lines(summary.lines()));
                let moved = FactMove {
                    compaction: compactions - 1,
                    from: FactPlace::Verbatim,
                    to: FactPlace::Nowhere,
                    before: lives[n].text.clone(),
                    after: after.into(),
                };
                lives[n].moves.push(moved);
            }
            records.push(FactRecord {
                fact: fact.id.clone(),
                kind: fact.kind,
                need: key.to_string(),
                counts: fact.kind == FactKind::Content || !matches!(e, Entry::Assistant(_)),
                exposed: Some(true),
                request: Some(request),
                found: if is_kept { Match::Verbatim } else { Match::Absent },
                share,
                place: if is_kept { FactPlace::Summary } else { FactPlace::Nowhere },
                compactions_before: compactions,
                ..FactRecord::default()
            });
        }
        known.stated(key).for_each(|unit| seen[unit] = true);
        arisen.insert(key, compactions);
    }
    (records, lives)
}
