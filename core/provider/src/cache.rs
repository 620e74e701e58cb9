//! The simulated prompt cache of a provider: one simulator, told apart by the parameters of a
//! [`CacheRule`].
//!
//! A prompt is a row of prefixes: the tool definitions as a whole, then every item. A prefix is
//! known by the hash of everything up to its end, and which prefixes of the last prompt have entries
//! is kept, so that looking up costs what differs from it and never the number of earlier requests. A rule says where entries may end, how far back a read
//! looks for them, in which steps it hits, how long they live and whether writing costs more than
//! input. Not modelled: routing between machines, eviction under load, entries that start within an
//! item.

use super::prompt::{Item, Prompt, chain};
use ctxbench_core::block::Role;
use ctxbench_core::model::{CacheRule, Counting, Entries};
use ctxbench_core::request::{ErrorKind, ModelError, Ttl};
use ctxbench_core::session::Millis;
use ctxbench_core::tokens;
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

/// What a prompt took from the cache and left in it, in tokens. The four add up to the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Read.
    pub read: u64,
    /// Written for the short lifetime (Anthropic's five minutes) where writing has a price of its
    /// own.
    pub write_5m: u64,
    /// Written for the long lifetime (Anthropic's hour).
    pub write_1h: u64,
    /// Neither.
    pub uncached: u64,
}

impl CacheUse {
    /// All tokens of the prompt.
    pub fn prompt(&self) -> u64 {
        self.read + self.write_5m + self.write_1h + self.uncached
    }
}

/// The start of a prompt up to the end of one of its pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Of everything up to here; equal hashes are equal prefixes.
    pub hash: u64,
    /// Tokens from the start of the prompt to here; never falls along a prompt.
    pub tokens: u64,
    /// The client's breakpoint here, with the lifetime it asks for.
    pub cache: Option<Ttl>,
    /// The piece that ends here is the model's own.
    pub reply: bool,
}

/// What an entry is good for, the less first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Was part of a prompt; tells where two prompts part ([`Entries::Units`]).
    Seen,
    /// Can be read.
    Whole,
    /// Can be read, and so can the reply that followed it ([`Entries::Units`]).
    Input,
}

#[derive(Clone, Copy, Debug)]
struct CachedPrefix {
    usable_at: Millis,
    expires: Millis,
    lifetime: Millis,
    kind: Kind,
}

impl CachedPrefix {
    fn is_live(&self, now: Millis) -> bool {
        self.usable_at <= now && now < self.expires
    }

    fn refresh(&mut self, now: Millis) {
        self.expires = self.expires.max(now.saturating_add(self.lifetime));
    }
}

/// The prompt cache of one account at one provider; models do not share entries.
#[derive(Clone, Debug)]
pub struct PromptCache {
    rule: CacheRule,
    counting: Counting,
    entries: Vec<CachedPrefix>,
    /// Of each prefix with an entry where that stands.
    places: HashMap<u64, usize>,
    row: Row,
    expired: u64,
    /// Entries there were after dead ones were last looked for.
    swept: usize,
}

/// The prompt that was looked up last.
#[derive(Clone, Debug, Default)]
struct Row {
    hashes: Vec<u64>,
    /// Positions in it that have an entry, in order, with the place of that.
    entries: Vec<(usize, usize)>,
}

impl Row {
    /// Entries up to a position, the last first.
    fn back_from(&self, at: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let end = self.entries.partition_point(|(i, _)| *i <= at);
        self.entries[..end].iter().rev().copied()
    }
}

/// Where a prompt may leave entries, in order, with the lifetime asked for.
enum Marks {
    At(Vec<(usize, Ttl)>),
    /// Everywhere from this position on.
    From(usize),
}

/// Fewer entries are not worth looking through.
const SWEPT_FROM: usize = 4_096;

impl PromptCache {
    /// An empty cache of a provider that counts tokens so.
    pub fn new(rule: CacheRule, counting: Counting) -> Self {
        PromptCache {
            rule,
            counting,
            entries: Vec::new(),
            places: HashMap::new(),
            row: Row::default(),
            expired: 0,
            swept: 0,
        }
    }

