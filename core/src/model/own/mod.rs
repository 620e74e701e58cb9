//! The user's models: files that add models to the table or change listed ones.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Deserialize;
use toml::{Spanned, Value};

use super::table::{Table, Wrong};
use super::{Counting, Model, Provider};
use ctxbench_util::nearest;
use ctxbench_util::toml_file::{self, Lines, TomlError};

/// A file of models.
#[derive(Clone, Debug)]
pub struct OwnFile {
    /// Path as the user wrote it.
    pub path: String,
    pub text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    #[serde(default, rename = "model")]
    models: Vec<Spanned<OwnModel>>,
    #[serde(default)]
    cache: toml::Table,
    #[serde(default)]
    speed: toml::Table,
}

/// A model in a file. Missing keys come from the listed model with the name, or from the model that
/// it is `like`.
type OwnModel = BTreeMap<String, Spanned<Value>>;

/// Keys of a model.
pub(super) const KEYS: [&str; 16] = [
    "name",
    "like",
    "provider",
    "wire",
    "window",
    "max_output",
    "input_limit",
    "weak",
    "cache",
    "prices",
    "capabilities",
    "speed",
    "keeps_thinking",
    "counting",
    "deprecated",
    "source",
];

/// The wire of Anthropic's models and of no others.
const ANTHROPIC: &str = "anthropic-messages";

/// Tokens, up to a thousand times the largest window today.
const TOKENS: RangeInclusive<f64> = 1.0..=1_000_000_000.0;
/// USD per million tokens.
const USD: RangeInclusive<f64> = 0.0..=1_000_000.0;
/// Factors of a price or a count.
const FACTOR: RangeInclusive<f64> = 0.01..=100.0;
/// Tokens around a block or for an image.
const AROUND: RangeInclusive<f64> = 0.0..=1_000_000.0;
/// Milliseconds, up to a century.
const MILLIS: RangeInclusive<f64> = 1.0..=3_155_760_000_000.0;
/// Modelled latency, ms.
const LATENCY: RangeInclusive<f64> = 0.0..=1_000_000_000.0;

impl Table {
    /// Returns the table with the additions and changes of a file.
    pub(super) fn with(mut self, file: &OwnFile) -> Result<Table, TomlError> {
        let listed: ModelFile = toml_file::read(&file.path, &file.text)?;
        let lines = Lines::new(&file.text);
        for (kind, rules) in [("cache", listed.cache), ("speed", listed.speed)] {
            if let Some(Value::Table(known)) = self.rules.get_mut(kind) {
                known.extend(rules);
            }
        }
        let change = changed_by(file);
        let at = |place: std::ops::Range<usize>, what| TomlError {
            file: file.path.clone(),
            line: lines.line_at(place.start),
            what,
        };
        let wrong = |own: &Spanned<OwnModel>, (key, what): Wrong| {
            let value = own.get_ref().get(key).or_else(|| own.get_ref().get("name"));
            at(value.map_or(own.span(), Spanned::span), what)
        };
        for own in &listed.models {
            let mut keys = own.get_ref().iter();
            if let Some((key, value)) = keys.find(|(key, _)| !KEYS.contains(&key.as_str())) {
                let hint = nearest::hint(key, &KEYS);
                return Err(at(value.span(), format!("unknown key `{key}`; {hint}")));
            }
            self.add(own.get_ref(), &change).map_err(|e| wrong(own, e))?;
        }
        // A file may name models in any order.
        for own in &listed.models {
            let name = own.get_ref().get("name").and_then(|n| n.get_ref().as_str());
            self.check_weak(name.unwrap_or_default()).map_err(|e| wrong(own, e))?;
        }
        self.changes.push(change);
        Ok(self)
    }

