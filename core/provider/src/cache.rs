//! The simulated prompt cache of a provider, with the parameters of a [`CacheRule`].
//!
//! A prompt is a sequence of prefixes: the tool definitions, then every item. The hash of everything up
//! to its end identifies a prefix. The cache keeps the entries of the last prompt, so that a lookup
//! depends on the difference and not on the number of earlier requests. A rule determines where
//! entries end, how far back a read searches, the step of hits, lifetimes and the price of writes. Not
//! modelled: routing between machines, eviction under load, entries that start within an item.

use super::prompt::{Item, Prompt, chain};
use ctxbench_core::block::Role;
use ctxbench_core::model::{CacheRule, Counting, Entries};
use ctxbench_core::request::{ErrorKind, ModelError};
use ctxbench_core::usage::Ttl;
use ctxbench_core::{Millis, tokens};
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

/// Tokens of a prompt by use of the cache. The four fields add up to the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Read from the cache.
    pub read: u64,
    /// Written for the short lifetime (Anthropic's five minutes), if writes have a price.
    pub write_5m: u64,
    /// Written for the long lifetime (Anthropic's hour).
    pub write_1h: u64,
    /// Neither read nor written.
    pub uncached: u64,
}

impl CacheUse {
    /// Returns the tokens of the prompt.
    pub fn prompt(&self) -> u64 {
        self.read + self.write_5m + self.write_1h + self.uncached
    }
}

/// The start of a prompt up to the end of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Hash of the prefix; equal hashes mean equal prefixes.
    pub hash: u64,
    /// Tokens of the prefix; never decreases along a prompt.
    pub tokens: u64,
    /// The client's breakpoint at the end, with its lifetime.
    pub cache: Option<Ttl>,
    /// Whether the last item of the prefix is part of a reply.
    pub reply: bool,
}

/// The use of an entry, from weakest to strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EntryKind {
    /// A prefix that cannot be read. It marks where two prompts diverge ([`Entries::Units`]).
    Seen,
    /// Readable.
    Whole,
    /// Readable together with the following reply ([`Entries::Units`]).
    Input,
}

#[derive(Clone, Copy, Debug)]
struct CachedPrefix {
    usable_at: Millis,
    expires: Millis,
    lifetime: Millis,
    kind: EntryKind,
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
    /// Index of the entry of each prefix, by hash.
    places: HashMap<u64, usize>,
    row: LastPrompt,
    expired: u64,
    /// Number of entries after the last removal of expired ones.
    swept: usize,
}

/// The prompt of the last lookup.
#[derive(Clone, Debug, Default)]
struct LastPrompt {
    hashes: Vec<u64>,
    /// Positions with an entry, in order, with the index of the entry.
    entries: Vec<(usize, usize)>,
}

impl LastPrompt {
    /// Returns the entries up to a position, last first.
    fn back_from(&self, at: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let end = self.entries.partition_point(|(i, _)| *i <= at);
        self.entries[..end].iter().rev().copied()
    }
}

/// Positions at which a prompt may create entries, in order, with the requested lifetime.
enum Marks {
    At(Vec<(usize, Ttl)>),
    /// Every position from this one.
    From(usize),
}

/// Minimum number of entries for removing expired ones.
const MIN_SWEPT: usize = 4_096;

impl PromptCache {
    /// Creates an empty cache.
    pub fn new(rule: CacheRule, counting: Counting) -> Self {
        PromptCache {
            rule,
            counting,
            entries: Vec::new(),
            places: HashMap::new(),
            row: LastPrompt::default(),
            expired: 0,
            swept: 0,
        }
    }

