//! Reads the data files of models: rows, and the rules that they name.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::counting::OwnCounting;
use super::names::{is_name_of, version};
use super::{CacheRule, Capabilities, Counting, Latency, LongPrice, Model, Prices, Provider};
use crate::tokens::content_hash;
use ctxbench_util::{nearest, toml_file};

/// The table of models and its sources.
pub(super) struct Table {
    pub(super) models: Vec<Model>,
    pub(super) rules: Rules,
    /// Version of the price file, such as `litellm 1.109.1`.
    pub(super) origin: String,
    /// Date of the table, `YYYY-MM-DD`; earlier retirements count.
    pub(super) as_of: String,
    /// Name and hash of each file that changed the table.
    pub(super) changes: Vec<String>,
}

#[derive(Deserialize)]
struct DataFile {
    origin: String,
    as_of: String,
    model: Vec<Row>,
}

/// The tables of `rules.toml`, by name.
#[derive(Deserialize)]
pub(super) struct Rules {
    pub(super) cache: BTreeMap<String, CacheRule>,
    wire: BTreeMap<String, Capabilities>,
    pub(super) speed: BTreeMap<String, Latency>,
    pub(super) thinking: ThinkingRule,
}

/// A model in a file. What a row leaves out comes from another model, from rules, or from its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) name: Arc<str>,
    /// The model that supplies what is left out.
    pub(super) like: Option<String>,
    provider: Option<Provider>,
    wire: Option<Arc<str>>,
    window: Option<u64>,
    max_output: Option<u64>,
    input_limit: Option<u64>,
    weak: Option<Arc<str>>,
    /// The name of a `rule`, and parameters that replace its own.
    #[serde(default)]
    cache: toml::Table,
    prices: Option<RowPrices>,
    #[serde(default)]
    capabilities: toml::Table,
    /// The name of a latency.
    speed: Option<String>,
    keeps_thinking: Option<bool>,
    pub(super) counting: Option<OwnCounting>,
    deprecated: Option<Arc<str>>,
    pub(super) source: Option<String>,
}

/// Writing costs as much as input unless the cache charges for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowPrices {
    input: f64,
    read: f64,
    output: f64,
    write_5m: Option<f64>,
    write_1h: Option<f64>,
    #[serde(default)]
    long: Vec<LongPrice>,
}

impl RowPrices {
    fn resolve(&self, cache: &CacheRule) -> Result<Prices, String> {
        let write = |given: Option<f64>, is_charged: bool, key: &str| match given {
            None if is_charged => Err(format!("`{key}` is missing in `prices`")),
            given => Ok(given.unwrap_or(self.input)),
        };
        Ok(Prices {
            input: self.input,
            write_5m: write(self.write_5m, cache.write_fee, "write_5m")?,
            write_1h: write(self.write_1h, cache.write_fee && cache.long_ms.is_some(), "write_1h")?,
            read: self.read,
            output: self.output,
            long: self.long.clone(),
        })
    }
}

/// The models with prompts that lack the thinking of earlier turns.
#[derive(Deserialize)]
pub(super) struct ThinkingRule {
    pub(super) left_out: Vec<String>,
    /// The first model of OpenAI that keeps it.
    openai_keeps_since: String,
}

impl ThinkingRule {
    /// Returns whether no rule about thinking is for the model.
    pub(super) fn keeps(&self, provider: Option<Provider>, name: &str) -> bool {
        let since = version(&self.openai_keeps_since);
        let is_older = provider == Some(Provider::Openai)
            && version(name).is_some_and(|version| Some(version) < since);
        !is_older && !self.left_out.iter().any(|m| is_name_of(name, m))
    }
}

const MODELS: &str = include_str!("models.toml");
const RULES: &str = include_str!("rules.toml");
/// What changes the price of a call besides its tokens.
pub const TERMS: &str = include_str!("terms.toml");
/// Models that only the price file has. Made by `.ci/litellm`. Entries of a model's own provider come
/// first.
pub(super) const OTHERS: &str = include_str!("litellm/others.json");

static TABLE: OnceLock<Table> = OnceLock::new();

pub(super) fn table() -> &'static Table {
    TABLE.get_or_init(published)
}

/// Sets the table of the process. Returns false if a table was already used.
pub(super) fn install(table: Table) -> bool {
    TABLE.set(table).is_ok()
}

/// Returns the built-in table.
pub(super) fn published() -> Table {
    read().expect("a test reads models.toml and rules.toml")
}

