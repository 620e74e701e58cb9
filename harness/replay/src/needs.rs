//! (fact, need) pairs that are still to be checked: the last showing of each fact before its need,
//! and whether a request removed that showing before.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use ctxbench_core::block::{Block, MessageId};
use ctxbench_core::content::Part;
use ctxbench_core::host::Action;
use ctxbench_reports::record::FactRecord;
use ctxbench_scenarios::autofacts::GAP;
use ctxbench_session::fact::FactKind;
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use super::facts::FactBook;
use super::path::Path;
use super::session_cache::SessionCache;

/// A need in the same turn, fewer than this number of replies later, is not a test of memory.
const AT_HAND: usize = 5;

/// Position of a message or tool result on a path.
#[derive(Clone, Copy)]
struct Place {
    turn: usize,
    /// Number of earlier replies.
    replies: usize,
    /// Number of the session, from 0.
    session: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) fact: usize,
    /// Whether a request up to the need removed or changed the last showing of the fact. `None` if
    /// no text of the path states it.
    pub(super) exposed: Option<bool>,
    last: Option<Last>,
}

impl Pair {
    /// Number of replies before the last showing, and number of the reply that needs the fact.
    fn span(&self) -> (usize, usize) {
        self.last.map_or((0, 0), |last| (last.at, last.need))
    }
}

/// Pairs of a path, and their state in one replay.
pub(super) struct Needs {
    pairs: Vec<Pair>,
    /// Unchecked pairs, by id of the need.
    open: HashMap<Arc<str>, Vec<usize>>,
    /// User messages of the present turn with unchecked needs.
    pending: Vec<Arc<str>>,
    /// Pairs with a showing that is still to come. The next one is last.
    coming: Vec<usize>,
    /// Pairs with a showing that is unchanged so far.
    intact: Vec<usize>,
    /// Numbers of the recorded replies, from 1.
    numbers: HashMap<Arc<str>, usize>,
    /// Messages of the recorded replies, by number.
    replies: HashMap<usize, MessageId>,
}

impl Needs {
    /// Collects the pairs of a path, and a record of each as if it were never reached. Leaves out
    /// needs outside the path, that is, in the window of a subagent, and needs at hand
    /// ([`AT_HAND`]).
    pub(super) fn new(known: &SessionCache, path: &Path) -> (Needs, Vec<FactRecord>) {
        let places = places(path);
        let showings = Showings::new(path, known, &places);
        let (mut pairs, mut records) = (Vec::new(), Vec::new());
        let mut open: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        for (fact, f) in known.facts.iter().enumerate() {
            let from = places.get(f.arises.as_str());
            for n in &f.needs {
                let Some(need) = places.get(n.as_str()) else { continue };
                let at_hand = |from: &Place| {
                    from.turn == need.turn && need.replies.saturating_sub(from.replies) < AT_HAND
                };
                if f.kind != FactKind::Content && from.is_some_and(at_hand) {
                    continue;
                }
                let last = showings.last.get(&(n, fact)).copied();
                // Without a showing, the reply in which the fact arises decides.
                let said = last.map_or(from.map(|from| from.session), |last| Some(last.session));
                let showing = last.filter(|last| !last.by_agent);
                records.push(FactRecord {
                    fact: f.id.clone(),
                    kind: f.kind,
                    need: n.clone(),
                    gap: showing.map(|l| (l.need - l.at) as u64),
                    across: said.is_some_and(|said| said < need.session),
                    counts: showing.is_none_or(|l| l.counts),
                    ..FactRecord::default()
                });
                open.entry(n.as_str().into()).or_default().push(pairs.len());
                pairs.push(Pair { fact, exposed: None, last });
            }
        }
        let mut coming: Vec<usize> =
            (0..pairs.len()).filter(|&i| pairs[i].last.is_some()).collect();
        coming.sort_by_key(|&i| Reverse(pairs[i].span()));
        let numbers = showings.numbers;
        let (pending, intact, replies) = (Vec::new(), Vec::new(), HashMap::new());
        (Needs { pairs, open, pending, coming, intact, numbers, replies }, records)
    }

