//! File access by folder handles. Opens each folder relative to its parent without following links,
//! so that a concurrent process cannot redirect a write.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, mkdirat, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::{FileContent, PathError, PathErrorKind, SafePath, temp_name};

/// An open folder.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PERMISSIONS: u32 = 0o777;

impl Folder {
    /// Opens a folder. The path must not contain links.
    pub(super) fn open(dir: &Path) -> std::io::Result<Folder> {
        Ok(Folder(rustix::fs::open(dir, FOLDER, Mode::empty())?))
    }

    /// Reads a file; `None` if it does not exist.
    pub(super) fn read(&self, path: &SafePath) -> Result<Option<FileContent>, PathError> {
        let Some((parent, name)) = self.parent(path, false)? else { return Ok(None) };
        if !regular_or_absent(path, &parent, name)? {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&parent, name, flags, Mode::empty()).map_err(path.failed("open it"))?;
        // Check again: the file may have been replaced since the first check.
        let stat = fstat(&file).map_err(path.failed("look at it"))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(path.refuse(PathErrorKind::NotRegular));
        }
        let mut bytes = Vec::new();
        File::from(file)
            .read_to_end(&mut bytes)
            .map_err(|e| path.refuse(PathErrorKind::Io("read it", e)))?;
        Ok(Some(FileContent { bytes, mode: stat.st_mode & PERMISSIONS }))
    }

    /// Replaces a file atomically and creates missing folders. Breaks hard links.
    pub(super) fn write(&self, path: &SafePath, content: &FileContent) -> Result<(), PathError> {
        let (parent, name) = self.parent(path, true)?.expect("missing folders were created");
        regular_or_absent(path, &parent, name)?;
        let (mut file, temp) = create_temp(path, &parent)?;
        let result = file
            .write_all(&content.bytes)
            .map_err(|e| path.refuse(PathErrorKind::Io("write it", e)))
            .and_then(|()| {
                fchmod(&file, Mode::from_raw_mode(content.mode & PERMISSIONS))
                    .map_err(path.failed("set its permissions"))
            })
            .and_then(|()| {
                renameat(&parent, &*temp, &parent, name).map_err(path.failed("move it into place"))
            });
        if result.is_err() {
            let _ = unlinkat(&parent, &*temp, AtFlags::empty());
        }
        result
    }

    /// Removes a regular file, if it exists.
    pub(super) fn remove(&self, path: &SafePath) -> Result<(), PathError> {
        let Some((parent, name)) = self.parent(path, false)? else { return Ok(()) };
        match regular_or_absent(path, &parent, name)? {
            true => unlinkat(&parent, name, AtFlags::empty()).map_err(path.failed("remove it")),
            false => Ok(()),
        }
    }

    /// Returns a handle of the parent folder and the file name. Creates missing folders if `create`
    /// is set; returns `None` otherwise.
    fn parent<'p>(
        &self,
        path: &'p SafePath,
        create: bool,
    ) -> Result<Option<(OwnedFd, &'p str)>, PathError> {
        let (folders, name) =
            path.0.rsplit_once('/').map_or((None, &*path.0), |(f, n)| (Some(f), n));
        let mut at = openat(&self.0, ".", FOLDER, Mode::empty())
            .map_err(path.failed("open the session's folder"))?;
        let mut end = 0;
        for part in folders.into_iter().flat_map(|f| f.split('/')) {
            end += part.len();
            let prefix = &path.0[..end];
            end += 1;
            let mut opened = openat(&at, part, FOLDER, Mode::empty());
            if matches!(opened, Err(Errno::NOENT)) {
                if !create {
                    return Ok(None);
                }
                match mkdirat(&at, part, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(e) => return Err(path.failed("create a parent folder")(e)),
                }
                opened = openat(&at, part, FOLDER, Mode::empty());
            }
            at = match opened {
                Ok(fd) => fd,
                Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => {
                    let link = statat(&at, part, AtFlags::SYMLINK_NOFOLLOW)
                        .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Symlink);
                    let kind = if link {
                        PathErrorKind::Symlink(prefix.into())
                    } else {
                        PathErrorKind::NotAFolder(prefix.into())
                    };
                    return Err(path.refuse(kind));
                }
                Err(e) => return Err(path.failed("open a parent folder")(e)),
            };
        }
        Ok(Some((at, name)))
    }
}

/// Creates a temporary file in the same folder and locks it. A temporary file without a lock was
/// left by a killed writer and is removed.
fn create_temp(path: &SafePath, parent: &OwnedFd) -> Result<(File, String), PathError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for n in 0..super::MAX_TEMP_NAMES {
        let temp = temp_name(n);
        let mut created = openat(parent, &*temp, flags, Mode::RUSR | Mode::WUSR);
        if matches!(created, Err(Errno::EXIST)) && clear_leftover(parent, &temp) {
            created = openat(parent, &*temp, flags, Mode::RUSR | Mode::WUSR);
        }
        let file = match created {
            Ok(fd) => fd,
            Err(Errno::EXIST) => continue,
            Err(e) => return Err(path.failed("create a temporary file")(e)),
        };
        // Another writer may take the file for a leftover until it is locked. On systems without
        // locks, leftovers are kept.
        let taken = matches!(
            flock(&file, FlockOperation::NonBlockingLockExclusive),
            Err(Errno::WOULDBLOCK)
        );
        if !taken && fstat(&file).is_ok_and(|s| s.st_nlink > 0) {
            return Ok((File::from(file), temp));
        }
    }
    Err(path.failed("find a free name for a temporary file")(Errno::EXIST))
}

/// Removes a temporary file of a killed writer. Returns false if it is in use or not such a file.
fn clear_leftover(parent: &OwnedFd, temp: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(parent, temp, flags, Mode::empty()) else { return false };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return false;
    }
    // Keep the file if another writer replaced it before it was locked.
    let (Ok(locked), Ok(named)) = (fstat(&file), statat(parent, temp, AtFlags::SYMLINK_NOFOLLOW))
    else {
        return false;
    };
    let same = (locked.st_dev, locked.st_ino) == (named.st_dev, named.st_ino);
    same && FileType::from_raw_mode(locked.st_mode) == FileType::RegularFile
        && unlinkat(parent, temp, AtFlags::empty()).is_ok()
}

/// Returns true if a regular file exists. Other file types are an error.
fn regular_or_absent(path: &SafePath, parent: &OwnedFd, name: &str) -> Result<bool, PathError> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(path.failed("look at it")(e)),
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(true),
            FileType::Symlink => Err(path.refuse(PathErrorKind::Symlink(path.0.clone()))),
            _ => Err(path.refuse(PathErrorKind::NotRegular)),
        },
    }
}
