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

use ctxbench_core::block::Role;
use ctxbench_core::content::Part;
use ctxbench_core::request::Reply;
use ctxbench_provider::Content;

use super::seen::{ExchangeView, Exchanges, Placed};

/// Relation of a request to its conversation. Positions refer to the request's items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Begins,
    /// Items from this position on are new.
    Extends {
        new: usize,
    },
    /// The user returned to a position of the request before.
    Rewound {
        to: usize,
        new: usize,
    },
    /// Earlier messages are missing. `by` is the summary that replaces them.
    Compacted {
        by: Option<Summary>,
        new: Vec<usize>,
    },
    /// Earlier messages changed.
    Edited {
        new: usize,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// Index of the exchange that wrote the summary.
    pub(super) by: usize,
    /// Position of the item that shows the summary.
    pub(super) at: usize,
}

/// A sequence of exchanges that continue each other.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Indices of the exchanges, in order.
    pub(super) exchanges: Vec<usize>,
    /// Items of the newest request.
    items: Vec<Placed>,
}

/// Exchanges, sorted by conversation.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub(super) conversations: Vec<Conversation>,
    /// Conversation and relation of each exchange.
    pub(super) turns: Vec<(usize, Relation)>,
    /// Exchanges that wrote a summary.
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

/// Returns whether two requests are of one kind.
pub(super) fn of_a_kind(all: &Exchanges, a: &ExchangeView, b: &ExchangeView) -> bool {
    a.standing == b.standing || (a.tools == b.tools && a.tools != 0) || half_alike(all, a, b)
}

