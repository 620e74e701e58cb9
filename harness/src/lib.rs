//! Mock model servers, the virtual clock, replay and conformance: everything between a session and
//! its measured records, and the `ctxbench` command, to which another crate may add strategies of its
//! own.

mod accept;
pub mod billing;
pub mod choice;
mod commands;
pub mod conform;
pub mod drive;
pub mod exec;
mod hash;
pub mod inspect;
pub mod keys;
pub mod memory;
pub mod mock;
pub mod models;
pub mod point;
mod post;
mod process_group;
pub mod progress;
pub mod recorded;
pub mod recorder;
pub mod redact;
pub mod replay;
pub mod rewind;
pub mod run;
#[cfg(test)]
mod run_tests;
pub mod serve;
mod shutdown;
mod signals;
pub mod steering;
pub mod summarise;
pub mod survey;
mod twice;
pub mod validate;
pub mod verify;
pub mod watch;

pub use commands::main;

/// Items for writing a strategy in another crate, which then only depends on `ctxbench_harness`.
pub mod own {
    pub use async_trait::async_trait;
    pub use ctxbench_core as core;
    pub use ctxbench_core::settings;
    pub use ctxbench_strategies::descriptor;
}
