//! Shared parts of the benchmarks: texts to count, sessions of any length, replays, and tables
//! printed with the timings.
//!
//! Everything is deterministic. A seed changes every text, so that cached counts of earlier texts
//! do not apply.

mod material;
mod replays;
mod sessions;
mod table;

pub use material::Material;
pub use replays::{HUGE_WINDOW, Mode, model, replay, spec};
pub use sessions::{blocks, busy_session, session};
pub use table::{per_second, table};
