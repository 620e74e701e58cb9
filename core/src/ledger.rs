//! The ledger: tokens and cost of all requests, by model.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Cost, cost_of_reply};
use crate::request::{Purpose, Reply, Request};
use crate::usage::Usage;

/// Usage and cost of one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelTotal {
    pub requests: u64,
    pub usage: Usage,
    /// Cost in USD; 0 for models without prices, see [`Ledger::unpriced`].
    pub cost: Cost,
    /// Whether the model has prices.
    pub priced: bool,
}

/// Tokens and cost of all requests so far.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    by_model: BTreeMap<Arc<str>, ModelTotal>,
    summary_calls: u64,
}

impl Ledger {
    /// Adds an answered request.
    pub fn add(&mut self, request: &Request, reply: &Reply) {
        let total = self.by_model.entry(request.model.name.clone()).or_default();
        total.requests += 1;
        total.usage.add(&reply.billed);
        total.cost.add(&cost_of_reply(&request.model, reply));
        total.priced = request.model.is_priced();
        self.summary_calls += u64::from(request.purpose == Purpose::Summary);
    }

    /// Returns the totals per model.
    pub fn models(&self) -> impl Iterator<Item = (&str, &ModelTotal)> {
        self.by_model.iter().map(|(k, v)| (&**k, v))
    }

    /// Returns the total cost in USD.
    pub fn cost_usd(&self) -> f64 {
        self.by_model.values().map(|t| t.cost.total()).sum()
    }

    /// Returns the number of summary requests.
    pub fn summary_calls(&self) -> u64 {
        self.summary_calls
    }

    /// Returns the models without prices.
    pub fn unpriced(&self) -> Vec<&str> {
        self.models().filter(|(_, total)| !total.priced).map(|(name, _)| name).collect()
    }
}
