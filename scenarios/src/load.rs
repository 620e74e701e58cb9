//! Reads one file of any known format.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};

use ctxbench_session::Entry;
use ctxbench_util::nearest;

use crate::error::{InputError, LoadError, Loaded};
use crate::formats::source::{below, numbered, unpacked};
use crate::formats::{Archive, Head, SearchedFolders, Source};
use crate::scenario::{self, Companions, Scenario, no_base};
use crate::{builtin, escapes, formats, jsonl};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    Session,
    Scenario,
    /// A recording, with the name of its format.
    Recording(&'static str),
}

pub(crate) const SCENARIO_FILE: &str = "scenario.toml";

/// Extensions of files that may contain sessions.
const EXTENSIONS: &[&str] = &["toml", "jsonl", "json"];

/// Maximum length of a chain of scenarios that extend one another.
const DEEPEST: usize = 8;

/// Returns whether a file name has the extension of session files.
pub(crate) fn named_session(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
    has_extension(Path::new(unpacked(&name)), EXTENSIONS) || has_extension(path, &["zip"])
}

/// Returns whether a TOML file is a scenario and not, for example, a manifest.
pub(crate) fn is_scenario(text: &str) -> bool {
    let key = |line: &str| line.split_whitespace().collect::<String>();
    text.lines().map(key).any(|k| k.starts_with("[[step]]") || k.starts_with("extends="))
}

/// Returns whether a file may contain sessions, judged by its name or its format. Also true for
/// compressed files that cannot be read, so that the error is reported. Most TOML files are not
/// scenarios.
pub(crate) fn may_hold_sessions(name: &Path, source: &Source<'_>) -> bool {
    let file = name.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
    let toml = unpacked(&file).to_lowercase().ends_with(".toml");
    if named_session(name) && !toml {
        return true;
    }
    match source.head() {
        Ok(head) if toml => is_scenario(&head.text),
        Ok(head) => formats::detect_head(&head).is_some(),
        Err(_) => {
            let log = file.to_lowercase().ends_with(".eval");
            named_session(name) || log || unpacked(&file) != file
        }
    }
}

pub fn sniff(source: &Source<'_>) -> Option<InputKind> {
    kind(&source.head().ok()?)
}

/// Returns whether a first line is a header, or one of the other lines of a session file whose header
/// is missing or misspelt.
fn is_line_of_session(object: serde_json::Map<String, serde_json::Value>, is_named: bool) -> bool {
    let kind = object.get("type").and_then(|t| t.as_str()).unwrap_or_default();
    if kind == "session" || !is_named {
        return kind == "session";
    }
    let misspelt = object.contains_key("version") && object.contains_key("id");
    misspelt || serde_json::from_value::<Entry>(object.into()).is_ok()
}

fn kind(head: &Head) -> Option<InputKind> {
    let name = Path::new(&head.name);
    // A pipe has no file extension.
    let nameless = name.extension().is_none() && is_scenario(&head.text);
    if head.entries.is_none() && (has_extension(name, &["toml"]) || nameless) {
        return Some(InputKind::Scenario);
    }
    if let Some(format) = formats::detect_head(head) {
        return Some(InputKind::Recording(format.name));
    }
    if formats::foreign_program(head).is_some() {
        return None;
    }
    let (_, first) = numbered(&head.text).next()?;
    let about_session = match escapes::from_str::<serde_json::Map<String, serde_json::Value>>(first)
    {
        Ok(object) => is_line_of_session(object, has_extension(name, &["jsonl"])),
        Err(_) => {
            has_extension(name, &["jsonl"])
                || first.starts_with('{') && first.contains("\"session\"")
        }
    };
    about_session.then_some(InputKind::Session)
}

/// Receives a scenario (without found facts) or an error, with its location; `Break` ends the
/// reading.
pub type Take<'a> = dyn FnMut(&Path, Result<Scenario, LoadError>) -> ControlFlow<()> + 'a;

/// Reads a file like [`Corpus::read`](crate::Corpus::read).
pub(crate) fn read(
    path: &Path,
    searched: &SearchedFolders,
    take: &mut Take<'_>,
) -> ControlFlow<()> {
    load_with(&Source::at(path).within(searched), path, &[], take)
}

/// Reads the sessions of a file. `extending` contains the scenarios that extend it, the outermost
/// first.
fn load_with(
    source: &Source<'_>,
    path: &Path,
    extending: &[PathBuf],
    take: &mut Take<'_>,
) -> ControlFlow<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let row = extending.iter().cloned().chain([path.to_path_buf()]).collect();
    let beside = CompanionFiles { folder: Some(folder), row, read: RefCell::default() };
    of_source(source, path, &beside, &mut |place, one| {
        let one = one.map(|scenario| {
            let read = beside.read.take().into_iter();
            let files = read.chain(scenario.files).chain([path.to_path_buf()]).collect();
            Scenario { files, ..scenario }
        });
        take(place, one.and_then(|scenario| with_messages(scenario, place)))
    })
}

