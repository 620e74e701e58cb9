//! Every test across crates, a module each: `cargo test -p ctxbench-tests gate::`.

mod common;
mod random;

#[path = "action.rs"]
mod action;
#[path = "advise.rs"]
mod advise;
#[path = "agents.rs"]
mod agents;
#[path = "architect.rs"]
mod architect;
#[path = "background.rs"]
mod background;
#[path = "bad_input.rs"]
mod bad_input;
#[path = "calibration.rs"]
mod calibration;
#[path = "cases.rs"]
mod cases;
#[path = "cells.rs"]
mod cells;
#[path = "cli.rs"]
mod cli;
#[path = "codex_files.rs"]
mod codex_files;
#[path = "collector.rs"]
mod collector;
#[path = "config.rs"]
mod config;
#[path = "conformance.rs"]
mod conformance;
#[path = "corpora.rs"]
mod corpora;
#[path = "coverage.rs"]
mod coverage;
#[path = "crash.rs"]
mod crash;
#[path = "delegation.rs"]
mod delegation;
#[path = "determinism.rs"]
mod determinism;
#[path = "docs.rs"]
mod docs;
#[path = "embedding.rs"]
mod embedding;
#[path = "exec.rs"]
mod exec;
#[path = "exports.rs"]
mod exports;
#[path = "fake_agent.rs"]
mod fake_agent;
#[path = "faults.rs"]
mod faults;
#[path = "files.rs"]
mod files;
#[path = "functions.rs"]
mod functions;
#[path = "gate.rs"]
mod gate;
#[path = "keepalive.rs"]
mod keepalive;
#[path = "kills.rs"]
mod kills;
#[path = "labels.rs"]
mod labels;
#[path = "layouts.rs"]
mod layouts;
#[path = "levers.rs"]
mod levers;
#[path = "login_bug.rs"]
mod login_bug;
#[path = "memory.rs"]
mod memory;
#[path = "memory_files.rs"]
mod memory_files;
#[path = "models.rs"]
mod models;
#[path = "monitoring.rs"]
mod monitoring;
#[path = "notices.rs"]
mod notices;
#[path = "opencode_failures.rs"]
mod opencode_failures;
#[path = "parsers.rs"]
mod parsers;
#[path = "properties.rs"]
mod properties;
#[path = "published/mod.rs"]
mod published;
#[path = "recompute.rs"]
mod recompute;
#[path = "record.rs"]
mod record;
#[path = "redaction.rs"]
mod redaction;
#[path = "reference.rs"]
mod reference;
#[path = "resume.rs"]
mod resume;
#[path = "room.rs"]
mod room;
#[path = "scale.rs"]
mod scale;
#[path = "sdk_runner.rs"]
mod sdk_runner;
#[path = "sdks.rs"]
mod sdks;
#[path = "seeds.rs"]
mod seeds;
#[path = "serve.rs"]
mod serve;
#[path = "settings.rs"]
mod settings;
#[path = "settings_files.rs"]
mod settings_files;
#[path = "signals.rs"]
mod signals;
#[path = "stores.rs"]
mod stores;
#[path = "success_figures.rs"]
mod success_figures;
#[path = "summarizers.rs"]
mod summarizers;
#[path = "sweep.rs"]
mod sweep;
#[path = "systems.rs"]
mod systems;
#[path = "time.rs"]
mod time;
#[path = "two_sessions.rs"]
mod two_sessions;
#[path = "validate.rs"]
mod validate;

#[test]
fn every_file_here_is_a_module_above() {
    let here = include_str!("main.rs");
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let listed = here.contains(&format!("#[path = \"{name}\"]"));
        assert!(!name.ends_with(".rs") || name == "main.rs" || listed, "{name} is not run: add it");
    }
}
