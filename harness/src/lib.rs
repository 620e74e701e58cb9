//! Mock model servers, the virtual clock, replay and conformance: everything between a session and
//! its measured records.

pub mod choice;
pub mod conform;
mod hash;
pub mod inspect;
pub mod memory;
pub mod mock;
pub mod models;
pub mod point;
mod post;
pub mod progress;
pub mod recorded;
pub mod redact;
pub mod replay;
pub mod rewind;
pub mod run;
#[cfg(test)]
mod run_tests;
pub mod serve;
pub mod steering;
pub mod summarise;
pub mod survey;
pub mod validate;
pub mod verify;
pub mod watch;
