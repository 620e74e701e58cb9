//! The recorded sessions in `tests/data/dataset`, which also documents their origin.

use std::io::Read;
use std::path::{Path, PathBuf};

use ctxbench_scenarios::jsonl;
use ctxbench_session::Session;

/// Two sessions of Claude Code 2.1.39 without a gateway, each with one automatic compaction.
pub const DIRECT: [&str; 2] = ["spotter-4d5611e5", "spotter-8463c716"];

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/dataset")
}

/// Returns a session as imported, without facts.
pub fn session(name: &str) -> Session {
    let packed = std::fs::read(folder().join(format!("{name}.jsonl.gz"))).unwrap();
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text).unwrap();
    jsonl::read(&text, name).unwrap().session
}
