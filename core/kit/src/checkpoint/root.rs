//! File access inside a session's folder. Never follows links and never leaves the folder: each
//! folder is opened by a handle of its parent. A link that a concurrent process creates between a
//! check and its use leads at most to another file of the same folder.

use std::io::{self, ErrorKind, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::{CheckpointError, failed};

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
    folder: Dir,
}

impl Root {
    /// Opens a folder. Resolves links in the path of the folder itself once.
    pub fn open(dir: &Path) -> Result<Root, CheckpointError> {
        let shown = dir.display().to_string();
        let resolved = dir.canonicalize().map_err(failed(&shown, "resolve it"))?;
        let dir = strip_verbatim_prefix(resolved);
        let folder =
            Dir::open_ambient_dir(&dir, ambient_authority()).map_err(failed(&shown, "open it"))?;
        Ok(Root { dir, folder })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns a path relative to the folder, with `/` between its components. It must be relative or
    /// below the folder and without `..`. Does not access the disk.
    pub fn relative(&self, path: &str) -> Result<String, CheckpointError> {
        let refuse = |reason: &str| Err(refused(path, reason));
        let outside = || {
            let dir = self.dir.display();
            let reason = format!("the path is outside {dir}; only files below it can be restored");
            refused(path, reason)
        };
        if path.contains('\0') {
            return refuse("the path contains a zero byte");
        }
        let mut below = Path::new(path);
        if below.components().any(|c| c == Component::ParentDir) {
            return refuse("the path contains `..`; use a path below the session's folder");
        }
        if below.is_absolute() {
            below = below.strip_prefix(&self.dir).map_err(|_| outside())?;
        }
        // A drive or a leading `\\` would lead outside the folder.
        if below.components().any(|c| matches!(c, Component::Prefix(_) | Component::RootDir)) {
            return Err(outside());
        }
        // `path` is a string, so its components are valid UTF-8.
        let parts: Vec<&str> = below
            .components()
            .filter(|c| *c != Component::CurDir)
            .filter_map(|c| c.as_os_str().to_str())
            .collect();
        if parts.is_empty() {
            return refuse("the path is empty; use a path below the session's folder");
        }
        Ok(parts.join("/"))
    }

    /// Reads a file; `None` if it does not exist.
    pub fn read(&self, path: &str) -> Result<Option<FileContent>, CheckpointError> {
        let Some((parent, name)) = self.parent(path, false)? else { return Ok(None) };
        if !is_regular(path, &parent, &name)? {
            return Ok(None);
        }
        let read = || -> io::Result<FileContent> {
            let mut file = parent.open(&name)?.into_std();
            let mode = mode(&file.metadata()?);
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(FileContent { bytes, mode })
        };
        read().map(Some).map_err(failed(path, "read it"))
    }

    /// Replaces a file atomically and creates missing folders. Breaks hard links instead of writing
    /// through them.
    pub fn write(&self, path: &str, content: &FileContent) -> Result<(), CheckpointError> {
        let (parent, name) = self.parent(path, true)?.expect("missing folders were created");
        is_regular(path, &parent, &name)?;
        let (file, temp) = create_temp(&parent).map_err(failed(path, "create a temporary file"))?;
        let written = fill(file, content).and_then(|()| parent.rename(&temp, &parent, &name));
        if written.is_err() {
            let _ = parent.remove_file(&temp);
        }
        written.map_err(failed(path, "write it"))
    }

    /// Removes a regular file, if it exists.
    pub fn remove(&self, path: &str) -> Result<(), CheckpointError> {
        let Some((parent, name)) = self.parent(path, false)? else { return Ok(()) };
        match is_regular(path, &parent, &name)? {
            true => parent.remove_file(&name).map_err(failed(path, "remove it")),
            false => Ok(()),
        }
    }

    /// Returns a handle of the parent folder and the file name. Creates missing folders if `create`
    /// is set; returns `None` otherwise.
    fn parent(&self, path: &str, create: bool) -> Result<Option<(Dir, String)>, CheckpointError> {
        let opening = || failed(path, "open a parent folder");
        let relative = self.relative(path)?;
        let mut at = self.folder.try_clone().map_err(opening())?;
        let mut rest = relative.as_str();
        while let Some((part, below)) = rest.split_once('/') {
            let prefix = &relative[..relative.len() - below.len() - 1];
            match at.symlink_metadata(part) {
                Ok(found) if found.is_dir() => {}
                Ok(found) if found.is_symlink() => return Err(link(path, prefix)),
                Ok(_) => {
                    return Err(refused(path, format!("`{prefix}` is not a folder")));
                }
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(opening()(e)),
                Err(_) if !create => return Ok(None),
                Err(_) => match at.create_dir(part) {
                    Err(e) if e.kind() != ErrorKind::AlreadyExists => {
                        return Err(failed(path, "create a parent folder")(e));
                    }
                    _ => {}
                },
            }
            at = at.open_dir(part).map_err(opening())?;
            rest = below;
        }
        Ok(Some((at, rest.to_string())))
    }
}

fn refused(path: &str, reason: impl Into<String>) -> CheckpointError {
    CheckpointError::Refused { path: path.into(), reason: reason.into() }
}

fn link(path: &str, link: &str) -> CheckpointError {
    let remedy = "which is not followed; replace it by its target";
    refused(path, format!("`{link}` is a symbolic link, {remedy}"))
}

/// Returns true if a regular file exists. Other file types are an error.
fn is_regular(path: &str, parent: &Dir, name: &str) -> Result<bool, CheckpointError> {
    match parent.symlink_metadata(name) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(failed(path, "look at it")(e)),
        Ok(found) if found.is_file() => Ok(true),
        Ok(found) if found.is_symlink() => Err(link(path, path)),
        Ok(_) => Err(refused(path, "not a regular file")),
    }
}

fn create_temp(parent: &Dir) -> io::Result<(std::fs::File, String)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".ctxbench-{}-{next}.tmp", std::process::id());
        match parent.open_with(&name, &options) {
            // A killed program with the same process id left it.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            opened => return Ok((opened?.into_std(), name)),
        }
    }
}

/// Writes a file, with its permissions before its content.
fn fill(mut file: std::fs::File, content: &FileContent) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(content.mode & 0o777))?;
    }
    file.write_all(&content.bytes)
}

#[cfg(unix)]
fn mode(found: &std::fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o777
}

#[cfg(not(unix))]
fn mode(_: &std::fs::Metadata) -> u32 {
    0o644
}

/// Removes the verbatim prefix `\\?\` of canonical paths on Windows, which git does not accept.
fn strip_verbatim_prefix(path: PathBuf) -> PathBuf {
    let plain = path.to_str().and_then(|p| p.strip_prefix(r"\\?\"));
    // A path without a drive, such as a network share, has no other form.
    let plain = plain.filter(|p| p.as_bytes().get(1) == Some(&b':')).map(PathBuf::from);
    plain.filter(|_| cfg!(windows)).unwrap_or(path)
}
