//! Differences over sessions: the change per session, its uncertainty, and the verdict better or
//! worse.
//!
//! The session is the sampling unit: requests or facts of one session depend on each other and
//! count once. Strategies are deterministic, so intervals and tests only concern the choice of
//! sessions. All random draws are seeded: the same records give the same bytes.

mod bootstrap;
mod figures;
mod runs;
mod sessions;
mod show;
mod signflip;
#[cfg(test)]
pub(crate) mod simulation_tests;
mod verdict;

pub use figures::{Figure, Scale};
pub use sessions::{Differences, Heavy, StrategyDifference};
pub use verdict::Verdict;

/// Minimum number of recordings in which a row compacted, for a verdict.
pub(crate) use verdict::{MIN_SESSIONS, sessions_needed};

pub(crate) use crate::metrics::judged;
pub(crate) use figures::{CENT, is_same};
pub(crate) use sessions::{between, by_settings, by_yardstick, over_sessions, pair};
pub(crate) use show::{
    HELP, NO_CHANGE, apart, bill, caption, cell, change, change_within, describe_exposure, heading,
    interval, is_apart_by_nothing, missing, name, position, sheet, word,
};

/// Number of random draws, and their seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    /// Number of resamples for a bootstrap interval.
    pub(crate) resamples: usize,
    /// Number of random sign patterns for a test with too many sessions to enumerate all patterns.
    pub(crate) draws: usize,
    /// Seed of both random streams.
    pub(crate) seed: u64,
}

/// Plan of all reports. The seed is arbitrary, but fixed so that reports are reproducible.
pub(crate) const PLAN: Sampling = Sampling { resamples: 10_000, draws: 20_000, seed: 20_260_101 };
