//! The repository of the story: a map of files plus the last commit.

use super::code::CodeWriter;
use super::diff::unified;
use super::domain::{Entity, entities};
use super::template::written_files;
use std::collections::BTreeMap;

pub struct Vfs {
    pub files: BTreeMap<String, String>,
    committed: BTreeMap<String, String>,
    pub entities: Vec<Entity>,
    pub code: CodeWriter,
}

impl Vfs {
    pub fn new() -> Self {
        let code = CodeWriter::new();
        let entities = entities();
        let mut files = BTreeMap::new();
        for (number, entity) in entities.iter().enumerate() {
            files.insert(entity.path("model"), code.model(entity));
            files.insert(entity.path("repository"), code.repository(entity));
            files.insert(entity.path("service"), code.service(entity));
            files.insert(entity.path("controller"), code.controller(entity));
            files.insert(entity.unit_test_path(), code.unit_test(entity));
            let path = format!("migrations/{:04}_{}.sql", number + 1, entity.table);
            files.insert(path, code.migration(entity));
        }
        for (path, text) in written_files() {
            files.insert(path.to_owned(), text.to_owned());
        }
        Self { committed: files.clone(), files, entities, code }
    }

    pub fn entity(&self, name: &str) -> &Entity {
        self.entities
            .iter()
            .find(|entity| entity.name == name)
            .expect("the story names known entities")
    }

    pub fn text(&self, path: &str) -> &str {
        self.files.get(path).unwrap_or_else(|| panic!("the story reads files that exist: {path}"))
    }

    /// 1-based number of the first line that contains `needle`.
    pub fn line_of(&self, path: &str, needle: &str) -> usize {
        self.text(path)
            .lines()
            .position(|line| line.contains(needle))
            .map(|index| index + 1)
            .unwrap_or_else(|| panic!("the story points at lines that exist: {path}: {needle}"))
    }

    /// Replaces one unique text; returns the line where it began.
    pub fn edit(&mut self, path: &str, old: &str, new: &str) -> usize {
        let text = self.text(path);
        assert_eq!(text.matches(old).count(), 1, "edits match once: {path}: {old}");
        let at = text.find(old).expect("counted above");
        let line = text[..at].matches('\n').count() + 1;
        let changed = text.replacen(old, new, 1);
        self.files.insert(path.to_owned(), changed);
        line
    }

    /// Unified diff of the working tree against the last commit, with counts per file.
    pub fn diff(&self, prefix: &str) -> Vec<(String, String, usize, usize)> {
        let empty = String::new();
        self.files
            .iter()
            .filter(|(path, _)| path.starts_with(prefix))
            .filter_map(|(path, text)| {
                let old = self.committed.get(path).unwrap_or(&empty);
                (old != text).then(|| {
                    let (body, added, removed) = unified(path, old, text);
                    (path.clone(), body, added, removed)
                })
            })
            .collect()
    }

    pub fn commit(&mut self) {
        self.committed.clone_from(&self.files);
    }
}