    /// Refuses what the provider would: too many breakpoints, one of the short lifetime before one
    /// of the long.
    pub fn validate(&self, prompt: &Prompt) -> Result<(), ModelError> {
        let most = self.rule.breakpoints;
        if most == 0 {
            return Ok(());
        }
        let marks: Vec<Ttl> = prompt
            .tools_cache
            .into_iter()
            .chain(prompt.items.iter().filter_map(|i| i.cache))
            .collect();
        let message = if marks.len() > most {
            format!("at most {most} blocks may carry cache_control, found {}", marks.len())
        } else if marks.windows(2).any(|w| w == [Ttl::FiveMinutes, Ttl::OneHour]) {
            "a cache_control block of 1h must stand before those of 5m".to_string()
        } else {
            return Ok(());
        };
        Err(ModelError {
            kind: ErrorKind::Invalid,
            status: 400,
            code: Some("invalid_request_error".into()),
            message,
        })
    }

    /// Looks a prompt up at `now_ms` and stores what it writes, which others can read from
    /// `usable_at_ms` (when the reply begins).
    pub fn lookup_and_write(
        &mut self,
        prompt: &Prompt,
        now_ms: Millis,
        usable_at_ms: Millis,
    ) -> CacheUse {
        self.use_prefixes(&prefixes(prompt, &self.counting), now_ms, usable_at_ms)
    }

    /// The same for a prompt of which only the sizes and the identity of its pieces are known.
    /// `all` in prompt order.
    pub fn use_prefixes(
        &mut self,
        all: &[Prefix],
        now_ms: Millis,
        usable_at_ms: Millis,
    ) -> CacheUse {
        let marked: Vec<usize> = (0..all.len()).filter(|&i| all[i].cache.is_some()).collect();
        self.use_marked(all, &marked, now_ms, usable_at_ms)
    }

    /// The same where it is known which prefixes have a breakpoint: `marked`, in order.
    pub fn use_marked(
        &mut self,
        all: &[Prefix],
        marked: &[usize],
        now_ms: Millis,
        usable_at_ms: Millis,
    ) -> CacheUse {
        self.follow(all);
        let total = all.last().map_or(0, |p| p.tokens);
        let marks = self.marks(all, marked);
        let hit = self.hit(all, &marks, |e| e.is_live(now_ms));
        // Entries stay when their time is over, so what they would have served is known.
        let once = self.hit(all, &marks, |e| e.usable_at <= now_ms);
        if let Some(h) = hit {
            self.refresh(h, now_ms);
        }
        let read = hit.map_or(0, |h| all[h].tokens - all[h].tokens % self.rule.step);
        self.expired =
            once.map_or(0, |h| all[h].tokens - all[h].tokens % self.rule.step).saturating_sub(read);
        let mut use_ = CacheUse { read, ..CacheUse::default() };
        if self.rule.write_fee {
            // What lies after the hit is written: up to the last long-lived breakpoint for long,
            // behind it up to the last for short.
            let last_long = marks.last_of(Ttl::OneHour).map_or(0, |m| all[m].tokens);
            use_.write_1h = last_long.saturating_sub(read);
            use_.write_5m = marks
                .last(all.len())
                .map_or(0, |m| all[m].tokens)
                .saturating_sub(read + use_.write_1h);
        }
        use_.uncached = total - read - use_.write_1h - use_.write_5m;
        if self.rule.entries == Entries::Units {
            self.note(all, now_ms, usable_at_ms);
        }
        let kind = if self.rule.entries == Entries::Units { Kind::Input } else { Kind::Whole };
        let new = hit.map_or(0, |h| h + 1);
        match marks {
            Marks::At(marks) => {
                for (m, ttl) in marks.into_iter().filter(|(m, _)| *m >= new) {
                    self.write(all, m, now_ms, usable_at_ms, self.rule.lifetime(ttl), kind);
                }
            }
            Marks::From(first) => {
                let lifetime = self.rule.lifetime(Ttl::default());
                for m in first.max(new)..all.len() {
                    self.write(all, m, now_ms, usable_at_ms, lifetime, kind);
                }
            }
        }
        use_
    }

    /// Looks up the prefixes in which a prompt differs from the last one.
    fn follow(&mut self, all: &[Prefix]) {
        let row = &mut self.row;
        let same = row.hashes.iter().zip(all).take_while(|(hash, p)| **hash == p.hash).count();
        row.hashes.truncate(same);
        row.entries.truncate(row.entries.partition_point(|(i, _)| *i < same));
        for (i, p) in all.iter().enumerate().skip(same) {
            row.hashes.push(p.hash);
            row.entries.extend(self.places.get(&p.hash).map(|place| (i, *place)));
        }
    }

