//! Words that were counted before: most of a text are, so it costs one look at a small table each.

use std::cell::RefCell;

use super::vocabulary::Vocabulary;
use super::words::words;
use super::{Encoding, content_hash};

/// Places for words, each thread has its own: a power of two, of 16 bytes each.
const PLACES: usize = 1 << 16;

/// What stands at the place that a word's hash names: the word that was there last, known by its
/// hash like every text that is counted once.
#[derive(Clone, Copy, Default)]
struct Place {
    hash: u64,
    tokens: u64,
}

thread_local! {
    static O200K: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
    static CL100K: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

/// Number of tokens of a text.
pub(super) fn count(encoding: Encoding, text: &str) -> u64 {
    let table = match encoding {
        Encoding::O200k => &O200K,
        Encoding::Cl100k => &CL100K,
    };
    let vocabulary = Vocabulary::of(encoding);
    table.with_borrow_mut(|places| {
        if places.is_empty() {
            places.resize(PLACES, Place::default());
        }
        let count = |word: &str| {
            let hash = content_hash(word.as_bytes());
            let place = &mut places[hash as usize & (PLACES - 1)];
            // No word is no tokens, which is what stands at an empty place.
            if place.hash != hash || place.tokens == 0 {
                *place = Place { hash, tokens: vocabulary.count(word.as_bytes()) as u64 };
            }
            place.tokens
        };
        words(encoding, text).map(count).sum()
    })
}
