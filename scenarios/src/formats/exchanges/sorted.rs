//! Assignment of each request to the conversation that it continues.
//!
//! - A request continues the longest conversation with all of its messages shown in the request.
//! - It rewrites a conversation of its kind if it shows replies or results of it in order, or a
//!   text from a reply to its end, or from a parallel reply, that replaces them.
//! - Two requests are of one kind if they have the same system prompt, the same tools, or half of
//!   the lines of the system prompt in common.
//! - A reply is a summary if its text returns outside a reply and outside a tool's result while
//!   earlier messages are missing.

use std::collections::{HashMap, HashSet};

use ctxbench_core::prelude::*;

use super::seen::{ExchangeView, Exchanges, Placed};

/// Relation of a request to its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Begins,
    Extends,
    /// The user returned to this position of the request before.
    Rewound(usize),
    /// Earlier messages are missing. The summary of this exchange replaces them.
    Compacted(Option<usize>),
    /// Earlier messages changed.
    Edited,
}

/// An exchange in its conversation.
#[derive(Debug)]
pub(super) struct SortedExchange {
    pub(super) conversation: usize,
    pub(super) relation: Relation,
    /// Positions of the items that are new.
    pub(super) new: Vec<usize>,
}

/// A sequence of exchanges that continue each other.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Indices of the exchanges, in order.
    pub(super) exchanges: Vec<usize>,
    items: Vec<Placed>,
}

/// Exchanges, sorted by conversation.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub(super) conversations: Vec<Conversation>,
    pub(super) turns: Vec<SortedExchange>,
    pub(super) summaries: HashSet<usize>,
}

/// Maximum number of exchanges between a summary and the request that shows it.
const SUMMARY_WITHIN: usize = 50;

pub(super) fn sorted(all: &Exchanges) -> Sorted {
    let mut sorter = Sorter { all, out: Sorted::default(), alike: HashMap::new() };
    for i in 0..all.all.len() {
        sorter.add(i);
    }
    sorter.out
}

pub(super) fn of_a_kind(all: &Exchanges, a: &ExchangeView, b: &ExchangeView) -> bool {
    a.standing == b.standing || (a.tools == b.tools && a.tools != 0) || half_alike(all, a, b)
}

fn half_alike(all: &Exchanges, a: &ExchangeView, b: &ExchangeView) -> bool {
    let lines = |e: &ExchangeView| -> HashSet<&str> {
        let texts = e.standing.iter().map(|h| all.content(*h)).filter(|c| c.is_text());
        texts.flat_map(|c| c.text.lines()).map(str::trim).filter(|l| !l.is_empty()).collect()
    };
    let (a, b) = (lines(a), lines(b));
    let least = a.len().min(b.len());
    least > 0 && 2 * a.intersection(&b).count() >= least
}

struct Sorter<'a> {
    all: &'a Exchanges,
    out: Sorted,
    /// Results for pairs of system prompts and tools.
    alike: HashMap<(usize, usize), bool>,
}

