//! Tokens and requests per minute: what is left of a limit, and what is recommended for a team.
//!
//! The rule is the token bucket of Anthropic's API: full at first, refilled evenly, a minute's
//! worth at most. Input served by the prompt cache does not count there for current models
//! (Anthropic's documentation, "Rate limits"); [`Counted`] says which way is meant.

use ctxbench_core::request::Usage;
use ctxbench_core::session::Millis;

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

/// What is in a bucket at a time; levels are kept in 60,000ths, so that a limit per minute flows in
/// whole numbers per millisecond.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: Millis,
    level: u64,
}

/// A bucket with what was taken from it, in the order of time and not of telling.
#[derive(Clone, Debug)]
struct Bucket {
    capacity: u64,
    /// Where what is told begins.
    base: Point,
    /// Amounts taken since, each with what was left.
    taken: Vec<(u64, Point)>,
}

/// So many amounts are kept in order; then the older half is summed up.
const MOST_TAKEN: usize = 1 << 16;

impl Bucket {
    fn full(capacity: u64) -> Self {
        Bucket {
            capacity,
            base: Point { at: 0, level: capacity.saturating_mul(MINUTE_MS) },
            taken: Vec::new(),
        }
    }

    /// What a level becomes by a later time.
    fn flow(&self, from: Point, at: Millis) -> u64 {
        let came = self.capacity.saturating_mul(at.saturating_sub(from.at));
        from.level.saturating_add(came).min(self.capacity.saturating_mul(MINUTE_MS))
    }

    /// The first amount that was taken later.
    fn behind(&self, at: Millis) -> usize {
        self.taken.partition_point(|(_, p)| p.at <= at)
    }

    fn level(&self, at: Millis) -> u64 {
        let last = self.behind(at).checked_sub(1).map_or(self.base, |i| self.taken[i].1);
        self.flow(last, at)
    }

    fn wait(&self, at: Millis, amount: u64) -> Option<Wait> {
        let missing = amount.saturating_mul(MINUTE_MS).saturating_sub(self.level(at));
        match missing {
            0 => None,
            _ if amount > self.capacity => Some(Wait::Never),
            n => Some(Wait::For(n.div_ceil(self.capacity))),
        }
    }

    /// Takes what is there of an amount; later levels fall with it.
    fn take(&mut self, at: Millis, amount: u64) {
        let from = self.behind(at);
        self.taken.insert(from, (amount, Point { at, level: 0 }));
        for i in from..self.taken.len() {
            let before = i.checked_sub(1).map_or(self.base, |i| self.taken[i].1);
            let (amount, Point { at, .. }) = self.taken[i];
            self.taken[i].1.level =
                self.flow(before, at).saturating_sub(amount.saturating_mul(MINUTE_MS));
        }
        if self.taken.len() >= MOST_TAKEN {
            self.forget(self.taken[MOST_TAKEN / 2].1.at);
        }
    }

    /// Nothing is told any more of what was up to this time.
    fn forget(&mut self, at: Millis) {
        let n = self.behind(at);
        if let Some((_, last)) = self.taken.drain(..n).next_back() {
            self.base = last;
        }
    }
}

/// What is left of a rate limit. Requests that were sent anyway ([`Headroom::spend`]) may be told
/// in any order, as far back as 65,536 of them: a subagent that nobody waits for is played to its
/// end before its caller goes on, and what it will spend later is not missing earlier. Who asks for
/// permission ([`Headroom::take`]) asks in the order of time.
#[derive(Clone, Debug)]
pub struct Headroom {
    tokens: Bucket,
    requests: Option<Bucket>,
}

impl Headroom {
    /// An unused limit at time 0.
    pub fn new(limit: RateLimit) -> Self {
        Headroom { tokens: Bucket::full(limit.tpm), requests: limit.rpm.map(Bucket::full) }
    }

    /// Tokens that could be sent at a time, after all that is known to have been sent until then.
    pub fn tokens_left(&self, at: Millis) -> u64 {
        self.tokens.level(at) / MINUTE_MS
    }

    /// Requests that could be sent at a time; `None` = no limit.
    pub fn requests_left(&self, at: Millis) -> Option<u64> {
        self.requests.as_ref().map(|b| b.level(at) / MINUTE_MS)
    }