fn half_alike(all: &Exchanges, a: &ExchangeView, b: &ExchangeView) -> bool {
    let lines = |e: &ExchangeView| -> HashSet<&str> {
        let texts = e.standing.iter().map(|h| all.content(*h).1);
        let texts = texts.filter_map(|c| if let Content::Text(t) = c { Some(&**t) } else { None });
        texts.flat_map(str::lines).map(str::trim).filter(|l| !l.is_empty()).collect()
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
        let (conversation, relation) = self
            .extended(i, &own)
            .or_else(|| self.rewritten(i, &own))
            .unwrap_or((self.out.conversations.len(), Relation::Begins));
        if conversation == self.out.conversations.len() {
            self.out.conversations.push(Conversation::default());
        }
        if let Relation::Compacted { by: Some(summary), .. } = &relation {
            self.out.summaries.insert(summary.by);
        }
        let items = self.view(i).items.clone();
        let to = &mut self.out.conversations[conversation];
        to.exchanges.push(i);
        to.items = items;
        self.out.turns.push((conversation, relation));
    }

    fn extended(&self, i: usize, own: &[usize]) -> Option<(usize, Relation)> {
        let items = &self.view(i).items;
        let before = |c: &usize| self.out.conversations[*c].items.len();
        let shows = |c: &usize| {
            let before = &self.out.conversations[*c].items;
            !before.is_empty() && common(before, items) == before.len()
        };
        let longest = own.iter().filter(|c| shows(c)).max_by_key(|c| (before(c), **c))?;
        Some((*longest, Relation::Extends { new: before(longest) }))
    }

    fn rewritten(&self, i: usize, own: &[usize]) -> Option<(usize, Relation)> {
        let shared = own.iter().map(|c| (*c, self.shared(i, *c)));
        let best = shared.filter(|(_, s)| s.counts).max_by_key(|(c, s)| (s.known.len(), *c));
        let unknown = |known: &[usize]| -> Vec<usize> {
            (0..self.view(i).items.len()).filter(|at| !known.contains(at)).collect()
        };
        let Some((conversation, shared)) = best else {
            // Nothing remains except possibly a summary and text of the user.
            return own.iter().rev().find_map(|c| {
                let shared = self.shared(i, *c);
                let fresh = unknown(&shared.known);
                let summary = self.summary(i, *c, &fresh)?;
                Some((*c, compacted(Some(summary), &shared, fresh)))
            });
        };
        let fresh = unknown(&shared.known);
        if let Some(summary) = self.summary(i, conversation, &fresh) {
            return Some((conversation, compacted(Some(summary), &shared, fresh)));
        }
        let new = shared.known.last().map_or(0, |at| at + 1);
        let relation = match self.rewound(i, conversation, new) {
            Some(to) => Relation::Rewound { to, new },
            None if shared.lost_calls => compacted(None, &shared, fresh),
            None => Relation::Edited { new },
        };
        Some((conversation, relation))
    }

    /// Compares a request with a conversation.
    fn shared(&self, i: usize, conversation: usize) -> KnownItems {
        let (before, items) = (&self.out.conversations[conversation].items, &self.view(i).items);
        let mut known = Vec::new();
        let mut from = 0;
        for (at, item) in items.iter().enumerate() {
            if let Some(n) = before[from..].iter().position(|b| b.hash == item.hash) {
                from += n + 1;
                known.push(at);
            }
        }
        let work = |p: &Placed| {
            let (role, content) = self.all.content(p.hash);
            matches!(role, Role::Assistant | Role::Tool)
                || matches!(content, Content::Output { .. } | Content::Call { .. })
        };
        // Texts of the user are not sufficient, because programs put the same ones before every
        // conversation.
        let last_work = known.iter().rev().find(|at| work(&items[**at])).copied();
        let works = last_work.is_some();
        let begun = !before.iter().any(work) && known.len() == 1.max(before.len() / 2);
        let calls = |items: &[Placed]| -> HashSet<String> {
            let id = |p: &Placed| match self.all.content(p.hash).1 {
                Content::Call { id, .. } => Some(id.to_string()),
                _ => None,
            };
            items.iter().filter_map(id).collect()
        };
        let now = calls(items);
        let lost_calls = works && calls(before).iter().any(|id| !now.contains(id));
        KnownItems { counts: works || (begun && !known.is_empty()), known, last_work, lost_calls }
    }

    /// Returns the position to which the user returned: everything before it is kept, and a message
    /// of the user replaces another one with replies after it.
    fn rewound(&self, i: usize, conversation: usize, new: usize) -> Option<usize> {
        let (before, items) = (&self.out.conversations[conversation].items, &self.view(i).items);
        let to = common(before, items);
        let is_user = |p: &Placed| {
            let (role, content) = self.all.content(p.hash);
            role == Role::User && matches!(content, Content::Text(_) | Content::Image { .. })
        };
        let gone = before.get(to..)?;
        let replied = gone.iter().any(|p| self.all.is_said(p.hash));
        (to == new && replied && is_user(gone.first()?) && is_user(items.get(to)?)).then_some(to)
    }

    /// Returns the summary among the items at these positions of a request.
    fn summary(&self, i: usize, conversation: usize, places: &[usize]) -> Option<Summary> {
        let last = self.out.conversations[conversation].exchanges.last().copied();
        for by in (i.saturating_sub(SUMMARY_WITHIN)..i).rev() {
            let own = self.out.turns[by].0 == conversation;
            if self.out.summaries.contains(&by) || (own && Some(by) != last) {
                continue;
            }
            let Ok(reply) = &self.view(by).reply else { continue };
            let shows = |at: &&usize| {
                let (role, content) = self.all.content(self.view(i).items[**at].hash);
                let reply_again = own && role == Role::Assistant;
                match content {
                    Content::Text(text) => !reply_again && holds(text, reply),
                    Content::Compaction { text, opaque } => reply.parts.iter().any(|p| {
                        let Part::Compaction(Some(made)) = p else { return false };
                        opaque.as_ref().is_some_and(|o| o == made) || text == made
                    }),
                    _ => false,
                }
            };
            if let Some(at) = places.iter().find(shows) {
                return Some(Summary { by, at: *at });
            }
        }
        None
    }
}

fn compacted(by: Option<Summary>, shared: &KnownItems, fresh: Vec<usize>) -> Relation {
    let at = by.as_ref().map(|s| s.at);
    // Items before kept replies and results replace older items.
    let new =
        fresh.into_iter().filter(|f| Some(*f) != at && shared.last_work.is_none_or(|w| *f > w));
    Relation::Compacted { new: new.collect(), by }
}

/// Part of a conversation that a request shows.
struct KnownItems {
    /// Positions of the items that the conversation had before.
    known: Vec<usize>,
    /// Position of the last one that is a reply or a result.
    last_work: Option<usize>,
    /// Whether the shared items are enough to identify the conversation.
    counts: bool,
    /// Whether calls of the conversation are missing.
    lost_calls: bool,
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