    /// Refuses prompts with too many breakpoints, or with one of the short lifetime before one of the
    /// long, like the provider.
    pub fn validate(&self, prompt: &Prompt) -> Result<(), ModelError> {
        let max = self.rule.breakpoints;
        if max == 0 {
            return Ok(());
        }
        let marks: Vec<Ttl> = prompt
            .tools_cache
            .into_iter()
            .chain(prompt.items.iter().filter_map(|i| i.cache))
            .collect();
        let message = if marks.len() > max {
            format!("at most {max} blocks may carry cache_control, found {}", marks.len())
        } else if marks.windows(2).any(|w| w == [Ttl::FiveMinutes, Ttl::OneHour]) {
            "a cache_control block of 1h must precede those of 5m".to_string()
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

    /// Looks a prompt up at `now_ms` and stores its entries, which are readable from `usable_at_ms` (the
    /// start of the reply).
    pub fn lookup_and_write(
        &mut self,
        prompt: &Prompt,
        now_ms: Millis,
        usable_at_ms: Millis,
    ) -> CacheUse {
        self.use_prefixes(&prefixes(prompt, &self.counting), now_ms, usable_at_ms)
    }

    /// Uses the cache like [`PromptCache::lookup_and_write`], for all prefixes of a prompt in
    /// order.
    pub fn use_prefixes(
        &mut self,
        all: &[Prefix],
        now_ms: Millis,
        usable_at_ms: Millis,
    ) -> CacheUse {
        self.follow(all);
        let total = all.last().map_or(0, |p| p.tokens);
        let marks = self.marks(all);
        let hit = self.hit(all, &marks, |e| e.is_live(now_ms));
        // Expired entries remain, to compute the tokens that they would have served.
        let once = self.hit(all, &marks, |e| e.usable_at <= now_ms);
        if let Some(h) = hit {
            self.refresh(h, now_ms);
        }
        let read = hit.map_or(0, |h| all[h].tokens - all[h].tokens % self.rule.step);
        self.expired =
            once.map_or(0, |h| all[h].tokens - all[h].tokens % self.rule.step).saturating_sub(read);
        let mut use_ = CacheUse { read, ..CacheUse::default() };
        if self.rule.write_fee {
            // Writes everything after the hit: up to the last long-lived breakpoint for long, then up
            // to the last for short.
            let last_long = marks.last_of(Ttl::OneHour).map_or(0, |m| all[m].tokens);
            use_.write_1h = last_long.saturating_sub(read);
            use_.write_5m = marks
                .last(all.len())
                .map_or(0, |m| all[m].tokens)
                .saturating_sub(read + use_.write_1h);
        }
        use_.uncached = total - read - use_.write_1h - use_.write_5m;
        if self.rule.entries == Entries::Units {
            self.record(all, now_ms, usable_at_ms);
        }
        let kind =
            if self.rule.entries == Entries::Units { EntryKind::Input } else { EntryKind::Whole };
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

    /// Looks up the prefixes that differ from the last prompt.
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

    /// Removes expired entries, for long-running servers. [`PromptCache::expired`] then underestimates,
    /// and a rule considers live breakpoints only. Cheap enough for every request: it does nothing
    /// until the number of entries has doubled.
    pub fn forget_expired(&mut self, now_ms: Millis) {
        if self.entries.len() >= (2 * self.swept).max(MIN_SWEPT) {
            let old = std::mem::take(&mut self.entries);
            self.places.retain(|_, place| {
                let is_live = now_ms < old[*place].expires;
                if is_live {
                    self.entries.push(old[*place]);
                    *place = self.entries.len() - 1;
                }
                is_live
            });
            self.places.shrink_to(2 * self.places.len());
            self.row = LastPrompt::default();
            self.swept = self.entries.len();
        }
    }

    /// Returns the number of entries, including expired ones.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the additional tokens of the last prompt that would have been read if entries never
    /// expired.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Returns the positions at which a prompt may create entries.
    fn marks(&self, all: &[Prefix]) -> Marks {
        // Tokens never decrease along a prompt.
        let large = all.partition_point(|p| p.tokens < self.rule.minimum);
        let end = all.len().checked_sub(1);
        let set = || all.iter().enumerate().filter_map(|(i, p)| Some((i, p.cache?)));
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

    /// Returns the longest readable prefix, using the entries for which `counts` is true.
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
            // The last mark searches everything that the others do.
            (None, _) => marks.last(all.len()).and_then(from_mark),
            (Some(_), Marks::At(marks)) => marks.iter().filter_map(|(m, _)| from_mark(*m)).max(),
            (Some(_), Marks::From(first)) => (*first..all.len()).filter_map(from_mark).max(),
        }
    }

    /// Finds a hit like [`PromptCache::hit`], for [`Entries::Units`].
    fn unit(&self, all: &[Prefix], counts: impl Fn(&CachedPrefix) -> bool) -> Option<usize> {
        let mut best: Option<usize> = None;
        let mut min = 0;
        for (i, place) in self.row.back_from(all.len()) {
            if i < min {
                break;
            }
            let entry = &self.entries[place];
            if !counts(entry) || entry.kind == EntryKind::Seen {
                continue;
            }
            let reached = match entry.kind {
                // The reply is stored with the prompt: the model's items directly after it.
                EntryKind::Input => i + all[i + 1..].iter().take_while(|p| p.reply).count(),
                _ => i,
            };
            if best.is_none_or(|b| reached > b) {
                best = Some(reached);
                // A shorter prompt reaches further only if there are only replies between.
                min = (0..=reached).rev().find(|&at| !all[at].reply).unwrap_or(0);
            }
        }
        best
    }

    /// Restarts the lifetime of all live entries up to a used prefix.
    fn refresh(&mut self, used: usize, now: Millis) {
        for (_, place) in self.row.back_from(used) {
            let entry = &mut self.entries[place];
            if entry.is_live(now) {
                entry.refresh(now);
            }
        }
    }

    /// Records a prompt. The part that it shares with an earlier one becomes a unit.
    fn record(&mut self, all: &[Prefix], now: Millis, usable_at: Millis) {
        let lifetime = self.rule.lifetime(Ttl::default());
        let mut known = self.row.back_from(all.len());
        let shared = known.find(|(_, place)| self.entries[*place].is_live(now)).map(|(i, _)| i);
        drop(known);
        if let Some(i) = shared.filter(|&i| all[i].tokens >= self.rule.minimum) {
            self.write(all, i, now, usable_at, lifetime, EntryKind::Whole);
        }
        for i in shared.map_or(0, |i| i + 1)..all.len() {
            self.write(all, i, now, usable_at, lifetime, EntryKind::Seen);
        }
    }

    fn write(
        &mut self,
        all: &[Prefix],
        at: usize,
        now: Millis,
        usable_at: Millis,
        lifetime: Millis,
        kind: EntryKind,
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
        // If concurrent requests write the same prefix, the first usable one counts. An entry with a
        // stronger kind is readable as such only from its new time.
        let serves = now < e.expires && e.kind >= kind;
        let usable_at = if serves { e.usable_at.min(new.usable_at) } else { new.usable_at };
        let lifetime = if now < e.expires { e.lifetime.max(lifetime) } else { lifetime };
        let kind = if now < e.expires { e.kind.max(kind) } else { kind };
        *e = CachedPrefix { usable_at, lifetime, expires: e.expires.max(new.expires), kind };
    }
}

impl Marks {
    /// Returns the last position in a prompt of `len` items.
    fn last(&self, len: usize) -> Option<usize> {
        match self {
            Marks::At(marks) => marks.last().map(|(m, _)| *m),
            Marks::From(first) => len.checked_sub(1).filter(|last| last >= first),
        }
    }

    /// Returns the last position with a lifetime.
    fn last_of(&self, ttl: Ttl) -> Option<usize> {
        match self {
            Marks::At(marks) => marks.iter().rev().find(|(_, t)| *t == ttl).map(|(m, _)| *m),
            Marks::From(_) => None,
        }
    }
}

impl Prefix {
    /// Creates the empty prefix of prompts to a model.
    pub(crate) fn empty(model: &str) -> Prefix {
        let hash = tokens::content_hash(model.as_bytes());
        Prefix { hash, tokens: 0, cache: None, reply: false }
    }

    /// Returns the prefix extended by tool definitions. `tools` = their hash, `size` = their
    /// tokens.
    pub(crate) fn with_tools(self, tools: u64, size: u64, cache: Option<Ttl>) -> Prefix {
        let hash = chain(&[self.hash, tools]);
        Prefix { hash, tokens: self.tokens + size, cache, reply: false }
    }

    /// Returns the prefix extended by an item.
    pub(crate) fn with(self, item: &Item, by: &Counting) -> Prefix {
        Prefix {
            hash: chain(&[self.hash, item.hash]),
            tokens: self.tokens + item.tokens(by),
            cache: item.cache,
            reply: item.role == Role::Assistant,
        }
    }
}

/// Returns the prefixes of a prompt, in order.
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
