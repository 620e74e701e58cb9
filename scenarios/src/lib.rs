//! Sources of sessions: session files, hand-written scenarios, built-in scenarios, and recordings
//! of real programs.
//!
//! Every source gives a [`ctxbench_session::Session`] inside a [`Scenario`]. [`load()`] takes
//! an argument of the command line, [`load_path`] a file or folder, [`builtin`] lists the embedded
//! scenarios, [`formats`] contains one folder per recording format, and [`autofacts`] finds facts
//! that the agent of a recording needed again. [`exports`] writes sessions in foreign formats.
//! Errors name file, line, problem, expected input and advice.

pub mod autofacts;
pub mod bounds;
pub mod builtin;
mod check;
pub mod corpus;
mod error;
pub mod exports;
mod fields;
pub mod formats;
pub mod jsonl;
mod load;
pub mod pitfalls;
mod scenario;
#[cfg(test)]
mod schema_tests;

use ctxbench_util::escapes;

pub use corpus::{Corpus, Found, is_path, load, load_path, name_apart};
pub use error::{InputError, LoadError, Loaded};
pub use load::{InputKind, parse, sniff};
pub use scenario::{FaultOn, ProviderFault, Scenario};
