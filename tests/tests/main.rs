//! Tests across the library crates, a module for each area: `cargo test --test all properties::`.

mod common;
mod random;

mod architect;
mod conformance;
mod controls;
mod delegation;
mod docs;
mod exports;
mod keepalive;
mod labels;
mod layouts;
mod memory;
mod parsers;
mod properties;
mod published;
mod reference;
mod resume;
mod serve;
mod settings;
mod storage;
mod time;
mod two_sessions;