    /// Lets go of entries whose time is over, for a server that runs on and on: without them
    /// [`PromptCache::expired`] knows less, and the breakpoints that a rule considers are living
    /// ones. It may be called with every request, since it looks only once the entries have
    /// doubled.
    pub fn forget_expired(&mut self, now_ms: Millis) {
        if self.entries.len() >= (2 * self.swept).max(SWEPT_FROM) {
            let old = std::mem::take(&mut self.entries);
            self.places.retain(|_, place| {
                let living = now_ms < old[*place].expires;
                if living {
                    self.entries.push(old[*place]);
                    *place = self.entries.len() - 1;
                }
                living
            });
            self.places.shrink_to(2 * self.places.len());
            self.row = Row::default();
            self.swept = self.entries.len();
        }
    }

    /// Entries that are kept, dead ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Tokens of the last prompt that would have been read, besides those that were, if entries
    /// lived for ever.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Where this prompt may leave entries.
    fn marks(&self, all: &[Prefix], marked: &[usize]) -> Marks {
        // Tokens never fall along a prompt.
        let large = all.partition_point(|p| p.tokens < self.rule.minimum);
        let end = all.len().checked_sub(1);
        let set = || marked.iter().filter_map(|&i| Some((i, all[i].cache?)));
        let mut marks: Vec<(usize, Ttl)> = match self.rule.entries {
            Entries::Everywhere => return Marks::From(large),
            Entries::Units => end.map(|i| (i, Ttl::default())).into_iter().collect(),
            Entries::Breakpoints => set().collect(),
            Entries::BreakpointsAndEnd => {
                let mut marks: Vec<_> = set().collect();
                if marks.len() < self.rule.breakpoints && marks.last().map(|(i, _)| *i) != end {
                    marks.extend(end.map(|i| (i, Ttl::default())));
                }
                marks
            }
        };
        marks.retain(|(i, _)| *i >= large);
        Marks::At(marks)
    }

    /// The longest prefix that can be read if only the entries exist that `counts`.
    fn hit(
        &self,
        all: &[Prefix],
        marks: &Marks,
        counts: impl Fn(&CachedPrefix) -> bool + Copy,
    ) -> Option<usize> {
        if self.rule.entries == Entries::Units {
            return self.unit(all, counts);
        }
        let from_mark = |mark: usize| {
            let first = self.rule.lookback.map_or(0, |n| mark.saturating_sub(n.saturating_sub(1)));
            self.row
                .back_from(mark)
                .take_while(|(i, _)| *i >= first)
                .take(self.rule.considered.unwrap_or(usize::MAX))
                .find(|(_, place)| counts(&self.entries[*place]))
                .map(|(i, _)| i)
        };
        match (self.rule.lookback, marks) {
            // Every mark but the last looks at less of the same.
            (None, _) => marks.last(all.len()).and_then(from_mark),
            (Some(_), Marks::At(marks)) => marks.iter().filter_map(|(m, _)| from_mark(*m)).max(),
            (Some(_), Marks::From(first)) => (*first..all.len()).filter_map(from_mark).max(),
        }
    }

    /// The same where whole units are stored.
    fn unit(&self, all: &[Prefix], counts: impl Fn(&CachedPrefix) -> bool) -> Option<usize> {
        let mut best: Option<usize> = None;
        let mut least = 0;
        for (i, place) in self.row.back_from(all.len()) {
            if i < least {
                break;
            }
            let entry = &self.entries[place];
            if !counts(entry) || entry.kind == Kind::Seen {
                continue;
            }
            let reached = match entry.kind {
                // What the model answered is stored with the prompt: pieces of the model right
                // behind it.
                Kind::Input => i + all[i + 1..].iter().take_while(|p| p.reply).count(),
                _ => i,
            };
            if best.is_none_or(|b| reached > b) {
                best = Some(reached);
                // A shorter prompt reaches further only where nothing but replies lies between.
                least = (0..=reached).rev().find(|&at| !all[at].reply).unwrap_or(0);
            }
        }
        best
    }

