//! Random choices of the session, which must be the same bytes on every machine.

use ctxbench_core::rng::SplitMix64;

/// Seeded by a name, so that a change in one place does not shift all others.
pub struct Rng(SplitMix64);

impl Rng {
    pub fn named(name: &str) -> Self {
        Self(SplitMix64::named(name))
    }

    pub fn next(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number in `low..high`.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[(self.next() % from.len() as u64) as usize]
    }

    /// `length` characters of a database id (lower case letters and digits).
    pub fn id(&mut self, length: usize) -> String {
        const ALPHABET: &[u8] = b"0123456789abcdefghjkmnpqrstvwxyz";
        (0..length).map(|_| char::from(ALPHABET[(self.next() % 32) as usize])).collect()
    }

    pub fn hex(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from(b"0123456789abcdef"[(self.next() % 16) as usize])).collect()
    }
}
