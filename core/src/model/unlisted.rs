//! Models that the price file has and the catalogue does not: exact prices and windows, and the rules
//! of the most similar listed model.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use super::names::base_name;
use super::table::{OTHERS, table};
use super::{LongPrice, Model, Prices, family};

/// What the price file lacks for a provider that no listed model has. Caching is ASSUMED.
const OTHER: &str = r#"
name = "other"
provider = "other"
wire = "openai-chat"
window = 128_000
max_output = 8_192
weak = "other"
cache = { rule = "other" }
prices = { input = 0.0, read = 0.0, output = 0.0 }
speed = "medium"
source = ""
"#;

/// A row of the file. Prices are in USD per million tokens.
#[derive(Deserialize)]
struct Row {
    name: Arc<str>,
    /// `None` if the file does not say; then it is that of the most similar listed model.
    window: Option<u64>,
    max_output: Option<u64>,
    input_limit: Option<u64>,
    cache_minimum: Option<u64>,
    input: f64,
    write_5m: f64,
    write_1h: f64,
    read: f64,
    output: f64,
    long: Vec<LongPrice>,
}

/// The rows, and their positions by exact name and by name without gateway and date.
struct Rows {
    rows: Vec<(Row, OnceLock<Model>)>,
    exact: HashMap<Arc<str>, usize>,
    named: HashMap<String, usize>,
}

fn rows() -> &'static Rows {
    static FILE: OnceLock<Rows> = OnceLock::new();
    FILE.get_or_init(|| {
        let read: Vec<Row> = serde_json::from_str(OTHERS).expect("a test reads others.json");
        let (mut exact, mut named) = (HashMap::new(), HashMap::new());
        for (at, row) in read.iter().enumerate() {
            exact.insert(row.name.clone(), at);
            named.entry(base_name(&row.name)).or_insert(at);
        }
        let rows = read.into_iter().map(|row| (row, OnceLock::new())).collect();
        Rows { rows, exact, named }
    })
}

/// Returns the number of models that only the price file has.
pub fn count() -> usize {
    rows().rows.len()
}

/// Finds a model by its exact name in the price file.
pub(super) fn exact(name: &str) -> Option<&'static Model> {
    rows().exact.get(name).map(|&at| model(at))
}

/// Finds a model by a recorded name, without gateway and date.
pub(super) fn named(recorded: &str) -> Option<&'static Model> {
    rows().named.get(&base_name(recorded)).map(|&at| model(at))
}

fn model(at: usize) -> &'static Model {
    let (row, model) = &rows().rows[at];
    model.get_or_init(|| {
        let prices = Prices {
            input: row.input,
            write_5m: row.write_5m,
            write_1h: row.write_1h,
            read: row.read,
            output: row.output,
            long: row.long.clone(),
        };
        let name = row.name.clone();
        let source = table().origin.clone();
        if let Some(listed) = family::listed_in(&name) {
            // The same model in another region or at another gateway.
            return Model { name, prices, source, ..listed.clone() };
        }
        let like = family::substitute(&name).cloned().unwrap_or_else(other);
        let mut cache = like.cache;
        cache.minimum = row.cache_minimum.unwrap_or(cache.minimum);
        Model {
            window: row.window.unwrap_or(like.window),
            max_output: row.max_output.unwrap_or(like.max_output),
            published_output: row.max_output.unwrap_or(like.published_output),
            input_limit: row.input_limit,
            keeps_thinking: family::keeps_thinking_by_name(&name),
            deprecated: None,
            capabilities: super::Capabilities { server_compaction: false, ..like.capabilities },
            name,
            cache,
            prices,
            source,
            ..like
        }
    })
}

fn other() -> Model {
    let row = toml::from_str(OTHER).map_err(|e| e.to_string());
    let model = row.and_then(|row| table().resolve(&row, None));
    model.expect("a test resolves a model of an unknown provider")
}
