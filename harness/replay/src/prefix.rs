//! Compares each request with the previous one: tokens shared at the beginning, and tokens written
//! again.

use std::borrow::Cow;
use std::sync::Arc;

use ctxbench_core::block::{common_prefix, is_system, total_tokens};
use ctxbench_core::model::Counting;
use ctxbench_core::{Block, Request, context_editing};
use rapidhash::RapidHashMap as HashMap;

/// The newest answered request. The next one usually begins like it, so sums are kept up to each block
/// and the cost of a comparison is that of the blocks that differ.
#[derive(Default)]
pub(super) struct Prefix {
    blocks: Vec<Arc<Block>>,
    /// Sums up to and including each block.
    sums: Vec<Sums>,
    /// The counting model of the sums.
    counting: Counting,
    /// Hash of the tool definitions.
    tools: Option<u64>,
    /// Number of occurrences of each content hash.
    hashes: HashMap<u64, usize>,
}

/// Sums over the first blocks of a request.
#[derive(Clone, Copy, Default)]
struct Sums {
    tokens: u64,
    /// Number and tokens of the blocks of the conversation, without the system part.
    spoken: usize,
    spoken_tokens: u64,
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
    /// Tokens that were shown before and had to be written or sent again: of cache entries that had
    /// expired.
    pub(super) expired: u64,
    /// After a change.
    pub(super) changed: u64,
    /// After the last breakpoint, in a prompt that is too small for the cache, or without a cache.
    pub(super) other: u64,
}

impl SharedPrefix {
    /// Combines two consecutive comparisons into one.
    pub(super) fn followed_by(self, then: SharedPrefix) -> SharedPrefix {
        SharedPrefix {
            common: self.common.min(then.common),
            earlier_tokens: self.earlier_tokens.filter(|_| then.earlier_tokens.is_some()),
            expired: self.expired + then.expired,
            changed: self.changed + then.changed,
            other: self.other + then.other,
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
        if self.counting != *by {
            self.counting = *by;
            self.sums.clear();
            self.add_sums();
        }
        // After the first difference, the system part may differ while the conversation continues
        // unchanged.
        let spoken = |blocks: &[Arc<Block>]| -> Vec<Arc<Block>> {
            blocks.iter().filter(|b| !is_system(b)).cloned().collect()
        };
        let (shared, old_rest, new_rest) =
            (self.sums_of(head), spoken(&self.blocks[head..]), spoken(&sent[head..]));
        let further = common_prefix(&old_rest, &new_rest);
        let first = shared.spoken == 0 && old_rest.is_empty();
        let at_head = shared.spoken_tokens;
        let same = shared.spoken + further;
        let again = served.filter(|_| !first);
        let summed = if kept { 0 } else { head };
        let again = again.map(|served| self.again(request, (&sent, logical), summed, same, served));
        let shared = SharedPrefix {
            common: at_head + total_tokens(by, &new_rest[..further]),
            earlier_tokens: (!first).then(|| at_head + total_tokens(by, &old_rest)),
            ..again.unwrap_or_default()
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
            self.blocks.truncate(head);
            self.blocks.extend_from_slice(&sent[head..]);
            self.sums.truncate(head);
            self.add_sums();
            for b in &sent[head..] {
                *self.hashes.entry(b.hash).or_default() += 1;
            }
        }
        shared
    }

    /// Returns the sums of the first `n` blocks.
    fn sums_of(&self, n: usize) -> Sums {
        n.checked_sub(1).map_or(Sums::default(), |last| self.sums[last])
    }

    /// Adds the sums of the blocks that have none yet.
    fn add_sums(&mut self) {
        for at in self.sums.len()..self.blocks.len() {
            let (mut sums, b) = (self.sums_of(at), &self.blocks[at]);
            let (own, is_spoken) = (b.tokens(&self.counting), !is_system(b));
            sums.tokens += own;
            sums.spoken += usize::from(is_spoken);
            sums.spoken_tokens += if is_spoken { own } else { 0 };
            self.sums.push(sums);
        }
    }

    /// Splits the tokens that the earlier request already had, but that the cache did not serve, by
    /// cause. The first `summed` blocks are those of the earlier request, and the conversation begins
    /// with `same` unchanged ones.
    fn again(
        &self,
        request: &Request,
        (sent, logical): (&[Arc<Block>], &[Arc<Block>]),
        summed: usize,
        same: usize,
        Served { read: served, expired }: Served,
    ) -> SharedPrefix {
        let by = &request.model.counting;
        let mut again = SharedPrefix::default();
        let tools = request.tools_tokens();
        // Caches serve in steps, so the cache may have served a part of a block.
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
        // Blocks that the cache served entirely were not sent again.
        let from = self.sums[..summed].partition_point(|sums| tools + sums.tokens <= served);
        let mut at = tools + self.sums_of(from).tokens;
        let mut unchanged = same - self.sums_of(from).spoken;
        for (b, seen) in sent[from..].iter().zip(&logical[from..]) {
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
