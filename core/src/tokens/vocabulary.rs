//! Byte pair encoding: repeatedly merges the pair of neighbours that forms the token with the lowest
//! rank.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::DeflateDecoder;

use super::content_hash;

/// The vocabularies that `build.rs` packs, as hash tables, in the order of
/// [`Encoding`](super::Encoding): 15 ms each at the first count.
pub(super) static ALL: [LazyLock<Vocabulary>; 2] = [
    LazyLock::new(|| Vocabulary::read(include_bytes!(concat!(env!("OUT_DIR"), "/o200k.bin")))),
    LazyLock::new(|| Vocabulary::read(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k.bin")))),
];

pub(super) struct Vocabulary {
    /// Start of each token in `tokens`, and the end of the last.
    starts: Vec<u32>,
    /// 0, or the upper 14 bits of a token's hash and its rank + 1 in 18 bits.
    slots: Vec<u32>,
    tokens: Vec<u8>,
}

/// Number of bits of a slot for a token's rank + 1; the upper bits are from its hash.
const NUMBER_BITS: u32 = 18;

/// Number of bits of a queue key for the start of a pair; the upper bits are its rank.
const START_BITS: u32 = u64::BITS - NUMBER_BITS;
const START: u64 = (1 << START_BITS) - 1;

/// The rank of byte sequences that are not tokens.
const NO_RANK: u32 = u32::MAX;

fn upper(hash: u64) -> u32 {
    (hash >> (u32::BITS + NUMBER_BITS)) as u32
}

impl Vocabulary {
    /// Reads the number of tokens, the length of each in a byte, and the bytes of all.
    fn read(packed: &[u8]) -> Vocabulary {
        let mut tokens = Vec::new();
        let read = DeflateDecoder::new(packed).read_to_end(&mut tokens);
        read.expect("build.rs packed the vocabulary");
        let head: Vec<u8> = tokens.drain(..4).collect();
        let n = head.iter().rev().fold(0, |n, byte| n << 8 | usize::from(*byte));
        let mut starts = vec![0];
        starts.extend(tokens.drain(..n).scan(0, |end, length| {
            *end += u32::from(length);
            Some(*end)
        }));
        let mut slots = vec![0; n.next_power_of_two()];
        for (number, token) in (1..).zip(starts.windows(2)) {
            let hash = content_hash(&tokens[token[0] as usize..token[1] as usize]);
            let mut at = hash as usize & (slots.len() - 1);
            while slots[at] != 0 {
                at = (at + 1) & (slots.len() - 1);
            }
            slots[at] = upper(hash) << NUMBER_BITS | number;
        }
        Vocabulary { starts, slots, tokens }
    }

    /// Returns the rank of a token; [`NO_RANK`] if the bytes are not a token.
    #[inline]
    fn rank(&self, bytes: &[u8]) -> u32 {
        let hash = content_hash(bytes);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return NO_RANK;
            }
            if slot >> NUMBER_BITS == upper(hash) {
                let rank = (slot & ((1 << NUMBER_BITS) - 1)) - 1;
                let start = self.starts[rank as usize] as usize;
                let end = self.starts[rank as usize + 1] as usize;
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
