//! Differences over sessions: what a strategy changes in a session, how sure that is, and whether
//! it may be called better or worse.
//!
//! The session is the sampling unit: requests or facts of one session depend on each other and
//! count once. Strategies are deterministic, so intervals and tests speak about the choice of
//! sessions and about nothing else. Everything is seeded: the same records give the same bytes.

mod bootstrap;
mod figures;
mod holm;
mod runs;
mod sessions;
mod show;
mod signflip;
#[cfg(test)]
pub(crate) mod simulation;
mod verdict;

pub use figures::{Figure, Scale};
pub use sessions::{Differences, Heavy, StrategyDifference};
pub use verdict::Verdict;

/// Fewest recordings in which a row compacted for a verdict about it.
pub(crate) use verdict::MIN_SESSIONS;

pub(crate) use figures::{judged, middle};
pub(crate) use sessions::{between, by_settings, by_yardstick, over_sessions};
pub(crate) use show::{
    HELP, allowed, apart, bill, caption, cell, change, heading, interval, median, missing, name,
    seen, verdict, word,
};

/// How much is drawn, and from which seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    /// Resamples of a bootstrap interval.
    pub(crate) resamples: usize,
    /// Random sign patterns of a test with more sessions than can be gone through.
    pub(crate) draws: usize,
    /// Beginning of both streams.
    pub(crate) seed: u64,
}

/// What reports use. The seed is arbitrary, and fixed so that a report can be made again.
pub(crate) const PLAN: Sampling = Sampling { resamples: 10_000, draws: 20_000, seed: 20_260_101 };
