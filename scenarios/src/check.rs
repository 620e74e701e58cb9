//! Consistency checks on a session's entries: unique ids, results with their calls, and facts and
//! rewinds that name messages.

use std::path::{Component, Path};

use ctxbench_core::content::Part;
use ctxbench_session::fact::Fact;
use ctxbench_session::{Effect, Entry, Header, Session};
use ctxbench_util::nearest;
use rapidhash::{RapidHashMap as HashMap, RapidHashSet as HashSet};

use crate::error::{InputError, Loaded};

/// Entry with its line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Located {
    pub(crate) line: usize,
    pub(crate) entry: Entry,
}

/// Builds a session from its entries. If `cut` is set, lines of the input were lost, and facts and
/// rewinds that name lost messages are left out.
pub(crate) fn assemble(
    header: Header,
    items: Vec<Located>,
    file: &str,
    cut: bool,
) -> Result<Loaded, InputError> {
    let session = Session { header, ..Session::default() };
    let mut out = Loaded { session, ..Loaded::default() };
    let mut ids = Ids::default();
    let mut calls: Vec<(String, usize)> = Vec::new();
    let mut answered: HashSet<String> = HashSet::default();
    let mut facts: Vec<(usize, Fact)> = Vec::new();
    let mut rewinds: Vec<(usize, String)> = Vec::new();
    for Located { line, entry } in items {
        match &entry {
            Entry::User(m) => ids.add("message", &m.id, line)?,
            Entry::Assistant(m) => {
                ids.add("message", &m.id, line)?;
                for call in m.all_calls() {
                    ids.add("call", &call.id, line)?;
                    calls.push((call.id.to_string(), line));
                }
            }
            Entry::Tool(m) => {
                let id = &m.call_id;
                let why = if !ids.has("call", id) {
                    format!("result for {id:?}, which no earlier reply called")
                } else if !answered.insert(id.clone()) {
                    format!("second result for call {id:?}")
                } else {
                    String::new()
                };
                if !why.is_empty() {
                    out.warnings.push(format!("{file}:{line}: {why}; left out"));
                    continue;
                }
                m.effects.iter().try_for_each(|effect| check_effect(effect, line))?;
            }
            Entry::Rewind { to, .. } => rewinds.push((line, to.clone())),
            Entry::DiskFile { path, .. } => {
                check_path(path, line)?;
                ids.add("disk file", path, line)?;
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
    for (line, to) in rewinds.into_iter().filter(|(_, to)| !ids.is_named(to)) {
        if !cut {
            return Err(ids.unknown("rewind", "to", &to, line));
        }
        let lost = format!("rewind to {to:?}, which the damaged file lacks; left out");
        out.warnings.push(format!("{file}:{line}: {lost}"));
        let entries = &mut out.session.entries;
        entries.retain(|e| !matches!(e, Entry::Rewind { to: lost, .. } if *lost == to));
    }
    for (line, fact) in &facts {
        ids.add("fact", &fact.id, *line)?;
    }
    let spans = if facts.is_empty() { HashMap::default() } else { spans(&out.session) };
    for (line, mut fact) in facts {
        let id = &fact.id;
        let carriers = || fact.tokens.iter().chain(&fact.words);
        if carriers().next().is_none() || carriers().any(|t| t.trim().is_empty()) {
            let what = format!("fact {id:?} has no tokens, or an empty one");
            let expected =
                "the literals (\"tokens\") or, without any, the stems (\"words\") that carry it";
            return Err(InputError::new(line, what, expected, "write them"));
        }
        if cut && !fact.needs.iter().chain([&fact.arises]).all(|id| ids.is_named(id)) {
            out.warnings.push(format!(
                "{file}:{line}: fact {id:?} names messages that the damaged file lacks; left out there"
            ));
            fact.needs.retain(|id| ids.is_named(id));
            if !ids.is_named(&fact.arises) {
                continue;
            }
        }
        let needs = fact.needs.iter().map(|need| ("needs", need));
        let unknown = needs.chain([("arises", &fact.arises)]).find(|(_, id)| !ids.is_named(id));
        if let Some((field, id)) = unknown {
            return Err(ids.unknown(&format!("fact {:?}", fact.id), field, id, line));
        }
        let arises = spans.get(&fact.arises).copied().unwrap_or_default();
        let is_later = |need: &&String| {
            **need != fact.arises && spans.get(*need).is_some_and(|n| n.1 > arises.0)
        };
        if let Some(need) = fact.needs.iter().find(|need| !is_later(need)) {
            let what =
                format!("fact {:?} is needed in {need:?} and arises in {:?}", fact.id, fact.arises);
            let expected = "needs that come after the message in which it arises";
            return Err(InputError::new(line, what, expected, "correct \"arises\" or \"needs\""));
        }
        let by = fact.superseded_by.as_ref();
        if let Some(by) = by.filter(|by| !cut && !ids.has("fact", by)) {
            let what = format!("fact {:?} is superseded by unknown fact {by:?}", fact.id);
            let fix = "correct the id or add that fact";
            return Err(InputError::new(line, what, "the id of a fact of this session", fix));
        }
        let entries = &out.session.entries;
        // Most facts are said where they arise.
        let here = [&entries[arises.0], &entries[arises.1]];
        if !carries(&here, &fact) && !entries.iter().any(|entry| carries(&[entry], &fact)) {
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

/// Lines of the ids so far, by kind.
#[derive(Default)]
struct Ids(HashMap<&'static str, HashMap<String, usize>>);

impl Ids {
    fn add(&mut self, kind: &'static str, id: &str, line: usize) -> Result<(), InputError> {
        let place = match self.0.entry(kind).or_default().insert(id.to_string(), line) {
            None => return Ok(()),
            Some(0) => "in the scenario that this one extends".to_string(),
            Some(first) => format!("on line {first}"),
        };
        let what = format!("{kind} id {id:?} was used before, {place}");
        let expected = format!("a {kind} id that is unique in the session");
        Err(InputError::new(line, what, expected, "rename one of the two"))
    }

    fn has(&self, kind: &'static str, id: &str) -> bool {
        self.0.get(kind).is_some_and(|of_kind| of_kind.contains_key(id))
    }

    fn is_named(&self, id: &str) -> bool {
        self.has("message", id) || self.has("call", id)
    }

    fn unknown(&self, who: &str, field: &str, id: &str, line: usize) -> InputError {
        let messages = self.0.get("message").into_iter().flat_map(|ids| ids.keys());
        let mut known: Vec<&str> = messages.map(String::as_str).collect();
        known.sort_unstable();
        let what = format!("{who} names unknown message {id:?} in {field:?}");
        let fix = nearest::hint_or(id, &known, "correct the id or add that message");
        InputError::new(line, what, "the id of a message or call of this session", fix)
    }
}

/// Returns the indices of the first and the last entry of each message and call, by id. The last
/// entry of a call is its result.
fn spans(session: &Session) -> HashMap<String, (usize, usize)> {
    let mut out: HashMap<String, (usize, usize)> = HashMap::default();
    for (at, entry) in session.entries.iter().enumerate() {
        let content = entry.content();
        let calls = content.iter().filter_map(Part::as_call).map(|call| &*call.id);
        for id in calls.chain(entry.key()) {
            out.entry(id.to_string()).or_insert((at, at)).1 = at;
        }
    }
    out
}

/// Returns whether entries contain a fact, either all of its literals or its whole text.
fn carries(entries: &[&Entry], fact: &Fact) -> bool {
    let content: Vec<Part> = entries.iter().flat_map(|entry| entry.content()).collect();
    let said_by = |p| Part::as_prose(p).or_else(|| Part::as_call(p).map(|c| &c.arguments));
    let texts: Vec<&str> = content.iter().filter_map(said_by).map(|text| &**text).collect();
    let said = |token: &String| texts.iter().any(|t| t.contains(token.as_str()));
    let standing = entries.iter().filter_map(|entry| entry.standing_text());
    !fact.tokens.is_empty() && fact.tokens.iter().all(said)
        || texts.iter().copied().chain(standing).any(|t| fact.occurs_in(t))
}

fn check_effect(effect: &Effect, line: usize) -> Result<(), InputError> {
    check_path(&effect.path, line)?;
    if effect.text.is_some() != effect.removed {
        return Ok(());
    }
    let what =
        format!("the effect on {:?} has both or neither of \"text\" and \"removed\"", effect.path);
    let expected = "text = \"…\" or removed = true";
    Err(InputError::new(line, what, expected, "write one of the two"))
}

/// Returns an error unless a path lies below the session's folder.
fn check_path(path: &str, line: usize) -> Result<(), InputError> {
    let is_normal = |c| matches!(c, Component::Normal(_));
    if !path.is_empty() && Path::new(path).components().all(is_normal) {
        return Ok(());
    }
    let what = format!("{path:?} is not a file of the session");
    let expected = "a path below the session's folder, without `..`";
    Err(InputError::new(line, what, expected, "write it as src/main.rs"))
}
