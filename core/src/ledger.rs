//! The ledger: tokens and cost of all requests, by model.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Cost, cost_of_reply};
use crate::request::{Reply, Request};
use crate::usage::Usage;

/// Usage and cost of one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelTotal {
    pub requests: u64,
    pub usage: Usage,
    /// Cost in USD; 0 for models without prices.
    pub cost: Cost,
}

/// Tokens and cost of all requests so far.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    by_model: BTreeMap<Arc<str>, ModelTotal>,
}

impl Ledger {
    pub fn add(&mut self, request: &Request, reply: &Reply) {
        let total = self.by_model.entry(request.model.name.clone()).or_default();
        total.requests += 1;
        total.usage.add(&reply.billed);
        total.cost.add(&cost_of_reply(&request.model, reply));
    }

    pub fn models(&self) -> impl Iterator<Item = (&str, &ModelTotal)> {
        self.by_model.iter().map(|(k, v)| (&**k, v))
    }

    pub fn cost_usd(&self) -> f64 {
        self.by_model.values().map(|t| t.cost.total()).sum()
    }
}
