//! The `ctxbench` command, to which another crate may add strategies of its own.

mod choice;
mod commands;
mod survey;

pub use commands::main;
pub use ctxbench_conform as conform;

/// Items for writing a strategy in another crate, which then only depends on `ctxbench_harness`.
pub mod own {
    pub use async_trait::async_trait;
    pub use ctxbench_core as core;
    pub use ctxbench_strategies::descriptor;
}