    fn add(&mut self, own: &OwnModel, change: &str) -> Result<(), Wrong> {
        let keys = self.merged(own, change)?;
        let is_new = !own.contains_key("like") && self.position(text(&keys, "name")).is_none();
        let model = self.resolve(keys.clone()).map_err(|(key, what)| match is_new {
            true => (key, format!("{what}; add it, or a listed model that this one is `like`")),
            false => (key, what),
        })?;
        self.check(&model)?;
        match self.position(&model.name) {
            Some(at) => (self.models[at], self.keys[at]) = (model, keys),
            None => {
                self.models.push(model);
                self.keys.push(keys);
            }
        }
        Ok(())
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.models.iter().position(|m| *m.name == *name)
    }

    fn listed(&self, key: &'static str, name: &str) -> Result<usize, Wrong> {
        self.position(name).ok_or_else(|| {
            let names: Vec<&str> = self.models.iter().map(|m| &*m.name).collect();
            (key, format!("there is no model `{name}`; {}", nearest::hint(name, &names)))
        })
    }

    /// Returns the keys of a model: those of the user over those of a listed model.
    fn merged(&self, own: &OwnModel, change: &str) -> Result<toml::Table, Wrong> {
        let mut own: toml::Table =
            own.iter().map(|(key, value)| (key.clone(), value.get_ref().clone())).collect();
        let name = text(&own, "name").to_string();
        if name.trim().is_empty() || name.contains(char::is_control) {
            return Err(("name", "`name` names no model".into()));
        }
        let like = own.remove("like").map(|like| like.as_str().unwrap_or_default().to_string());
        let base = match &like {
            Some(like) => Some(self.listed("like", like)?),
            None => self.position(&name),
        };
        let mut keys = base.map_or_else(toml::Table::new, |at| self.keys[at].clone());
        let origin = text(&keys, "source").to_string();
        let provider = match base.map(|at| &self.models[at]) {
            Some(base) => {
                keys.entry("keeps_thinking").or_insert(base.keeps_thinking.into());
                base.provider.word()
            }
            None => text(&own, "provider"),
        };
        let family = match provider {
            "anthropic" => {
                let name = base.map_or(&*name, |at| &*self.models[at].name);
                let old = Counting::for_model(Provider::Anthropic, name) == Counting::CLAUDE;
                if old { "claude" } else { "claude-4-7" }
            }
            // The vocabulary of a new model is unknown.
            "openai" if base.is_some() => "openai",
            _ => "o200k",
        };
        let counting = toml::Table::from_iter([("family".to_string(), family.into())]);
        keys.entry("counting").or_insert(counting.into());
        if like.is_some() {
            keys.remove("deprecated");
        }
        if own.get("wire").is_some_and(|wire| keys.get("wire") != Some(wire)) {
            keys.remove("capabilities");
        }
        if own.get("provider").is_some_and(|provider| keys.get("provider") != Some(provider)) {
            keys.insert("weak".into(), name.into());
        }
        let number = |keys: &toml::Table, key: &str| keys.get(key).and_then(Value::as_integer);
        if number(&own, "window").is_some_and(|window| number(&keys, "input_limit") >= Some(window))
        {
            // The limit belongs to the other window.
            keys.remove("input_limit");
        }
        let reason = own.remove("source").and_then(|s| Some(format!(" ({})", s.as_str()?)));
        let rest = match &like {
            Some(like) => format!("; else as {like}: {origin}"),
            None if origin.is_empty() => String::new(),
            None => format!("; else {origin}"),
        };
        let source = format!("{change}{}{rest}", reason.unwrap_or_default());
        keys.insert("source".into(), source.into());
        for (key, value) in own {
            match (keys.get_mut(&key), value) {
                // Prices, and what follows from another rule or family, replace all that is known.
                (Some(Value::Table(known)), Value::Table(more))
                    if key != "prices"
                        && !more.contains_key("rule")
                        && !more.contains_key("family") =>
                {
                    known.extend(more);
                }
                (_, value) => {
                    keys.insert(key, value);
                }
            }
        }
        Ok(keys)
    }

