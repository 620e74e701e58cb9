//! Tests of the `ctxbench` command, a module for each area: `cargo test --test cli gate::`.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

mod action;
mod advise;
mod agents;
mod bad_input;
mod billing;
mod billing_kinds;
mod billing_ledger;
mod billing_told;
mod billing_variants;
mod bills;
mod cache;
mod calibration;
mod cases;
mod cells;
mod cli;
mod cmd;
mod collector;
mod config;
mod corpora;
mod described_agent;
mod determinism;
mod embedding;
mod exec;
mod expected;
mod explain_session;
mod fake_agent;
mod faults;
mod files;
mod gate;
mod interrupted;
mod login_bug;
mod memory_files;
mod models;
mod monitoring;
mod opencode_failures;
mod output;
mod probe;
mod prompt_sizes;
mod recompute;
mod record;
mod recorded_drives;
mod redaction;
mod sdks;
mod seeds;
mod settings_files;
mod success_figures;
mod summarizers;
mod sweep;
mod validate;
