//! Facts of the story: noted where they arise, resolved to message ids at the end.

use super::json::Object;
use super::script::FactNote;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct FactList(Vec<(FactNote, String)>);

impl FactList {
    pub fn add(&mut self, note: FactNote, arises: String) {
        self.0.push((note, arises));
    }

    /// One line per fact; labels become the ids of the messages that bear them.
    pub fn lines(&self, labels: &BTreeMap<String, String>) -> Vec<String> {
        self.0.iter().map(|(note, arises)| line(note, arises, labels)).collect()
    }
}

fn line(note: &FactNote, arises: &str, labels: &BTreeMap<String, String>) -> String {
    let needs: Vec<&str> = note
        .needs
        .iter()
        .map(|label| match labels.get(label) {
            Some(id) => id.as_str(),
            None => panic!("fact {} needs a message that exists: {label}", note.id),
        })
        .collect();
    let object = Object::new()
        .with("type", "fact")
        .with("id", format!("f-{}", note.id))
        .with("kind", note.kind.as_str())
        .with("tokens", note.tokens.clone())
        .with("arises", arises)
        .with("needs", needs);
    match &note.superseded_by {
        Some(id) => object.with("superseded_by", format!("f-{id}")).end(),
        None => object.end(),
    }
}
