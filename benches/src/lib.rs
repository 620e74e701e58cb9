//! Texts for the benchmarks. Everything is deterministic.

mod material;

pub use material::Material;