impl Sorter<'_> {
    fn view(&self, i: usize) -> &ExchangeView {
        &self.all.all[i]
    }

    /// Returns whether an exchange is of the same kind as the newest one of a conversation.
    fn is_of(&mut self, i: usize, conversation: usize) -> bool {
        let Some(&last) = self.out.conversations[conversation].exchanges.last() else {
            return false;
        };
        let all = self.all;
        *self.alike.entry((last, i)).or_insert_with(|| of_a_kind(all, &all.all[last], &all.all[i]))
    }

    fn add(&mut self, i: usize) {
        let own: Vec<usize> =
            (0..self.out.conversations.len()).filter(|c| self.is_of(i, *c)).collect();
        let items = self.view(i).items.clone();
        let found = self.extended(i, &own).or_else(|| self.rewritten(i, &own));
        let turn = found.unwrap_or_else(|| {
            self.out.conversations.push(Conversation::default());
            let conversation = self.out.conversations.len() - 1;
            let new = (0..items.len()).collect();
            SortedExchange { conversation, relation: Relation::Begins, new }
        });
        if let Relation::Compacted(Some(by)) = turn.relation {
            self.out.summaries.insert(by);
        }
        let to = &mut self.out.conversations[turn.conversation];
        to.exchanges.push(i);
        to.items = items;
        self.out.turns.push(turn);
    }

    fn extended(&self, i: usize, own: &[usize]) -> Option<SortedExchange> {
        let items = &self.view(i).items;
        let before = |c: &usize| self.out.conversations[*c].items.len();
        let shows = |c: &usize| {
            let before = &self.out.conversations[*c].items;
            !before.is_empty() && common(before, items) == before.len()
        };
        let longest = own.iter().filter(|c| shows(c)).max_by_key(|c| (before(c), **c))?;
        let new = (before(longest)..items.len()).collect();
        Some(SortedExchange { conversation: *longest, relation: Relation::Extends, new })
    }

    fn rewritten(&self, i: usize, own: &[usize]) -> Option<SortedExchange> {
        let shared = own.iter().map(|c| (*c, self.shared(i, *c)));
        let best = shared.filter(|(_, s)| s.counts).max_by_key(|(c, s)| (s.known.len(), *c));
        let Some((conversation, shared)) = best else {
            // Nothing remains except possibly a summary and text of the user.
            return own.iter().rev().find_map(|c| self.summarised(i, *c, &self.shared(i, *c)));
        };
        let summarised = self.summarised(i, conversation, &shared);
        summarised.or_else(|| {
            let from = shared.known.last().map_or(0, |at| at + 1);
            let rest = (from..self.view(i).items.len()).collect();
            let (relation, new) = match self.rewound(i, conversation, from) {
                Some(to) => (Relation::Rewound(to), rest),
                None if shared.lost_calls => (Relation::Compacted(None), shared.added(None)),
                None => (Relation::Edited, rest),
            };
            Some(SortedExchange { conversation, relation, new })
        })
    }

    /// Returns a request in which a summary replaces messages of a conversation.
    fn summarised(
        &self,
        i: usize,
        conversation: usize,
        shared: &KnownItems,
    ) -> Option<SortedExchange> {
        let (by, at) = self.summary(i, conversation, &shared.fresh)?;
        let (relation, new) = (Relation::Compacted(Some(by)), shared.added(Some(at)));
        Some(SortedExchange { conversation, relation, new })
    }

    fn shared(&self, i: usize, conversation: usize) -> KnownItems {
        let (before, items) = (&self.out.conversations[conversation].items, &self.view(i).items);
        let (mut known, mut fresh) = (Vec::new(), Vec::new());
        let mut from = 0;
        for (at, item) in items.iter().enumerate() {
            match before[from..].iter().position(|b| b.hash == item.hash) {
                Some(n) => {
                    from += n + 1;
                    known.push(at);
                }
                None => fresh.push(at),
            }
        }
        let work = |p: &Placed| {
            let content = self.all.content(p.hash);
            matches!(content.role, Role::Assistant | Role::Tool)
                || matches!(content.kind, BlockKind::Output | BlockKind::Call)
        };
        // Texts of the user are not sufficient, because programs put the same ones before every
        // conversation.
        let last_work = known.iter().rev().find(|at| work(&items[**at])).copied();
        let works = last_work.is_some();
        let begun = !before.iter().any(work) && known.len() == 1.max(before.len() / 2);
        let calls = |items: &[Placed]| -> HashSet<String> {
            let contents = items.iter().map(|p| self.all.content(p.hash));
            let calls = contents.filter(|c| c.kind == BlockKind::Call);
            calls.filter_map(|c| Some(c.call_id()?.to_string())).collect()
        };
        let now = calls(items);
        let lost_calls = works && calls(before).iter().any(|id| !now.contains(id));
        let counts = works || (begun && !known.is_empty());
        KnownItems { known, fresh, last_work, counts, lost_calls }
    }

    /// Returns the position to which the user returned: everything before it is kept, and a message
    /// of the user replaces another one with replies after it.
    fn rewound(&self, i: usize, conversation: usize, new: usize) -> Option<usize> {
        let (before, items) = (&self.out.conversations[conversation].items, &self.view(i).items);
        let to = common(before, items);
        let is_user = |p: &Placed| {
            let content = self.all.content(p.hash);
            content.role == Role::User && (content.is_text() || content.kind == BlockKind::Image)
        };
        let gone = before.get(to..)?;
        let replied = gone.iter().any(|p| self.all.is_said(p.hash));
        (to == new && replied && is_user(gone.first()?) && is_user(items.get(to)?)).then_some(to)
    }

    /// Returns the exchange that wrote the summary among the items at these positions of a request,
    /// and the position of the summary.
    fn summary(&self, i: usize, conversation: usize, places: &[usize]) -> Option<(usize, usize)> {
        let last = self.out.conversations[conversation].exchanges.last().copied();
        for by in (i.saturating_sub(SUMMARY_WITHIN)..i).rev() {
            let own = self.out.turns[by].conversation == conversation;
            if self.out.summaries.contains(&by) || (own && Some(by) != last) {
                continue;
            }
            let Ok(reply) = &self.view(by).reply else { continue };
            let shows = |at: &&usize| {
                let content = self.all.content(self.view(i).items[**at].hash);
                let reply_again = own && content.role == Role::Assistant;
                match content.kind {
                    BlockKind::Compaction => reply.parts.iter().any(|p| {
                        let Part::Compaction(Some(made)) = p else { return false };
                        content.opaque.as_ref() == Some(made) || content.text == *made
                    }),
                    _ => content.is_text() && !reply_again && holds(&content.text, reply),
                }
            };
            if let Some(at) = places.iter().find(shows) {
                return Some((by, *at));
            }
        }
        None
    }
}

