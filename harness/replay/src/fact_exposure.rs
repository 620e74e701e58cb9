//! Finds the last showing of each needed fact, and whether a request removed it before the need.

use std::borrow::Cow;
use std::sync::Arc;

use ctxbench_core::block::{Block, MessageId};
use ctxbench_core::content::Part;
use ctxbench_core::host::Action;
use ctxbench_scenarios::autofacts::GAP;
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use super::facts::FactBook;
use super::path::Path;
use super::session_cache::SessionCache;

/// A user message or tool result that states a fact.
#[derive(Clone, Debug)]
struct Showing {
    key: Arc<str>,
    /// Number of replies before this message.
    at: usize,
}

/// The last showing of a fact before a need.
#[derive(Clone, Debug)]
pub(super) struct Last {
    showing: Showing,
    /// Number of the reply that needs it, or that answers the user message; from 1.
    need: usize,
    /// Whether the need is a user message.
    by_user: bool,
    /// Whether the reply just before the need states the fact. Every request includes that reply.
    at_hand: bool,
}

impl Last {
    /// Returns the id of the showing in the session.
    pub(super) fn key(&self) -> &Arc<str> {
        &self.showing.key
    }

    /// Returns the number of replies from the showing to the need.
    pub(super) fn gap(&self) -> usize {
        self.need - self.showing.at
    }

    /// Returns whether the need is a test of memory: either a user message needs the fact, or a
    /// reply needs a fact that was shown at least [`GAP`] replies earlier and that the reply just
    /// before does not repeat.
    pub(super) fn counts(&self) -> bool {
        self.by_user || self.gap() >= GAP && !self.at_hand
    }
}

/// The last showings before all needs on a path.
pub(super) struct Showings {
    /// Needed facts with their last showings, in order, by need.
    last: HashMap<Arc<str>, Vec<(usize, Last)>>,
    /// Numbers of the replies, from 1.
    replies: HashMap<Arc<str>, usize>,
}

impl Showings {
    pub(super) fn new(path: &Path, known: &SessionCache) -> Showings {
        let mut walk = Walk::new(known);
        for m in &path.moves {
            if let Action::User(message) = &m.action {
                // A message cannot be the showing of a fact that it needs itself. Messages that
                // were answered together count as one message, with the id of the first.
                let (own, others) = m.keys.split_at(m.keys.len().min(1));
                own.iter().for_each(|key| walk.needs(key, true));
                walk.record_showing(&message.key, &prose_of(&message.parts));
                others.iter().for_each(|key| walk.needs(key, true));
            }
            for step in &m.steps {
                walk.needs(&step.key, false);
                walk.replies(&step.key, &prose_of(&step.parts));
                step.results.iter().for_each(|r| walk.record_showing(&r.key, &prose_of(&r.parts)));
            }
        }
        Showings { last: walk.last, replies: walk.numbers }
    }

    /// Returns the last showing of a fact before a need. `None` if only the agent stated the fact,
    /// or if the fact is not needed there.
    pub(super) fn last(&self, fact: usize, need: &str) -> Option<&Last> {
        let facts = self.last.get(need)?;
        let at = facts.binary_search_by_key(&fact, |(fact, _)| *fact).ok()?;
        Some(&facts[at].1)
    }

    /// Returns the number of a recorded reply.
    fn number(&self, step: &str) -> Option<usize> {
        self.replies.get(step).copied()
    }
}

/// State of a walk along a path.
struct Walk<'a> {
    known: &'a SessionCache,
    /// Facts that each message needs, in order.
    needing: HashMap<&'a str, Vec<usize>>,
    /// Number of replies so far.
    count: usize,
    /// Newest showing of each fact, and the newest reply that states it.
    newest: Vec<(Option<Showing>, Option<usize>)>,
    last: HashMap<Arc<str>, Vec<(usize, Last)>>,
    numbers: HashMap<Arc<str>, usize>,
}

impl<'a> Walk<'a> {
    fn new(known: &'a SessionCache) -> Walk<'a> {
        let mut needing: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, fact) in known.facts.iter().enumerate() {
            fact.needs.iter().for_each(|need| needing.entry(need).or_default().push(i));
        }
        Walk {
            known,
            needing,
            count: 0,
            newest: vec![(None, None); known.facts.len()],
            last: HashMap::new(),
            numbers: HashMap::new(),
        }
    }

    /// Adds a message that needs facts.
    fn needs(&mut self, key: &Arc<str>, by_user: bool) {
        let Some(facts) = self.needing.get(&**key) else { return };
        let last = |fact: &usize| {
            let (showing, said) = &self.newest[*fact];
            let at_hand = said.is_some_and(|said| said == self.count);
            let showing = showing.clone()?;
            Some((*fact, Last { showing, need: self.count + 1, by_user, at_hand }))
        };
        let last = facts.iter().filter_map(last).collect();
        self.last.insert(key.clone(), last);
    }

    fn replies(&mut self, key: &Arc<str>, text: &str) {
        self.count += 1;
        self.numbers.insert(key.clone(), self.count);
        for fact in self.carried(text) {
            self.newest[fact].1 = Some(self.count);
        }
    }

    fn record_showing(&mut self, key: &Arc<str>, text: &str) {
        for fact in self.carried(text) {
            self.newest[fact].0 = Some(Showing { key: key.clone(), at: self.count });
        }
    }

    /// Returns the facts of the session that a text states.
    fn carried(&self, text: &str) -> Vec<usize> {
        self.known.carried(text).facts().map(|(fact, _)| fact).collect()
    }
}