    /// Returns a pair by the index of its record.
    pub(super) fn pair(&self, at: usize) -> Pair {
        self.pairs[at]
    }

    /// Begins a turn with these user messages.
    pub(super) fn begin(&mut self, keys: &[Arc<str>]) {
        self.pending = keys.to_vec();
    }

    /// Returns the facts needed by the current user messages, and those needed by the next recorded
    /// reply.
    pub(super) fn due(&self, step: &str) -> (Vec<usize>, Vec<usize>) {
        let of = |key: &str| self.open.get(key).into_iter().flatten().map(|&i| self.pairs[i].fact);
        (self.pending.iter().flat_map(|k| of(k)).collect(), of(step).collect())
    }

    /// Removes the pairs of the current user messages and of a recorded reply, and returns them per
    /// need, with whether the need is a user message.
    pub(super) fn take(&mut self, step: &str) -> Vec<(Vec<usize>, bool)> {
        let pending = std::mem::take(&mut self.pending);
        let by_user = pending.iter().filter_map(|key| Some((self.open.remove(key)?, true)));
        let mut out: Vec<_> = by_user.collect();
        out.extend(self.open.remove(step).map(|pairs| (pairs, false)));
        out
    }

    /// Returns, for each of `n` facts, whether it is still needed.
    pub(super) fn later(&self, n: usize) -> Vec<bool> {
        let mut out = vec![false; n];
        self.open.values().flatten().for_each(|&i| out[self.pairs[i].fact] = true);
        out
    }

    /// Adds a recorded reply to the history.
    pub(super) fn recorded(&mut self, step: &str, message: MessageId) {
        if let Some(number) = self.numbers.get(step) {
            self.replies.insert(*number, message);
        }
    }

    /// Checks which showings a request that was answered with a recorded reply lacks.
    pub(super) fn request(&mut self, step: &str, shown: &[Arc<Block>], book: &mut FactBook) {
        let Some(&number) = self.numbers.get(step) else { return };
        let Needs { pairs, coming, intact, replies, .. } = self;
        while coming.last().is_some_and(|&i| pairs[i].span().0 < number) {
            intact.extend(coming.pop());
        }
        book.look_at(shown);
        intact.retain(|&i| {
            let pair = &mut pairs[i];
            let (at, need) = pair.span();
            let by_agent = pair.last.is_some_and(|last| last.by_agent);
            let from = replies.get(&at).copied();
            let to = replies.get(&(at + 1)).copied();
            let between = |m: MessageId| match by_agent {
                true => from == Some(m),
                false => from.is_none_or(|f| m > f) && to.is_none_or(|t| m < t),
            };
            // Also check a need in the request that it answers.
            let first = from.unwrap_or_default();
            let intact = book.is_said(pair.fact, by_agent, first, between);
            let over = !intact || need <= number;
            if over {
                pair.exposed = Some(!intact);
            }
            !over
        });
    }
}

/// The last showing of a fact before a need.
#[derive(Clone, Copy)]
struct Last {
    /// Number of replies before the showing; of a statement by the agent, with that reply.
    at: usize,
    /// Whether the agent states the fact there, because no tool or user showed it.
    by_agent: bool,
    /// Number of its session, from 0.
    session: usize,
    /// Number of the reply that needs it, or that answers the user message; from 1.
    need: usize,
    /// Whether the need is a test of memory: a user message needs the fact, or a reply fetches content
    /// again, or a reply needs a fact that was shown at least [`GAP`] replies earlier and that the
    /// reply just before, which every request includes, does not repeat.
    counts: bool,
}

