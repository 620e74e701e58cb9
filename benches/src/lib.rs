//! Shared parts of the benchmarks: texts to count and sessions of any length.
//!
//! Everything is deterministic. A seed changes every text, so that cached counts of earlier texts
//! do not apply.

use ctxbench_core::model::{self, DEFAULT_MODEL, Model};

mod material;
mod sessions;

pub use material::Material;
pub use sessions::{Repeated, session};

pub fn model() -> &'static Model {
    model::find(DEFAULT_MODEL).expect("the default model is in the catalogue")
}
