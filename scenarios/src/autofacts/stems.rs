//! Stems by number. A long tool result has very many stems, so their size in memory matters.

use ctxbench_core::tokens::content_hash;
use rapidhash::RapidHashMap as HashMap;

/// Number of a stem, in the order of first occurrence.
pub(super) type Stem = u32;

/// All distinct stems, stored in one text.
#[derive(Default)]
pub(super) struct Stems {
    said: String,
    /// End of each stem in `said`, by the number of the stem.
    ends: Vec<usize>,
    /// Numbers by the hash of the stem. After a collision, the next free hash is used.
    numbers: HashMap<u64, Stem>,
}

impl Stems {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn stem(&self, number: Stem) -> &str {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.said[start..self.ends[at]]
    }

    /// Returns the number of a stem, and adds the stem if it is new.
    pub(super) fn number(&mut self, stem: &str) -> Stem {
        let mut key = content_hash(stem.as_bytes());
        while let Some(&number) = self.numbers.get(&key) {
            if self.stem(number) == stem {
                return number;
            }
            key = key.wrapping_add(1);
        }
        let number = self.ends.len() as Stem;
        self.said.push_str(stem);
        self.ends.push(self.said.len());
        self.numbers.insert(key, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stem_has_one_number_also_where_hashes_meet() {
        let mut stems = Stems::default();
        assert_eq!(["port", "token", "port", ""].map(|s| stems.number(s)), [0, 1, 0, 2]);
        // Simulates another stem with the same hash.
        stems.numbers.insert(content_hash(b"window"), 0);
        assert_eq!(
            [stems.number("window"), stems.number("window"), stems.number("port")],
            [3, 3, 0]
        );
        assert_eq!([0, 1, 2, 3].map(|n| stems.stem(n)), ["port", "token", "", "window"]);
        assert_eq!(stems.len(), 4);
    }
}
