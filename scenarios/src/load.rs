//! What a user names on the command line, turned into scenarios: a file of any known format, a
//! folder, a built-in name.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::error::{LoadError, Loaded};
use crate::scenario::{self, Beside, Scenario};
use crate::{autofacts, builtin, formats, jsonl};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Session JSONL.
    Session,
    /// Scenario TOML.
    Scenario,
    /// A recording; the format's name.
    Recording(&'static str),
}

/// The file of a scenario that has its own folder.
const SCENARIO_FILE: &str = "scenario.toml";

/// How many scenarios may extend one another in a row.
const DEEPEST: usize = 8;

/// What stands for every built-in scenario.
pub const ALL: &str = "all";

/// The scenarios that `name` stands for: a path, or else a built-in scenario's id, or `all` of
/// these.
pub fn load(name: &str) -> Result<Vec<Scenario>, LoadError> {
    let path = Path::new(name);
    if path.exists()
        || name.contains(['/', '\\'])
        || has_extension(path, &["toml", "jsonl", "json"])
    {
        return load_path(path);
    }
    if name == ALL {
        return builtin::all();
    }
    Ok(vec![builtin::by_id(name)?])
}

/// The scenarios in a session file, scenario file or recording, or in a folder: its files that end
/// in `.toml`, `.jsonl` or `.json`, and the folders in it that hold a `scenario.toml`, by name.
/// Sessions without facts get those of [`autofacts`].
pub fn load_path(path: &Path) -> Result<Vec<Scenario>, LoadError> {
    if !path.is_dir() {
        return Ok(vec![load_file(path, 0)?]);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for item in std::fs::read_dir(path).map_err(|e| io(path, e))? {
        let item = item.map_err(|e| io(path, e))?.path();
        if item.is_dir() && item.join(SCENARIO_FILE).is_file() {
            files.push(item.join(SCENARIO_FILE));
        } else if item.is_file() && has_extension(&item, &["toml", "jsonl", "json"]) {
            files.push(item);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(unknown(path, "a folder with .toml, .jsonl or .json files of a known format"));
    }
    let mut loaded = Vec::new();
    for file in &files {
        let (scenario, with) = load_with(file, 0)?;
        loaded.push((file, scenario, with));
    }
    // Subagents' files that a session took in are no sessions of their own.
    let taken: HashSet<PathBuf> = loaded.iter().flat_map(|(_, _, with)| with.clone()).collect();
    Ok(loaded
        .into_iter()
        .filter(|(file, _, _)| !taken.contains(*file))
        .map(|(_, scenario, _)| scenario)
        .collect())
}

/// What the content of a file is; `name` is its name, which only decides for scenarios.
pub fn sniff(bytes: &[u8], name: &str) -> Option<Kind> {
    if has_extension(Path::new(name), &["toml"]) {
        return Some(Kind::Scenario);
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    if let Some(format) = formats::detect(text) {
        return Some(Kind::Recording(format.name));
    }
    let (_, first) = jsonl::numbered(text).next()?;
    let about_session =
        match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(first) {
            Ok(object) => object.get("type").is_some_and(|t| t == "session"),
            Err(_) => first.starts_with('{') && first.contains("\"session\""),
        };
    (about_session || has_extension(Path::new(name), &["jsonl"])).then_some(Kind::Session)
}

fn load_file(path: &Path, depth: usize) -> Result<Scenario, LoadError> {
    load_with(path, depth).map(|(scenario, _)| scenario)
}

/// A file, and the files beside it that belong to the same session, such as those of subagents.
fn load_with(path: &Path, depth: usize) -> Result<(Scenario, Vec<PathBuf>), LoadError> {
    let bytes = std::fs::read(path).map_err(|e| io(path, e))?;
    let with = match sniff(&bytes, &path.to_string_lossy()) {
        Some(Kind::Recording(name)) => {
            (formats::by_name(name)?.companions)(path, &String::from_utf8_lossy(&bytes))
        }
        _ => vec![],
    };
    let others: Vec<String> = with
        .iter()
        .map(|p| std::fs::read_to_string(p).map_err(|e| io(p, e)))
        .collect::<Result<_, LoadError>>()?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut scenario = of_bytes(&bytes, &others, path, &OnDisk { folder, depth })?;
    if !with.is_empty() {
        let names: Vec<String> = with.iter().map(|p| p.display().to_string()).collect();
        scenario.warnings.push(format!(
            "its subagents stand in {} files beside it and are part of it; line numbers are those \
             of all together: {}",
            names.len(),
            names.join(", ")
        ));
    }
    Ok((scenario, with))
}

/// Reads what a file holds that has no others beside it: a session, a scenario or a recording.
/// `name` decides for scenarios, and messages show it.
pub fn parse(bytes: &[u8], name: &str) -> Result<Scenario, LoadError> {
    of_bytes(bytes, &[], Path::new(name), &Alone)
}

/// Reads a file; `others` = the texts of a recording's companions.
fn of_bytes(
    bytes: &[u8],
    others: &[String],
    path: &Path,
    beside: &dyn Beside,
) -> Result<Scenario, LoadError> {
    let shown = path.display().to_string();
    let loaded: Loaded = match sniff(bytes, &shown) {
        Some(Kind::Scenario) => {
            let text = std::str::from_utf8(bytes)
                .map_err(|_| unknown(path, "a scenario in TOML as UTF-8 text"))?;
            return Ok(scenario::read(text, &shown, beside)?);
        }
        Some(Kind::Session) => {
            let mut loaded = jsonl::read(bytes, &shown)?;
            autofacts::add(&mut loaded.session);
            loaded
        }
        Some(Kind::Recording(name)) => {
            let file = path
                .file_name()
                .map_or_else(|| shown.clone(), |f| f.to_string_lossy().into_owned());
            let text = String::from_utf8_lossy(bytes);
            let text = text.trim_start_matches('\u{feff}');
            formats::by_name(name)?.import_with(text, others, &file)?
        }
        None => {
            return Err(unknown(
                path,
                &format!(
                    "Session JSONL, a scenario .toml, or a recording of {}",
                    formats::names().join(", ")
                ),
            ));
        }
    };
    Ok(Scenario::of_session(loaded))
}

struct Alone;

impl Beside for Alone {
    fn text(&self, _name: &str) -> Result<String, String> {
        Err("there are no files beside it".into())
    }

    fn base(&self, name: &str) -> Result<Scenario, (String, String)> {
        Err((
            format!("there is no {name:?} beside it"),
            format!("name one of {}", builtin::IDS.join(", ")),
        ))
    }
}

struct OnDisk<'a> {
    folder: &'a Path,
    depth: usize,
}

impl Beside for OnDisk<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        // A scenario from elsewhere must not be able to show files of this machine.
        let inside = std::path::Path::new(name)
            .components()
            .all(|c| matches!(c, std::path::Component::Normal(_)));
        if !inside {
            return Err("it lies outside the scenario's folder".into());
        }
        std::fs::read_to_string(self.folder.join(name)).map_err(|e| e.to_string())
    }

    fn base(&self, name: &str) -> Result<Scenario, (String, String)> {
        if self.depth >= DEEPEST {
            return Err((
                format!("{name:?} is the {DEEPEST}th scenario in a row that extends another"),
                "break the circle".to_string(),
            ));
        }
        let path = self.folder.join(name);
        let path = if path.is_dir() { path.join(SCENARIO_FILE) } else { path };
        let fix = format!("name a file or one of {}", builtin::IDS.join(", "));
        load_file(&path, self.depth + 1).map_err(|e| (format!("cannot extend {name:?}: {e}"), fix))
    }
}

fn has_extension(path: &Path, known: &[&str]) -> bool {
    path.extension()
        .and_then(|e| e.to_str())
        .is_some_and(|e| known.contains(&e.to_ascii_lowercase().as_str()))
}

fn io(path: &Path, source: std::io::Error) -> LoadError {
    LoadError::Io { path: path.to_path_buf(), source }
}

fn unknown(path: &Path, expected: &str) -> LoadError {
    LoadError::Unknown { path: path.to_path_buf(), expected: expected.to_string() }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
