//! Tokens and requests per minute: what is left of a limit, and what is recommended for a team.
//!
//! The rule is the token bucket of Anthropic's API: full at first, refilled evenly, a minute's worth at most. Input served by the prompt
//! cache does not count there for current models (Anthropic's documentation, "Rate limits"); [`Counted`] says which way is meant.

use crate::request::Usage;
use crate::session::Millis;

const MINUTE_MS: u64 = 60_000;

/// Which tokens count against a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// Input that the cache did not serve, and output.
    #[default]
    WithoutCacheReads,
    /// All input, and output.
    All,
}

impl Counted {
    /// Tokens of one reply that count.
    pub fn tokens(self, usage: &Usage) -> u64 {
        let reads = if self == Counted::All { 0 } else { usage.cache_read };
        usage.prompt().saturating_sub(reads) + usage.output
    }
}

/// A limit shared by everybody on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Tokens per minute.
    pub tpm: u64,
    /// Requests per minute; `None` = no limit.
    pub rpm: Option<u64>,
}

/// Why a request has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The limit has room again after this long, ms: what `retry-after` says.
    For(Millis),
    /// It is larger than a minute's worth and will never be let through.
    Never,
}

/// A bucket: levels are kept in 60,000ths, so that a limit per minute flows in whole numbers per millisecond.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    capacity: u64,
    level: u64,
    at: Millis,
}

impl Bucket {
    fn full(capacity: u64) -> Self {
        Bucket { capacity, level: capacity.saturating_mul(MINUTE_MS), at: 0 }
    }

    fn flow(&mut self, at: Millis) {
        let came = self.capacity.saturating_mul(at.saturating_sub(self.at));
        self.level = self.level.saturating_add(came).min(self.capacity.saturating_mul(MINUTE_MS));
        self.at = self.at.max(at);
    }

    fn wait(&self, amount: u64) -> Option<Wait> {
        let missing = amount.saturating_mul(MINUTE_MS).saturating_sub(self.level);
        match missing {
            0 => None,
            _ if amount > self.capacity => Some(Wait::Never),
            n => Some(Wait::For(n.div_ceil(self.capacity))),
        }
    }

    fn take(&mut self, amount: u64) {
        self.level = self.level.saturating_sub(amount.saturating_mul(MINUTE_MS));
    }
}

/// What is left of a rate limit.
#[derive(Clone, Copy, Debug)]
pub struct Headroom {
    tokens: Bucket,
    requests: Option<Bucket>,
}

impl Headroom {
    /// An unused limit at time 0.
    pub fn new(limit: RateLimit) -> Self {
        Headroom { tokens: Bucket::full(limit.tpm), requests: limit.rpm.map(Bucket::full) }
    }

    /// Tokens that could be sent now. Times never go back.
    pub fn tokens_left(&mut self, at: Millis) -> u64 {
        self.tokens.flow(at);
        self.tokens.level / MINUTE_MS
    }

    /// Requests that could be sent now; `None` = no limit.
    pub fn requests_left(&mut self, at: Millis) -> Option<u64> {
        self.requests.as_mut().map(|b| {
            b.flow(at);
            b.level / MINUTE_MS
        })
    }

    /// Takes a request of so many tokens that went through anyway; what is not there is not owed.
    pub fn spend(&mut self, at: Millis, tokens: u64) {
        self.tokens.flow(at);
        self.tokens.take(tokens);
        if let Some(r) = &mut self.requests {
            r.flow(at);
            r.take(1);
        }
    }

    /// Takes a request of so many tokens from the limit, or says how long it has to wait; then nothing is taken.
    pub fn take(&mut self, at: Millis, tokens: u64) -> Result<(), Wait> {
        self.tokens.flow(at);
        let mut waits = vec![self.tokens.wait(tokens)];
        if let Some(r) = &mut self.requests {
            r.flow(at);
            waits.push(r.wait(1));
        }
        let longest = waits.into_iter().flatten().max_by_key(|w| match w {
            Wait::For(ms) => *ms,
            Wait::Never => Millis::MAX,
        });
        if let Some(w) = longest {
            return Err(w);
        }
        self.tokens.take(tokens);
        if let Some(r) = &mut self.requests {
            r.take(1);
        }
        Ok(())
    }
}

/// A row of the rate table: per user, by the size of the team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Smallest team, users.
    pub from: u64,
    /// Largest team; `None` = no end.
    pub to: Option<u64>,
    /// Lower recommendation, tokens per minute and user.
    pub tpm_low: u64,
    /// Upper recommendation.
    pub tpm_high: u64,
}

/// Recommended tokens per minute (seeds/003, "Rate Limit Recommendations by Team Size"). Per user, as in Claude Code's documentation of
/// costs, from which the table comes ("200 users … 4 million total"); 200 users stand in two rows there and belong to the smaller one here,
/// as do 500.
pub const RATE_TABLE: [Band; 5] = [
    Band { from: 1, to: Some(5), tpm_low: 200_000, tpm_high: 300_000 },
    Band { from: 6, to: Some(50), tpm_low: 80_000, tpm_high: 120_000 },
    Band { from: 51, to: Some(200), tpm_low: 30_000, tpm_high: 50_000 },
    Band { from: 201, to: Some(500), tpm_low: 15_000, tpm_high: 25_000 },
    Band { from: 501, to: None, tpm_low: 10_000, tpm_high: 15_000 },
];

/// The row for a team; nobody is counted as one.
pub fn recommended(users: u64) -> Band {
    let users = users.max(1);
    let row = RATE_TABLE.iter().find(|b| b.to.is_none_or(|to| users <= to));
    *row.expect("the last row has no end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_by_hand() {
        let mut h = Headroom::new(RateLimit { tpm: 60_000, rpm: Some(2) });
        assert_eq!((h.tokens_left(0), h.requests_left(0)), (60_000, Some(2)));
        assert_eq!(h.take(0, 50_000), Ok(()));
        // 10,000 are left; 1,000 come per second, so 5,000 more take 5 s.
        assert_eq!(h.take(0, 15_000), Err(Wait::For(5_000)));
        assert_eq!(h.tokens_left(0), 10_000, "a refusal takes nothing");
        assert_eq!(h.take(5_000, 15_000), Ok(()));
        // Both requests are spent, and 2 per minute is one per 30 s: the second came back by 5/30 at 5 s.
        assert_eq!(h.take(5_000, 0), Err(Wait::For(25_000)));
        assert_eq!(h.take(5_000, 60_001), Err(Wait::Never));
        assert_eq!(h.tokens_left(3_600_000), 60_000, "never more than a minute's worth");
        h.spend(3_600_000, 100_000);
        assert_eq!((h.tokens_left(3_600_000), h.requests_left(3_600_000)), (0, Some(1)));
    }

    #[test]
    fn cache_reads_count_only_where_it_is_said() {
        let u = Usage { input: 10, output: 5, cache_read: 1_000, cache_write: 100, cache_write_1h: 1, ..Usage::default() };
        assert_eq!((Counted::default().tokens(&u), Counted::All.tokens(&u)), (116, 1_116));
    }

    #[test]
    fn the_table_of_seeds_003() {
        let of = |n| (recommended(n).tpm_low, recommended(n).tpm_high);
        assert_eq!([of(0), of(1), of(5)], [(200_000, 300_000); 3]);
        assert_eq!([of(6), of(50)], [(80_000, 120_000); 2]);
        assert_eq!([of(51), of(200)], [(30_000, 50_000); 2]);
        assert_eq!([of(201), of(500)], [(15_000, 25_000); 2]);
        assert_eq!([of(501), of(10_000)], [(10_000, 15_000); 2]);
    }
}
