//! The texts of prompts. They are ours; recorded cases replace them with fillers of the recorded
//! length.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Prompt texts by name.
#[derive(Clone, Debug, Default)]
pub struct Wording {
    texts: BTreeMap<String, Arc<str>>,
}

impl Wording {
    /// The texts of a table of names and words.
    pub fn new(table: &[(&str, &str)]) -> Self {
        Wording { texts: table.iter().map(|(k, v)| ((*k).to_string(), Arc::from(*v))).collect() }
    }

    /// Replaces or adds one text.
    pub fn set(&mut self, name: &str, text: impl Into<Arc<str>>) {
        self.texts.insert(name.to_string(), text.into());
    }

    /// A text; empty if nothing of that name is known.
    pub fn get(&self, name: &str) -> Arc<str> {
        self.texts.get(name).cloned().unwrap_or_default()
    }
}
