//! The simulated prompt cache of a provider: one simulator, told apart by the parameters of a
//! [`CacheRule`].
//!
//! A prompt is a row of prefixes: the tool definitions as a whole, then every item. A prefix is
//! known by the hash of everything up to its end, so that looking up costs the length of the prompt
//! and never the number of earlier requests. A rule says where entries may end, how far back a read
//! looks for them, in which steps it hits, how long they live and whether writing costs more than
//! input. Not modelled: routing between machines, eviction under load, entries that start within an
//! item.

use super::prompt::{Prompt, chain};
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
    entries: HashMap<u64, CachedPrefix>,
    expired: u64,
    /// Entries there were after dead ones were last looked for.
    swept: usize,
}

/// Fewer entries are not worth looking through.
const SWEPT_FROM: usize = 4_096;

impl PromptCache {
    /// An empty cache of a provider that counts tokens so.
    pub fn new(rule: CacheRule, counting: Counting) -> Self {
        PromptCache { rule, counting, entries: HashMap::new(), expired: 0, swept: 0 }
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
        let total = all.last().map_or(0, |p| p.tokens);
        let marks = self.marks(all);
        let hit = self.hit(all, &marks, |e| e.is_live(now_ms));
        // Entries stay when their time is over, so what they would have served is known.
        let once = self.hit(all, &marks, |e| e.usable_at <= now_ms);
        if let Some(h) = hit {
            self.refresh(&all[..=h], now_ms);
        }
        let read = hit.map_or(0, |h| all[h].tokens - all[h].tokens % self.rule.step);
        self.expired =
            once.map_or(0, |h| all[h].tokens - all[h].tokens % self.rule.step).saturating_sub(read);
        let mut use_ = CacheUse { read, ..CacheUse::default() };
        if self.rule.write_fee {
            // What lies after the hit is written: up to the last long-lived breakpoint for long,
            // behind it up to the last for short.
            let last_long = marks
                .iter()
                .rev()
                .find(|(_, ttl)| *ttl == Ttl::OneHour)
                .map_or(0, |(m, _)| all[*m].tokens);
            use_.write_1h = last_long.saturating_sub(read);
            use_.write_5m = marks
                .last()
                .map_or(0, |(m, _)| all[*m].tokens)
                .saturating_sub(read + use_.write_1h);
        }
        use_.uncached = total - read - use_.write_1h - use_.write_5m;
        if self.rule.entries == Entries::Units {
            self.note(all, now_ms, usable_at_ms);
        }
        let kind = if self.rule.entries == Entries::Units { Kind::Input } else { Kind::Whole };
        for (m, ttl) in marks.into_iter().filter(|(m, _)| hit.is_none_or(|h| *m > h)) {
            self.write(&all[m], now_ms, usable_at_ms, self.rule.lifetime(ttl), kind);
        }
        use_
    }

