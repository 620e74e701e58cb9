//! Providers: wire formats, prompt-cache rules, prices and models.

mod models;

pub use models::{CacheRule, Capabilities, DEFAULT_MODEL, Latency, Model, Prices, Provider, UnknownModel, Wire, catalogue, find};
