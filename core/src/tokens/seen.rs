//! Caches the token counts of words, because most words of a text were counted before.

use std::cell::RefCell;

use super::vocabulary::Vocabulary;
use super::words::words;
use super::{Encoding, content_hash};

/// Number of slots per thread, a power of two; 16 bytes each.
const SLOTS: usize = 1 << 16;

/// The count of the last word with this slot, identified by its hash.
#[derive(Clone, Copy, Default)]
struct Slot {
    hash: u64,
    tokens: u64,
}

thread_local! {
    static O200K: RefCell<Vec<Slot>> = const { RefCell::new(Vec::new()) };
    static CL100K: RefCell<Vec<Slot>> = const { RefCell::new(Vec::new()) };
}

/// Returns the number of tokens of a text.
pub(super) fn count(encoding: Encoding, text: &str) -> u64 {
    let table = match encoding {
        Encoding::O200k => &O200K,
        Encoding::Cl100k => &CL100K,
    };
    let vocabulary = Vocabulary::get(encoding);
    table.with_borrow_mut(|slots| {
        if slots.is_empty() {
            slots.resize(SLOTS, Slot::default());
        }
        let count = |word: &str| {
            let hash = content_hash(word.as_bytes());
            let slot = &mut slots[hash as usize & (SLOTS - 1)];
            // Every word has tokens, so 0 marks an empty slot.
            if slot.hash != hash || slot.tokens == 0 {
                *slot = Slot { hash, tokens: vocabulary.count(word.as_bytes()) as u64 };
            }
            slot.tokens
        };
        words(encoding, text).map(count).sum()
    })
}
