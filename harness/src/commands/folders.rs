//! Folders in which agents keep their sessions.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

/// Where agents keep their sessions (`folders.toml` describes the columns).
#[derive(Deserialize)]
struct Folders {
    folders: Vec<[String; 4]>,
    desktop: Vec<[String; 2]>,
}

static FOLDERS: LazyLock<Folders> = LazyLock::new(|| {
    toml::from_str(include_str!("folders.toml")).expect("a test reads folders.toml")
});

/// Returns the places of this user, each with its agent.
pub(super) fn places() -> Vec<(&'static str, PathBuf)> {
    let home = std::env::home_dir().unwrap_or_default();
    let mut places = Vec::new();
    for [agent, name, default, below] in &FOLDERS.folders {
        let own = [[name.clone(), default.clone()]];
        for [name, default] in if name == "desktop" { &FOLDERS.desktop[..] } else { &own } {
            let given = std::env::var_os(name).filter(|value| !value.is_empty());
            let base = given.map_or_else(|| home.join(default), PathBuf::from);
            places.push((&**agent, base.join(below)));
        }
    }
    places
}

/// Returns the places that exist, each with its agent.
pub(super) fn found() -> Vec<(&'static str, PathBuf)> {
    let of = |(agent, place): (_, PathBuf)| matching(&place).into_iter().map(move |p| (agent, p));
    let mut found: Vec<(&str, PathBuf)> = places().into_iter().flat_map(of).collect();
    let is_database = |(_, path): &&(&str, PathBuf)| path.is_file();
    let databases: Vec<&str> = found.iter().filter(is_database).map(|(agent, _)| *agent).collect();
    found.retain(|(agent, path)| path.is_file() || !databases.contains(agent));
    found
}

/// Returns the names of all agents, in the order of the table.
pub(super) fn agents() -> Vec<&'static str> {
    let mut names: Vec<&str> = FOLDERS.folders.iter().map(|[agent, ..]| &**agent).collect();
    names.dedup();
    names
}

/// Returns the existing paths that match a pattern, sorted.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let name = part.as_os_str().to_string_lossy();
        let Some((begin, end)) = name.split_once('*') else {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        let children = |dir: &PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut next: Vec<PathBuf> = found.iter().flat_map(children).map(|c| c.path()).collect();
        next.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(begin) && name.ends_with(end)
        });
        next.sort();
        found = next;
    }
    found.retain(|path| path.exists());
    found
}
