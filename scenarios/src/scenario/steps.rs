//! Reader of the `[[step]]` and `[[fact]]` tables of a scenario.

use std::collections::HashSet;

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::ScenarioReader;
use crate::check::Located;
use crate::error::LineFault;
use crate::fields::{self, KINDS, KindFields};
use crate::toml_tree;

/// A table with its line number.
type Step = (usize, Map<String, Value>);

impl ScenarioReader<'_> {
    /// Appends the steps and facts of the file. Messages without an id get `m1`, `m2`, … by
    /// position.
    pub(super) fn steps(
        &self,
        tree: &DeTable<'_>,
        items: &mut Vec<Located>,
    ) -> Result<(), LineFault> {
        let mut steps = self.tables(tree, "step")?;
        for (line, step) in self.tables(tree, "fact")? {
            let mut step = step;
            step.insert("type".to_string(), Value::from("fact"));
            steps.push((line, step));
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
                return Err(LineFault::new(
                    line,
                    "both \"text\" and \"output\"",
                    "one of the two",
                    "remove the other",
                ));
            }
            self.beside_file(&tag, &mut step, line)?;
            arguments_as_text(&mut step);
            let again = step.clone();
            let entry = fields::entry(step, line, || again.clone())?;
            items.push(Located { line, entry });
        }
        Ok(())
    }

    /// Returns the tables of an array with their line numbers. Unknown keys are errors.
    fn tables(&self, tree: &DeTable<'_>, key: &str) -> Result<Vec<Step>, LineFault> {
        let Some(value) = tree.get(key) else { return Ok(Vec::new()) };
        let not_tables = |line| {
            LineFault::new(
                line,
                format!("{key:?} is not a list of tables"),
                format!("[[{key}]]"),
                "double the brackets",
            )
        };
        let DeValue::Array(list) = value.get_ref() else {
            return Err(not_tables(self.line_of(tree, key)));
        };
        let mut out = Vec::new();
        for item in list.iter() {
            let line = self.lines.line_at(item.span().start);
            let DeValue::Table(table) = item.get_ref() else { return Err(not_tables(line)) };
            let tag = table.get("type").and_then(|t| t.get_ref().as_str().map(str::to_string));
            if let Some(tag) = if key == "fact" { Some("fact".to_string()) } else { tag } {
                let kind = fields::kind(
                    &tag,
                    table.get("type").map_or(line, |t| self.lines.line_at(t.span().start)),
                )?;
                self.known_keys(table, &step_keys(kind), &format!("an entry of type {tag:?}"))?;
            } else {
                let kinds = KINDS.iter().map(|k| k.tag).collect::<Vec<_>>().join(", ");
                return Err(LineFault::new(
                    line,
                    "a step without \"type\"",
                    format!("one of {kinds}"),
                    "add type = \"…\"",
                ));
            }
            self.nested_keys(table)?;
            out.push((line, toml_tree::object(table, line)?));
        }
        Ok(out)
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
            return Err(LineFault::new(
                line,
                format!("both \"file\" and {field:?}"),
                "one of the two",
                "remove the other",
            ));
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

const PART: &[&str] =
    &["type", "text", "encrypted", "id", "name", "arguments", "media_type", "url"];

/// Keys of tables inside a step.
pub(crate) const NESTED: &[(&str, &[&str])] = &[
    ("calls", &["id", "name", "arguments"]),
    ("effects", &["path", "text", "removed"]),
    ("parts", PART),
    (
        "usage",
        &["input", "output", "cache_read", "cache_write", "cache_write_1h", "output_estimate"],
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
