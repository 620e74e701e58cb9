//! Ids that sort by time (<https://github.com/ulid/spec>), from an injected clock and seed.

use std::time::{SystemTime, UNIX_EPOCH};

use ctxbench_core::rng::SplitMix64;
pub use ulid::Ulid;

use super::Millis;

/// Largest time in a ULID, ms since 1970.
const MAX_MS: u64 = (1 << Ulid::TIME_BITS) - 1;

/// Generates ids, each greater than the one before.
pub struct IdGenerator {
    clock: Box<dyn Fn() -> Millis + Send>,
    random: SplitMix64,
    last: Ulid,
}

impl IdGenerator {
    /// Creates a generator from a clock (ms since 1970) and a seed.
    pub fn new(clock: impl Fn() -> Millis + Send + 'static, seed: u64) -> Self {
        IdGenerator { clock: Box::new(clock), random: SplitMix64::new(seed), last: Ulid::nil() }
    }

    /// Creates a generator from the machine's clock.
    pub fn system() -> Self {
        let elapsed = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed = elapsed().as_nanos() as u64 ^ u64::from(std::process::id()) << 32;
        IdGenerator::new(move || elapsed().as_millis() as Millis, seed)
    }

    /// Returns the clock's time, ms since 1970.
    pub fn now(&self) -> Millis {
        (self.clock)()
    }

    /// Returns a new id. It is greater than every earlier one, even within a millisecond or after
    /// the clock was set back.
    pub fn next_id(&mut self) -> Ulid {
        let random = u128::from(self.random.bits()) << 16 | u128::from(self.random.bits() & 0xffff);
        let ms = self.now().max(0) as u64;
        let fresh = Ulid::from_parts(ms.min(MAX_MS - 1), random);
        // No id starts in the format's last millisecond, so counting up never overflows.
        self.last = fresh.max(Ulid(self.last.0 + 1));
        self.last
    }

    /// Makes every further id greater than `id`. Returns false, and changes nothing, if `id` is of
    /// the format's last millisecond (in the year 10889) and leaves no room.
    #[must_use]
    pub fn advance_past(&mut self, id: Ulid) -> bool {
        let has_room = id.timestamp_ms() < MAX_MS;
        if has_room {
            self.last = self.last.max(id);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_within_one_millisecond_sort_as_text() {
        let mut ids = IdGenerator::new(|| 1_700_000_000_000, 7);
        let made: Vec<Ulid> = (0..1_000).map(|_| ids.next_id()).collect();
        assert!(made.windows(2).all(|w| w[0] < w[1] && w[0].to_string() < w[1].to_string()));
        assert!(made.iter().all(|id| id.timestamp_ms() == 1_700_000_000_000));
    }

    #[test]
    fn next_id_after_clock_set_back_is_greater() {
        let id = IdGenerator::new(|| 2_000, 1).next_id();
        let mut early = IdGenerator::new(|| 1_000, 2);
        assert!(early.advance_past(id));
        assert!(early.next_id() > id);
    }

    #[test]
    fn advance_past_last_id_is_refused() {
        let mut ids = IdGenerator::new(|| Millis::MAX, 1);
        let made: Vec<Ulid> = (0..100).map(|_| ids.next_id()).collect();
        assert!(made.windows(2).all(|w| w[0] < w[1]));
        let last: Ulid = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ".parse().unwrap();
        assert!(!ids.advance_past(last));
        assert!(ids.next_id() < last);
    }
}
