//! Strategies in any language: programs that speak the protocol of docs/exec.md.
//!
//! `strategy` calls the program, `talk` exchanges messages with its `process`, `calls` answers what
//! it asks for, and `apply` puts its answers into the context. `state` is the conversation as the
//! program knows it, and `dialect` converts blocks to messages and back. `filter` joins a program
//! with another strategy.

mod apply;
mod calls;
mod dialect;
mod filter;
mod process;
mod protocol;
mod spec;
mod state;
mod strategy;
mod talk;

pub use filter::with_filter;
pub use spec::{is_exec, parse};
