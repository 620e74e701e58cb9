//! The simulated prompt cache of a provider, with the parameters of a [`CacheRule`].
//!
//! A prompt is a sequence of prefixes: the tool definitions, then every item. The hash of everything up
//! to its end identifies a prefix. A rule determines where entries end, how far back a read searches,
//! the step of hits, lifetimes and the price of writes. Not modelled: routing between machines, eviction
//! under load, entries that start within an item.

use ctxbench_core::model::{CacheRule, Entries};
use ctxbench_core::usage::Ttl;
use ctxbench_core::{Millis, ModelError, Role, Usage, tokens};
use rapidhash::RapidHashMap as HashMap;

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

    /// Writes the prefix again. If concurrent requests write it, the first usable one counts. An entry
    /// with a stronger kind is readable as such only from its new time.
    fn renew(&mut self, mut new: CachedPrefix, now: Millis) {
        if now < self.expires {
            if self.kind >= new.kind {
                new.usable_at = new.usable_at.min(self.usable_at);
            }
            new.lifetime = new.lifetime.max(self.lifetime);
            new.kind = new.kind.max(self.kind);
        }
        new.expires = new.expires.max(self.expires);
        *self = new;
    }
}

/// The prompt cache of one account at one provider; models do not share entries.
#[derive(Clone, Debug)]
pub struct PromptCache {
    rule: CacheRule,
    entries: Vec<CachedPrefix>,
    /// Indices of the entries by the hash of their prefix.
    indices: HashMap<u64, usize>,
    /// Hashes of the prefixes of the last prompt, as far as no entry was added since.
    last: Vec<u64>,
    /// Entries of the prefixes of the last prompt, in order: position and index.
    found: Vec<(usize, usize)>,
    expired: u64,
    /// Number of entries after the last removal of expired ones.
    swept: usize,
}

/// Positions at which a prompt may create entries, in order, with the requested lifetime.
type Marks = [(usize, Ttl)];

/// Minimum number of entries for removing expired ones.
const MIN_SWEPT: usize = 4_096;

impl PromptCache {
    pub fn new(rule: CacheRule) -> Self {
        let (entries, indices, last, found) = Default::default();
        PromptCache { rule, entries, indices, last, found, expired: 0, swept: 0 }
    }

    /// Refuses prompts with too many breakpoints, or with one of the short lifetime before one of the
    /// long, like the provider.
    pub fn validate(&self, all: &[Prefix]) -> Result<(), ModelError> {
        let max = self.rule.breakpoints;
        if max == 0 {
            return Ok(());
        }
        let marks: Vec<Ttl> = all.iter().filter_map(|p| p.cache).collect();
        let message = if marks.len() > max {
            format!("at most {max} blocks may carry cache_control, found {}", marks.len())
        } else if marks.windows(2).any(|w| w == [Ttl::FiveMinutes, Ttl::OneHour]) {
            "a cache_control block of 1h must precede those of 5m".to_string()
        } else {
            return Ok(());
        };
        let code = Some("invalid_request_error".into());
        Err(ModelError { code, ..ModelError::invalid(message) })
    }

