//! Reads the data files of models.

use std::sync::OnceLock;

use serde::Deserialize;
use toml::Value;

use super::family::{is_name_of, version};
use super::own::KEYS;
use super::{Counting, Model, Provider};
use crate::tokens::content_hash;
use ctxbench_util::nearest;

/// The table of models and its sources.
pub(super) struct Table {
    pub(super) models: Vec<Model>,
    /// The keys of each model as in its file, with the names of rules.
    pub(super) keys: Vec<toml::Table>,
    /// The tables of `rules.toml`: `cache`, `wire` and `speed`, by name.
    pub(super) rules: toml::Table,
    /// Version of the price file, such as `litellm 1.109.1`.
    pub(super) origin: String,
    /// Date of the table, `YYYY-MM-DD`; earlier retirements count.
    pub(super) as_of: String,
    pub(super) thinking: ThinkingRule,
    /// Name and hash of each file that changed the table.
    pub(super) changes: Vec<String>,
}

#[derive(Deserialize)]
struct DataFile {
    origin: String,
    as_of: String,
    model: Vec<toml::Table>,
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

static TABLE: OnceLock<Table> = OnceLock::new();

/// An error and the key of the model that causes it.
pub(super) type Wrong = (&'static str, String);

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
    content_hash([MODELS, RULES, TERMS, super::unlisted::ROWS].join("\n").as_bytes())
}

/// Parses the data files.
fn read() -> Result<Table, String> {
    let DataFile { origin, as_of, model } = toml::from_str(MODELS).map_err(|e| e.to_string())?;
    let mut rules: toml::Table = toml::from_str(RULES).map_err(|e| e.to_string())?;
    let thinking = rules.remove("thinking").ok_or("rules.toml has no table [thinking]")?;
    let thinking: ThinkingRule = thinking.try_into().map_err(|e| format!("rules.toml: {e}"))?;
    let mut table = Table {
        models: Vec::new(),
        keys: model,
        rules,
        origin,
        as_of,
        thinking,
        changes: Vec::new(),
    };
    let models = table.keys.iter().map(|keys| table.resolve(keys.clone()));
    table.models = models.collect::<Result<_, Wrong>>().map_err(|(_, what)| what)?;
    Ok(table)
}

impl Table {
    /// Builds a model. Its `cache` names a rule and may override its parameters, its `speed` names a
    /// latency, and its capabilities add to those of its wire. Without other keys, counting follows
    /// from the provider, and whether it keeps thinking from the name.
    pub(super) fn resolve(&self, mut keys: toml::Table) -> Result<Model, Wrong> {
        let mut cache = table_of(keys.remove("cache"));
        let mut rule = self.rule("cache", cache.remove("rule"))?;
        rule.extend(cache);
        if let Some(Value::Table(prices)) = keys.get_mut("prices") {
            let has = |key: &str| rule.get(key).is_some_and(|v| *v != Value::Boolean(false));
            let writes = [("write_5m", true), ("write_1h", has("long_ms"))];
            for (key, exists) in writes {
                // Writing costs as much as input unless the cache charges for it.
                if let Some(input) = prices.get("input").filter(|_| !has("write_fee") || !exists) {
                    let input = input.clone();
                    prices.entry(key).or_insert(input);
                }
            }
        }
        let mut can = self.rule("wire", keys.get("wire").cloned()).unwrap_or_default();
        can.extend(table_of(keys.remove("capabilities")));
        let latency = self.rule("speed", keys.remove("speed"))?;
        let keeps_thinking = keys.remove("keeps_thinking").and_then(|keeps| keeps.as_bool());
        let counting = keys.remove("counting").map(Counting::from_table).transpose();
        let counting = counting.map_err(|e| ("counting", one_line(&e)))?;
        keys.insert("cache".into(), rule.into());
        keys.insert("capabilities".into(), can.into());
        keys.insert("latency".into(), latency.into());
        let model: Model = Value::Table(keys).try_into().map_err(|e| {
            let what = one_line(&e);
            let is_cause = |key: &&str| what.contains(&format!(" in `{key}"));
            (KEYS.into_iter().find(is_cause).unwrap_or("name"), what)
        })?;
        Ok(Model {
            published_output: model.max_output,
            counting: counting.unwrap_or_else(|| Counting::for_model(model.provider, &model.name)),
            keeps_thinking: keeps_thinking
                .unwrap_or_else(|| self.thinking.keeps(Some(model.provider), &model.name)),
            ..model
        })
    }

    /// Returns a rule of a kind by name.
    fn rule(&self, kind: &'static str, name: Option<Value>) -> Result<toml::Table, Wrong> {
        let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
        let rules = self.rules.get(kind).and_then(Value::as_table);
        let names = || -> Vec<&str> { rules.into_iter().flatten().map(|(n, _)| &**n).collect() };
        let found = rules.and_then(|rules| rules.get(name)?.as_table().cloned());
        found.ok_or_else(|| {
            let hint = nearest::hint(name, &names());
            (kind, format!("there is no {kind} rule `{name}`; {hint}"))
        })
    }
}

fn table_of(value: Option<Value>) -> toml::Table {
    match value {
        Some(Value::Table(table)) => table,
        _ => toml::Table::new(),
    }
}

/// Formats an error about a value, with the path of its key.
fn one_line(e: &toml::de::Error) -> String {
    e.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
