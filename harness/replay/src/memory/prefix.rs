//! Memory files of a project, placed in the prefix of a session.

use std::collections::BTreeMap;

use ctxbench_core::tokens::o200k;
use ctxbench_kit::memory::{Activation, Level, MemoryFile, ProjectFolders};
use ctxbench_strategies::Spec;
use ctxbench_strategies::descriptor::MemoryFiles;
use ctxbench_util::plural::pluralize;

use super::load;

/// Memory files that a product places before the first message, in the form of a session's own
/// memory files. A file for certain paths has front matter or lies in a subfolder; the strategy
/// adds it when a matching file is touched.
#[derive(Clone, Debug, Default, PartialEq)]
struct MemoryPrefix {
    files: Vec<(String, String)>,
    summary: String,
    notes: Vec<String>,
}

/// Memory files of each strategy in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prefixes {
    /// The project folder as given on the command line.
    project: String,
    by_label: BTreeMap<String, MemoryPrefix>,
}

impl Prefixes {
    /// Loads the memory files of each strategy's product.
    pub fn read(project: &str, folders: &ProjectFolders, specs: &[Spec]) -> Prefixes {
        let by_label = specs.iter().map(|s| (s.label(), MemoryPrefix::read(s, folders))).collect();
        Prefixes { project: project.into(), by_label }
    }

    pub fn files(&self, spec: &Spec) -> &[(String, String)] {
        self.by_label.get(&spec.label()).map_or(&[], |p| &p.files)
    }

    /// Returns one line for the heading of a run, or `None` without a project.
    pub fn summary(&self) -> Option<String> {
        let (none, some): (Vec<_>, Vec<_>) =
            self.by_label.iter().partition(|(_, p)| p.files.is_empty());
        let mut all: Vec<String> = some.iter().map(|(l, p)| format!("{l} {}", p.summary)).collect();
        if !none.is_empty() {
            let labels: Vec<&str> = none.iter().map(|(l, _)| l.as_str()).collect();
            all.push(format!("none for {}", labels.join(", ")));
        }
        (!self.by_label.is_empty()).then(|| format!("from {}: {}", self.project, all.join("; ")))
    }

    /// Returns each distinct note, prefixed with the strategies that it concerns.
    pub fn notes(&self) -> Vec<String> {
        let mut labels: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (label, p) in &self.by_label {
            p.notes.iter().for_each(|n| labels.entry(n).or_default().push(label));
        }
        labels.into_iter().map(|(note, by)| format!("{}: {note}", by.join(", "))).collect()
    }
}

impl MemoryPrefix {
    fn read(spec: &Spec, folders: &ProjectFolders) -> MemoryPrefix {
        let (loaded, _) = load(spec, folders, &[]);
        let follows = matches!(spec.descriptor.files, MemoryFiles::Read { follows: true, .. });
        let mut files: Vec<(String, String)> = Vec::new();
        let (mut tokens, mut pending) = (0, 0);
        for f in &loaded.files {
            let path = folders.short_path(&f.path);
            let text = text(f);
            if f.when == Activation::Start {
                tokens += o200k(&f.text);
                files.push((path, text));
            } else if f.depth == 0 {
                pending += 1;
                if follows {
                    files.push((path, text));
                }
            } else if follows && let Some((_, importer)) = files.last_mut() {
                // Append the imports of a path-specific file to it.
                importer.push_str(&format!("\n\n# {path}\n\n{text}"));
            }
        }
        let suffix = match pending {
            0 => String::new(),
            n if follows => format!(", {n} of them for certain paths only"),
            n => format!(", {n} more for certain paths left out"),
        };
        let n = pluralize(files.len(), "file");
        let summary = format!("{n}, {tokens} tokens at the start{suffix}");
        let notes = loaded.notes.iter().map(|n| folders.shorten_paths(&n.to_string()));
        MemoryPrefix { files, summary, notes: notes.collect() }
    }
}

/// Restores the form on disk where the strategy itself truncates the file or parses its paths.
fn text(f: &MemoryFile) -> String {
    match (f.level, &f.scope) {
        (Level::Auto, _) => format!("{}{}", f.text, f.rest),
        (Level::Rules, Some(scope)) if f.depth == 0 => {
            let paths: Vec<String> =
                scope.patterns().iter().map(|p| format!("  - \"{p}\"\n")).collect();
            format!("---\npaths:\n{}---\n\n{}", paths.concat(), f.text)
        }
        _ => f.text.clone(),
    }
}