fn prose_of(parts: &[Part]) -> Cow<'_, str> {
    match parts {
        [one] => one.text().into(),
        all => all.iter().map(Part::text).collect::<Vec<_>>().join("\n").into(),
    }
}

/// A need with a fact that is tracked from its last showing on.
struct Watched {
    fact: usize,
    need: Arc<str>,
    last: Last,
}

/// Tracks which showings requests removed.
pub(super) struct Exposure {
    showings: Arc<Showings>,
    /// Needs with a showing that is still to come. The next one is last.
    coming: Vec<Watched>,
    /// Needs with a showing that is unchanged so far.
    intact: Vec<Watched>,
    exposed: HashMap<(Arc<str>, usize), bool>,
    /// Messages of the recorded replies, by number.
    replies: HashMap<usize, MessageId>,
}

impl Exposure {
    /// Tracks the showings of these pairs of a need and a fact.
    pub(super) fn new<'a>(
        showings: Arc<Showings>,
        pairs: impl Iterator<Item = (&'a Arc<str>, usize)>,
    ) -> Self {
        let watched = |(need, fact): (&Arc<str>, usize)| {
            let last = showings.last(fact, need)?.clone();
            Some(Watched { fact, need: need.clone(), last })
        };
        let mut coming: Vec<Watched> = pairs.filter_map(watched).collect();
        coming.sort_by_key(|w| std::cmp::Reverse(w.last.showing.at));
        Exposure {
            showings,
            coming,
            intact: Vec::new(),
            exposed: HashMap::new(),
            replies: HashMap::new(),
        }
    }

    /// Adds a recorded reply to the history.
    pub(super) fn recorded(&mut self, step: &str, message: MessageId) {
        if let Some(number) = self.showings.number(step) {
            self.replies.insert(number, message);
        }
    }

    /// Checks a request that was answered with a recorded reply.
    pub(super) fn request(&mut self, step: &str, shown: &[Arc<Block>], book: &mut FactBook) {
        let Some(number) = self.showings.number(step) else { return };
        while self.coming.last().is_some_and(|w| w.last.showing.at < number) {
            self.intact.extend(self.coming.pop());
        }
        book.look_at(shown);
        let Exposure { intact, exposed, replies, .. } = self;
        let stands = |w: &Watched| {
            let at = w.last.showing.at;
            let from = replies.get(&at).copied();
            let to = replies.get(&(at + 1)).copied();
            let between = |m: MessageId| from.is_none_or(|f| m > f) && to.is_none_or(|t| m < t);
            book.said_in(w.fact).iter().any(|m| between(*m))
        };
        intact.retain(|w| {
            // Also check a need in the request that it answers.
            let intact = stands(w);
            let over = !intact || w.last.need <= number;
            if over {
                exposed.insert((w.need.clone(), w.fact), !intact);
            }
            !over
        });
    }

    /// Returns whether a request up to the need removed or changed the last showing of a fact.
    /// `None` if only the agent stated the fact.
    pub(super) fn exposed(&self, need: &str, fact: usize) -> Option<bool> {
        self.exposed.get(&(Arc::from(need), fact)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{BlockKind, Draft, Role};
    use ctxbench_session::Session;

    /// Nine replies. The tool shows the port after the first and the third; the last two need it.
    fn session() -> Session {
        let mut lines = vec![r#"{"type":"session","version":1,"id":"s"}"#.to_string()];
        lines.push(r#"{"type":"user","id":"u1","text":"go"}"#.into());
        for n in 1..=9 {
            let said = if n == 8 { "port 8443 it is" } else { "" };
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
        ctxbench_scenarios::jsonl::read(lines.join("\n").as_bytes(), "s").unwrap().session
    }

    fn showings(session: &Session) -> Showings {
        Showings::new(&Path::recorded(session), &SessionCache::from_session(session))
    }

    #[test]
    fn the_gap_is_that_of_the_last_showing() {
        let session = session();
        let showings = showings(&session);
        let told = |need: &str| showings.last(0, need).map(|l| (l.gap(), l.counts()));
        assert_eq!(told("a8"), Some((5, false)), "a8 - c3");
        assert_eq!(told("a9"), Some((6, false)), "a8 says it again");
        assert_eq!(told("a2"), Some((1, false)), "a2 - c1");
        assert_eq!(told("a1"), None, "nobody has said it yet");
        assert_eq!(told("u1"), None);
    }

    #[test]
    fn a_need_is_exposed_once_a_request_lacks_what_showed_its_fact_last() {
        let session = session();
        let block = |text: &str, message: u32| {
            Draft::text(BlockKind::Output, Role::Tool, text).build(MessageId(message), vec![])
        };
        let run = |at_the_fifth: &str| {
            let needs: [Arc<str>; 2] = ["a8".into(), "a9".into()];
            let pairs = needs.iter().map(|need| (need, 0));
            let mut exposure = Exposure::new(Arc::new(showings(&session)), pairs);
            let mut book = FactBook::from_session(&session);
            for n in 1..=9_u32 {
                // Reply n is message 2n, its result 2n + 1: c1 is 3, c3 is 7.
                let c3 = if n == 5 { at_the_fifth } else { "port 8443" };
                let shown = [block("port 8443", 3), block(c3, 7)];
                exposure.request(&format!("a{n}"), &shown, &mut book);
                exposure.recorded(&format!("a{n}"), MessageId(2 * n));
            }
            ["a8", "a9", "a7"].map(|need| exposure.exposed(need, 0))
        };
        assert_eq!(run("port 8443"), [Some(false), Some(false), None]);
        assert_eq!(run("[cleared]"), [Some(true), Some(true), None], "though c1 still shows it");
    }
}
