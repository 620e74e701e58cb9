//! A small seeded random generator with the same output on every machine.

/// SplitMix64 (Steele, Lea, Flood 2014). Every seed is good.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a stream from a name, independent of other streams.
    pub fn named(name: &str) -> Self {
        // FNV-1a: stable, unlike the hasher of the standard library.
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..bound`, or 0 for a bound of 0. The bias is below `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_match_published_stream_of_seed_1234567() {
        let mut rng = SplitMix64::new(1_234_567);
        let stream: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        assert_eq!(
            stream,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn below_is_uniform() {
        let mut rng = SplitMix64::named("spread");
        let mut seen = [0; 7];
        (0..7_000).for_each(|_| seen[rng.below(7) as usize] += 1);
        // 1,000 each with a deviation of 29; five deviations.
        assert!(seen.iter().all(|n| (854..=1146).contains(n)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
    }
}
