//! The simulated prompt cache of a provider.
//!
//! Positions are the tool definitions as a whole and then every item; a prefix is known by the hash of everything up to its last
//! position, so that looking up costs the length of the prompt and never the number of earlier requests.
//! Not modelled: routing between machines, eviction under load, entries that start within an item.

use std::collections::HashMap;

use super::models::CacheRule;
use super::prompt::{Prompt, chain};
use crate::request::{ErrorKind, ModelError, Ttl};
use crate::session::Millis;
use crate::tokens;

/// What a prompt took from the cache and left in it, in tokens. The four add up to the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Read.
    pub read: u64,
    /// Written for five minutes.
    pub write_5m: u64,
    /// Written for one hour.
    pub write_1h: u64,
    /// Neither.
    pub uncached: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    usable_at: Millis,
    expires: Millis,
    lifetime: Millis,
}

impl Entry {
    fn is_live(&self, now: Millis) -> bool {
        self.usable_at <= now && now < self.expires
    }

    fn refresh(&mut self, now: Millis) {
        self.expires = self.expires.max(now + self.lifetime);
    }
}

/// The end of a prefix.
struct Position {
    hash: u64,
    /// Tokens from the start of the prompt to here.
    tokens: u64,
    cache: Option<Ttl>,
}

/// The prompt cache of one account at one provider; models do not share entries.
#[derive(Clone, Debug)]
pub struct PromptCache {
    rule: CacheRule,
    entries: HashMap<u64, Entry>,
}

impl PromptCache {
    /// An empty cache.
    pub fn new(rule: CacheRule) -> Self {
        PromptCache { rule, entries: HashMap::new() }
    }

    /// Refuses what the provider would: too many breakpoints, a five-minute one before a one-hour one.
    pub fn validate(&self, prompt: &Prompt) -> Result<(), ModelError> {
        let CacheRule::Explicit { breakpoints, .. } = self.rule else { return Ok(()) };
        let marks: Vec<Ttl> = prompt.tools_cache.into_iter().chain(prompt.items.iter().filter_map(|i| i.cache)).collect();
        let message = if marks.len() > breakpoints {
            format!("at most {breakpoints} blocks may carry cache_control, found {}", marks.len())
        } else if marks.windows(2).any(|w| w == [Ttl::FiveMinutes, Ttl::OneHour]) {
            "a cache_control block of 1h must stand before those of 5m".to_string()
        } else {
            return Ok(());
        };
        Err(ModelError { kind: ErrorKind::Invalid, status: 400, code: Some("invalid_request_error".into()), message })
    }

    /// Looks a prompt up at `now_ms` and stores what it writes, which others can read from `usable_at_ms` (when the reply begins).
    pub fn lookup_and_write(&mut self, prompt: &Prompt, now_ms: Millis, usable_at_ms: Millis) -> CacheUse {
        let positions = positions(prompt);
        match self.rule {
            CacheRule::Explicit { minimum, lookback, .. } => self.explicit(&positions, minimum, lookback, now_ms, usable_at_ms),
            CacheRule::Automatic { minimum, step, ttl_ms } => self.automatic(&positions, minimum, step, ttl_ms, now_ms, usable_at_ms),
        }
    }

    fn is_live(&self, p: &Position, now: Millis) -> bool {
        self.entries.get(&p.hash).is_some_and(|e| e.is_live(now))
    }

    /// Using a prefix uses everything in it: all live entries along it begin their life anew.
    fn refresh(&mut self, used: &[Position], now: Millis) {
        for p in used {
            if let Some(e) = self.entries.get_mut(&p.hash).filter(|e| e.is_live(now)) {
                e.refresh(now);
            }
        }
    }

    fn write(&mut self, p: &Position, now: Millis, usable_at: Millis, lifetime: Millis) {
        let new = Entry { usable_at: usable_at.max(now), expires: usable_at.max(now) + lifetime, lifetime };
        self.entries
            .entry(p.hash)
            .and_modify(|e| {
                // Two requests at the same time write the same prefix: the first that is usable serves.
                let pending = now < e.expires;
                let usable_at = if pending { e.usable_at.min(new.usable_at) } else { new.usable_at };
                let lifetime = if pending { e.lifetime.max(lifetime) } else { lifetime };
                *e = Entry { usable_at, lifetime, expires: e.expires.max(new.expires) };
            })
            .or_insert(new);
    }

    /// Anthropic (facts/claude-code-and-apis.md §2.1): what lies after the longest hit and up to the last breakpoint is written, up to the
    /// last one-hour breakpoint for an hour and behind it for five minutes.
    fn explicit(&mut self, all: &[Position], minimum: u64, lookback: usize, now: Millis, usable_at: Millis) -> CacheUse {
        let total = all.last().map_or(0, |p| p.tokens);
        let marks: Vec<usize> = (0..all.len()).filter(|&i| all[i].cache.is_some() && all[i].tokens >= minimum).collect();
        let hit_of = |mark: usize| (mark.saturating_sub(lookback.saturating_sub(1))..=mark).rev().find(|&i| self.is_live(&all[i], now));
        let hit = marks.iter().filter_map(|&m| hit_of(m)).max();
        if let Some(h) = hit {
            self.refresh(&all[..=h], now);
        }
        let read = hit.map_or(0, |h| all[h].tokens);
        let (mut use_, mut done) = (CacheUse { read, ..CacheUse::default() }, read);
        let last_hour = marks.iter().rev().find(|&&m| all[m].cache == Some(Ttl::OneHour)).map_or(0, |&m| all[m].tokens);
        use_.write_1h = last_hour.saturating_sub(done);
        done += use_.write_1h;
        use_.write_5m = marks.last().map_or(0, |&m| all[m].tokens).saturating_sub(done);
        use_.uncached = total - read - use_.write_1h - use_.write_5m;
        for &m in marks.iter().filter(|&&m| hit.is_none_or(|h| m > h)) {
            self.write(&all[m], now, usable_at, all[m].cache.unwrap_or_default().millis());
        }
        use_
    }

    /// OpenAI up to gpt-5.5: the longest prefix that an earlier request began with, rounded down to whole steps.
    fn automatic(&mut self, all: &[Position], minimum: u64, step: u64, ttl: Millis, now: Millis, usable_at: Millis) -> CacheUse {
        let total = all.last().map_or(0, |p| p.tokens);
        // An entry is written with all its prefixes and refreshed with them, so the live ones are a prefix of the positions.
        let live = all.iter().take_while(|p| self.is_live(p, now)).count();
        self.refresh(&all[..live], now);
        let common = live.checked_sub(1).map_or(0, |i| all[i].tokens);
        let read = if common < minimum { 0 } else { common - common % step };
        if total >= minimum {
            for p in &all[live..] {
                self.write(p, now, usable_at, ttl);
            }
        }
        CacheUse { read, uncached: total - read, ..CacheUse::default() }
    }
}

fn positions(prompt: &Prompt) -> Vec<Position> {
    let mut hash = tokens::content_hash(prompt.model.as_bytes());
    let mut sum = 0;
    let mut all = Vec::with_capacity(prompt.items.len() + 1);
    let mut add = |content: u64, size: u64, cache| {
        hash = chain(&[hash, content]);
        sum += size;
        all.push(Position { hash, tokens: sum, cache });
    };
    if let Some(t) = &prompt.tools {
        add(tokens::content_hash(t.get().as_bytes()), prompt.tools_tokens(), prompt.tools_cache);
    }
    for i in &prompt.items {
        add(i.hash, i.tokens(), i.cache);
    }
    all
}
