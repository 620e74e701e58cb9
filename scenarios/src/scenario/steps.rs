//! Reader of the `[[step]]` and `[[fact]]` tables of a scenario.

use std::collections::HashSet;

use serde_json::{Map, Value};
use toml::Spanned;

use super::ScenarioReader;
use crate::check::Located;
use crate::error::InputError;
use crate::fields;

impl ScenarioReader<'_> {
    /// Appends steps and facts. Messages without an id get `m1`, `m2`, … by position.
    pub(super) fn steps(
        &self,
        steps: Vec<Spanned<Map<String, Value>>>,
        facts: Vec<Spanned<Map<String, Value>>>,
        items: &mut Vec<Located>,
    ) -> Result<(), InputError> {
        let id = |object: &Map<String, Value>| Some(object.get("id")?.as_str()?.to_string());
        let mut used: HashSet<String> =
            steps.iter().chain(&facts).filter_map(|s| id(s.get_ref())).collect();
        let messages = items.iter().map(|i| &i.entry).filter(|e| e.is_message());
        used.extend(messages.filter_map(|e| Some(e.key()?.to_string())));
        let fact = |mut fact: Spanned<Map<String, Value>>| {
            fact.get_mut().insert("type".into(), "fact".into());
            fact
        };
        for step in steps.into_iter().chain(facts.into_iter().map(fact)) {
            let line = self.lines.line_at(step.span().start);
            let mut step = step.into_inner();
            let tag = step.get("type").and_then(Value::as_str).unwrap_or_default().to_string();
            if matches!(tag.as_str(), "user" | "assistant") && !step.contains_key("id") {
                let mut ids = (items.len() + 1..).map(|n| format!("m{n}"));
                let unused = ids.find(|id| used.insert(id.clone()));
                step.insert("id".to_string(), unused.into());
            }
            if tag == "tool"
                && let Some(text) = step.remove("text")
                && step.insert("output".to_string(), text).is_some()
            {
                return Err(two_members("text", "output", line));
            }
            self.fill_from_file(&tag, &mut step, line)?;
            arguments_as_text(&mut step);
            let entry = fields::entry(step.clone(), line)?;
            let read = serde_json::to_value(&entry).unwrap_or_default();
            if let Some(key) = fields::ignored(&step.into(), &read) {
                let expected = format!("a key of an entry of type {tag:?}");
                let fix = "docs/sessions.md lists the keys";
                return Err(InputError::new(line, format!("unknown key {key:?}"), expected, fix));
            }
            items.push(Located { line, entry });
        }
        Ok(())
    }

    /// Replaces `file = "…"` by the content of the file.
    fn fill_from_file(
        &self,
        tag: &str,
        step: &mut Map<String, Value>,
        line: usize,
    ) -> Result<(), InputError> {
        let (Some(field), Some(name)) = (text_field(tag), step.remove("file")) else {
            return Ok(());
        };
        if step.contains_key(field) {
            return Err(two_members("file", field, line));
        }
        let wrong = |what: String| {
            InputError::new(line, what, "the name of a file in the scenario's folder", "correct it")
        };
        let name = name.as_str().ok_or_else(|| wrong("\"file\" is not a string".into()))?;
        let text =
            self.beside.text(name).map_err(|e| wrong(format!("cannot read {name:?}: {e}")))?;
        let value = match field {
            "definitions" => {
                serde_json::from_str(&text).map_err(|e| wrong(format!("{name}: {e}")))?
            }
            _ => Value::String(text),
        };
        step.insert(field.to_string(), value);
        Ok(())
    }
}

fn two_members(one: &str, other: &str, line: usize) -> InputError {
    let what = format!("both {one:?} and {other:?}");
    InputError::new(line, what, "one of the two", "remove the other")
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
