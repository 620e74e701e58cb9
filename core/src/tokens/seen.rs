//! Counts of words that the thread has seen, in a table with one word per slot. Most words of a text
//! were counted before.

use std::cell::RefCell;

use super::words::words;
use super::{Encoding, content_hash, vocabulary};

/// Number of slots per thread, a power of two; 16 bytes each.
const SLOTS: usize = 1 << 16;

/// The count of the last word with this slot, identified by its hash.
#[derive(Clone, Copy, Default)]
struct Slot {
    hash: u64,
    tokens: u64,
}

thread_local! {
    static COUNTED: RefCell<Vec<Slot>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn count(text: &str, encoding: Encoding) -> u64 {
    let vocabulary = &vocabulary::ALL[encoding as usize];
    COUNTED.with_borrow_mut(|slots| {
        if slots.is_empty() {
            slots.resize(SLOTS, Slot::default());
        }
        let count = |word: &str| {
            let hash = content_hash(word.as_bytes()) ^ encoding as u64;
            let slot = &mut slots[hash as usize & (SLOTS - 1)];
            // Every word has tokens, so 0 marks an empty slot.
            if slot.hash != hash || slot.tokens == 0 {
                *slot = Slot { hash, tokens: vocabulary.count(word.as_bytes()) as u64 };
            }
            slot.tokens
        };
        words(text, encoding).map(count).sum()
    })
}
