//! Byte pair encoding: repeatedly merges the pair of neighbours that forms the token with the lowest
//! rank.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::content_hash;

/// A vocabulary as `build.rs` writes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vocabulary {
    starts: &'static [u8],
    slots: &'static [u8],
    tokens: &'static [u8],
}

/// Number of bits of a slot for a token's rank + 1; the upper bits are from its hash.
const NUMBER_BITS: u32 = 18;

/// Number of bits of a queue key for the start of a pair; the upper bits are its rank.
const START_BITS: u32 = u64::BITS - NUMBER_BITS;
const START: u64 = (1 << START_BITS) - 1;

/// The rank of byte sequences that are not tokens.
const NO_RANK: u32 = u32::MAX;

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[4 * at..].first_chunk().map_or(0, |n| u32::from_le_bytes(*n))
}

/// The vocabularies, in the order of [`Encoding`](super::Encoding).
pub(super) static ALL: [Vocabulary; 2] = [
    Vocabulary::read(include_bytes!(concat!(env!("OUT_DIR"), "/o200k.bin"))),
    Vocabulary::read(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k.bin"))),
];

impl Vocabulary {
    const fn read(bytes: &'static [u8]) -> Vocabulary {
        let (head, rest) = bytes.split_at(8);
        let tokens = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let slots = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let (starts, rest) = rest.split_at(4 * (tokens + 1));
        let (slots, tokens) = rest.split_at(4 * slots);
        Vocabulary { starts, slots, tokens }
    }

    /// Returns the rank of a token; [`NO_RANK`] if the bytes are not a token.
    #[inline]
    fn rank(&self, bytes: &[u8]) -> u32 {
        let hash = content_hash(bytes);
        let mask = self.slots.len() / 4 - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = number(self.slots, at);
            if slot == 0 {
                return NO_RANK;
            }
            if slot >> NUMBER_BITS == (hash >> (32 + NUMBER_BITS)) as u32 {
                let rank = (slot & ((1 << NUMBER_BITS) - 1)) - 1;
                let start = number(self.starts, rank as usize) as usize;
                let end = number(self.starts, rank as usize + 1) as usize;
                if &self.tokens[start..end] == bytes {
                    return rank;
                }
            }
            at = (at + 1) & mask;
        }
    }

    pub(super) fn count(&self, word: &[u8]) -> usize {
        if word.len() < 2 || self.rank(word) != NO_RANK {
            return word.len().min(1);
        }
        let rank =
            |start: usize, end: usize| word.get(start..end).map_or(NO_RANK, |p| self.rank(p));
        let mut parts: Vec<MergePart> = (0..word.len())
            .map(|at| MergePart { before: at.checked_sub(1), end: at + 1, pair: rank(at, at + 2) })
            .collect();
        let ranked = parts.iter().enumerate().filter(|(_, p)| p.pair != NO_RANK);
        let mut pairs: BinaryHeap<Reverse<u64>> =
            ranked.map(|(at, p)| Reverse(queue_key(p.pair, at))).collect();
        let mut n = word.len();
        while let Some(Reverse(turn)) = pairs.pop() {
            let (rank_now, at) = ((turn >> START_BITS) as u32, (turn & START) as usize);
            // One of the two was merged with another part.
            if parts[at].pair != rank_now {
                continue;
            }
            let next = parts[at].end;
            let end = parts[next].end;
            parts[next].pair = NO_RANK;
            parts[at].end = end;
            n -= 1;
            let next_end = parts.get_mut(end).map(|after| {
                after.before = Some(at);
                after.end
            });
            let pair = next_end.map_or(NO_RANK, |end| rank(at, end));
            let before = parts[at].before.map(|before| (before, rank(before, end)));
            for (start, pair) in [Some((at, pair)), before].into_iter().flatten() {
                parts[start].pair = pair;
                if pair != NO_RANK {
                    pairs.push(Reverse(queue_key(pair, start)));
                }
            }
        }
        n
    }
}

/// Returns the queue key of a pair, ordered by rank and then by start. One number, since the heap of a
/// long word exceeds the processor's cache.
fn queue_key(rank: u32, start: usize) -> u64 {
    u64::from(rank) << START_BITS | start as u64
}

/// A part of a word during merging.
struct MergePart {
    /// Start of the previous part.
    before: Option<usize>,
    /// End of this part and start of the next.
    end: usize,
    /// Rank of this part merged with the next.
    pair: u32,
}
