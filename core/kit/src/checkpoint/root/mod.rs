//! The session's folder, and nothing else: no link is followed on the way to a file, and no path
//! leads out of it.

// Tested everywhere.
#[cfg(any(test, not(unix)))]
mod paths;
#[cfg(unix)]
mod unix;

use std::io;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

#[cfg(not(unix))]
use paths::Folder;
#[cfg(unix)]
use unix::Folder;

/// Why a path is not touched.
#[derive(Debug, Error)]
pub enum Why {
    /// No name at all.
    #[error("it names no file; give a path below the session's folder")]
    Empty,
    /// It goes up.
    #[error("it contains `..`; name the file by its path below the session's folder")]
    Parent,
    /// It begins elsewhere.
    #[error("it lies outside {0}; only files below it can be restored")]
    Outside(PathBuf),
    /// It cannot be a file name.
    #[error("it contains a zero byte, which no file name can")]
    ZeroByte,
    /// A link stands in the way.
    #[error("`{0}` is a symbolic link, which is not followed; replace it by what it points to")]
    Symlink(String),
    /// Something that is no folder stands in the way.
    #[error("`{0}` is not a folder")]
    NotAFolder(String),
    /// A folder, device, socket or pipe stands there.
    #[error("it is not a regular file")]
    NotRegular,
    /// The system refused.
    #[error("could not {0} ({1})")]
    Io(&'static str, io::Error),
}

/// A path that is not touched, and why.
#[derive(Debug, Error)]
#[error("{path}: {why}")]
pub struct PathError {
    /// The path as it was given.
    pub path: String,
    /// The reason.
    pub why: Why,
}

impl PathError {
    /// Whether a rule forbids the path, rather than the system having failed.
    pub fn is_refusal(&self) -> bool {
        !matches!(self.why, Why::Io(..))
    }
}

/// A path below the session's folder, checked by its words; what stands on disk is checked at each
/// use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SafePath(String);

impl SafePath {
    /// Parts joined by `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn refuse(&self, why: Why) -> PathError {
        PathError { path: self.0.clone(), why }
    }

    fn failed<E: Into<io::Error>>(&self, action: &'static str) -> impl FnOnce(E) -> PathError {
        let path = self.0.clone();
        move |e| PathError { path, why: Why::Io(action, e.into()) }
    }
}

/// A file as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its permission bits, 0 to 0o777; 0o644 where the system has none.
    pub mode: u32,
}

/// The session's folder.
#[derive(Debug)]
pub struct Root {
    dir: PathBuf,
    folder: Folder,
}

impl Root {
    /// Opens a folder; links on the way to the folder itself are resolved once, here.
    pub fn open(dir: &Path) -> Result<Root, PathError> {
        let error = |why| PathError { path: dir.display().to_string(), why };
        let resolved = dir.canonicalize().map_err(|e| error(Why::Io("resolve it", e)))?;
        let dir = plain(resolved);
        let folder = Folder::open(&dir).map_err(|e| error(Why::Io("open it", e)))?;
        Ok(Root { dir, folder })
    }

    /// The folder's path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Checks the words of a path: relative, or absolute below the folder, and nowhere `..`.
    pub fn resolve(&self, path: &str) -> Result<SafePath, PathError> {
        let refuse = |why| Err(PathError { path: path.to_string(), why });
        if path.contains('\0') {
            return refuse(Why::ZeroByte);
        }
        let mut below = Path::new(path);
        if below.components().any(|c| c == Component::ParentDir) {
            return refuse(Why::Parent);
        }
        if below.is_absolute() {
            match below.strip_prefix(&self.dir) {
                Ok(rest) => below = rest,
                Err(_) => return refuse(Why::Outside(self.dir.clone())),
            }
        }
        // Only the name of a drive or a `\\` in front is left of those, which would lead elsewhere.
        if below.components().any(|c| matches!(c, Component::Prefix(_) | Component::RootDir)) {
            return refuse(Why::Outside(self.dir.clone()));
        }
        // The path came as a string, so its parts are strings.
        let parts: Vec<&str> = below
            .components()
            .filter(|c| *c != Component::CurDir)
            .filter_map(|c| c.as_os_str().to_str())
            .collect();
        if parts.is_empty() { refuse(Why::Empty) } else { Ok(SafePath(parts.join("/"))) }
    }

    /// What stands at a path; `None` = nothing.
    pub fn read(&self, path: &SafePath) -> Result<Option<Content>, PathError> {
        self.folder.read(path)
    }

    /// Puts a file in place at once, folders on the way included. A hard link to elsewhere is
    /// broken and not written through.
    pub fn write(&self, path: &SafePath, content: &Content) -> Result<(), PathError> {
        self.folder.write(path, content)
    }

    /// Removes a regular file; nothing there is fine.
    pub fn remove(&self, path: &SafePath) -> Result<(), PathError> {
        self.folder.remove(path)
    }
}

/// A resolved path as programs write it: on Windows that has a prefix of its own, which git does not
/// take.
fn plain(path: PathBuf) -> PathBuf {
    let plain = path.to_str().and_then(|p| p.strip_prefix(r"\\?\"));
    // What has no drive in front, such as a share, has no other form.
    let plain = plain.filter(|p| p.as_bytes().get(1) == Some(&b':')).map(PathBuf::from);
    plain.filter(|_| cfg!(windows)).unwrap_or(path)
}

/// Names tried beside a file: more writers than this at once, or as many files of somebody else's,
/// and the write is refused.
const NAMES: u32 = 1_000;

/// The name of a file that is written beside another.
fn beside_name(n: u32) -> String {
    format!(".ctxbench-restore-{n}.tmp")
}
