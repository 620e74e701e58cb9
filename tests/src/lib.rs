//! Tests across crates; everything is under `tests/`.