struct KnownItems {
    /// Positions of the items that the conversation had before.
    known: Vec<usize>,
    fresh: Vec<usize>,
    /// Position of the last known one that is a reply or a result.
    last_work: Option<usize>,
    /// Whether the shared items are enough to identify the conversation.
    counts: bool,
    lost_calls: bool,
}

impl KnownItems {
    /// Returns the positions of the items that a compaction added to the conversation, without its
    /// summary. Items before kept replies and results replace older items.
    fn added(&self, summary: Option<usize>) -> Vec<usize> {
        let is_added =
            |at: &usize| Some(*at) != summary && self.last_work.is_none_or(|work| *at > work);
        self.fresh.iter().copied().filter(is_added).collect()
    }
}

fn common(a: &[Placed], b: &[Placed]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a.hash == b.hash).count()
}

/// Minimum length of a reply that is searched for, bytes.
const SHORTEST: usize = 20;

/// Minimum length of a line of a reply that is searched for separately, bytes.
const SHORTEST_LINE: usize = 16;

/// Returns whether a text contains a reply, or at least two of its lines with 30 % of their text.
/// Programs remove reasoning and tags from a summary.
fn holds(text: &str, reply: &Reply) -> bool {
    let said: Vec<&str> = reply.parts.iter().filter_map(Part::as_text).collect();
    let said = said.join("\n");
    let said = said.trim();
    if said.len() < SHORTEST {
        return false;
    }
    if text.contains(said) {
        return true;
    }
    let lines = said.lines().map(str::trim).filter(|l| l.len() >= SHORTEST_LINE);
    let (mut found, mut of, mut n) = (0, 0, 0);
    for line in lines {
        of += line.len();
        if text.contains(line) {
            found += line.len();
            n += 1;
        }
    }
    n >= 2 && 10 * found >= 3 * of
}