/// Reads a source without companion files, such as standard input. Messages use `place` as its
/// name.
pub fn read_source(source: &Source<'_>, place: &Path, take: &mut Take<'_>) -> ControlFlow<()> {
    of_source(source, place, &CompanionFiles::default(), &mut |place, one| {
        take(place, one.and_then(|scenario| with_messages(scenario, place)))
    })
}

fn with_messages(scenario: Scenario, place: &Path) -> Result<Scenario, LoadError> {
    if scenario.session.entries.iter().any(Entry::is_message) {
        return Ok(scenario);
    }
    Err(LoadError::NoMessages { path: place.to_path_buf(), id: scenario.id })
}

/// Reads bytes without companion files: one session, scenario or recording. `name` identifies
/// scenarios and appears in messages.
pub fn parse(bytes: &[u8], name: &str) -> Result<Scenario, LoadError> {
    let (source, path) = (Source::of_bytes(bytes, name), Path::new(name));
    single(path, |take| of_source(&source, path, &CompanionFiles::default(), take))
}

/// Returns the only scenario that `read` passes on, with its facts, or an error for several.
fn single(
    path: &Path,
    read: impl FnOnce(&mut Take<'_>) -> ControlFlow<()>,
) -> Result<Scenario, LoadError> {
    let mut all = Vec::new();
    let _ = read(&mut |_, one| {
        all.push(one);
        ControlFlow::Continue(())
    });
    match (all.len(), all.pop()) {
        (1, Some(one)) => one.map(|mut scenario| {
            scenario.find_facts();
            scenario
        }),
        (n, _) => Err(unknown(path, &format!("one session, and not {n}"))),
    }
}

/// Passes the sessions of a source to `take`, and an error where it cannot be read any further.
fn of_source(
    source: &Source<'_>,
    path: &Path,
    beside: &dyn Companions,
    take: &mut Take<'_>,
) -> ControlFlow<()> {
    match try_source(source, path, beside, take) {
        Ok(flow) => flow,
        Err(e) => take(path, Err(e)),
    }
}

fn try_source(
    source: &Source<'_>,
    path: &Path,
    beside: &dyn Companions,
    take: &mut Take<'_>,
) -> Result<ControlFlow<()>, LoadError> {
    let shown = path.display().to_string();
    let head = source.head().map_err(|e| {
        // The operating system's message, with the whole path.
        let missing = source.path().and_then(|path| std::fs::metadata(path).err());
        missing.map_or(LoadError::from(e), |missing| io(path, missing))
    })?;
    let (kind, is_archive) = (kind(&head), head.members.is_some());
    let is_blank = head.text.trim().is_empty();
    let foreign = if kind.is_none() { formats::foreign_program(&head) } else { None };
    // Frees a long beginning before the rest is read.
    drop(head);
    let mut flow = ControlFlow::Continue(());
    let mut pass = |loaded: Result<Loaded, InputError>| {
        flow = take(path, loaded.map(Scenario::of_session).map_err(LoadError::from));
        flow
    };
    match kind {
        Some(InputKind::Scenario) => {
            let mut bytes = Vec::new();
            source.open()?.read_to_end(&mut bytes).map_err(|e| io(path, e))?;
            if bytes.trim_ascii().is_empty() {
                return Err(LoadError::Empty { path: path.to_path_buf() });
            }
            let text = std::str::from_utf8(&bytes)
                .map_err(|_| unknown(path, "a scenario in TOML as UTF-8 text"))?;
            return Ok(take(path, Ok(scenario::read(text, &shown, beside)?)));
        }
        Some(InputKind::Session) => {
            jsonl::read_each(source.utf8()?, &shown, &mut pass);
        }
        Some(InputKind::Recording(name)) => {
            let format = formats::by_name(name).expect("it was detected");
            format.import(source, pass);
        }
        None if is_archive => {
            if let Some(archive) = source.archive()? {
                return of_members(&archive, path, take);
            }
        }
        None if let Some(program) = foreign => {
            let why = format!("a recording of {program}, which ctxbench does not read");
            return Err(LoadError::Unknown { path: path.to_path_buf(), why });
        }
        None if is_blank => {
            return Err(LoadError::Empty { path: path.to_path_buf() });
        }
        None => {
            return Err(unknown(
                path,
                "Session JSONL, a scenario .toml, or a recording in one of the formats that \
                 `ctxbench import --help` lists",
            ));
        }
    }
    Ok(flow)
}

/// Reads the sessions of an archive member by member, if the archive itself is not a recording.
fn of_members(
    archive: &Archive,
    path: &Path,
    take: &mut Take<'_>,
) -> Result<ControlFlow<()>, LoadError> {
    let parts = |name: &String| Some(formats::parts(&archive.member(name).ok()?));
    let parts: HashSet<PathBuf> = archive.names().iter().filter_map(parts).flatten().collect();
    let mut any = false;
    for name in archive.names().iter().filter(|name| !parts.contains(Path::new(name))) {
        let place = path.join(below(name));
        let flow = match archive.member(name) {
            Err(e) => take(&place, Err(e.into())),
            Ok(member) if may_hold_sessions(Path::new(name), &member) => {
                // Companions are no files on disk.
                let mut take = |place: &Path, one: Result<Scenario, LoadError>| {
                    take(place, one.map(|scenario| Scenario { files: vec![], ..scenario }))
                };
                of_source(&member, &place, &CompanionFiles::default(), &mut take)
            }
            Ok(_) => continue,
        };
        any = true;
        if flow.is_break() {
            return Ok(flow);
        }
    }
    if any { Ok(ControlFlow::Continue(())) } else { Err(nothing_in(path)) }
}

/// Reason why companion files are missing.
const ALONE: &str =
    "a scenario in an archive or a pipe cannot use other files; unpack it into a folder";

#[derive(Default)]
struct CompanionFiles<'a> {
    /// Folder of the source. `None` = the source is not on disk and has no companions.
    folder: Option<&'a Path>,
    /// Chain of scenarios that extend one another, ending with this one.
    row: Vec<PathBuf>,
    /// Files read so far.
    read: RefCell<Vec<PathBuf>>,
}

