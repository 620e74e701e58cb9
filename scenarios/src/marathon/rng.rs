//! A small seeded generator: the session must be the same bytes on every machine.

/// SplitMix64, seeded by a name so that a change in one place does not shift all others.
pub struct Rng(u64);

impl Rng {
    pub fn named(name: &str) -> Self {
        // FNV-1a: stable, unlike the hasher of the standard library.
        let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
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
