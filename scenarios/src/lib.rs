//! Where sessions come from: session files, scenarios written by people, the built-in ones, and
//! recordings of real programs.
//!
//! Everything ends as a [`ctxbench_core::session::Session`] inside a [`Scenario`]. [`load()`] takes
//! what a user typed on the command line, [`load_path`] a file or folder, [`builtin`] lists what is
//! embedded in the binary, [`formats`] holds one folder per recording format, and [`autofacts`] finds
//! in a recording what its agent needed again later. [`exports`] writes sessions in the formats of
//! others. Errors name file, line, what is wrong, what
//! was expected and what to do.

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
#[cfg(feature = "schema")]
pub mod schema;
#[cfg(test)]
mod schema_tests;
mod toml_tree;

use ctxbench_core::escapes;

pub use corpus::Corpus;
pub use error::{ImportError, InputError, LoadError, Loaded};
pub use load::{Found, Kind, is_path, load, load_path, name_apart, parse, sniff};
pub use scenario::{Expect, Expected, ExpectedCell, ExpectedRow, FaultOn, ProviderFault, Scenario};
