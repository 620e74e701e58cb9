//! Files by their paths, for systems without folder handles. Each folder on the way is looked at
//! before it is used, so a link is refused; one that somebody puts there between the look and the
//! use is not seen.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{Content, NAMES, PathError, SafePath, Why, beside_name};

/// Permission bits that every file has here.
const MODE: u32 = 0o644;

/// A folder by its path.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A folder whose path holds no link.
    pub(super) fn open(dir: &Path) -> io::Result<Folder> {
        fs::read_dir(dir)?;
        Ok(Folder(dir.to_path_buf()))
    }

    /// What stands at a path; `None` = nothing.
    pub(super) fn read(&self, path: &SafePath) -> Result<Option<Content>, PathError> {
        let Some(place) = self.place(path, false)? else { return Ok(None) };
        if !regular_or_absent(path, &place)? {
            return Ok(None);
        }
        let bytes = fs::read(&place).map_err(path.failed("read it"))?;
        Ok(Some(Content { bytes, mode: MODE }))
    }

    /// Puts a file in place at once, folders on the way included.
    pub(super) fn write(&self, path: &SafePath, content: &Content) -> Result<(), PathError> {
        let place = self.place(path, true)?.expect("folders were made on the way");
        regular_or_absent(path, &place)?;
        let (mut file, temp) = beside(path, &place)?;
        let filled = file.write_all(&content.bytes).map_err(path.failed("write it"));
        // Windows moves no file that is open.
        drop(file);
        let done = filled
            .and_then(|()| fs::rename(&temp, &place).map_err(path.failed("move it into place")));
        if done.is_err() {
            let _ = fs::remove_file(&temp);
        }
        done
    }

    /// Removes a regular file; nothing there is fine.
    pub(super) fn remove(&self, path: &SafePath) -> Result<(), PathError> {
        let Some(place) = self.place(path, false)? else { return Ok(()) };
        match regular_or_absent(path, &place)? {
            true => fs::remove_file(&place).map_err(path.failed("remove it")),
            false => Ok(()),
        }
    }

    /// Where a file stands; `None` where a folder on the way is absent and is not to be made.
    fn place(&self, path: &SafePath, make: bool) -> Result<Option<PathBuf>, PathError> {
        let mut place = self.0.clone();
        let mut parts = path.0.split('/').peekable();
        let mut end = 0;
        while let Some(part) = parts.next() {
            place.push(part);
            end += part.len();
            let so_far = &path.0[..end];
            end += 1;
            if parts.peek().is_none() {
                break;
            }
            match fs::symlink_metadata(&place) {
                Ok(found) if found.is_dir() => {}
                Ok(found) if found.is_symlink() => {
                    return Err(path.refuse(Why::Symlink(so_far.into())));
                }
                Ok(_) => return Err(path.refuse(Why::NotAFolder(so_far.into()))),
                Err(e) if e.kind() == ErrorKind::NotFound && !make => return Ok(None),
                Err(e) if e.kind() == ErrorKind::NotFound => match fs::create_dir(&place) {
                    Err(e) if e.kind() != ErrorKind::AlreadyExists => {
                        return Err(path.failed("make a folder on the way")(e));
                    }
                    _ => {}
                },
                Err(e) => return Err(path.failed("open a folder on the way")(e)),
            }
        }
        Ok(Some(place))
    }
}

/// A fresh file beside a place, to be renamed over it; one that a killed writer left is taken.
fn beside(path: &SafePath, place: &Path) -> Result<(File, PathBuf), PathError> {
    for n in 0..NAMES {
        let temp = place.with_file_name(beside_name(n));
        let made = match OpenOptions::new().write(true).create_new(true).open(&temp) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && is_leftover(&temp) => {
                OpenOptions::new().write(true).truncate(true).open(&temp)
            }
            made => made,
        };
        match made {
            // Between making and locking it another writer may take it for a leftover.
            Ok(file) => match file.try_lock() {
                Err(TryLockError::WouldBlock) => {}
                _ => return Ok((file, temp)),
            },
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(path.failed("make a file beside it")(e)),
        }
    }
    Err(path.failed("find a free name for a file beside it")(ErrorKind::AlreadyExists))
}

/// Whether nobody is writing to a file of ours.
fn is_leftover(temp: &Path) -> bool {
    fs::symlink_metadata(temp).is_ok_and(|found| found.is_file())
        && File::open(temp).is_ok_and(|file| file.try_lock().is_ok())
}

/// Whether a regular file stands there; anything else than that or nothing is refused.
fn regular_or_absent(path: &SafePath, place: &Path) -> Result<bool, PathError> {
    match fs::symlink_metadata(place) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(path.failed("look at it")(e)),
        Ok(found) if found.is_file() => Ok(true),
        Ok(found) if found.is_symlink() => Err(path.refuse(Why::Symlink(path.0.clone()))),
        Ok(_) => Err(path.refuse(Why::NotRegular)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Content {
        Content { bytes: text.into(), mode: MODE }
    }

    #[test]
    fn files_are_put_read_and_removed_with_the_folders_on_the_way() {
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
    fn what_is_no_file_and_no_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        for (path, said) in [("folder", "not a regular file"), ("file/x", "`file` is not a folder")]
        {
            let path = SafePath(path.into());
            let refused = [
                folder.read(&path).unwrap_err(),
                folder.write(&path, &content("y")).unwrap_err(),
                folder.remove(&path).unwrap_err(),
            ];
            for e in refused {
                assert!(e.is_refusal() && e.to_string().contains(said), "{e}");
            }
        }
        assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"x");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_refused() {
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
    fn what_a_killed_writer_left_is_used_and_what_another_holds_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let held = File::create(dir.path().join(beside_name(0))).unwrap();
        held.lock().unwrap();
        fs::write(dir.path().join(beside_name(1)), "a longer leftover").unwrap();
        let path = SafePath("a".into());
        folder.write(&path, &content("new")).unwrap();
        assert_eq!(folder.read(&path).unwrap(), Some(content("new")));
        assert!(dir.path().join(beside_name(0)).exists());
        assert!(!dir.path().join(beside_name(1)).exists());
    }
}
