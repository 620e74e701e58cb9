//! What a user names on the command line, turned into scenarios: a file of any known format, a
//! folder, a built-in name.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use ctxbench_core::files::{self, FileError};
use ctxbench_core::session::Entry;

use crate::error::{LoadError, Loaded};
use crate::formats::Format;
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

/// How files may end that are looked at in a folder.
const EXTENSIONS: &[&str] = &["toml", "jsonl", "json"];

/// How many scenarios may extend one another in a row.
const DEEPEST: usize = 8;

/// What stands for every built-in scenario.
pub const ALL: &str = "all";

/// What a path or a name stands for.
#[derive(Debug, Default)]
pub struct Found {
    /// By their paths.
    pub scenarios: Vec<Scenario>,
    /// Files of a folder that gave none: which, and why.
    pub skipped: Vec<(PathBuf, LoadError)>,
}

/// The scenarios that `name` stands for: a path, or else a built-in scenario's id, or `all` of
/// these.
pub fn load(name: &str) -> Result<Found, LoadError> {
    let path = Path::new(name);
    if path.exists() || name.contains(['/', '\\']) || has_extension(path, EXTENSIONS) {
        return load_path(path);
    }
    let scenarios = if name == ALL { builtin::all()? } else { vec![builtin::by_id(name)?] };
    Ok(Found { scenarios, ..Found::default() })
}

/// The scenarios in a session file, scenario file or recording, or in a folder and the folders
/// below it: files that end in `.toml`, `.jsonl` or `.json`. Hidden folders are left alone; of a
/// folder with a `scenario.toml` only this counts. What holds no session is skipped, unless nothing
/// is left. Sessions without facts get those of [`autofacts`].
pub fn load_path(path: &Path) -> Result<Found, LoadError> {
    if !path.is_dir() {
        return Ok(Found { scenarios: vec![load_file(path, 0)?], ..Found::default() });
    }
    let mut found = Found::default();
    let mut loaded: Vec<(PathBuf, Scenario)> = Vec::new();
    // Companions that a session took in are no sessions of their own.
    let mut taken: HashSet<PathBuf> = HashSet::new();
    for file in files_below(path, &mut found.skipped) {
        match load_with(&file, 0) {
            Ok((scenario, with)) => {
                taken.extend(with);
                loaded.push((file, scenario));
            }
            Err(e) => found.skipped.push((file, e)),
        }
    }
    loaded.retain(|(file, _)| !taken.contains(file));
    found.skipped.retain(|(file, _)| !taken.contains(file));
    if loaded.is_empty() {
        let first = found.skipped.into_iter().next();
        return Err(first.map_or_else(
            || unknown(path, "a folder with .toml, .jsonl or .json files of a known format"),
            |(_, e)| e,
        ));
    }
    name_apart(path, &mut loaded);
    found.scenarios = loaded.into_iter().map(|(_, scenario)| scenario).collect();
    Ok(found)
}

/// The files of a folder and of those below it that may hold a session, by their paths.
fn files_below(folder: &Path, skipped: &mut Vec<(PathBuf, LoadError)>) -> Vec<PathBuf> {
    let mut scenarios = Vec::new();
    let enter = |below: &Path| {
        let scenario = below.join(SCENARIO_FILE);
        let hidden = file_name(below).starts_with('.');
        let whole = !hidden && scenario.is_file();
        if whole {
            scenarios.push(scenario);
        }
        !hidden && !whole
    };
    let unread = |e: FileError| skipped.push((folder.to_path_buf(), e.into()));
    let mut files = files::walk_into(folder, enter, unread);
    files.retain(|file| has_extension(file, EXTENSIONS));
    files.extend(scenarios);
    files.sort();
    files
}

/// Where files in several folders would give sessions of one name, these are named by their paths.
fn name_apart(folder: &Path, loaded: &mut [(PathBuf, Scenario)]) {
    let mut names: HashMap<String, usize> = HashMap::new();
    loaded.iter().for_each(|(_, s)| *names.entry(s.id.clone()).or_default() += 1);
    for (file, scenario) in loaded {
        if names.get(&scenario.id).is_none_or(|n| *n < 2) {
            continue;
        }
        let below = file.strip_prefix(folder).unwrap_or(file).with_extension("");
        let parts: Vec<_> = below.iter().map(|p| p.to_string_lossy()).collect();
        scenario.id = parts.join("-");
        scenario.session.header.id.clone_from(&scenario.id);
    }
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
    let (mut scenario, with) = match sniff(&bytes, &path.to_string_lossy()) {
        Some(Kind::Recording(name)) => {
            let (loaded, with) = recording(formats::by_name(name)?, path, &bytes)?;
            (Scenario::of_session(loaded), with)
        }
        _ => {
            let folder = path.parent().unwrap_or(Path::new("."));
            let beside = OnDisk { folder, depth, read: RefCell::default() };
            let scenario = of_bytes(&bytes, path, &beside)?;
            (Scenario { files: beside.read.into_inner(), ..scenario }, vec![])
        }
    };
    scenario.files.extend(with.iter().cloned().chain([path.to_path_buf()]));
    if !scenario.session.entries.iter().any(Entry::is_message) {
        let (path, id) = (path.to_path_buf(), scenario.id);
        return Err(LoadError::NoMessages { path, id });
    }
    Ok((scenario, with))
}

/// The session in a recording, with the files beside it that belong to it, which it also returns.
pub fn recording(
    format: &Format,
    path: &Path,
    bytes: &[u8],
) -> Result<(Loaded, Vec<PathBuf>), LoadError> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    let with = (format.companions)(path, text);
    let others = with
        .iter()
        .map(|p| std::fs::read_to_string(p).map_err(|e| io(p, e)))
        .collect::<Result<Vec<String>, LoadError>>()?;
    let mut loaded = format.import_with(text, &others, &file_name(path))?;
    if !with.is_empty() {
        let names: Vec<String> = with.iter().map(|p| p.display().to_string()).collect();
        loaded.warnings.push(format!(
            "{} files beside it belong to it, and line numbers are those of all together: {}",
            names.len(),
            names.join(", ")
        ));
    }
    Ok((loaded, with))
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map_or_else(|| path.display().to_string(), |f| f.to_string_lossy().into_owned())
}

/// Reads what a file holds that has no others beside it: a session, a scenario or a recording.
/// `name` decides for scenarios, and messages show it.
pub fn parse(bytes: &[u8], name: &str) -> Result<Scenario, LoadError> {
    of_bytes(bytes, Path::new(name), &Alone)
}

fn of_bytes(bytes: &[u8], path: &Path, beside: &dyn Beside) -> Result<Scenario, LoadError> {
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
            let text = String::from_utf8_lossy(bytes);
            let text = text.trim_start_matches('\u{feff}');
            formats::by_name(name)?.import(text, &file_name(path))?
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
    /// What was read so far.
    read: RefCell<Vec<PathBuf>>,
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
        let path = self.folder.join(name);
        let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        self.read.borrow_mut().push(path);
        Ok(text)
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
        let base = load_file(&path, self.depth + 1)
            .map_err(|e| (format!("cannot extend {name:?}: {e}"), fix))?;
        self.read.borrow_mut().extend(base.files.iter().cloned());
        Ok(base)
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
