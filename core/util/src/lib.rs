//! Utilities without a relation to contexts: files, JSON, quantities, dates, and texts for users.

pub mod calendar;
pub mod cut;
pub mod escapes;
pub mod files;
pub mod hash;
pub mod io_hint;
pub mod json;
pub mod lru_map;
pub mod natural;
pub mod nearest;
pub mod plural;
pub mod quantity;
pub mod rng;
pub mod serde_error;
pub mod toml_file;
