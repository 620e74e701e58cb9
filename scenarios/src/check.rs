//! Consistency checks on a session's entries: unique ids, results with their calls, and facts and
//! rewinds that name messages.

use std::collections::{HashMap, HashSet};

use ctxbench_core::content::Part;
use ctxbench_session::fact::Fact;
use ctxbench_session::{Entry, Header, Session};
use ctxbench_util::nearest;

use crate::error::{InputError, Loaded};

/// Entry with its line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Located {
    pub(crate) line: usize,
    pub(crate) entry: Entry,
}

/// Builds a session from its entries. If `cut` is set, the input ended too early, and facts that
/// name lost messages are left out.
pub(crate) fn assemble(
    header: Header,
    items: Vec<Located>,
    file: &str,
    cut: bool,
) -> Result<Loaded, InputError> {
    let mut out =
        Loaded { session: Session { header, ..Session::default() }, warnings: Vec::new() };
    let mut messages: HashMap<String, usize> = HashMap::new();
    let mut calls: Vec<(String, usize)> = Vec::new();
    let mut known_calls: HashMap<String, usize> = HashMap::new();
    let mut answered: HashSet<String> = HashSet::new();
    let mut facts: Vec<(usize, Fact)> = Vec::new();
    let mut rewinds: Vec<(usize, String)> = Vec::new();
    let mut on_disk: HashMap<String, usize> = HashMap::new();
    for Located { line, entry } in items {
        match &entry {
            Entry::User(m) => unique("message", &mut messages, &m.id, line)?,
            Entry::Assistant(m) => {
                unique("message", &mut messages, &m.id, line)?;
                for call in m.all_calls() {
                    unique("call", &mut known_calls, &call.id, line)?;
                    calls.push((call.id.to_string(), line));
                }
            }
            Entry::Tool(m) => {
                if !known_calls.contains_key(&m.call_id) {
                    out.warnings.push(format!(
                        "{file}:{line}: result for {:?}, which no earlier reply called; left out",
                        m.call_id
                    ));
                    continue;
                }
                for e in &m.effects {
                    inside(&e.path, line)?;
                    if e.text.is_some() == e.removed {
                        let what = format!(
                            "the effect on {:?} has both or neither of \"text\" and \"removed\"",
                            e.path
                        );
                        return Err(InputError::new(
                            line,
                            what,
                            "text = \"…\" or removed = true",
                            "write one of the two",
                        ));
                    }
                }
                if !answered.insert(m.call_id.clone()) {
                    out.warnings.push(format!(
                        "{file}:{line}: second result for call {:?}; left out",
                        m.call_id
                    ));
                    continue;
                }
            }
            Entry::Rewind { to, .. } => rewinds.push((line, to.clone())),
            Entry::DiskFile { path, .. } => {
                inside(path, line)?;
                unique("disk file", &mut on_disk, path, line)?;
            }
            _ => {}
        }
        match entry {
            Entry::Fact(f) => facts.push((line, f)),
            other => out.session.entries.push(other),
        }
    }
    out.session.entries.shrink_to_fit();
    for (id, line) in calls.iter().filter(|(id, _)| !answered.contains(id)) {
        out.warnings.push(format!("{file}:{line}: call {id:?} has no result; kept as it is"));
    }
    for (line, to) in rewinds {
        if !messages.contains_key(&to) && !known_calls.contains_key(&to) {
            return Err(unknown("rewind", "to", &to, &messages, line));
        }
    }
    let fact_ids: HashSet<String> = facts.iter().map(|(_, f)| f.id.clone()).collect();
    let mut seen = HashMap::new();
    let places = places(&out.session, facts.iter().map(|(_, f)| f));
    for (line, mut fact) in facts {
        unique("fact", &mut seen, &fact.id, line)?;
        let mut carriers = fact.tokens.iter().chain(&fact.words).peekable();
        let has_none = carriers.peek().is_none();
        if has_none || carriers.any(|t| t.trim().is_empty()) {
            let what = if has_none { "has no tokens" } else { "has an empty token" };
            return Err(InputError::new(
                line,
                format!("fact {:?} {what}", fact.id),
                "the literals (\"tokens\") or, without any, the stems (\"words\") that carry it",
                "write them",
            ));
        }
        let there = |id: &String| messages.contains_key(id) || known_calls.contains_key(id);
        if cut && (!there(&fact.arises) || fact.needs.iter().any(|n| !there(n))) {
            out.warnings.push(format!(
                "{file}:{line}: fact {:?} names messages that the cut-off \
                file lacks; left out there",
                fact.id
            ));
            fact.needs.retain(there);
            if !there(&fact.arises) {
                continue;
            }
        }
        for (field, id) in
            std::iter::once(("arises", &fact.arises)).chain(fact.needs.iter().map(|n| ("needs", n)))
        {
            if !there(id) {
                return Err(unknown(&format!("fact {:?}", fact.id), field, id, &messages, line));
            }
        }
        if let Some(need) = fact.needs.iter().find(|n| !is_later(&places, n, &fact.arises)) {
            return Err(InputError::new(
                line,
                format!("fact {:?} is needed in {need:?} and arises in {:?}", fact.id, fact.arises),
                "needs that come after the message in which it arises",
                "correct \"arises\" or \"needs\"",
            ));
        }
        if let Some(by) = fact.superseded_by.as_ref().filter(|by| !cut && !fact_ids.contains(*by)) {
            let what = format!("fact {:?} is superseded by unknown fact {by:?}", fact.id);
            return Err(InputError::new(
                line,
                what,
                "the id of a fact of this session",
                "correct the id or add that fact",
            ));
        }
        let here = places.get(&fact.arises).is_some_and(|place| carry(&place.said, &fact));
        if !here && !stands_anywhere(&out.session, &fact) {
            out.warnings.push(format!(
                "{file}:{line}: fact {:?} is said nowhere in the session, so nothing can keep it; \
                 correct its \"tokens\" ({})",
                fact.id,
                fact.tokens.join(", ")
            ));
        }
        out.session.facts.push(fact);
    }
    Ok(out)
}

