//! Compaction beside the conversation, for programs that embed the engine: the summary is written
//! by a tokio task while the conversation goes on, and takes its place only if what it covers is
//! still there unchanged. What arrived meanwhile stays.
//!
//! A replay needs none of this: there time is virtual and
//! [`World::spawn`](ctxbench_core::world::World::spawn) says when an answer arrives.

mod pending;
#[cfg(test)]
mod tests;

/// What the lock and the shared ownership are made of; the loom test puts loom's in their place.
mod sync {
    pub(super) use std::sync::{Arc, Mutex, MutexGuard};
}

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use ctxbench_core::block::{Block, MessageId};
use ctxbench_core::compaction::CompactionKind;
use ctxbench_core::context::EditError;
use ctxbench_core::engine::Engine;
use ctxbench_core::request::Phase;
pub use pending::{Job, Pending, Taking};

/// What makes a block of the view the same block: where it came from and what it shows.
pub type Key = (MessageId, u64);

fn keys(blocks: &[Arc<Block>]) -> Vec<Key> {
    blocks.iter().map(|b| (b.message, b.hash)).collect()
}

/// How an attempt to put the summary in its place ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Swap<E> {
    /// Still being written; the attempt may be made again.
    Running,
    /// The summary stands for what it covers.
    Swapped,
    /// What it covers has changed; the context is as it was.
    Stale,
    /// It could not be written; the context is as it was.
    Failed(E),
    /// The task ended without a word; the context is as it was.
    Lost,
    /// It had been given up.
    Cancelled,
    /// In its place the summary would separate a call from its result; the context is as it was.
    Refused(EditError),
}

/// A compaction under way. Dropping it gives it up.
pub struct Background<T, E> {
    pending: Pending<Key, T, E>,
    /// Where the covered blocks begin in the view.
    at: usize,
}

impl<T: Send + 'static, E: Send + 'static> Background<T, E> {
    /// Starts `work` on the current tokio runtime; its answer will stand for the blocks in `range`
    /// of the present view. The work is dropped at its next await point when the compaction is
    /// given up.
    ///
    /// # Panics
    /// Outside of a tokio runtime, and if the range lies outside of the view.
    pub fn spawn(
        s: &Engine,
        range: Range<usize>,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Self {
        let (background, job) = Self::begin(s, range);
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = job.cancelled() => {}
                answer = work => { job.finish(answer); }
            }
        });
        background
    }

    /// The same for work that runs elsewhere: whoever holds the job hands the answer over.
    ///
    /// # Panics
    /// If the range lies outside of the view.
    pub fn begin(s: &Engine, range: Range<usize>) -> (Self, Job<T, E>) {
        let (pending, job) = Pending::new(keys(&s.context.blocks()[range.clone()]));
        (Background { pending, at: range.start }, job)
    }
}

impl<T, E> Background<T, E> {
    /// Whether there is an answer, or none will come.
    pub fn is_done(&self) -> bool {
        self.pending.is_done()
    }

    /// Waits for that.
    pub async fn done(&self) {
        self.pending.done().await
    }

    /// Gives it up; true if there was something to give up.
    pub fn cancel(&mut self) -> bool {
        self.pending.cancel()
    }

    /// Puts what `make` makes of the answer and the covered blocks in their place, if they are
    /// unchanged; blocks after them stay.
    pub fn swap(
        &mut self,
        s: &mut Engine,
        mechanism: &'static str,
        make: impl FnOnce(&mut Engine, T, &[Arc<Block>]) -> Vec<Arc<Block>>,
    ) -> Swap<E> {
        // A view that has become shorter than the place is a changed one; `take` finds that out.
        let blocks = s.context.blocks().to_vec();
        let at = self.at.min(blocks.len());
        let answer = match self.pending.take(&keys(&blocks[at..])) {
            Taking::Running => return Swap::Running,
            Taking::Stale => return Swap::Stale,
            Taking::Failed(e) => return Swap::Failed(e),
            Taking::Lost => return Swap::Lost,
            Taking::Cancelled => return Swap::Cancelled,
            Taking::Finished(answer) => answer,
        };
        let end = at + self.pending.covered().len();
        let new = make(s, answer, &blocks[at..end]);
        let all =
            blocks[..at].iter().cloned().chain(new).chain(blocks[end..].iter().cloned()).collect();
        match s.compacted(CompactionKind::Summarise, mechanism, Phase::Background, all) {
            Ok(()) => Swap::Swapped,
            Err(e) => Swap::Refused(e),
        }
    }
}
