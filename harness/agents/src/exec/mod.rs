//! Strategies in any language: programs that speak the protocol of docs/exec.md.
//!
//! `strategy` calls the program, `talk` exchanges messages with its `process`, `state` contains the
//! messages that the program knows, and `dialect` converts blocks to messages and back.

mod apply;
mod calls;
mod dialect;
mod limits;
mod process;
mod protocol;
mod quotes;
mod spec;
mod state;
mod strategy;
mod talk;

pub use spec::{is_exec, parse, transcript};