/// Returns the hash of the data files.
pub(super) fn hash() -> u64 {
    content_hash([MODELS, RULES, TERMS, OTHERS].join("\n").as_bytes())
}

/// Parses the data files.
fn read() -> Result<Table, String> {
    let DataFile { origin, as_of, model } = toml::from_str(MODELS).map_err(|e| e.to_string())?;
    let rules = toml::from_str(RULES).map_err(|e| e.to_string())?;
    let mut table = Table { models: Vec::new(), rules, origin, as_of, changes: Vec::new() };
    table.models = model.iter().map(|row| table.resolve(row, None)).collect::<Result<_, _>>()?;
    Ok(table)
}

impl Table {
    /// Returns the model of a row. What the row leaves out is as in `base`.
    pub(super) fn resolve(&self, row: &Row, base: Option<&Model>) -> Result<Model, String> {
        let provider = given(row.provider, base, |b| b.provider, "provider")?;
        let wire = given(row.wire.clone(), base, |b| b.wire.clone(), "wire")?;
        let window = given(row.window, base, |b| b.window, "window")?;
        let max_output = given(row.max_output, base, |b| b.max_output, "max_output")?;
        let mut changes = row.cache.clone();
        let rule = match (changes.remove("rule"), base) {
            (None, Some(base)) => base.cache,
            (name, _) => {
                let name = name.as_ref().and_then(toml::Value::as_str).unwrap_or_default();
                *named(&self.rules.cache, "cache", name)?
            }
        };
        let cache = changed(&rule, changes)?;
        let latency = row.speed.as_deref().map(|name| named(&self.rules.speed, "speed", name));
        let prices = row.prices.as_ref().map(|prices| prices.resolve(&cache)).transpose()?;
        let can = match base.filter(|b| b.wire == wire) {
            Some(base) => base.capabilities,
            None => self.rules.wire.get(&*wire).copied().unwrap_or_default(),
        };
        let counting =
            base.map_or_else(|| Counting::for_model(provider, &row.name), |b| b.counting);
        let keeps = row.keeps_thinking.or(base.map(|b| b.keeps_thinking));
        let weak = base.filter(|b| b.provider == provider).map_or(&row.name, |b| &b.weak);
        // A limit on input belongs to its window.
        let limit = base.and_then(|b| b.input_limit).filter(|limit| *limit < window);
        let deprecated = base.filter(|b| b.name == row.name).and_then(|b| b.deprecated.clone());
        Ok(Model {
            name: row.name.clone(),
            provider,
            wire,
            window,
            max_output,
            published_output: max_output,
            input_limit: row.input_limit.or(limit),
            weak: row.weak.as_ref().unwrap_or(weak).clone(),
            counting: row.counting.as_ref().map_or(counting, |own| own.over(counting, &row.name)),
            keeps_thinking: keeps
                .unwrap_or_else(|| self.rules.thinking.keeps(Some(provider), &row.name)),
            cache,
            prices: given(prices, base, |b| b.prices.clone(), "prices")?,
            lacks_prices: false,
            capabilities: changed(&can, row.capabilities.clone())?,
            latency: given(latency.transpose()?.copied(), base, |b| b.latency, "speed")?,
            deprecated: row.deprecated.clone().or(deprecated),
            source: row.source.clone().unwrap_or_default(),
        })
    }
}

/// Returns a value of a row, or that of another model.
fn given<T>(
    given: Option<T>,
    base: Option<&Model>,
    of: fn(&Model) -> T,
    key: &str,
) -> Result<T, String> {
    given.or(base.map(of)).ok_or_else(|| {
        format!("`{key}` is missing; add it, or a listed model that this one is `like`")
    })
}

fn named<'r, T>(rules: &'r BTreeMap<String, T>, kind: &str, name: &str) -> Result<&'r T, String> {
    rules.get(name).ok_or_else(|| {
        let names: Vec<&str> = rules.keys().map(|name| &**name).collect();
        format!("there is no {kind} rule `{name}`; {}", nearest::hint(name, &names))
    })
}

/// Returns a value with other values of some keys.
fn changed<T: Serialize + DeserializeOwned>(of: &T, changes: toml::Table) -> Result<T, String> {
    let mut keys = toml::Table::try_from(of).map_err(|e| e.to_string())?;
    keys.extend(changes);
    keys.try_into().map_err(|e| toml_file::describe(&e, ""))
}
