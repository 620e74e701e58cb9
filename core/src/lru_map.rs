//! A map that does not grow without end: for what a long-lived process remembers and may forget.

use std::hash::Hash;

use rapidhash::{HashMapExt, RapidHashMap as HashMap};

/// Holds at most so many entries, and always the half of them that was used last. Two generations:
/// when the young one is half of all, it becomes the old one, and what was in the old one is
/// forgotten; what is used moves to the young one. So using an entry costs one look-up, and there
/// is no list to keep in order.
#[derive(Clone, Debug)]
pub struct Recent<K, V> {
    most: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// An empty map of at most so many entries, two at least.
    pub fn new(most: usize) -> Self {
        Recent { most: most.max(2), young: HashMap::new(), old: HashMap::new() }
    }

    /// Entries it holds.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry, and whether it would be forgotten next unless [`Recent::touch`] is called.
    pub fn peek(&self, key: &K) -> Option<(&V, bool)> {
        self.young.get(key).map(|v| (v, false)).or_else(|| self.old.get(key).map(|v| (v, true)))
    }

    /// Counts as a use of the entry.
    pub fn touch(&mut self, key: &K) {
        if let Some((key, value)) = self.old.remove_entry(key) {
            self.insert(key, value);
        }
    }

    /// The entry, used.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.touch(key);
        self.young.get(key)
    }

    /// Adds an entry or changes it, used.
    pub fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        if self.young.len() >= self.most / 2 && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_holds_more_and_forgets_what_was_used_least() {
        let mut r = Recent::new(10);
        for i in 0..1_000_u64 {
            r.insert(i, i * 2);
            assert!(r.len() <= 10, "{i}");
            assert!(
                (i.saturating_sub(3)..=i).all(|k| r.peek(&k).is_some()),
                "the last four and 0 are there"
            );
            assert_eq!(r.get(&0), Some(&0), "what is used stays");
        }
        assert!(r.peek(&500).is_none());
        r.insert(0, 7);
        assert_eq!((r.get(&0).copied(), r.get(&500).copied()), (Some(7), None));
    }
}
