//! Compares each request with the previous one: tokens shared at the beginning, and tokens written
//! again.
//!
//! Only differing blocks are examined, because prefix sums are kept between requests.

use std::borrow::Cow;
use std::sync::Arc;

use ctxbench_core::block::{Block, common_prefix, total_tokens};
use ctxbench_core::context_editing;
use ctxbench_core::model::Counting;
use ctxbench_core::request::Request;
use ctxbench_core::strategy::is_system;
use rapidhash::RapidHashMap as HashMap;

/// The newest answered request.
#[derive(Default)]
pub(super) struct Prefix {
    blocks: Vec<Arc<Block>>,
    /// Hash of the tool definitions.
    tools: Option<u64>,
    /// Sums up to each block.
    sums: Vec<Sum>,
    /// Number of occurrences of each content hash.
    hashes: HashMap<u64, usize>,
}

/// Sums over a sequence of blocks. The values of the conversation exclude the system part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    tokens: u64,
    conversation_tokens: u64,
    conversation: usize,
}

impl Sum {
    fn with(self, block: &Block, by: &Counting) -> Sum {
        let tokens = block.tokens(by);
        let spoken = !is_system(block);
        Sum {
            tokens: self.tokens + tokens,
            conversation_tokens: self.conversation_tokens + if spoken { tokens } else { 0 },
            conversation: self.conversation + usize::from(spoken),
        }
    }
}

/// Tokens of an answered prompt that the cache served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) read: u64,
    /// Additional tokens that the cache would have served if they had not expired.
    pub(super) expired: u64,
}

/// Comparison of a request with the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SharedPrefix {
    /// Tokens shared at the beginning, without the system part.
    pub(super) common: u64,
    /// Tokens of the earlier conversation; `None` for the first request.
    pub(super) earlier_tokens: Option<u64>,
    pub(super) again: Again,
}

/// Tokens that were shown before and had to be written or sent again, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Again {
    /// Tokens of cache entries that had expired.
    pub(super) expired: u64,
    /// Tokens after a change.
    pub(super) changed: u64,
    /// Tokens after the last breakpoint, in a prompt that is too small for the cache, or without a
    /// cache.
    pub(super) other: u64,
}

impl SharedPrefix {
    /// Combines two consecutive comparisons into one.
    pub(super) fn followed_by(self, then: SharedPrefix) -> SharedPrefix {
        SharedPrefix {
            common: self.common.min(then.common),
            earlier_tokens: self.earlier_tokens.filter(|_| then.earlier_tokens.is_some()),
            again: Again {
                expired: self.again.expired + then.again.expired,
                changed: self.again.changed + then.again.changed,
                other: self.again.other + then.again.other,
            },
        }
    }
}

impl Prefix {
    /// Compares a normal request with the newest answered one. If this request was answered, it
    /// becomes the newest.
    pub(super) fn compare(
        &mut self,
        request: &Request,
        logical: &[Arc<Block>],
        served: Option<Served>,
    ) -> SharedPrefix {
        // `cache_edits` removes results after the prefix, so the cache sees them as they were sent.
        let by = &request.model.counting;
        let kept =
            request.server_edits.iter().any(|e| !context_editing::deleted_results(e).is_empty());
        let (model, edits) = (&request.model, &request.server_edits);
        let sent = match kept {
            true => Cow::Owned(context_editing::visible(model, edits, request.blocks.clone())),
            false => Cow::Borrowed(logical),
        };
        let head = common_prefix(&self.blocks, &sent);
        let at_head = head.checked_sub(1).map_or(Sum::default(), |i| self.sums[i]);
        let sums: Vec<Sum> = sent[head..]
            .iter()
            .scan(at_head, |sum, b| {
                *sum = sum.with(b, by);
                Some(*sum)
            })
            .collect();
        let old = self.sums.last().copied().unwrap_or_default();
        // After the first difference, the system part may differ while the conversation continues
        // unchanged.
        let rest = |blocks: &[Arc<Block>]| -> Vec<Arc<Block>> {
            blocks[head..].iter().filter(|b| !is_system(b)).cloned().collect()
        };
        let (old_rest, new_rest) = (rest(&self.blocks), rest(&sent));
        let further = common_prefix(&old_rest, &new_rest);
        let same = at_head.conversation + further;
        let first = old.conversation == 0;
        let shared = SharedPrefix {
            common: at_head.conversation_tokens + total_tokens(by, &new_rest[..further]),
            earlier_tokens: (!first).then_some(old.conversation_tokens),
            again: match served {
                Some(served) if !first => {
                    let sum = |i: usize| match i < head {
                        true => self.sums[i],
                        false => sums[i - head],
                    };
                    self.again(request, &sent, (!kept).then_some(&sum), logical, same, served)
                }
                _ => Again::default(),
            },
        };
        if served.is_some() {
            for b in &self.blocks[head..] {
                if let Some(n) = self.hashes.get_mut(&b.hash) {
                    *n -= 1;
                    if *n == 0 {
                        self.hashes.remove(&b.hash);
                    }
                }
            }
            self.tools = request.tools.as_ref().map(|t| t.hash());
            self.sums.truncate(head);
            self.sums.extend(sums);
            self.blocks.truncate(head);
            self.blocks.extend_from_slice(&sent[head..]);
            for b in &sent[head..] {
                *self.hashes.entry(b.hash).or_default() += 1;
            }
        }
        shared
    }

    /// Splits the tokens that the earlier request already had, but that the cache did not serve, by
    /// cause. `sum` returns the size up to each block; `None` if the model was shown other blocks
    /// than were sent.
    fn again(
        &self,
        request: &Request,
        sent: &[Arc<Block>],
        sum: Option<&dyn Fn(usize) -> Sum>,
        logical: &[Arc<Block>],
        same: usize,
        Served { read: served, expired }: Served,
    ) -> Again {
        let by = &request.model.counting;
        let mut again = Again::default();
        let tools = request.tools_tokens();
        // Number of blocks that the cache served completely, according to the sums.
        let from = sum.map_or(0, |sum| {
            let (mut low, mut high) = (0, sent.len());
            while low < high {
                let middle = low + (high - low) / 2;
                match tools + sum(middle).tokens <= served {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low
        });
        let before = match (sum, from.checked_sub(1)) {
            (Some(sum), Some(last)) => sum(last),
            _ => Sum::default(),
        };
        // Caches serve in steps, so the cache may have served a part of this block.
        let mut missed = |from: u64, to: u64, stands: bool| {
            let from = from.max(served);
            let cold = to.min(served + expired).saturating_sub(from);
            again.expired += cold;
            let rest = to.saturating_sub(from) - cold;
            *if stands { &mut again.other } else { &mut again.changed } += rest;
        };
        if self.tools == request.tools.as_ref().map(|t| t.hash()) {
            missed(0, tools, true);
        }
        let mut at = tools + before.tokens;
        let mut unchanged = same.saturating_sub(before.conversation);
        for (b, seen) in sent.iter().zip(logical).skip(from) {
            let begin = at;
            at += seen.tokens(by);
            let stands = is_system(b) || unchanged > 0;
            unchanged = unchanged.saturating_sub(usize::from(!is_system(b)));
            if at > served && self.hashes.contains_key(&b.hash) {
                missed(begin, at, stands);
            }
        }
        again
    }
}