    /// Looks up the prefixes of a prompt in order at `now_ms` and stores its entries, which are readable
    /// from `usable_at_ms` (the start of the reply). Returns the tokens of the prompt by kind.
    pub fn use_prefixes(&mut self, all: &[Prefix], now_ms: Millis, usable_at_ms: Millis) -> Usage {
        self.find(all);
        let total = all.last().map_or(0, |p| p.tokens);
        let marks = self.marks(all);
        let hit = self.hit(all, &marks, |e| e.is_live(now_ms));
        // Expired entries remain, to compute the tokens that they would have served.
        let once = self.hit(all, &marks, |e| e.usable_at <= now_ms);
        // A use restarts the lifetime of all live entries up to its end.
        let read = self.found.iter().take_while(|(at, _)| hit.is_some_and(|hit| *at <= hit));
        for (_, index) in read {
            let entry = &mut self.entries[*index];
            if entry.is_live(now_ms) {
                entry.expires = entry.expires.max(now_ms.saturating_add(entry.lifetime));
            }
        }
        let read_to = |at: Option<usize>| at.map_or(0, |at| all[at].tokens);
        let [read, unexpired] = [hit, once].map(|at| read_to(at) - read_to(at) % self.rule.step);
        self.expired = unexpired.saturating_sub(read);
        let mut used = Usage { cache_read: read, ..Usage::default() };
        if self.rule.write_fee {
            // Writes everything after the hit: up to the last long-lived breakpoint for long, then up
            // to the last for short.
            let last = |of: fn(&Ttl) -> bool| {
                marks.iter().rfind(|(_, ttl)| of(ttl)).map_or(0, |(at, _)| all[*at].tokens)
            };
            used.cache_write_1h = last(|ttl| *ttl == Ttl::OneHour).saturating_sub(read);
            used.cache_write = last(|_| true).saturating_sub(read + used.cache_write_1h);
        }
        used.input = total - used.prompt();
        let first = hit.map_or(0, |h| h + 1);
        let mut kind = EntryKind::Whole;
        // The part that the prompt shares with an earlier one becomes a unit.
        let shared = self.back_from(all.len()).find(|(_, e)| e.is_live(now_ms)).map(|(i, _)| i);
        let usable_at = usable_at_ms.max(now_ms);
        let mut write = |at: usize, ttl, kind| {
            let lifetime = self.rule.lifetime(ttl);
            let expires = usable_at.saturating_add(lifetime);
            let new = CachedPrefix { usable_at, expires, lifetime, kind };
            let index = *self.indices.entry(all[at].hash).or_insert(self.entries.len());
            match self.entries.get_mut(index) {
                Some(entry) => entry.renew(new, now_ms),
                None => {
                    self.entries.push(new);
                    self.last.truncate(at);
                }
            }
        };
        if self.rule.entries == Entries::Units {
            kind = EntryKind::Input;
            if let Some(i) = shared.filter(|&i| all[i].tokens >= self.rule.minimum) {
                write(i, Ttl::default(), EntryKind::Whole);
            }
            for i in shared.map_or(0, |i| i + 1)..all.len() {
                write(i, Ttl::default(), EntryKind::Seen);
            }
        }
        marks.into_iter().filter(|(at, _)| *at >= first).for_each(|(at, ttl)| write(at, ttl, kind));
        used
    }

    /// Removes expired entries, for long-running servers. [`PromptCache::expired`] then underestimates,
    /// and a rule considers live breakpoints only. Cheap enough for every request: it does nothing
    /// until the number of entries has doubled.
    pub fn forget_expired(&mut self, now_ms: Millis) {
        if self.entries.len() >= (2 * self.swept).max(MIN_SWEPT) {
            let all = std::mem::take(&mut self.entries);
            self.indices.retain(|_, index| now_ms < all[*index].expires);
            for index in self.indices.values_mut() {
                self.entries.push(all[*index]);
                *index = self.entries.len() - 1;
            }
            self.indices.shrink_to_fit();
            self.swept = self.entries.len();
            self.last.clear();
        }
    }

    /// Finds the entries of the prefixes of a prompt. It usually begins like the last one, so only its
    /// further prefixes are looked up.
    fn find(&mut self, all: &[Prefix]) {
        let same = self.last.iter().zip(all).take_while(|(last, p)| **last == p.hash).count();
        self.last.truncate(same);
        self.found.truncate(self.found.partition_point(|(at, _)| *at < same));
        for (at, p) in all.iter().enumerate().skip(same) {
            self.last.push(p.hash);
            self.found.extend(self.indices.get(&p.hash).map(|index| (at, *index)));
        }
    }

