//! Strategies in any language: a program that speaks the protocol of docs/exec.md is a strategy like
//! any other.
//!
//! `strategy` asks it at each moment, `talk` carries questions and calls back over its `process`,
//! `state` knows the messages that it knows, and `dialect` turns blocks into messages and back.

mod apply;
mod calls;
mod dialect;
mod limits;
mod probe;
mod process;
mod protocol;
mod quotes;
mod spec;
mod state;
mod strategy;
mod talk;

pub use probe::introduced;
pub use spec::{is_exec, read, transcript};
