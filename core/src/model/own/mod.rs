//! The user's models: files that add models to the table or change listed ones.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::table::{Row, Table};
use super::{CacheRule, Latency, Model, Provider};
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
    models: Vec<Spanned<Row>>,
    #[serde(default)]
    cache: BTreeMap<String, CacheRule>,
    #[serde(default)]
    speed: BTreeMap<String, Latency>,
}

/// The wire of Anthropic's models and of no others.
const ANTHROPIC: &str = "anthropic-messages";

/// The largest value of a user: tokens, dollars or milliseconds.
const MAX: f64 = 1e13;

impl Table {
    /// Returns the table with the additions and changes of a file.
    pub(super) fn with(mut self, file: &OwnFile) -> Result<Table, TomlError> {
        let ModelFile { models, cache, speed } = toml_file::read(&file.path, &file.text)?;
        self.rules.cache.extend(cache);
        self.rules.speed.extend(speed);
        let change = changed_by(file);
        let lines = Lines::new(&file.text);
        let wrong = |row: &Spanned<Row>, what| {
            let (file, line) = (file.path.clone(), lines.line_at(row.span().start));
            TomlError { file, line, what }
        };
        for row in &models {
            self.add(row.get_ref(), &change).map_err(|what| wrong(row, what))?;
        }
        // A file may name models in any order.
        for row in &models {
            self.check_weak(&row.get_ref().name).map_err(|what| wrong(row, what))?;
        }
        self.changes.push(change);
        Ok(self)
    }

    fn add(&mut self, row: &Row, change: &str) -> Result<(), String> {
        if row.name.trim().is_empty() || row.name.contains(char::is_control) {
            return Err("`name` names no model".into());
        }
        let known = self.models.iter().position(|m| m.name == row.name);
        let base = match &row.like {
            Some(like) => Some(self.listed(like)?),
            None => known.map(|at| &self.models[at]),
        };
        let mut model = self.resolve(row, base)?;
        let has_family =
            base.is_some() || row.counting.as_ref().is_some_and(|c| c.family.is_some());
        if !has_family {
            // The vocabulary of a new model is unknown, and so is how it counts images.
            model.counting.error_pct = model.counting.error_pct.filter(|error| *error > 0.0);
            model.counting.image = None;
        }
        let reason = row.source.as_ref().map(|s| format!(" ({s})")).unwrap_or_default();
        let rest = match (&row.like, base) {
            (Some(like), Some(base)) => format!("; else as {like}: {}", base.source),
            (_, Some(base)) => format!("; else {}", base.source),
            _ => String::new(),
        };
        model.source = format!("{change}{reason}{rest}");
        self.check(&model)?;
        match known {
            Some(at) => self.models[at] = model,
            None => self.models.push(model),
        }
        Ok(())
    }

    fn listed(&self, name: &str) -> Result<&Model, String> {
        self.models.iter().find(|m| *m.name == *name).ok_or_else(|| {
            let names: Vec<&str> = self.models.iter().map(|m| &*m.name).collect();
            format!("there is no model `{name}`; {}", nearest::hint(name, &names))
        })
    }

    fn check(&self, m: &Model) -> Result<(), String> {
        let Model { prices, counting, latency, window, .. } = m;
        let (max_output, input_limit) = (m.max_output, m.input_limit.unwrap_or(1));
        let amounts = [
            ("window", *window as f64, 1.0),
            ("max_output", max_output as f64, 1.0),
            ("input_limit", input_limit as f64, 1.0),
            ("minimum", m.cache.minimum as f64, 1.0),
            ("step", m.cache.step as f64, 1.0),
            ("short_ms", m.cache.short_ms as f64, 1.0),
            ("long_ms", m.cache.long_ms.unwrap_or(1) as f64, 1.0),
            ("input", prices.input, 0.0),
            ("write_5m", prices.write_5m, 0.0),
            ("write_1h", prices.write_1h, 0.0),
            ("read", prices.read, 0.0),
            ("output", prices.output, 0.0),
            ("per_token", counting.per_token, 0.01),
            ("per_visible_token", counting.per_visible_token, 0.01),
            ("per_block", counting.per_block as f64, 0.0),
            ("per_image", counting.per_image as f64, 0.0),
            ("a_ms", latency.a_ms, 0.0),
            ("b_ms", latency.b_ms, 0.0),
            ("c_ms", latency.c_ms, 0.0),
            ("d_ms", latency.d_ms, 0.0),
        ];
        let factors = prices.long.iter().flat_map(|tier| {
            [("input_factor", tier.input_factor, 0.01), ("output_factor", tier.output_factor, 0.01)]
        });
        for (name, value, min) in amounts.into_iter().chain(factors) {
            if !(min..=MAX).contains(&value) {
                return Err(format!("`{name}` is {value}; expected {min} to {MAX}"));
            }
        }
        for (key, tokens) in [("max_output", max_output), ("input_limit", input_limit)] {
            if tokens > *window {
                return Err(format!("a `{key}` of {tokens} is more than the `window` of {window}"));
            }
        }
        let wires: Vec<&str> = self.models.iter().map(|m| &*m.wire).collect();
        if !wires.contains(&&*m.wire) {
            let hint = nearest::nearest(&m.wire, &wires);
            let hint = hint.first().map(|near| format!("; did you mean {near}?"));
            return Err(format!("there is no wire `{}`{}", m.wire, hint.unwrap_or_default()));
        }
        if (m.provider == Provider::Anthropic) != (*m.wire == *ANTHROPIC) {
            return Err(format!("provider `anthropic` and wire `{ANTHROPIC}` require each other"));
        }
        if m.capabilities.server_compaction && *m.wire != *ANTHROPIC {
            return Err(format!("`server_compaction` exists on the wire `{ANTHROPIC}` only"));
        }
        // Other models may name it as their weak model, and a session has one provider.
        match self.models.iter().find(|known| known.name == m.name) {
            Some(known) if known.provider != m.provider => {
                Err(format!("{} has another provider; give yours another `name`", m.name))
            }
            _ => Ok(()),
        }
    }

    fn check_weak(&self, name: &str) -> Result<(), String> {
        let of = self.listed(name)?;
        let weak = self.listed(&of.weak)?;
        if weak.provider == of.provider {
            return Ok(());
        }
        Err(format!(
            "`weak`: {} and {} have different providers; a session has one provider",
            weak.name, of.name
        ))
    }
}

/// Formats a file for the version of the price table, without its folder.
fn changed_by(file: &OwnFile) -> String {
    let name = file.path.rsplit(['/', '\\']).next().unwrap_or(&file.path);
    format!("{name}, {:08x}", crate::tokens::content_hash(file.text.as_bytes()) >> 32)
}

#[cfg(test)]
mod tests;
