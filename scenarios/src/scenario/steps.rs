//! Reader of the `[[step]]` and `[[fact]]` tables of a scenario.

use std::collections::HashSet;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ScenarioReader;
use crate::check::Located;
use crate::error::LineFault;
use crate::fields::{self, KindFields};
use crate::toml_tree;

impl ScenarioReader<'_> {
    /// Appends the steps and facts of the file. Messages without an id get `m1`, `m2`, … by
    /// position.
    pub(super) fn steps(
        &self,
        tree: &DeTable<'_>,
        items: &mut Vec<Located>,
    ) -> Result<(), LineFault> {
        let mut steps = Vec::new();
        for (line, table) in self.tables(tree, "step")? {
            steps.push((line, self.step(table, line, None)?));
        }
        for (line, table) in self.tables(tree, "fact")? {
            let mut fact = self.step(table, line, Some("fact"))?;
            fact.insert("type".to_string(), Value::from("fact"));
            steps.push((line, fact));
        }
        let mut used: HashSet<String> =
            steps.iter().filter_map(|(_, s)| Some(s.get("id")?.as_str()?.to_string())).collect();
        let messages = items.iter().map(|i| &i.entry).filter(|e| e.is_message());
        used.extend(messages.filter_map(|e| Some(e.key()?.to_string())));
        for (line, mut step) in steps {
            let tag = step.get("type").and_then(Value::as_str).unwrap_or_default().to_string();
            if matches!(tag.as_str(), "user" | "assistant") && !step.contains_key("id") {
                let n = items.len() + 1;
                let id = (n..)
                    .map(|n| format!("m{n}"))
                    .find(|id| used.insert(id.clone()))
                    .expect("there are more numbers than ids");
                step.insert("id".to_string(), Value::String(id));
            }
            if tag == "tool"
                && let Some(text) = step.remove("text")
                && step.insert("output".to_string(), text).is_some()
            {
                return Err(both("text", "output", line));
            }
            self.beside_file(&tag, &mut step, line)?;
            arguments_as_text(&mut step);
            let again = step.clone();
            let entry = fields::entry(step, line, || again.clone())?;
            items.push(Located { line, entry });
        }
        Ok(())
    }

    /// Returns the tables of an array with their line numbers.
    pub(super) fn tables<'t, 'i>(
        &self,
        tree: &'t DeTable<'i>,
        key: &str,
    ) -> Result<Vec<(usize, &'t DeTable<'i>)>, LineFault> {
        let Some(value) = tree.get(key) else { return Ok(Vec::new()) };
        let list = value.get_ref().as_array().into_iter().flat_map(|list| list.iter());
        let table = |item: &'t Spanned<DeValue<'i>>| {
            Some((self.lines.line_at(item.span().start), item.get_ref().as_table()?))
        };
        let tables: Option<Vec<_>> = list.map(table).collect();
        tables.filter(|_| value.get_ref().is_array()).ok_or_else(|| {
            LineFault::new(
                self.line_of(tree, key),
                format!("{key:?} is not a list of tables"),
                format!("[[{key}]]"),
                "double the brackets",
            )
        })
    }

    /// Converts the table of a step, or of a kind that needs no `type`. Unknown keys are errors.
    fn step(
        &self,
        table: &DeTable<'_>,
        line: usize,
        tag: Option<&str>,
    ) -> Result<Map<String, Value>, LineFault> {
        let written = table.get("type");
        let Some(tag) = tag.or_else(|| written?.get_ref().as_str()) else {
            let what = "a step without \"type\"";
            return Err(LineFault::new(line, what, fields::one_of_the_types(), "add type = \"…\""));
        };
        let kind_line = written.map_or(line, |t| self.lines.line_at(t.span().start));
        let kind = fields::kind(tag, kind_line)?;
        self.known_keys(table, &step_keys(kind), &format!("an entry of type {tag:?}"))?;
        self.nested_keys(table)?;
        toml_tree::object(table, &self.lines)
    }

    fn nested_keys(&self, table: &DeTable<'_>) -> Result<(), LineFault> {
        for (key, known) in NESTED {
            match table.get(*key).map(|v| v.get_ref()) {
                Some(DeValue::Table(t)) => self.known_keys(t, known, &format!("{key:?}"))?,
                Some(DeValue::Array(list)) => {
                    for inner in list.iter().filter_map(|v| v.get_ref().as_table()) {
                        self.known_keys(inner, known, &format!("one of {key:?}"))?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Replaces `file = "…"` by the content of the file.
    fn beside_file(
        &self,
        tag: &str,
        step: &mut Map<String, Value>,
        line: usize,
    ) -> Result<(), LineFault> {
        let (Some(field), Some(name)) = (text_field(tag), step.remove("file")) else {
            return Ok(());
        };
        let Value::String(name) = name else {
            return Err(LineFault::new(
                line,
                "\"file\" is not a string",
                "the name of a file in the scenario's folder",
                "put it in quotes",
            ));
        };
        if step.contains_key(field) {
            return Err(both("file", field, line));
        }
        let text = self.beside.text(&name).map_err(|e| {
            LineFault::new(
                line,
                format!("cannot read {name:?}: {e}"),
                "a text file in the scenario's folder",
                "check the name",
            )
        })?;
        let value = if field == "definitions" {
            serde_json::from_str(&text).map_err(|e| {
                LineFault::new(
                    line,
                    format!("{name}: {e}"),
                    "a JSON list of tools",
                    "correct that file",
                )
            })?
        } else {
            Value::String(text)
        };
        step.insert(field.to_string(), value);
        Ok(())
    }
}

fn both(one: &str, other: &str, line: usize) -> LineFault {
    let what = format!("both {one:?} and {other:?}");
    LineFault::new(line, what, "one of the two", "remove the other")
}

const PART: &[&str] =
    &["type", "text", "encrypted", "id", "name", "arguments", "media_type", "url"];

/// Keys of tables inside a step.
pub(crate) const NESTED: &[(&str, &[&str])] = &[
    ("calls", &["id", "name", "arguments"]),
    ("effects", &["path", "text", "removed"]),
    ("parts", PART),
    (
        "usage",
        &[
            "input",
            "output",
            "cache_read",
            "cache_write",
            "cache_write_1h",
            "output_estimate",
            "call_id",
            "speed",
            "tier",
            "region",
            "web_searches",
            "told_usd",
        ],
    ),
];

/// Returns all keys that a step of a kind may have.
pub(crate) fn step_keys(kind: &KindFields) -> Vec<&'static str> {
    let mut known = kind.names();
    if text_field(kind.tag).is_some() {
        known.push("file");
    }
    if kind.tag == "tool" {
        known.push("text");
    }
    known
}

/// Returns the field that `file = "…"` fills.
pub(crate) fn text_field(tag: &str) -> Option<&'static str> {
    match tag {
        "system" | "memory" | "repo_map" | "file" | "disk_file" | "user" | "assistant" => {
            Some("text")
        }
        "tool" => Some("output"),
        "tools" => Some("definitions"),
        _ => None,
    }
}

/// Converts call arguments written as a table to compact JSON text.
fn arguments_as_text(step: &mut Map<String, Value>) {
    for key in ["calls", "parts"] {
        for call in step.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(arguments) = call.get_mut("arguments").filter(|a| a.is_object()) {
                *arguments = Value::String(arguments.to_string());
            }
        }
    }
}
