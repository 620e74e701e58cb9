//! Files by folder handles: each folder on the way is opened from the one before, and no link is
//! followed, whatever somebody puts there meanwhile.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, mkdirat, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::{Content, PathError, SafePath, Why, beside_name};

/// An open folder.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PERMISSIONS: u32 = 0o777;

impl Folder {
    /// Opens a folder whose path holds no link.
    pub(super) fn open(dir: &Path) -> std::io::Result<Folder> {
        Ok(Folder(rustix::fs::open(dir, FOLDER, Mode::empty())?))
    }

    /// What stands at a path; `None` = nothing.
    pub(super) fn read(&self, path: &SafePath) -> Result<Option<Content>, PathError> {
        let Some((parent, name)) = self.parent(path, false)? else { return Ok(None) };
        if !regular_or_absent(path, &parent, name)? {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&parent, name, flags, Mode::empty()).map_err(path.failed("open it"))?;
        // Looked at again: it may be another file than a moment ago.
        let stat = fstat(&file).map_err(path.failed("look at it"))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(path.refuse(Why::NotRegular));
        }
        let mut bytes = Vec::new();
        File::from(file).read_to_end(&mut bytes).map_err(|e| path.refuse(Why::Io("read it", e)))?;
        Ok(Some(Content { bytes, mode: stat.st_mode & PERMISSIONS }))
    }

    /// Puts a file in place at once, folders on the way included. A hard link to elsewhere is
    /// broken and not written through.
    pub(super) fn write(&self, path: &SafePath, content: &Content) -> Result<(), PathError> {
        let (parent, name) = self.parent(path, true)?.expect("folders were made on the way");
        regular_or_absent(path, &parent, name)?;
        let (mut file, temp) = beside(path, &parent)?;
        let filled = file
            .write_all(&content.bytes)
            .map_err(|e| path.refuse(Why::Io("write it", e)))
            .and_then(|()| {
                fchmod(&file, Mode::from_raw_mode(content.mode & PERMISSIONS))
                    .map_err(path.failed("set its permissions"))
            })
            .and_then(|()| {
                renameat(&parent, &*temp, &parent, name).map_err(path.failed("move it into place"))
            });
        if filled.is_err() {
            let _ = unlinkat(&parent, &*temp, AtFlags::empty());
        }
        filled
    }

    /// Removes a regular file; nothing there is fine.
    pub(super) fn remove(&self, path: &SafePath) -> Result<(), PathError> {
        let Some((parent, name)) = self.parent(path, false)? else { return Ok(()) };
        match regular_or_absent(path, &parent, name)? {
            true => unlinkat(&parent, name, AtFlags::empty()).map_err(path.failed("remove it")),
            false => Ok(()),
        }
    }

    /// The folder that a file stands in and its name there; `None` where a folder on the way is
    /// absent and is not to be made.
    fn parent<'p>(
        &self,
        path: &'p SafePath,
        make: bool,
    ) -> Result<Option<(OwnedFd, &'p str)>, PathError> {
        let (folders, name) =
            path.0.rsplit_once('/').map_or((None, &*path.0), |(f, n)| (Some(f), n));
        let mut at = openat(&self.0, ".", FOLDER, Mode::empty())
            .map_err(path.failed("open the session's folder"))?;
        let mut end = 0;
        for part in folders.into_iter().flat_map(|f| f.split('/')) {
            end += part.len();
            let so_far = &path.0[..end];
            end += 1;
            let mut opened = openat(&at, part, FOLDER, Mode::empty());
            if matches!(opened, Err(Errno::NOENT)) {
                if !make {
                    return Ok(None);
                }
                match mkdirat(&at, part, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(e) => return Err(path.failed("make a folder on the way")(e)),
                }
                opened = openat(&at, part, FOLDER, Mode::empty());
            }
            at = match opened {
                Ok(fd) => fd,
                Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => {
                    let link = statat(&at, part, AtFlags::SYMLINK_NOFOLLOW)
                        .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Symlink);
                    let why = if link {
                        Why::Symlink(so_far.into())
                    } else {
                        Why::NotAFolder(so_far.into())
                    };
                    return Err(path.refuse(why));
                }
                Err(e) => return Err(path.failed("open a folder on the way")(e)),
            };
        }
        Ok(Some((at, name)))
    }
}

/// A fresh file beside a path, to be renamed over it. Its writer holds a lock on it, so that one
/// whose writer was killed is known by having none: it is removed, whoever left it, and nothing of
/// ours stays in the user's folder.
fn beside(path: &SafePath, parent: &OwnedFd) -> Result<(File, String), PathError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for n in 0..super::NAMES {
        let temp = beside_name(n);
        let mut made = openat(parent, &*temp, flags, Mode::RUSR | Mode::WUSR);
        if matches!(made, Err(Errno::EXIST)) && clear_leftover(parent, &temp) {
            made = openat(parent, &*temp, flags, Mode::RUSR | Mode::WUSR);
        }
        let file = match made {
            Ok(fd) => fd,
            Err(Errno::EXIST) => continue,
            Err(e) => return Err(path.failed("make a file beside it")(e)),
        };
        // Between making and locking it another writer may take it for a leftover. A system without
        // locks removes no leftovers.
        let lost = matches!(
            flock(&file, FlockOperation::NonBlockingLockExclusive),
            Err(Errno::WOULDBLOCK)
        );
        if !lost && fstat(&file).is_ok_and(|s| s.st_nlink > 0) {
            return Ok((File::from(file), temp));
        }
    }
    Err(path.failed("find a free name for a file beside it")(Errno::EXIST))
}

/// Removes a file that a killed writer left; false if it is in use or no such file.
fn clear_leftover(parent: &OwnedFd, temp: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(parent, temp, flags, Mode::empty()) else { return false };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return false;
    }
    // Under the lock the name can only have become another writer's file before, and then it is
    // left alone.
    let (Ok(is), Ok(named)) = (fstat(&file), statat(parent, temp, AtFlags::SYMLINK_NOFOLLOW))
    else {
        return false;
    };
    let same = (is.st_dev, is.st_ino) == (named.st_dev, named.st_ino);
    same && FileType::from_raw_mode(is.st_mode) == FileType::RegularFile
        && unlinkat(parent, temp, AtFlags::empty()).is_ok()
}

/// Whether a regular file stands there; anything else than that or nothing is refused.
fn regular_or_absent(path: &SafePath, parent: &OwnedFd, name: &str) -> Result<bool, PathError> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(path.failed("look at it")(e)),
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(true),
            FileType::Symlink => Err(path.refuse(Why::Symlink(path.0.clone()))),
            _ => Err(path.refuse(Why::NotRegular)),
        },
    }
}
