//! A map of limited size for caches of long-lived processes.

use std::hash::Hash;

use rapidhash::{HashMapExt, RapidHashMap as HashMap};

/// An LRU map with two generations. It contains at most `max` entries, and always the `max / 2`
/// most recently used. When the young generation is full, it replaces the old one. A lookup of a
/// recently used entry changes nothing, unlike in a linked list, so readers can share a lock.
#[derive(Clone, Debug)]
pub struct LruMap<K, V> {
    max: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash, V> LruMap<K, V> {
    /// Creates an empty map of at most `max` entries, at least 2.
    pub fn new(max: usize) -> Self {
        LruMap { max: max.max(2), young: HashMap::new(), old: HashMap::new() }
    }

    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an entry, and whether it needs [`LruMap::touch`] so as not to be evicted next.
    pub fn peek(&self, key: &K) -> Option<(&V, bool)> {
        self.young.get(key).map(|v| (v, false)).or_else(|| self.old.get(key).map(|v| (v, true)))
    }

    /// Marks an entry as used.
    pub fn touch(&mut self, key: &K) {
        if let Some((key, value)) = self.old.remove_entry(key) {
            self.insert(key, value);
        }
    }

    /// Returns an entry and marks it as used.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.touch(key);
        self.young.get(key)
    }

    /// Inserts or replaces an entry and marks it as used.
    pub fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        if self.young.len() >= self.max / 2 && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lru_map_evicts_least_recently_used() {
        let mut r = LruMap::new(10);
        for i in 0..1_000_u64 {
            r.insert(i, i * 2);
            assert!(r.len() <= 10, "{i}");
            assert!(
                (i.saturating_sub(3)..=i).all(|k| r.peek(&k).is_some()),
                "the last four entries are present"
            );
            assert_eq!(r.get(&0), Some(&0), "a used entry is kept");
        }
        assert!(r.peek(&500).is_none());
        r.insert(0, 7);
        assert_eq!((r.get(&0).copied(), r.get(&500).copied()), (Some(7), None));
    }
}