/// A message, result or call that a fact names.
#[derive(Default)]
struct EntrySpan {
    /// Index of the first and the last entry. The last entry of a call is its result.
    first: Option<usize>,
    last: usize,
    said: Vec<Part>,
}

/// Returns the entries in which facts arise or are needed, by id.
fn places<'a>(
    session: &Session,
    facts: impl Iterator<Item = &'a Fact>,
) -> HashMap<String, EntrySpan> {
    let ids = facts.flat_map(|f| f.needs.iter().chain([&f.arises]));
    let mut out: HashMap<String, EntrySpan> =
        ids.map(|id| (id.clone(), EntrySpan::default())).collect();
    if out.is_empty() {
        return out;
    }
    for (at, entry) in session.entries.iter().enumerate() {
        let content = entry.content();
        for call in content.iter().filter_map(Part::as_call) {
            if let Some(place) = out.get_mut(&*call.id) {
                place.add(at, [Part::Call(call.clone())]);
            }
        }
        if let Some(place) = entry.key().and_then(|id| out.get_mut(id)) {
            place.add(at, content);
        }
    }
    out
}

impl EntrySpan {
    fn add(&mut self, at: usize, parts: impl IntoIterator<Item = Part>) {
        self.first.get_or_insert(at);
        self.last = at;
        self.said.extend(parts);
    }
}

fn is_later(places: &HashMap<String, EntrySpan>, need: &str, arises: &str) -> bool {
    let (need_at, arises_at) = (places.get(need), places.get(arises));
    let after = |n: &EntrySpan, a: &EntrySpan| a.first.is_some_and(|first| n.last > first);
    need != arises && need_at.zip(arises_at).is_some_and(|(n, a)| after(n, a))
}

/// Returns whether parts contain a fact, either all of its literals or its whole text.
fn carry(parts: &[Part], fact: &Fact) -> bool {
    let said_by = |p| Part::as_prose(p).or_else(|| Part::as_call(p).map(|c| &*c.arguments));
    let texts: Vec<&str> = parts.iter().filter_map(said_by).collect();
    let said = |token: &String| texts.iter().any(|t| t.contains(token.as_str()));
    !fact.tokens.is_empty() && fact.tokens.iter().all(said)
        || texts.iter().any(|t| fact.occurs_in(t))
}

/// Returns whether any text of a session contains a fact, including repository maps and files.
fn stands_anywhere(session: &Session, fact: &Fact) -> bool {
    let carries = |e: &Entry| {
        let standing = e.standing_text().is_some_and(|t| fact.occurs_in(t));
        standing || carry(&e.content(), fact)
    };
    session.entries.iter().any(carries)
}

/// Returns an error unless a path lies below the session's folder.
fn inside(path: &str, line: usize) -> Result<(), InputError> {
    let normal = |c| matches!(c, std::path::Component::Normal(_));
    if !path.is_empty() && std::path::Path::new(path).components().all(normal) {
        return Ok(());
    }
    let expected = "a path below the session's folder, without `..`";
    Err(InputError::new(
        line,
        format!("{path:?} is not a file of the session"),
        expected,
        "write it as src/main.rs",
    ))
}

fn unique(
    what: &str,
    seen: &mut HashMap<String, usize>,
    id: &str,
    line: usize,
) -> Result<(), InputError> {
    match seen.insert(id.to_string(), line) {
        None => Ok(()),
        Some(first) => {
            let place = if first == 0 {
                "in the scenario that this one extends".to_string()
            } else {
                format!("on line {first}")
            };
            let fault = format!("{what} id {id:?} was used before, {place}");
            Err(InputError::new(
                line,
                fault,
                format!("a {what} id that is unique in the session"),
                "rename one of the two",
            ))
        }
    }
}

fn unknown(
    who: &str,
    field: &str,
    id: &str,
    messages: &HashMap<String, usize>,
    line: usize,
) -> InputError {
    let mut known: Vec<&str> = messages.keys().map(String::as_str).collect();
    known.sort_unstable();
    let fix = nearest::hint_or(id, &known, "correct the id or add that message");
    InputError::new(
        line,
        format!("{who} names unknown message {id:?} in {field:?}"),
        "the id of a message or call of this session",
        fix,
    )
}
