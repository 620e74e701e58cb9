//! File access inside a session's folder. Never follows links and never leaves the folder.

// Compiled for tests on every system.
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

/// Reason why a path is not touched.
#[derive(Debug, Error)]
pub enum PathErrorKind {
    /// The path is empty.
    #[error("the path is empty; use a path below the session's folder")]
    Empty,
    /// The path contains `..`.
    #[error("the path contains `..`; use a path below the session's folder")]
    Parent,
    /// The path is outside the folder.
    #[error("the path is outside {0}; only files below it can be restored")]
    Outside(PathBuf),
    /// The path contains a zero byte.
    #[error("the path contains a zero byte")]
    ZeroByte,
    /// A component of the path is a link.
    #[error("`{0}` is a symbolic link, which is not followed; replace it by its target")]
    Symlink(String),
    /// A parent of the path is not a folder.
    #[error("`{0}` is not a folder")]
    NotAFolder(String),
    /// The path is a folder, device, socket or pipe.
    #[error("not a regular file")]
    NotRegular,
    /// I/O error, with the failed action.
    #[error("could not {0} ({1})")]
    Io(&'static str, io::Error),
}

/// A path that is not touched.
#[derive(Debug, Error)]
#[error("{path}: {kind}")]
pub struct PathError {
    /// The path as given.
    pub path: String,
    pub kind: PathErrorKind,
}

impl PathError {
    /// Returns true if the path is forbidden, as opposed to an I/O error.
    pub fn is_refusal(&self) -> bool {
        !matches!(self.kind, PathErrorKind::Io(..))
    }
}

/// A relative path without `..`. Links on disk are checked at each use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SafePath(String);

impl SafePath {
    /// Returns the components joined by `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn refuse(&self, kind: PathErrorKind) -> PathError {
        PathError { path: self.0.clone(), kind }
    }

    fn failed<E: Into<io::Error>>(&self, action: &'static str) -> impl FnOnce(E) -> PathError {
        let path = self.0.clone();
        move |e| PathError { path, kind: PathErrorKind::Io(action, e.into()) }
    }
}

/// Content and permissions of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    pub bytes: Vec<u8>,
    /// Permission bits, 0 to 0o777; 0o644 on systems without them.
    pub mode: u32,
}

/// A session's folder.
#[derive(Debug)]
pub struct Root {
    dir: PathBuf,
    folder: Folder,
}

impl Root {
    /// Opens a folder. Resolves links in the path of the folder itself once.
    pub fn open(dir: &Path) -> Result<Root, PathError> {
        let error = |kind| PathError { path: dir.display().to_string(), kind };
        let resolved = dir.canonicalize().map_err(|e| error(PathErrorKind::Io("resolve it", e)))?;
        let dir = strip_verbatim_prefix(resolved);
        let folder = Folder::open(&dir).map_err(|e| error(PathErrorKind::Io("open it", e)))?;
        Ok(Root { dir, folder })
    }

    /// Returns the path of the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Checks a path, which must be relative or below the folder and without `..`. Does not access
    /// the disk.
    pub fn resolve(&self, path: &str) -> Result<SafePath, PathError> {
        let refuse = |kind| Err(PathError { path: path.to_string(), kind });
        if path.contains('\0') {
            return refuse(PathErrorKind::ZeroByte);
        }
        let mut below = Path::new(path);
        if below.components().any(|c| c == Component::ParentDir) {
            return refuse(PathErrorKind::Parent);
        }
        if below.is_absolute() {
            match below.strip_prefix(&self.dir) {
                Ok(rest) => below = rest,
                Err(_) => return refuse(PathErrorKind::Outside(self.dir.clone())),
            }
        }
        // A drive or a leading `\\` would lead outside the folder.
        if below.components().any(|c| matches!(c, Component::Prefix(_) | Component::RootDir)) {
            return refuse(PathErrorKind::Outside(self.dir.clone()));
        }
        // `path` is a string, so its components are valid UTF-8.
        let parts: Vec<&str> = below
            .components()
            .filter(|c| *c != Component::CurDir)
            .filter_map(|c| c.as_os_str().to_str())
            .collect();
        if parts.is_empty() { refuse(PathErrorKind::Empty) } else { Ok(SafePath(parts.join("/"))) }
    }

    /// Reads a file; `None` if it does not exist.
    pub fn read(&self, path: &SafePath) -> Result<Option<FileContent>, PathError> {
        self.folder.read(path)
    }

    /// Replaces a file atomically and creates missing folders. Breaks hard links instead of writing
    /// through them.
    pub fn write(&self, path: &SafePath, content: &FileContent) -> Result<(), PathError> {
        self.folder.write(path, content)
    }

    /// Removes a regular file, if it exists.
    pub fn remove(&self, path: &SafePath) -> Result<(), PathError> {
        self.folder.remove(path)
    }
}

/// Removes the verbatim prefix `\\?\` of canonical paths on Windows, which git does not accept.
fn strip_verbatim_prefix(path: PathBuf) -> PathBuf {
    let plain = path.to_str().and_then(|p| p.strip_prefix(r"\\?\"));
    // A path without a drive, such as a network share, has no other form.
    let plain = plain.filter(|p| p.as_bytes().get(1) == Some(&b':')).map(PathBuf::from);
    plain.filter(|_| cfg!(windows)).unwrap_or(path)
}

/// Maximum number of temporary names tried. A write fails if all of them are in use.
const MAX_TEMP_NAMES: u32 = 1_000;

/// Returns the name of a temporary file.
fn temp_name(n: u32) -> String {
    format!(".ctxbench-restore-{n}.tmp")
}