/// A walk along a path that finds the last showings before all needs. A user message or a tool result
/// that states a fact shows it.
struct Showings<'a> {
    known: &'a SessionCache,
    /// Facts that each message needs.
    needing: HashMap<&'a str, Vec<usize>>,
    last: HashMap<(&'a str, usize), Last>,
    /// Newest showing of each fact (replies before it, and its session), and the newest reply that
    /// states it, with its session.
    shown: Vec<Option<(usize, usize)>>,
    said: Vec<Option<(usize, usize)>>,
    /// Number of replies so far.
    count: usize,
    numbers: HashMap<Arc<str>, usize>,
}

impl<'a> Showings<'a> {
    fn new(path: &Path, known: &'a SessionCache, places: &HashMap<Arc<str>, Place>) -> Self {
        let mut needing: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, fact) in known.facts.iter().enumerate() {
            fact.needs.iter().for_each(|need| needing.entry(need).or_default().push(i));
        }
        let (shown, said) = (vec![None; known.facts.len()], vec![None; known.facts.len()]);
        let (last, numbers) = (HashMap::new(), HashMap::new());
        let mut walk = Showings { known, needing, last, shown, said, count: 0, numbers };
        let session = |key: &str| places.get(key).map_or(0, |place| place.session);
        for m in &path.moves {
            if let Action::User(message) = &m.action {
                // A message cannot be the showing of a fact that it needs itself. Messages that
                // were answered together count as one message, with the id of the first.
                let (own, others) = m.keys.split_at(m.keys.len().min(1));
                own.iter().for_each(|key| walk.needs(key, true));
                walk.shows(session(&message.key), &message.parts);
                others.iter().for_each(|key| walk.needs(key, true));
            }
            for step in &m.steps {
                walk.needs(&step.key, false);
                walk.count += 1;
                walk.numbers.insert(step.key.clone(), walk.count);
                let said = known.carried(&prose_of(&step.parts));
                let place = Some((walk.count, session(&step.key)));
                known.facts_in(&said).iter().for_each(|&fact| walk.said[fact] = place);
                step.results.iter().for_each(|r| walk.shows(session(&r.key), &r.parts));
            }
        }
        walk
    }

    /// Adds a message that needs facts.
    fn needs(&mut self, key: &str, by_user: bool) {
        let Some((key, facts)) = self.needing.get_key_value(key) else { return };
        for &fact in facts {
            let (shown, said) = (self.shown[fact], self.said[fact]);
            let Some((at, session)) = shown.or(said) else { continue };
            let (need, by_agent) = (self.count + 1, shown.is_none());
            let again = self.known.facts[fact].kind == FactKind::Content;
            let just_said = said.is_some_and(|(reply, _)| reply == self.count);
            let counts = by_user || again || need - at >= GAP && !just_said;
            self.last.insert((*key, fact), Last { at, by_agent, session, need, counts });
        }
    }

    /// Adds a message of the user or a result of a tool.
    fn shows(&mut self, session: usize, parts: &[Part]) {
        let count = self.count;
        let shown = self.known.carried(&prose_of(parts));
        let facts = self.known.facts_in(&shown);
        facts.iter().for_each(|&fact| self.shown[fact] = Some((count, session)));
    }
}

/// Returns the recorded text of a message.
fn prose_of(parts: &[Part]) -> Cow<'_, str> {
    let recorded = parts.iter().filter(|p| !matches!(p, Part::Unrecorded(_)));
    let texts: Vec<&str> = recorded.map(Part::text).collect();
    match texts.as_slice() {
        [one] => (*one).into(),
        all => all.join("\n").into(),
    }
}