    /// Takes a request of so many tokens that went through anyway; what is not there is not owed.
    pub fn spend(&mut self, at: Millis, tokens: u64) {
        self.tokens.take(at, tokens);
        if let Some(r) = &mut self.requests {
            r.take(at, 1);
        }
    }

    /// Takes a request of so many tokens from the limit, or says how long it has to wait; then
    /// nothing is taken.
    pub fn take(&mut self, at: Millis, tokens: u64) -> Result<(), Wait> {
        let waits =
            [self.tokens.wait(at, tokens), self.requests.as_ref().and_then(|r| r.wait(at, 1))];
        let longest = waits.into_iter().flatten().max_by_key(|w| match w {
            Wait::For(ms) => *ms,
            Wait::Never => Millis::MAX,
        });
        if let Some(w) = longest {
            return Err(w);
        }
        self.spend(at, tokens);
        self.tokens.forget(at);
        if let Some(r) = &mut self.requests {
            r.forget(at);
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

/// Recommended tokens per minute (docs/sources/token-budgeting.md §5.8). Per user,
/// as in Claude Code's documentation of costs, from which the table comes ("200 users … 4 million
/// total"); 200 users stand in two rows there and belong to the smaller one here, as do 500.
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
        // Both requests are spent, and 2 per minute is one per 30 s: the second came back by 5/30
        // at 5 s.
        assert_eq!(h.take(5_000, 0), Err(Wait::For(25_000)));
        assert_eq!(h.take(5_000, 60_001), Err(Wait::Never));
        assert_eq!(h.tokens_left(3_600_000), 60_000, "never more than a minute's worth");
        h.spend(3_600_000, 100_000);
        assert_eq!((h.tokens_left(3_600_000), h.requests_left(3_600_000)), (0, Some(1)));
    }

    #[test]
    fn what_was_spent_later_is_not_missing_earlier() {
        let spends =
            [(0, 30_000), (10_000, 20_000), (40_000, 5_000), (40_000, 1_000), (50_000, 59_000)];
        let left = |order: &[usize]| {
            let mut h = Headroom::new(RateLimit { tpm: 60_000, rpm: Some(6) });
            order.iter().for_each(|&i| h.spend(spends[i].0, spends[i].1));
            // 1,000 tokens come per second, a request per 10 s.
            [0, 5_000, 10_000, 39_999, 40_000, 50_000, 55_000]
                .map(|at| (h.tokens_left(at), h.requests_left(at).unwrap()))
        };
        // 60 - 30; + 5; + 5 - 20; + 29.999; + 0.001 - 6; full by 46 s, so 60 - 59 at 50 s (49 + 10
        // - 59 = 0); + 5.
        let by_hand =
            [(30_000, 5), (35_000, 5), (20_000, 5), (49_999, 6), (44_000, 4), (0, 4), (5_000, 4)];
        assert_eq!(left(&[0, 1, 2, 3, 4]), by_hand);
        // A subagent that nobody waits for is played to its end before its caller goes on.
        assert_eq!(left(&[4, 3, 0, 2, 1]), by_hand);
        assert_eq!(left(&[0, 4, 1, 2, 3]), by_hand);
    }

    #[test]
    fn cache_reads_count_only_where_it_is_said() {
        let u = Usage {
            input: 10,
            output: 5,
            cache_read: 1_000,
            cache_write: 100,
            cache_write_1h: 1,
            ..Usage::default()
        };
        assert_eq!((Counted::default().tokens(&u), Counted::All.tokens(&u)), (116, 1_116));
    }

    #[test]
    fn the_recommended_limits() {
        let of = |n| (recommended(n).tpm_low, recommended(n).tpm_high);
        assert_eq!([of(0), of(1), of(5)], [(200_000, 300_000); 3]);
        assert_eq!([of(6), of(50)], [(80_000, 120_000); 2]);
        assert_eq!([of(51), of(200)], [(30_000, 50_000); 2]);
        assert_eq!([of(201), of(500)], [(15_000, 25_000); 2]);
        assert_eq!([of(501), of(10_000)], [(10_000, 15_000); 2]);
    }
}