impl Companions for CompanionFiles<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        // A foreign scenario must not be able to show files of this machine.
        if !Path::new(name).components().all(|c| matches!(c, Component::Normal(_))) {
            return Err("it lies outside the scenario's folder".into());
        }
        let path = self.folder.ok_or(ALONE)?.join(name);
        let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        self.read.borrow_mut().push(path);
        Ok(text)
    }

    fn base(&self, name: &str) -> Result<Scenario, InputError> {
        if builtin::IDS.contains(&name) {
            return builtin::base(name);
        }
        let Some(folder) = self.folder else {
            return Err(no_base(format!("cannot extend {name:?}: {ALONE}"), another(name)));
        };
        let path = folder.join(name);
        let path = if path.is_dir() { path.join(SCENARIO_FILE) } else { path };
        let place = |path: &Path| std::fs::canonicalize(path).ok();
        if place(&path).is_some_and(|at| self.row.iter().any(|p| place(p).is_some_and(|p| p == at)))
        {
            let circle: Vec<String> =
                self.row.iter().chain([&path]).map(|p| p.display().to_string()).collect();
            let what = format!("it extends itself: {}", circle.join(" extends "));
            return Err(no_base(what, "break the circle"));
        }
        if self.row.len() > DEEPEST {
            let what = format!("{name:?} is extended over more than {DEEPEST} scenarios");
            return Err(no_base(what, "extend one that extends fewer"));
        }
        let base = single(&path, |take| load_with(&Source::at(&path), &path, &self.row, take))
            .map_err(|e| match e {
                LoadError::Input(e) => e,
                e => no_base(format!("cannot extend {name:?}: {e}"), another(name)),
            })?;
        self.read.borrow_mut().extend(base.files.iter().cloned());
        Ok(base)
    }
}

fn another(name: &str) -> String {
    let otherwise = "name a file, or a scenario of `ctxbench list scenarios`";
    nearest::hint_or(name, &builtin::IDS, otherwise)
}

fn has_extension(path: &Path, known: &[&str]) -> bool {
    path.extension()
        .and_then(|e| e.to_str())
        .is_some_and(|e| known.contains(&e.to_ascii_lowercase().as_str()))
}

fn io(path: &Path, source: std::io::Error) -> LoadError {
    LoadError::Io { path: path.to_path_buf(), source }
}

/// Returns the error for a folder or an archive without a session.
pub(crate) fn nothing_in(path: &Path) -> LoadError {
    let is_empty = path.read_dir().is_ok_and(|mut all| all.next().is_none());
    let problem = if is_empty { "the folder is empty" } else { "no session in it" };
    let why = format!(
        "{problem}; expected session files (.jsonl, .json, .toml), databases of agents, or archives \
         of them, also in folders below"
    );
    LoadError::Unknown { path: path.to_path_buf(), why }
}

pub(crate) fn unknown(path: &Path, expected: &str) -> LoadError {
    let why = format!("not a format that ctxbench reads; expected {expected}");
    LoadError::Unknown { path: path.to_path_buf(), why }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