    /// Using a prefix uses everything in it: all live entries up to it begin their life anew.
    fn refresh(&mut self, used: usize, now: Millis) {
        for (_, place) in self.row.back_from(used) {
            let entry = &mut self.entries[place];
            if entry.is_live(now) {
                entry.refresh(now);
            }
        }
    }

    /// Remembers what was shown; where this prompt leaves an earlier one, the part they share
    /// becomes a unit.
    fn note(&mut self, all: &[Prefix], now: Millis, usable_at: Millis) {
        let lifetime = self.rule.lifetime(Ttl::default());
        let mut known = self.row.back_from(all.len());
        let shared = known.find(|(_, place)| self.entries[*place].is_live(now)).map(|(i, _)| i);
        drop(known);
        if let Some(i) = shared.filter(|&i| all[i].tokens >= self.rule.minimum) {
            self.write(all, i, now, usable_at, lifetime, Kind::Whole);
        }
        for i in shared.map_or(0, |i| i + 1)..all.len() {
            self.write(all, i, now, usable_at, lifetime, Kind::Seen);
        }
    }

    fn write(
        &mut self,
        all: &[Prefix],
        at: usize,
        now: Millis,
        usable_at: Millis,
        lifetime: Millis,
        kind: Kind,
    ) {
        let new = CachedPrefix {
            usable_at: usable_at.max(now),
            expires: usable_at.max(now).saturating_add(lifetime),
            lifetime,
            kind,
        };
        let row = &mut self.row.entries;
        let position = row.partition_point(|(i, _)| *i < at);
        let Some((_, place)) = row.get(position).filter(|(i, _)| *i == at) else {
            self.places.insert(all[at].hash, self.entries.len());
            row.insert(position, (at, self.entries.len()));
            self.entries.push(new);
            return;
        };
        let e = &mut self.entries[*place];
        // Two requests at the same time write the same prefix: the first that is usable serves. An
        // entry that becomes more than it was can be read as such only from then on.
        let serves = now < e.expires && e.kind >= kind;
        let usable_at = if serves { e.usable_at.min(new.usable_at) } else { new.usable_at };
        let lifetime = if now < e.expires { e.lifetime.max(lifetime) } else { lifetime };
        let kind = if now < e.expires { e.kind.max(kind) } else { kind };
        *e = CachedPrefix { usable_at, lifetime, expires: e.expires.max(new.expires), kind };
    }
}

impl Marks {
    /// The last one in a prompt of this many pieces.
    fn last(&self, pieces: usize) -> Option<usize> {
        match self {
            Marks::At(marks) => marks.last().map(|(m, _)| *m),
            Marks::From(first) => pieces.checked_sub(1).filter(|last| last >= first),
        }
    }

    /// The last one that asks for this lifetime.
    fn last_of(&self, ttl: Ttl) -> Option<usize> {
        match self {
            Marks::At(marks) => marks.iter().rev().find(|(_, t)| *t == ttl).map(|(m, _)| *m),
            Marks::From(_) => None,
        }
    }
}

impl Prefix {
    /// What stands before the first piece of a prompt to this model.
    pub(crate) fn empty(model: &str) -> Prefix {
        let hash = tokens::content_hash(model.as_bytes());
        Prefix { hash, tokens: 0, cache: None, reply: false }
    }

    /// With tool definitions of this hash behind it.
    pub(crate) fn with_tools(self, tools: u64, size: u64, cache: Option<Ttl>) -> Prefix {
        let hash = chain(&[self.hash, tools]);
        Prefix { hash, tokens: self.tokens + size, cache, reply: false }
    }

    /// With an item behind it.
    pub(crate) fn with(self, item: &Item, by: &Counting) -> Prefix {
        Prefix {
            hash: chain(&[self.hash, item.hash]),
            tokens: self.tokens + item.tokens(by),
            cache: item.cache,
            reply: item.role == Role::Assistant,
        }
    }
}

/// The prefixes of a prompt, in order.
pub(crate) fn prefixes(prompt: &Prompt, by: &Counting) -> Vec<Prefix> {
    let mut last = Prefix::empty(&prompt.model);
    let mut all = Vec::with_capacity(prompt.items.len() + 1);
    if let Some(t) = &prompt.tools {
        last = last.with_tools(t.hash(), prompt.tools_tokens(by), prompt.tools_cache);
        all.push(last);
    }
    for item in &prompt.items {
        last = last.with(item, by);
        all.push(last);
    }
    all
}