    fn check(&self, m: &Model) -> Result<(), Wrong> {
        let (prices, counting, latency) = (&m.prices, &m.counting, &m.latency);
        for (key, name, value, range) in [
            ("window", "window", m.window as f64, TOKENS),
            ("max_output", "max_output", m.max_output as f64, TOKENS),
            ("input_limit", "input_limit", m.input_limit.unwrap_or(1) as f64, TOKENS),
            ("cache", "minimum", m.cache.minimum as f64, TOKENS),
            ("cache", "step", m.cache.step as f64, TOKENS),
            ("cache", "short_ms", m.cache.short_ms as f64, MILLIS),
            ("cache", "long_ms", m.cache.long_ms.unwrap_or(1) as f64, MILLIS),
            ("prices", "input", prices.input, USD),
            ("prices", "write_5m", prices.write_5m, USD),
            ("prices", "write_1h", prices.write_1h, USD),
            ("prices", "read", prices.read, USD),
            ("prices", "output", prices.output, USD),
            ("counting", "per_token", counting.per_token, FACTOR),
            ("counting", "per_visible_token", counting.per_visible_token, FACTOR),
            ("counting", "per_block", counting.per_block as f64, AROUND),
            ("counting", "per_image", counting.per_image as f64, AROUND),
            ("speed", "a_ms", latency.a_ms, LATENCY),
            ("speed", "b_ms", latency.b_ms, LATENCY),
            ("speed", "c_ms", latency.c_ms, LATENCY),
            ("speed", "d_ms", latency.d_ms, LATENCY),
        ]
        .into_iter()
        .chain(prices.long.iter().flat_map(|tier| {
            [
                ("prices", "input_factor", tier.input_factor, FACTOR),
                ("prices", "output_factor", tier.output_factor, FACTOR),
            ]
        })) {
            if !range.contains(&value) {
                let (min, max) = (range.start(), range.end());
                return Err((key, format!("`{name}` is {value}; expected {min} to {max}")));
            }
        }
        for (key, tokens) in
            [("max_output", m.max_output), ("input_limit", m.input_limit.unwrap_or(0))]
        {
            if tokens > m.window {
                let window = m.window;
                let what = format!("a `{key}` of {tokens} is more than the `window` of {window}");
                return Err((key, what));
            }
        }
        let wires: Vec<&str> = self.models.iter().map(|m| &*m.wire).collect();
        if !wires.contains(&&*m.wire) {
            let hint = nearest::nearest(&m.wire, &wires);
            let hint = hint.first().map(|near| format!("; did you mean {near}?"));
            let what = format!("there is no wire `{}`{}", m.wire, hint.unwrap_or_default());
            return Err(("wire", what));
        }
        if (m.provider == Provider::Anthropic) != (*m.wire == *ANTHROPIC) {
            let what = format!("provider `anthropic` and wire `{ANTHROPIC}` require each other");
            return Err(("wire", what));
        }
        if m.capabilities.server_compaction && *m.wire != *ANTHROPIC {
            let what = format!("`server_compaction` exists on the wire `{ANTHROPIC}` only");
            return Err(("capabilities", what));
        }
        // Other models may name it as their weak model, and a session has one provider.
        match self.position(&m.name).map(|at| &self.models[at]) {
            Some(known) if known.provider != m.provider => {
                let name = &m.name;
                Err(("name", format!("{name} has another provider; give yours another `name`")))
            }
            _ => Ok(()),
        }
    }

    fn check_weak(&self, name: &str) -> Result<(), Wrong> {
        let of = &self.models[self.listed("name", name)?];
        let weak = &self.models[self.listed("weak", &of.weak)?];
        if weak.provider == of.provider {
            return Ok(());
        }
        let what = format!(
            "`weak`: {} and {} have different providers; a session has one provider",
            weak.name, of.name
        );
        Err(("weak", what))
    }
}

/// Returns the text of a key, empty if it has none.
fn text<'a>(keys: &'a toml::Table, key: &str) -> &'a str {
    keys.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Formats a file for the version of the price table, without its folder.
fn changed_by(file: &OwnFile) -> String {
    let name = file.path.rsplit(['/', '\\']).next().unwrap_or(&file.path);
    format!("{name}, {:08x}", crate::tokens::content_hash(file.text.as_bytes()) >> 32)
}

#[cfg(test)]
mod tests;
