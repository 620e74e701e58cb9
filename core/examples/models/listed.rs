//! The manual data: `listed.toml`, and the parts of `rules.toml` that the table depends on.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Outcome;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedModels {
    pub as_of: String,
    #[serde(rename = "family")]
    pub families: Vec<Family>,
    #[serde(default)]
    pub instead: Vec<Instead>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    pub provider: String,
    pub wire: String,
    pub cache: String,
    pub prefix: String,
    pub max_input: MaxInput,
    pub weak: String,
    pub models: Vec<ListedModel>,
}

/// Meaning of LiteLLM's `max_input_tokens`.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum MaxInput {
    /// The window, which contains both prompt and reply.
    Window,
    /// The prompt alone, without the largest reply.
    Input,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedModel {
    pub name: String,
    pub speed: String,
    pub weak: Option<String>,
    #[serde(default)]
    pub can: Vec<String>,
}

/// Figures that replace those of LiteLLM.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instead {
    pub models: Vec<String>,
    pub set: ModelFigures,
    pub because: String,
    pub source: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFigures {
    pub window: Option<u64>,
    pub max_output: Option<u64>,
    pub input_limit: Option<u64>,
    pub cache_minimum: Option<u64>,
    pub deprecated: Option<String>,
    pub input: Option<f64>,
    pub read: Option<f64>,
    pub output: Option<f64>,
    pub storage: Option<f64>,
    pub long_from: Option<u64>,
}

/// Parts of a cache rule that the table depends on.
#[derive(Deserialize)]
pub struct MinimumRule {
    pub minimum: u64,
    #[serde(default)]
    pub write_fee: bool,
}

#[derive(Deserialize)]
struct CacheRules {
    cache: BTreeMap<String, MinimumRule>,
}

impl ListedModels {
    /// Returns the names of all models in LiteLLM's file.
    pub fn entries(&self) -> Vec<String> {
        let of = |f: &Family| -> Vec<String> {
            f.models.iter().map(|m| format!("{}{}", f.prefix, m.name)).collect()
        };
        self.families.iter().flat_map(of).collect()
    }
}

pub fn read(text: &str) -> Outcome<ListedModels> {
    let listed: ListedModels = toml::from_str(text).map_err(|e| format!("listed.toml: {e}"))?;
    let known =
        |name: &String| listed.families.iter().any(|f| f.models.iter().any(|m| m.name == *name));
    for i in &listed.instead {
        if let Some(name) = i.models.iter().find(|name| !known(name)) {
            return Err(format!("listed.toml: [[instead]] names `{name}`, which no family lists"));
        }
        if i.because.is_empty() || i.source.is_empty() {
            return Err(format!(
                "listed.toml: [[instead]] of {:?} needs a reason and a source",
                i.models
            ));
        }
    }
    Ok(listed)
}

pub fn rules(text: &str) -> Outcome<BTreeMap<String, MinimumRule>> {
    let rules: CacheRules = toml::from_str(text).map_err(|e| format!("rules.toml: {e}"))?;
    Ok(rules.cache)
}