/// Returns the position of each message and tool result, by id.
fn places(path: &Path) -> HashMap<Arc<str>, Place> {
    let mut out = HashMap::new();
    let (mut replies, mut session) = (0, 0);
    for (turn, m) in path.moves.iter().enumerate() {
        session += usize::from(matches!(m.action, Action::NewSession));
        let mut add = |key: &Arc<str>, replies: usize| {
            out.insert(key.clone(), Place { turn, replies, session });
        };
        m.keys.iter().for_each(|key| add(key, replies));
        for step in &m.steps {
            add(&step.key, replies);
            step.results.iter().for_each(|result| add(&result.key, replies));
            replies += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{BlockKind, Draft, Role};
    use ctxbench_session::Session;

    fn path() -> Path {
        Path::recorded(&session())
    }

    /// Nine replies. The tool shows the port after the first and the third; the last two need it, and
    /// the last one also what only the first said.
    fn session() -> Session {
        let mut lines = vec![r#"{"type":"session","version":1,"id":"s"}"#.to_string()];
        lines.push(r#"{"type":"user","id":"u1","text":"go"}"#.into());
        for n in 1..=9 {
            let said = [(1, "I set RETRY_OFF=1"), (8, "port 8443 it is")];
            let said = said.into_iter().find(|(reply, _)| *reply == n).map_or("", |(_, said)| said);
            let shown = if n == 1 || n == 3 { "port 8443" } else { "nothing" };
            lines.push(format!(
                r#"{{"type":"assistant","id":"a{n}","text":"{said}","calls":[{{"id":"c{n}","name":"x","arguments":"{{}}"}}]}}"#
            ));
            lines.push(format!(r#"{{"type":"tool","call_id":"c{n}","output":"{shown}"}}"#));
        }
        lines.push(
            r#"{"type":"fact","id":"f","kind":"value","tokens":["port 8443"],"arises":"c1","needs":["a2","a8","a9"]}"#
                .into(),
        );
        lines.push(
            r#"{"type":"fact","id":"g","kind":"value","tokens":["RETRY_OFF=1"],"arises":"a1","needs":["a9"]}"#
                .into(),
        );
        ctxbench_scenarios::jsonl::read(lines.join("\n").as_bytes(), "s").unwrap().session
    }

    #[test]
    fn the_gap_is_that_of_the_last_showing() {
        let (_, records) = Needs::new(&SessionCache::from_session(&session()), &path());
        let told: Vec<_> = records.iter().map(|r| (&*r.need, r.gap, r.counts)).collect();
        // From c3 to a8, which says it again. Nothing is between c1 and a2.
        let ports = [("a8", Some(5), false), ("a9", Some(6), false)];
        assert_eq!(
            told,
            [ports[0], ports[1], ("a9", None, true)],
            "the agent's words show nothing"
        );
    }

    /// Returns whether each need is exposed, if the fifth request shows these texts for the result of c3
    /// and for the first reply.
    fn exposed(c3: &str, a1: &str) -> [Option<bool>; 3] {
        let block = |kind: BlockKind, role: Role, text: &str, message: u32| {
            Draft::text(kind, role, text).build(MessageId(message), vec![])
        };
        let output = |text: &str, m: u32| block(BlockKind::Output, Role::Tool, text, m);
        let mut book = FactBook::from_session(&session());
        let (mut needs, _) = Needs::new(&book.known, &path());
        for n in 1..=9_u32 {
            // Reply n is message 2n, its result 2n + 1: c1 is 3, c3 is 7.
            let (c3, a1) = if n == 5 { (c3, a1) } else { ("port 8443", "I set RETRY_OFF=1") };
            let reply = block(BlockKind::Assistant, Role::Assistant, a1, 2);
            let shown = [reply, output("port 8443", 3), output(c3, 7)];
            needs.request(&format!("a{n}"), &shown, &mut book);
            needs.recorded(&format!("a{n}"), MessageId(2 * n));
        }
        [0, 1, 2].map(|at| needs.pair(at).exposed)
    }

    #[test]
    fn a_need_is_exposed_once_a_request_lacks_what_showed_its_fact_last() {
        let (port, said) = ("port 8443", "I set RETRY_OFF=1");
        assert_eq!(exposed(port, said), [Some(false); 3]);
        let without_port = [Some(true), Some(true), Some(false)];
        assert_eq!(exposed("[cleared]", said), without_port, "though c1 still shows it");
    }

    #[test]
    fn a_statement_of_the_agent_alone_is_exposed_once_a_request_lacks_its_reply() {
        assert_eq!(exposed("port 8443", "[left out]"), [Some(false), Some(false), Some(true)]);
    }
}
