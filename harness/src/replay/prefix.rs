//! What a request shares at its beginning with the one before, and what had to be written again.

use std::sync::Arc;

use ctxbench_core::block::{Block, common_prefix, total_tokens};
use ctxbench_core::context_editing;
use ctxbench_core::request::{Reply, Request};
use ctxbench_core::strategy::is_system;
use rapidhash::RapidHashSet as HashSet;

/// The newest answered request.
#[derive(Default)]
pub(super) struct Prefix {
    /// Its conversation, system part left out.
    conversation: Vec<Arc<Block>>,
    hashes: HashSet<u64>,
}

/// A request held against the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shared {
    /// Tokens shared at the beginning, system part left out.
    pub(super) common: u64,
    /// Tokens of both conversations; `None` = there is none before.
    pub(super) sizes: Option<(u64, u64)>,
    pub(super) again: Again,
}

/// Tokens that were shown before and had to be written or sent again, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Again {
    /// The cache had held them, and their lifetime was over.
    pub(super) expired: u64,
    /// Something before them had changed.
    pub(super) changed: u64,
    /// They stood behind the last breakpoint, in a prompt too small for the cache, or where nothing
    /// is cached at all.
    pub(super) other: u64,
}

impl Prefix {
    /// Holds a normal request against the one before; an answered one takes its place.
    pub(super) fn compare(
        &mut self,
        request: &Request,
        logical: &[Arc<Block>],
        reply: Option<&Reply>,
    ) -> Shared {
        // `cache_edits` leaves results out behind the prefix: the cache sees them as they were sent.
        let by = &request.model.counting;
        let kept =
            request.server_edits.iter().any(|e| !context_editing::deleted_results(e).is_empty());
        let (model, edits) = (&request.model, &request.server_edits);
        let whole = kept.then(|| context_editing::arriving(model, edits, request.blocks.clone()));
        let sent = whole.as_deref().unwrap_or(logical);
        let conversation: Vec<Arc<Block>> =
            sent.iter().filter(|b| !is_system(b)).cloned().collect();
        let same = common_prefix(&self.conversation, &conversation);
        let first = self.conversation.is_empty();
        let sizes = || (total_tokens(by, &self.conversation), total_tokens(by, &conversation));
        let shared = Shared {
            common: total_tokens(by, &conversation[..same]),
            sizes: (!first).then(sizes),
            again: match reply {
                Some(r) if !first => self.again(request, sent, logical, same, r),
                _ => Again::default(),
            },
        };
        if reply.is_some() {
            self.hashes = sent.iter().map(|b| b.hash).collect();
            self.conversation = conversation;
        }
        shared
    }

    /// What the cache served ends somewhere; whatever of the request before lies behind it was
    /// written or sent again.
    fn again(
        &self,
        request: &Request,
        sent: &[Arc<Block>],
        logical: &[Arc<Block>],
        same: usize,
        reply: &Reply,
    ) -> Again {
        let by = &request.model.counting;
        let mut again = Again::default();
        let served = reply.usage.cache_read;
        let mut at = request.tools_tokens();
        let mut unchanged = same;
        for (b, seen) in sent.iter().zip(logical) {
            at += seen.tokens(by);
            let stands = is_system(b) || unchanged > 0;
            unchanged = unchanged.saturating_sub(usize::from(!is_system(b)));
            if at <= served || !self.hashes.contains(&b.hash) {
                continue;
            }
            let cause = match () {
                () if at <= served + reply.expired => &mut again.expired,
                () if stands => &mut again.other,
                () => &mut again.changed,
            };
            *cause += seen.tokens(by);
        }
        again
    }
}
