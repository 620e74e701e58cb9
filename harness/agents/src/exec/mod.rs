//! Strategies in any language: programs that speak the protocol of docs/exec.md.
//!
//! `strategy` calls the program, `talk` exchanges messages with its `process`, `calls` answers what
//! it asks for, and `apply` puts its answers into the context. `state` is the conversation as the
//! program knows it, and `dialect` converts blocks to messages and back.

mod apply;
mod calls;
mod dialect;
mod process;
mod protocol;
mod spec;
mod state;
mod strategy;
mod talk;

use crate::quotes;

pub use spec::{is_exec, parse};
