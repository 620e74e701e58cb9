//! The price file of LiteLLM, reduced to the required entries and fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Outcome;

/// Required fields of the required models.
#[derive(Serialize, Deserialize)]
pub struct Prices {
    pub origin: PriceOrigin,
    pub models: BTreeMap<String, Map<String, Value>>,
}

/// Source of the prices.
#[derive(Serialize, Deserialize)]
pub struct PriceOrigin {
    pub package: String,
    pub version: String,
    pub file: String,
    pub url: String,
    pub licence: String,
}

/// LiteLLM's prices in USD per token; prices of long prompts have names with the suffix
/// `_above_200k_tokens`.
pub const INPUT: &str = "input_cost_per_token";
pub const OUTPUT: &str = "output_cost_per_token";
pub const READ: &str = "cache_read_input_token_cost";
pub const WRITE: &str = "cache_creation_input_token_cost";
/// Prices of cache writes with the long lifetime: 1 hour with Anthropic, 12 hours with OpenAI.
pub const LONG_WRITES: [&str; 2] =
    ["cache_creation_input_token_cost_above_1hr", "cache_creation_input_token_cost_above_12hr"];

const OTHERS: [&str; 5] = [
    "max_input_tokens",
    "max_output_tokens",
    "prompt_cache_min_tokens",
    "deprecation_date",
    "source",
];

/// Splits a name with the suffix `_above_200k_tokens` into its prefix and the size in tokens.
pub fn above(name: &str) -> Option<(&str, u64)> {
    let (before, size) = name.strip_suffix("k_tokens")?.rsplit_once("_above_")?;
    Some((before, size.parse::<u64>().ok()? * 1_000))
}

fn is_used(name: &str) -> bool {
    let price = above(name).map_or(name, |(before, _)| before);
    OTHERS.contains(&name)
        || [INPUT, OUTPUT, READ, WRITE].contains(&price)
        || LONG_WRITES.contains(&price)
}

pub fn read(text: &str) -> Outcome<Prices> {
    serde_json::from_str(text).map_err(|e| format!("litellm/prices.json: {e}"))
}

/// Returns the required part of the file as JSON.
pub fn cut(text: &str, version: &str, entries: &[String]) -> Outcome<String> {
    let mut all: BTreeMap<String, Map<String, Value>> =
        serde_json::from_str(text).map_err(|e| format!("LiteLLM's price file: {e}"))?;
    let mut models = BTreeMap::new();
    for name in entries {
        let mut entry = all.remove(name).ok_or_else(|| {
            format!(
                "LiteLLM {version} has no `{name}`; take it out of listed.toml or mend its prefix"
            )
        })?;
        entry.retain(|field, _| is_used(field));
        models.insert(name.clone(), entry);
    }
    let origin = PriceOrigin {
        package: "litellm".to_string(),
        version: version.to_string(),
        file: "litellm/model_prices_and_context_window_backup.json".to_string(),
        url: format!("https://pypi.org/project/litellm/{version}/"),
        licence: "MIT, see LICENSE".to_string(),
    };
    let json = serde_json::to_string_pretty(&Prices { origin, models });
    Ok(json.map_err(|e| e.to_string())? + "\n")
}
