//! Ids that sort by time (<https://github.com/ulid/spec>), from an injected clock and seed.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use ctxbench_util::rng::SplitMix64;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use ulid::Ulid;

use super::Millis;

/// Id of a session, message, part or checkpoint; 26 letters and digits as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(Ulid);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Id, String> {
        let wrong = |e| format!("{e}; an id has 26 letters and digits");
        Ulid::from_string(text).map(Id).map_err(wrong)
    }
}

impl ToSql for Id {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.to_string().into())
    }
}

impl FromSql for Id {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Id> {
        value.as_str()?.parse().map_err(|e: String| FromSqlError::Other(e.into()))
    }
}

/// Largest time in a ULID, ms since 1970.
const MAX_MS: u64 = (1 << Ulid::TIME_BITS) - 1;

/// Generates ids, each greater than the one before.
pub struct IdGenerator {
    clock: Box<dyn Fn() -> Millis + Send>,
    random: SplitMix64,
    last: Id,
}

impl IdGenerator {
    /// Creates a generator from a clock (ms since 1970) and a seed.
    pub fn new(clock: impl Fn() -> Millis + Send + 'static, seed: u64) -> Self {
        IdGenerator { clock: Box::new(clock), random: SplitMix64::new(seed), last: Id(Ulid::nil()) }
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
    /// the clock was set back. Only after the greatest possible id, in the year 10889, it is the same
    /// again, which the database refuses.
    pub fn next_id(&mut self) -> Id {
        let random = u128::from(self.random.bits()) << 16 | u128::from(self.random.bits() & 0xffff);
        let ms = self.now().max(0) as u64;
        let fresh = Ulid::from_parts(ms.min(MAX_MS - 1), random);
        self.last = Id(fresh.max(Ulid(self.last.0.0.saturating_add(1))));
        self.last
    }

    /// Makes every further id greater than `id`.
    pub fn advance_past(&mut self, id: Id) {
        self.last = self.last.max(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_within_one_millisecond_sort_as_text() {
        let mut ids = IdGenerator::new(|| 1_700_000_000_000, 7);
        let made: Vec<Id> = (0..1_000).map(|_| ids.next_id()).collect();
        assert!(made.windows(2).all(|w| w[0] < w[1] && w[0].to_string() < w[1].to_string()));
        assert!(made.iter().all(|id| id.0.timestamp_ms() == 1_700_000_000_000));
    }
}