    /// Returns the entries of the prompt up to a position, last first.
    fn back_from(&self, at: usize) -> impl Iterator<Item = (usize, &CachedPrefix)> {
        let end = self.found.partition_point(|(i, _)| *i <= at);
        self.found[..end].iter().rev().map(|(i, index)| (*i, &self.entries[*index]))
    }

    /// Returns the number of entries, including expired ones.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the additional tokens of the last prompt that would have been read if entries never
    /// expired.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Returns the positions at which a prompt may create entries.
    fn marks(&self, all: &[Prefix]) -> Vec<(usize, Ttl)> {
        let (end, default) = (all.len().checked_sub(1), Ttl::default());
        let set = || all.iter().enumerate().filter_map(|(i, p)| Some((i, p.cache?)));
        let mut marks: Vec<(usize, Ttl)> = match self.rule.entries {
            Entries::Everywhere => (0..all.len()).map(|i| (i, default)).collect(),
            Entries::Units => end.map(|i| (i, default)).into_iter().collect(),
            Entries::Breakpoints | Entries::BreakpointsAndEnd => set().collect(),
        };
        if self.rule.entries == Entries::BreakpointsAndEnd
            && marks.len() < self.rule.breakpoints
            && marks.last().map(|(i, _)| *i) != end
        {
            marks.extend(end.map(|i| (i, default)));
        }
        marks.retain(|(i, _)| all[*i].tokens >= self.rule.minimum);
        marks
    }

    /// Returns the longest readable prefix, using the entries for which `counts` is true.
    fn hit(
        &self,
        all: &[Prefix],
        marks: &Marks,
        counts: impl Fn(&CachedPrefix) -> bool,
    ) -> Option<usize> {
        if self.rule.entries == Entries::Units {
            return self.unit(all, counts);
        }
        let from_mark = |mark: usize| {
            let first = self.rule.lookback.map_or(0, |n| mark.saturating_sub(n.saturating_sub(1)));
            self.back_from(mark)
                .take_while(|(i, _)| *i >= first)
                .take(self.rule.considered.unwrap_or(usize::MAX))
                .find(|(_, entry)| counts(entry))
                .map(|(i, _)| i)
        };
        match self.rule.lookback {
            // The last mark searches everything that the others do.
            None => marks.last().and_then(|(at, _)| from_mark(*at)),
            Some(_) => marks.iter().filter_map(|(at, _)| from_mark(*at)).max(),
        }
    }

    /// Finds a hit like [`PromptCache::hit`], for [`Entries::Units`].
    fn unit(&self, all: &[Prefix], counts: impl Fn(&CachedPrefix) -> bool) -> Option<usize> {
        let readable =
            |(_, entry): &(usize, &CachedPrefix)| counts(entry) && entry.kind != EntryKind::Seen;
        let reached = |(at, entry): (usize, &CachedPrefix)| match entry.kind {
            // The reply is stored with the prompt: the model's items directly after it.
            EntryKind::Input => at + all[at + 1..].iter().take_while(|p| p.reply).count(),
            _ => at,
        };
        self.back_from(all.len()).filter(readable).map(reached).max()
    }
}

/// What a prefix adds to the one before it: hash, tokens, breakpoint, author.
pub(crate) type Step = (u64, u64, Option<Ttl>, Option<Role>);

/// Adds the prefixes of a prompt to a model, in order, after those of its beginning.
pub(crate) fn add_prefixes(all: &mut Vec<Prefix>, model: &str, steps: impl Iterator<Item = Step>) {
    let last = all.last().map(|last| (last.hash, last.tokens));
    let (mut hash, mut tokens) = last.unwrap_or((tokens::content_hash(model.as_bytes()), 0));
    all.extend(steps.map(|(own, size, cache, role)| {
        let both = u128::from(own) << 64 | u128::from(hash);
        hash = tokens::content_hash(&both.to_le_bytes());
        tokens += size;
        Prefix { hash, tokens, cache, reply: role == Some(Role::Assistant) }
    }));
}
