//! A vocabulary and how many of its tokens a word is: byte pair encoding, in which of all pairs of
//! neighbours that are a token together the one with the lowest number is joined first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Encoding, content_hash};

/// A vocabulary as `build.rs` writes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vocabulary {
    starts: &'static [u8],
    slots: &'static [u8],
    tokens: &'static [u8],
}

/// Bits of a slot that hold a token's number + 1; above them are bits of its hash.
const NUMBER_BITS: u32 = 18;

/// Bits of a pair's place in line that hold where it begins; above them is its rank.
const START_BITS: u32 = u64::BITS - NUMBER_BITS;
const START: u64 = (1 << START_BITS) - 1;

/// A rank that no token has.
const NONE: u32 = u32::MAX;

/// Words of up to so many bytes are joined by looking at all pairs again and again, which costs
/// less than keeping them in order; as in tiktoken.
const SHORT: usize = 100;

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[4 * at..].first_chunk().map_or(0, |n| u32::from_le_bytes(*n))
}

impl Vocabulary {
    pub(super) fn of(encoding: Encoding) -> &'static Vocabulary {
        static O200K: Vocabulary =
            Vocabulary::read(include_bytes!(concat!(env!("OUT_DIR"), "/o200k.bin")));
        static CL100K: Vocabulary =
            Vocabulary::read(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k.bin")));
        match encoding {
            Encoding::O200k => &O200K,
            Encoding::Cl100k => &CL100K,
        }
    }

    const fn read(bytes: &'static [u8]) -> Vocabulary {
        let (head, rest) = bytes.split_at(8);
        let tokens = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let slots = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let (starts, rest) = rest.split_at(4 * (tokens + 1));
        let (slots, tokens) = rest.split_at(4 * slots);
        Vocabulary { starts, slots, tokens }
    }

    /// The number of a token, which is its rank; [`NONE`] for what is none.
    #[inline]
    fn rank(&self, bytes: &[u8]) -> u32 {
        let hash = content_hash(bytes);
        let mask = self.slots.len() / 4 - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = number(self.slots, at);
            if slot == 0 {
                return NONE;
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

    /// How many tokens a word is.
    pub(super) fn count(&self, word: &[u8]) -> usize {
        match word.len() {
            0 => 0,
            1 => 1,
            _ if self.rank(word) != NONE => 1,
            n if n < SHORT => self.joined_short(word),
            _ => self.joined_long(word),
        }
    }

    fn joined_short(&self, word: &[u8]) -> usize {
        // Starts of the parts and the rank of each joined with the next; the last one is the end.
        let mut parts: [(usize, u32); SHORT + 1] = [(0, NONE); SHORT + 1];
        let mut n = word.len();
        for (at, part) in parts[..=n].iter_mut().enumerate() {
            *part = (at, word.get(at..at + 2).map_or(NONE, |p| self.rank(p)));
        }
        let joined = |parts: &[(usize, u32)], at: usize, n: usize| match at + 2 <= n {
            true => self.rank(&word[parts[at].0..parts[at + 2].0]),
            false => NONE,
        };
        loop {
            let (mut least, mut at) = (NONE, 0);
            for (i, part) in parts[..n].iter().enumerate() {
                if part.1 < least {
                    (least, at) = (part.1, i);
                }
            }
            if least == NONE {
                return n;
            }
            parts.copy_within(at + 2..=n, at + 1);
            n -= 1;
            parts[at].1 = joined(&parts, at, n);
            if at > 0 {
                parts[at - 1].1 = joined(&parts, at - 1, n);
            }
        }
    }

    fn joined_long(&self, word: &[u8]) -> usize {
        let rank = |start: usize, end: usize| word.get(start..end).map_or(NONE, |p| self.rank(p));
        let mut parts: Vec<Part> = (0..word.len())
            .map(|at| Part { before: at.checked_sub(1), end: at + 1, pair: rank(at, at + 2) })
            .collect();
        let ranked = parts.iter().enumerate().filter(|(_, p)| p.pair != NONE);
        let mut pairs: BinaryHeap<Reverse<u64>> =
            ranked.map(|(at, p)| Reverse(in_turn(p.pair, at))).collect();
        let mut n = word.len();
        while let Some(Reverse(turn)) = pairs.pop() {
            let (least, at) = ((turn >> START_BITS) as u32, (turn & START) as usize);
            // One of the two was joined with another since.
            if parts[at].pair != least {
                continue;
            }
            let next = parts[at].end;
            let end = parts[next].end;
            parts[next].pair = NONE;
            parts[at].end = end;
            n -= 1;
            let behind = parts.get_mut(end).map(|after| {
                after.before = Some(at);
                after.end
            });
            let pair = behind.map_or(NONE, |behind| rank(at, behind));
            let before = parts[at].before.map(|before| (before, rank(before, end)));
            for (start, pair) in [Some((at, pair)), before].into_iter().flatten() {
                parts[start].pair = pair;
                if pair != NONE {
                    pairs.push(Reverse(in_turn(pair, start)));
                }
            }
        }
        n
    }
}

/// The place in line of a pair, by rank and then by start, as one number: the heap of a long word
/// is larger than a processor's cache, and two numbers take twice the room.
fn in_turn(rank: u32, start: usize) -> u64 {
    u64::from(rank) << START_BITS | start as u64
}

/// A part of a word that is being joined.
struct Part {
    /// Where the one before begins.
    before: Option<usize>,
    /// Where it ends and the next one begins.
    end: usize,
    /// The rank of it joined with the next.
    pair: u32,
}
