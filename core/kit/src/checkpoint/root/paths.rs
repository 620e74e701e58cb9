//! File access by path, for systems without folder handles. Checks each parent folder before use and
//! refuses links. A link that a concurrent process creates after the check is followed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{FileContent, MAX_TEMP_NAMES, PathError, PathErrorKind, SafePath, temp_name};

/// Permission bits of every file on these systems.
const MODE: u32 = 0o644;

/// The path of a folder.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Opens a folder. The path must not contain links.
    pub(super) fn open(dir: &Path) -> io::Result<Folder> {
        fs::read_dir(dir)?;
        Ok(Folder(dir.to_path_buf()))
    }

    /// Reads a file; `None` if it does not exist.
    pub(super) fn read(&self, path: &SafePath) -> Result<Option<FileContent>, PathError> {
        let Some(target) = self.full_path(path, false)? else { return Ok(None) };
        if !regular_or_absent(path, &target)? {
            return Ok(None);
        }
        let bytes = fs::read(&target).map_err(path.failed("read it"))?;
        Ok(Some(FileContent { bytes, mode: MODE }))
    }

    /// Retargets a file atomically and creates missing folders.
    pub(super) fn write(&self, path: &SafePath, content: &FileContent) -> Result<(), PathError> {
        let target = self.full_path(path, true)?.expect("missing folders were created");
        regular_or_absent(path, &target)?;
        let (mut file, temp) = create_temp(path, &target)?;
        let written = file.write_all(&content.bytes).map_err(path.failed("write it"));
        // Windows cannot rename an open file.
        drop(file);
        let result = written
            .and_then(|()| fs::rename(&temp, &target).map_err(path.failed("move it into place")));
        if result.is_err() {
            let _ = fs::remove_file(&temp);
        }
        result
    }

    /// Removes a regular file, if it exists.
    pub(super) fn remove(&self, path: &SafePath) -> Result<(), PathError> {
        let Some(target) = self.full_path(path, false)? else { return Ok(()) };
        match regular_or_absent(path, &target)? {
            true => fs::remove_file(&target).map_err(path.failed("remove it")),
            false => Ok(()),
        }
    }

    /// Returns the full path. Creates missing folders if `create` is set; returns `None` otherwise.
    fn full_path(&self, path: &SafePath, create: bool) -> Result<Option<PathBuf>, PathError> {
        let mut target = self.0.clone();
        let mut parts = path.0.split('/').peekable();
        let mut end = 0;
        while let Some(part) = parts.next() {
            target.push(part);
            end += part.len();
            let prefix = &path.0[..end];
            end += 1;
            if parts.peek().is_none() {
                break;
            }
            match fs::symlink_metadata(&target) {
                Ok(found) if found.is_dir() => {}
                Ok(found) if found.is_symlink() => {
                    return Err(path.refuse(PathErrorKind::Symlink(prefix.into())));
                }
                Ok(_) => return Err(path.refuse(PathErrorKind::NotAFolder(prefix.into()))),
                Err(e) if e.kind() == ErrorKind::NotFound && !create => return Ok(None),
                Err(e) if e.kind() == ErrorKind::NotFound => match fs::create_dir(&target) {
                    Err(e) if e.kind() != ErrorKind::AlreadyExists => {
                        return Err(path.failed("create a parent folder")(e));
                    }
                    _ => {}
                },
                Err(e) => return Err(path.failed("open a parent folder")(e)),
            }
        }
        Ok(Some(target))
    }
}

/// Creates a temporary file in the same folder, or reuses one left by a killed writer.
fn create_temp(path: &SafePath, target: &Path) -> Result<(File, PathBuf), PathError> {
    for n in 0..MAX_TEMP_NAMES {
        let temp = target.with_file_name(temp_name(n));
        let opened = match OpenOptions::new().write(true).create_new(true).open(&temp) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && is_leftover(&temp) => {
                OpenOptions::new().write(true).truncate(true).open(&temp)
            }
            other => other,
        };
        match opened {
            // Another writer may take the file for a leftover until it is locked.
            Ok(file) => match file.try_lock() {
                Err(TryLockError::WouldBlock) => {}
                _ => return Ok((file, temp)),
            },
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(path.failed("create a temporary file")(e)),
        }
    }
    Err(path.failed("find a free name for a temporary file")(ErrorKind::AlreadyExists))
}

/// Returns true if no writer uses a temporary file.
fn is_leftover(temp: &Path) -> bool {
    fs::symlink_metadata(temp).is_ok_and(|found| found.is_file())
        && File::open(temp).is_ok_and(|file| file.try_lock().is_ok())
}

/// Returns true if a regular file exists. Other file types are an error.
fn regular_or_absent(path: &SafePath, target: &Path) -> Result<bool, PathError> {
    match fs::symlink_metadata(target) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(path.failed("look at it")(e)),
        Ok(found) if found.is_file() => Ok(true),
        Ok(found) if found.is_symlink() => Err(path.refuse(PathErrorKind::Symlink(path.0.clone()))),
        Ok(_) => Err(path.refuse(PathErrorKind::NotRegular)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> FileContent {
        FileContent { bytes: text.into(), mode: MODE }
    }

    #[test]
    fn write_read_and_remove_create_parent_folders() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let deep = SafePath("a/b/c.txt".into());
        assert_eq!(folder.read(&deep).unwrap(), None);
        folder.remove(&deep).unwrap();
        for text in ["one", "two"] {
            folder.write(&deep, &content(text)).unwrap();
            assert_eq!(folder.read(&deep).unwrap(), Some(content(text)));
            assert_eq!(fs::read_dir(dir.path().join("a/b")).unwrap().count(), 1);
        }
        folder.remove(&deep).unwrap();
        assert!(!dir.path().join("a/b/c.txt").exists());
    }

    #[test]
    fn folder_as_file_and_file_as_folder_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        for (path, message) in
            [("folder", "not a regular file"), ("file/x", "`file` is not a folder")]
        {
            let path = SafePath(path.into());
            let refused = [
                folder.read(&path).unwrap_err(),
                folder.write(&path, &content("y")).unwrap_err(),
                folder.remove(&path).unwrap_err(),
            ];
            for e in refused {
                assert!(e.is_refusal() && e.to_string().contains(message), "{e}");
            }
        }
        assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"x");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_refused_by_every_operation() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), "keep me").unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
        let file = dir.path().join("file-link");
        std::os::unix::fs::symlink(outside.path().join("secret"), file).unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        for path in ["link/secret", "link/new/file", "file-link"] {
            let path = SafePath(path.into());
            let e = folder.write(&path, &content("mine")).unwrap_err();
            assert!(e.to_string().contains("is a symbolic link"), "{e}");
            assert!(folder.read(&path).is_err() && folder.remove(&path).is_err());
        }
        assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"keep me");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn leftover_temp_file_is_reused_and_locked_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let locked = File::create(dir.path().join(temp_name(0))).unwrap();
        locked.lock().unwrap();
        fs::write(dir.path().join(temp_name(1)), "a longer leftover").unwrap();
        let path = SafePath("a".into());
        folder.write(&path, &content("new")).unwrap();
        assert_eq!(folder.read(&path).unwrap(), Some(content("new")));
        assert!(dir.path().join(temp_name(0)).exists());
        assert!(!dir.path().join(temp_name(1)).exists());
    }
}
