//! The simulated prompt cache: one simulator, configured per provider by a [`CacheRule`].
//!
//! A prompt is a chain of prefixes: the tool definitions, then every item. The hash of everything
//! up to its end identifies a prefix. The cache remembers which prefixes of the last prompt have
//! entries, so a lookup costs as much as the changed part and does not depend on the number of
//! earlier requests. A rule says where entries may end, how far back a read looks for them, in
//! which steps it hits, how long they live and whether writing costs more than input. Not modelled:
//! routing between machines, eviction under load, entries that start within an item.

use super::prompt::{Item, Prompt, chain};
use ctxbench_core::block::Role;
use ctxbench_core::model::{CacheRule, Counting, Entries};
use ctxbench_core::request::{ErrorKind, ModelError, Ttl};
use ctxbench_core::session::Millis;
use ctxbench_core::tokens;
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

/// Tokens that a prompt read from the cache and wrote to it. The four add up to the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    pub read: u64,
    /// Written for the short lifetime (Anthropic's five minutes) where writing has a price of its
    /// own.
    pub write_5m: u64,
    /// Written for the long lifetime (Anthropic's hour).
    pub write_1h: u64,
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
    /// Hash of everything up to here; equal hashes are equal prefixes.
    pub hash: u64,
    /// Tokens from the start of the prompt to here; never falls along a prompt.
    pub tokens: u64,
    /// The client's breakpoint here, with the lifetime it asks for.
    pub cache: Option<Ttl>,
    /// The piece that ends here is the model's own.
    pub reply: bool,
}

/// Kind of an entry, in ascending order of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Part of an earlier prompt; tells where two prompts diverge ([`Entries::Units`]).
    Seen,
    /// Readable.
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
    /// Position of the entry of each prefix.
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

/// Positions where a prompt may leave entries, in order, with the requested lifetime.
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

    /// Fails as the provider would: for too many breakpoints, or one of the short lifetime before
    /// one of the long.
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

    /// Looks a prompt up at `now_ms` and stores its entries, which later requests can read from
    /// `usable_at_ms` (when the reply begins).
    pub fn lookup_and_write(
        &mut self,
        prompt: &Prompt,
        now_ms: Millis,
        usable_at_ms: Millis,
    ) -> CacheUse {
        self.use_prefixes(&prefixes(prompt, &self.counting), now_ms, usable_at_ms)
    }

    /// Like [`PromptCache::lookup_and_write`] for a prompt given by the sizes and hashes of its
    /// prefixes, in prompt order.
    pub fn use_prefixes(
        &mut self,
        all: &[Prefix],
        now_ms: Millis,
        usable_at_ms: Millis,
    ) -> CacheUse {
        let marked: Vec<usize> = (0..all.len()).filter(|&i| all[i].cache.is_some()).collect();
        self.use_marked(all, &marked, now_ms, usable_at_ms)
    }

    /// Like [`PromptCache::use_prefixes`] with the given breakpoints: `marked`, in order.
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
        // Expired entries stay, so that [`PromptCache::expired`] knows which tokens they would have
        // served.
        let once = self.hit(all, &marks, |e| e.usable_at <= now_ms);
        if let Some(h) = hit {
            self.refresh(h, now_ms);
        }
        let read = hit.map_or(0, |h| all[h].tokens - all[h].tokens % self.rule.step);
        self.expired =
            once.map_or(0, |h| all[h].tokens - all[h].tokens % self.rule.step).saturating_sub(read);
        let mut use_ = CacheUse { read, ..CacheUse::default() };
        if self.rule.write_fee {
            // Tokens after the hit are written: up to the last long-lived breakpoint for long, from
            // there to the last one for short.
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

    /// Removes expired entries, for a long-running server. [`PromptCache::expired`] then knows
    /// less, and a rule considers only live breakpoints. Cheap to call for every request: it only
    /// looks once the entries have doubled.
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

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Tokens of the last prompt that would also have been read if entries never expired.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Returns the positions where this prompt may leave entries.
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

    /// Finds the hit for a rule that stores whole units.
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
                // The reply is stored with its prompt: items of the model right after it.
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

    /// Renews the lifetime of all live entries within a used prefix.
    fn refresh(&mut self, used: usize, now: Millis) {
        for (_, place) in self.row.back_from(used) {
            let entry = &mut self.entries[place];
            if entry.is_live(now) {
                entry.refresh(now);
            }
        }
    }

    /// Stores the prefixes of a prompt. Where it diverges from an earlier prompt, the common part
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
    /// Returns the empty prefix of prompts to this model.
    pub(crate) fn empty(model: &str) -> Prefix {
        let hash = tokens::content_hash(model.as_bytes());
        Prefix { hash, tokens: 0, cache: None, reply: false }
    }

    /// Extends the prefix by tool definitions with this hash.
    pub(crate) fn with_tools(self, tools: u64, size: u64, cache: Option<Ttl>) -> Prefix {
        let hash = chain(&[self.hash, tools]);
        Prefix { hash, tokens: self.tokens + size, cache, reply: false }
    }

    /// Extends the prefix by an item.
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
