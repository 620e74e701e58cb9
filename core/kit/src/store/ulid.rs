//! Ids that sort by time: 48 bits of milliseconds, 80 bits of chance, 26 letters (the ULID format).
//! Clock and chance are injected.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use thiserror::Error;

use super::At;
use ctxbench_core::rng::SplitMix64;

/// Crockford's base 32.
const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Letters of an id.
const LENGTH: usize = 26;
/// Bits of chance.
const CHANCE_BITS: u32 = 80;
/// The last millisecond that an id can hold.
const LAST_MS: At = (1 << 48) - 1;

/// An id that sorts by the time it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ulid(u128);

/// A text that is no id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not an id; one has 26 digits and capital letters without I, L, O, U")]
pub struct BadUlid(String);

impl Ulid {
    /// When it was made, ms since 1970.
    pub fn millis(self) -> At {
        (self.0 >> CHANCE_BITS) as At
    }
}

impl fmt::Display for Ulid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter =
            |i: usize| char::from(LETTERS[(self.0 >> (5 * (LENGTH - 1 - i))) as usize & 31]);
        f.write_str(&(0..LENGTH).map(letter).collect::<String>())
    }
}

impl FromStr for Ulid {
    type Err = BadUlid;

    fn from_str(s: &str) -> Result<Self, BadUlid> {
        let bad = || BadUlid(s.to_string());
        if s.len() != LENGTH || s.as_bytes()[0] > b'7' {
            return Err(bad());
        }
        s.bytes()
            .try_fold(0, |n: u128, b| {
                LETTERS.iter().position(|l| *l == b).map(|v| n << 5 | v as u128)
            })
            .map(Ulid)
            .ok_or_else(bad)
    }
}

/// Makes ids, each greater than the one before.
pub struct Ulids {
    clock: Box<dyn Fn() -> At + Send>,
    random: SplitMix64,
    last: Ulid,
}

impl Ulids {
    /// Ids from a clock (ms since 1970) and a seed.
    pub fn new(clock: impl Fn() -> At + Send + 'static, seed: u64) -> Self {
        Ulids { clock: Box::new(clock), random: SplitMix64::new(seed), last: Ulid(0) }
    }

    /// Ids from the machine's clock.
    pub fn system() -> Self {
        let since = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ulids::new(
            move || since().as_millis() as At,
            since().as_nanos() as u64 ^ u64::from(std::process::id()) << 32,
        )
    }

    /// The clock's time, ms since 1970.
    pub fn now(&self) -> At {
        (self.clock)()
    }

    /// A fresh id: later than every one before it, even within a millisecond or when the clock goes
    /// back.
    pub fn next_id(&mut self) -> Ulid {
        let chance = u128::from(self.random.bits()) << 16 | u128::from(self.random.bits() & 0xffff);
        let fresh = u128::from(self.now().clamp(0, LAST_MS - 1) as u64) << CHANCE_BITS | chance;
        // No id begins in the format's last millisecond, so all of that one's are left to count up
        // in.
        self.last = Ulid(fresh.max(self.last.0 + 1));
        self.last
    }

    /// Makes every further id later than this one. False, and nothing done, if this one leaves no
    /// room: it is of the format's last millisecond (in the year 10889), and none that was made
    /// here is.
    #[must_use]
    pub fn not_before(&mut self, id: Ulid) -> bool {
        let room = id.millis() < LAST_MS;
        if room {
            self.last = self.last.max(id);
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_as_texts_and_survive_them() {
        let mut ids = Ulids::new(|| 1_700_000_000_000, 7);
        let made: Vec<Ulid> = (0..1_000).map(|_| ids.next_id()).collect();
        assert!(made.windows(2).all(|w| w[0] < w[1] && w[0].to_string() < w[1].to_string()));
        for id in made {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(id.millis(), 1_700_000_000_000);
        }
        // The example of the format's own description: the time part of 1469918176385.
        assert_eq!(&Ulid(1_469_918_176_385_u128 << CHANCE_BITS).to_string()[..10], "01ARYZ6S41");
    }

    #[test]
    fn a_clock_that_goes_back_changes_nothing() {
        let mut late = Ulids::new(|| 2_000, 1);
        let mut early = Ulids::new(|| 1_000, 2);
        let id = late.next_id();
        assert!(early.not_before(id));
        assert!(early.next_id() > id);
    }

    #[test]
    fn the_end_of_all_ids_is_never_passed() {
        let mut ids = Ulids::new(|| At::MAX, 1);
        let made: Vec<Ulid> = (0..100).map(|_| ids.next_id()).collect();
        assert!(made.windows(2).all(|w| w[0] < w[1]));
        let last: Ulid = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ".parse().unwrap();
        assert!(!ids.not_before(last), "nothing can follow it");
        assert!(ids.next_id() < last);
    }

    #[test]
    fn other_texts_are_refused() {
        for t in [
            "",
            "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            "01ARYZ6S41TSV4RRFFQ69G5FAU",
            "01ARYZ6S41TSV4RRFFQ69G5FAÄ",
        ] {
            assert!(t.parse::<Ulid>().is_err(), "{t}");
        }
    }
}
