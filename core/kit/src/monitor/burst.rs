//! Several users on one limit: their requests on one timeline, who is refused and how long they
//! wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::rate::{Headroom, RateLimit, Wait};
use ctxbench_core::session::Millis;

/// One request of a session as the limit sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// When it is sent, ms since the start of its session.
    pub at_ms: Millis,
    /// Tokens that count.
    pub tokens: u64,
}

/// What became of a team's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// Requests of all users.
    pub requests: u64,
    /// Of these, refused at least once.
    pub held: u64,
    /// Refusals; a request may be refused several times.
    pub refusals: u64,
    /// Requests larger than a minute's worth; their sessions end there.
    pub never: u64,
    /// Waiting of all users together, ms.
    pub waited_ms: Millis,
    /// Longest wait of one request, ms.
    pub longest_ms: Millis,
    /// When the last request went through, ms.
    pub end_ms: Millis,
}

/// Lets users 0, 1, 2, … begin `stagger_ms` apart, each with the session of its number (modulo how
/// many there are), on one limit. A refused request is sent again when the limit's answer says so,
/// and all later ones of its session move with it. Of requests at the same time the lower user goes
/// first, so the outcome is always the same.
pub fn burst(sessions: &[Vec<Ask>], users: u64, stagger_ms: Millis, limit: RateLimit) -> Burst {
    let mut out = Burst::default();
    if sessions.is_empty() {
        return out;
    }
    let mut left = Headroom::new(limit);
    let of = |user: u64| &sessions[(user % sessions.len() as u64) as usize];
    let begin = |user: u64| user.saturating_mul(stagger_ms);
    // (when, user, which of its requests, delay of its session so far)
    let mut queue: BinaryHeap<Reverse<(Millis, u64, usize, Millis)>> = BinaryHeap::new();
    for user in 0..users {
        out.requests += of(user).len() as u64;
        queue.extend(of(user).first().map(|a| Reverse((begin(user) + a.at_ms, user, 0, 0))));
    }
    while let Some(Reverse((now, user, at, delay))) = queue.pop() {
        let ask = of(user)[at];
        match left.take(now, ask.tokens) {
            Ok(()) => {
                let total = now - begin(user) - ask.at_ms;
                let waited = total - delay;
                out.held += u64::from(waited > 0);
                out.waited_ms += waited;
                out.longest_ms = out.longest_ms.max(waited);
                out.end_ms = out.end_ms.max(now);
                queue.extend(
                    of(user)
                        .get(at + 1)
                        .map(|a| Reverse((begin(user) + a.at_ms + total, user, at + 1, total))),
                );
            }
            Err(Wait::For(ms)) => {
                out.refusals += 1;
                queue.push(Reverse((now + ms, user, at, delay)));
            }
            Err(Wait::Never) => out.never += 1,
        }
    }
    out
}

/// Tokens that the team asks for in each minute while nobody is refused: the median and the 95th
/// percentile (nearest rank) over the minutes in which anybody asks; pauses, which may be nights,
/// would say nothing. `None` without a request.
pub fn needed(sessions: &[Vec<Ask>], users: u64, stagger_ms: Millis) -> Option<(u64, u64)> {
    let mut minutes: BTreeMap<Millis, u64> = BTreeMap::new();
    for user in 0..if sessions.is_empty() { 0 } else { users } {
        for ask in &sessions[(user % sessions.len() as u64) as usize] {
            *minutes.entry((user.saturating_mul(stagger_ms) + ask.at_ms) / 60_000).or_default() +=
                ask.tokens;
        }
    }
    let mut minutes: Vec<u64> = minutes.into_values().collect();
    minutes.sort_unstable();
    let rank = |pct: usize| minutes.get((minutes.len() * pct).div_ceil(100).max(1) - 1).copied();
    Some((rank(50)?, rank(95)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(asks: &[(Millis, u64)]) -> Vec<Ask> {
        asks.iter().map(|&(at_ms, tokens)| Ask { at_ms, tokens }).collect()
    }

    const LIMIT: RateLimit = RateLimit { tpm: 60_000, rpm: None };

    #[test]
    fn three_users_at_once_by_hand() {
        let one = [session(&[(0, 40_000), (10_000, 10_000)])];
        // 0 s: user 0 takes 40,000 of 60,000. Users 1 and 2 need 20,000 more: refused for 20 s
        // each. 10 s: 30,000 are there, user 0 takes 10,000, 20,000 stay. 20 s: 30,000: both
        // refused again, for 10 s.  30 s: 40,000: user 1 goes; user 2 needs 40,000: refused for 40
        // s, until 70 s. 40 s: 10,000 of user 1's second request: 10,000 are there, it goes, 0
        // stay. 70 s: 30,000, refused for 10 s. 80 s: 40,000, user 2 goes.  90 s: its 10,000 go.
        let b = burst(&one, 3, 0, LIMIT);
        assert_eq!((b.requests, b.held, b.refusals, b.never), (6, 2, 6, 0));
        assert_eq!((b.waited_ms, b.longest_ms, b.end_ms), (30_000 + 80_000, 80_000, 90_000));
        assert_eq!(burst(&one, 3, 0, LIMIT), b, "the same each time");
    }

    #[test]
    fn spread_out_nobody_waits() {
        let one = [session(&[(0, 40_000), (10_000, 10_000)])];
        let b = burst(&one, 3, 60_000, LIMIT);
        assert_eq!((b.held, b.refusals, b.waited_ms, b.end_ms), (0, 0, 0, 130_000));
    }

    #[test]
    fn what_never_fits_ends_its_session() {
        let two = [session(&[(0, 60_001), (1, 1)]), session(&[(0, 1)])];
        let b = burst(&two, 2, 0, LIMIT);
        assert_eq!((b.requests, b.never, b.refusals, b.end_ms), (3, 1, 0, 0));
        assert_eq!(burst(&[], 2, 0, LIMIT), Burst::default());
    }

    #[test]
    fn need_per_minute_by_hand() {
        let one = [session(&[(0, 10), (59_999, 5), (60_000, 7), (180_000, 100)])];
        // Minutes 0, 1 and 3: 15, 7, 100. Sorted 7, 15, 100: the median is the 2nd, the 95th
        // percentile the 3rd.
        assert_eq!(needed(&one, 1, 0), Some((15, 100)));
        assert_eq!(needed(&one, 2, 0), Some((30, 200)));
        assert_eq!(needed(&[], 2, 0), None);
    }
}
