//! Memory files of a project in the prefix of a session.

use std::collections::BTreeMap;

use ctxbench_core::plural::pluralize;
use ctxbench_core::tokens::o200k;
use ctxbench_kit::memory::{Level, MemoryFile, Site, Visit, When};
use ctxbench_strategies::Spec;
use ctxbench_strategies::descriptor::MemoryFiles;

use super::load;

/// What a product puts before the first message: path and text, as a session's own memory files
/// have them. A file for some paths says so by its place or its front matter, and the strategy
/// shows it with a file that it holds for.
#[derive(Clone, Debug, Default, PartialEq)]
struct MemoryPrefix {
    files: Vec<(String, String)>,
    told: String,
    notes: Vec<String>,
}

/// The prefix of each strategy of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prefixes {
    /// The project, as it was named.
    project: String,
    of: BTreeMap<String, MemoryPrefix>,
}

impl Prefixes {
    /// Reads what each strategy's product reads of a project.
    pub fn read(project: &str, site: &Site, specs: &[Spec]) -> Prefixes {
        let of = specs.iter().map(|s| (s.label(), MemoryPrefix::read(s, site)));
        Prefixes { project: project.into(), of: of.collect() }
    }

    /// Path and text of each file.
    pub fn files(&self, spec: &Spec) -> &[(String, String)] {
        self.of.get(&spec.label()).map_or(&[], |p| &p.files)
    }

    /// For the heading of a run; `None` = no project was named.
    pub fn told(&self) -> Option<String> {
        let (none, some): (Vec<_>, Vec<_>) = self.of.iter().partition(|(_, p)| p.files.is_empty());
        let mut all: Vec<String> = some.iter().map(|(l, p)| format!("{l} {}", p.told)).collect();
        if !none.is_empty() {
            let labels: Vec<&str> = none.iter().map(|(l, _)| l.as_str()).collect();
            all.push(format!("nothing for {}", labels.join(", ")));
        }
        (!self.of.is_empty()).then(|| format!("of {}: {}", self.project, all.join("; ")))
    }

    /// What was left out, and why, each once with the strategies that leave it out.
    pub fn notes(&self) -> Vec<String> {
        let mut told: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (label, p) in &self.of {
            p.notes.iter().for_each(|n| told.entry(n).or_default().push(label));
        }
        told.into_iter().map(|(note, by)| format!("{}: {note}", by.join(", "))).collect()
    }
}

impl MemoryPrefix {
    fn read(spec: &Spec, site: &Site) -> MemoryPrefix {
        let visit = Visit { site, touched: &[], approve: false };
        let (loaded, _) = load(spec, &visit);
        let follows = matches!(spec.descriptor.files, MemoryFiles::Read { follows: true, .. });
        let mut files: Vec<(String, String)> = Vec::new();
        let (mut tokens, mut waits) = (0, 0);
        for f in &loaded.files {
            let path = site.short(&f.path);
            let text = text(f);
            if f.when == When::Start {
                tokens += o200k(&f.text);
                files.push((path, text));
            } else if f.depth == 0 {
                waits += 1;
                if follows {
                    files.push((path, text));
                }
            } else if follows && let Some((_, importer)) = files.last_mut() {
                // What a file for some paths imports comes and goes with it.
                importer.push_str(&format!("\n\n# {path}\n\n{text}"));
            }
        }
        let waiting = match waits {
            0 => String::new(),
            n if follows => format!(", {n} of them for some paths only"),
            n => format!(", {n} more for some paths are left out"),
        };
        let n = pluralize(files.len(), "file");
        let told = format!("{n}, {tokens} tokens at the start{waiting}");
        let notes = loaded.notes.iter().map(|n| site.shorten(&n.to_string()));
        MemoryPrefix { files, told, notes: notes.collect() }
    }
}

/// As it stands on disk where the strategy does the cutting and reads the paths.
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
