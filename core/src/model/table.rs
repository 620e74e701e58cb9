//! Reads the data files of models.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::{CacheRule, Capabilities, Counting, Latency, Model};
use crate::tokens::content_hash;

/// The table of models and its sources.
pub(super) struct Table {
    pub(super) models: Vec<Model>,
    /// Version of the price file, such as `litellm 1.109.1`.
    pub(super) origin: String,
    /// Date of the table, `YYYY-MM-DD`; earlier retirements count.
    pub(super) as_of: String,
    /// Names of models with prompts that lack the thinking of earlier turns.
    pub(super) leaving_thinking_out: Vec<String>,
    /// Name and hash of each file that changed the table.
    pub(super) changes: Vec<String>,
}

/// The tables of `rules.toml`, by their names.
#[derive(Deserialize)]
pub(super) struct Rules {
    pub(super) cache: BTreeMap<String, CacheRule>,
    pub(super) wire: BTreeMap<String, Capabilities>,
    pub(super) speed: BTreeMap<String, Latency>,
}

const MODELS: &str = include_str!("models.toml");
const RULES: &str = include_str!("rules.toml");

static TABLE: OnceLock<Table> = OnceLock::new();

pub(super) fn table() -> &'static Table {
    TABLE.get_or_init(published)
}

/// Sets the table of the process. Fails if a table was already used.
pub(super) fn install(table: Table) -> Result<(), Table> {
    TABLE.set(table)
}

/// Returns the built-in table.
pub(super) fn published() -> Table {
    read(MODELS, RULES).expect("models.toml is checked by a test")
}

pub(super) fn rules() -> Rules {
    toml::from_str(RULES).expect("rules.toml is checked by a test")
}

/// Returns the hash of both files.
pub(super) fn hash() -> u64 {
    content_hash(format!("{MODELS}\n{RULES}").as_bytes())
}

/// Parses the data files. A model's `cache` names a rule and may override its parameters, its `speed`
/// names a latency, and its capabilities add to those of its wire.
fn read(models: &str, rules: &str) -> Result<Table, String> {
    let parsed = |text| toml::from_str::<toml::Table>(text).map_err(|e| e.to_string());
    let (mut file, rules) = (parsed(models)?, parsed(rules)?);
    let models = file.remove("model").and_then(|m| m.try_into::<Vec<toml::Table>>().ok());
    let word = |v: Option<&toml::Value>| v.and_then(toml::Value::as_str).map(str::to_string);
    let part = |of: &str, name: &str| {
        let found = rules.get(of).and_then(|t| t.get(name)?.as_table().cloned());
        found.ok_or_else(|| format!("rules.toml has no [{of}.{name}]"))
    };
    let left_out = rules.get("thinking").and_then(|t| t.get("left_out").cloned());
    let leaving_thinking_out: Vec<String> = left_out
        .and_then(|names| names.try_into().ok())
        .ok_or("rules.toml has no list [thinking] left_out")?;
    let resolved = models.ok_or("no tables [[model]]")?.into_iter().map(|mut m| {
        let table = |m: &mut toml::Table, key: &str| match m.remove(key) {
            Some(toml::Value::Table(t)) => t,
            _ => toml::Table::new(),
        };
        let mut own = table(&mut m, "cache");
        let rule = word(own.remove("rule").as_ref()).ok_or("a cache without rule")?;
        let mut cache = part("cache", &rule)?;
        cache.extend(own);
        let wire = word(m.get("wire")).ok_or("a model without wire")?;
        let mut can = part("wire", &wire).unwrap_or_default();
        can.extend(table(&mut m, "capabilities"));
        let speed = word(m.remove("speed").as_ref()).ok_or("a model without speed")?;
        let latency = part("speed", &speed)?;
        m.extend([("cache".into(), cache.into()), ("capabilities".into(), can.into())]);
        m.insert("latency".into(), latency.into());
        let model = m.try_into::<Model>().map_err(|e| e.to_string())?;
        let counting = Counting::for_provider(model.provider);
        let keeps_thinking = !leaving_thinking_out.iter().any(|name| **name == *model.name);
        Ok(Model { published_output: model.max_output, counting, keeps_thinking, ..model })
    });
    let models = resolved.collect::<Result<_, String>>()?;
    Ok(Table {
        models,
        origin: word(file.get("origin")).ok_or("no origin")?,
        as_of: word(file.get("as_of")).ok_or("no as_of")?,
        leaving_thinking_out,
        changes: Vec::new(),
    })
}