    /// Lets go of entries whose time is over, for a server that runs on and on: without them
    /// [`PromptCache::expired`] knows less, and the breakpoints that a rule considers are living
    /// ones. It may be called with every request, since it looks only once the entries have
    /// doubled.
    pub fn forget_expired(&mut self, now_ms: Millis) {
        if self.entries.len() >= (2 * self.swept).max(SWEPT_FROM) {
            self.entries.retain(|_, e| now_ms < e.expires);
            self.entries.shrink_to(2 * self.entries.len());
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

    /// Where this prompt may leave an entry, in order, with the lifetime asked for.
    fn marks(&self, all: &[Prefix]) -> Vec<(usize, Ttl)> {
        let minimum = self.rule.minimum;
        let large = |i: &usize| all[*i].tokens >= minimum;
        let end = all.len().checked_sub(1).map(|i| (i, Ttl::default()));
        let set = |all: &[Prefix]| -> Vec<(usize, Ttl)> {
            (0..all.len()).filter_map(|i| Some((i, all[i].cache?))).collect()
        };
        let mut marks = match self.rule.entries {
            Entries::Breakpoints => set(all),
            Entries::BreakpointsAndEnd => {
                let mut marks = set(all);
                if marks.len() < self.rule.breakpoints
                    && marks.last().map(|(i, _)| *i) != end.map(|(i, _)| i)
                {
                    marks.extend(end);
                }
                marks
            }
            Entries::Units => end.into_iter().collect(),
            Entries::Everywhere => (0..all.len()).map(|i| (i, Ttl::default())).collect(),
        };
        marks.retain(|(i, _)| large(i));
        marks
    }

    fn kind(&self, p: &Prefix, counts: impl Fn(&CachedPrefix) -> bool) -> Option<Kind> {
        self.entries.get(&p.hash).filter(|e| counts(e)).map(|e| e.kind)
    }

    /// The longest prefix that can be read if only the entries exist that `counts`.
    fn hit(
        &self,
        all: &[Prefix],
        marks: &[(usize, Ttl)],
        counts: impl Fn(&CachedPrefix) -> bool + Copy,
    ) -> Option<usize> {
        if self.rule.entries == Entries::Units {
            let reach = |i: usize| match self.kind(&all[i], counts)? {
                Kind::Seen => None,
                Kind::Whole => Some(i),
                // What the model answered is stored with the prompt: pieces of the model right
                // behind it.
                Kind::Input => Some(i + all[i + 1..].iter().take_while(|p| p.reply).count()),
            };
            return (0..all.len()).filter_map(reach).max();
        }
        let from_mark = |&(mark, _): &(usize, Ttl)| {
            let first = self.rule.lookback.map_or(0, |n| mark.saturating_sub(n.saturating_sub(1)));
            let known = (first..=mark).rev().filter(|&i| self.entries.contains_key(&all[i].hash));
            known
                .take(self.rule.considered.unwrap_or(usize::MAX))
                .find(|&i| self.kind(&all[i], counts).is_some())
        };
        match self.rule.lookback {
            // Every mark but the last looks at less of the same.
            None => marks.last().and_then(from_mark),
            Some(_) => marks.iter().filter_map(from_mark).max(),
        }
    }

    /// Using a prefix uses everything in it: all live entries along it begin their life anew.
    fn refresh(&mut self, used: &[Prefix], now: Millis) {
        for p in used {
            if let Some(e) = self.entries.get_mut(&p.hash).filter(|e| e.is_live(now)) {
                e.refresh(now);
            }
        }
    }

    /// Remembers what was shown; where this prompt leaves an earlier one, the part they share
    /// becomes a unit.
    fn note(&mut self, all: &[Prefix], now: Millis, usable_at: Millis) {
        let lifetime = self.rule.lifetime(Ttl::default());
        let shared = all.iter().rposition(|p| self.kind(p, |e| e.is_live(now)).is_some());
        if let Some(i) = shared.filter(|&i| all[i].tokens >= self.rule.minimum) {
            self.write(&all[i], now, usable_at, lifetime, Kind::Whole);
        }
        for p in &all[shared.map_or(0, |i| i + 1)..] {
            self.write(p, now, usable_at, lifetime, Kind::Seen);
        }
    }

    fn write(&mut self, p: &Prefix, now: Millis, usable_at: Millis, lifetime: Millis, kind: Kind) {
        let new = CachedPrefix {
            usable_at: usable_at.max(now),
            expires: usable_at.max(now).saturating_add(lifetime),
            lifetime,
            kind,
        };
        self.entries
            .entry(p.hash)
            .and_modify(|e| {
                // Two requests at the same time write the same prefix: the first that is usable
                // serves. An entry that becomes more than it was can be read as such only from then
                // on.
                let serves = now < e.expires && e.kind >= kind;
                let usable_at = if serves { e.usable_at.min(new.usable_at) } else { new.usable_at };
                let lifetime = if now < e.expires { e.lifetime.max(lifetime) } else { lifetime };
                let kind = if now < e.expires { e.kind.max(kind) } else { kind };
                *e =
                    CachedPrefix { usable_at, lifetime, expires: e.expires.max(new.expires), kind };
            })
            .or_insert(new);
    }
}

fn prefixes(prompt: &Prompt, by: &Counting) -> Vec<Prefix> {
    let mut hash = tokens::content_hash(prompt.model.as_bytes());
    let mut sum = 0;
    let mut all = Vec::with_capacity(prompt.items.len() + 1);
    let mut add = |content: u64, size: u64, cache, reply| {
        hash = chain(&[hash, content]);
        sum += size;
        all.push(Prefix { hash, tokens: sum, cache, reply });
    };
    if let Some(t) = &prompt.tools {
        add(
            tokens::content_hash(t.get().as_bytes()),
            prompt.tools_tokens(by),
            prompt.tools_cache,
            false,
        );
    }
    for i in &prompt.items {
        add(i.hash, i.tokens(by), i.cache, i.role == Role::Assistant);
    }
    all
}
