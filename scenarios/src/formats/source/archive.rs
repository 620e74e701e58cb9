//! Zip archives: the names of their files, and the files themselves.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::Crc;
use zip::{CompressionMethod, ZipArchive};

use super::{Raw, Source, below};
use crate::error::InputError;
use crate::formats::unpack::{MAX_HELD_BYTES, Packing, READINGS, max_unpacked};

/// Bytes of an archive.
pub(super) trait Seekable: BufRead + Seek {}
impl<T: BufRead + Seek> Seekable for T {}

pub struct Archive {
    name: String,
    zip: RefCell<ZipArchive<Box<dyn Seekable>>>,
    /// Bytes to which its files may still unpack. Members may overlap.
    left: Cell<u64>,
    names: Vec<String>,
}

impl Archive {
    pub(super) fn open(name: &str, mut raw: Box<dyn Seekable>) -> Result<Archive, InputError> {
        let size = raw.seek(SeekFrom::End(0)).map_err(|e| damaged(name, &e))?;
        let zip = ZipArchive::new(raw).map_err(|e| damaged(name, &e))?;
        let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        let mut names: Vec<String> = zip.file_names_raw().map(text).collect();
        names.retain(|n| !n.ends_with(['/', '\\']) && !is_of_macos(n));
        names.sort_unstable();
        let left = Cell::new(max_unpacked(size).saturating_mul(READINGS));
        Ok(Archive { name: name.into(), zip: zip.into(), left, names })
    }

    /// Returns the names of its files with their folders, such as `samples/1.json`, sorted. Hidden
    /// files are included, since hidden folders contain sessions; files that macOS adds are not.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.names.binary_search_by(|n| n.as_str().cmp(&path.to_string_lossy())).is_ok()
    }

    /// Returns the files in a folder, and those below it if `deep`.
    pub(super) fn files_in(&self, folder: &Path, deep: bool) -> Vec<PathBuf> {
        let folder = folder.to_string_lossy();
        let folder = if folder.is_empty() { folder } else { Cow::Owned(format!("{folder}/")) };
        let from = self.names.partition_point(|n| **n < *folder);
        let inside = self.names[from..].iter().map_while(|n| Some((n, n.strip_prefix(&*folder)?)));
        inside.filter(|(_, rest)| deep || !rest.contains('/')).map(|(n, _)| n.into()).collect()
    }

    /// Reads a file of the archive, named `ARCHIVE/NAME` in messages.
    pub fn member(&self, name: &str) -> Result<Source<'_>, InputError> {
        let called = format!("{}/{}", self.name, below(name));
        let bytes = self.bytes(name).map_err(|e| damaged(&called, &e))?;
        let raw = Raw::Member { bytes, path: name.into(), archive: self };
        Ok(Source::of(called, raw))
    }

    fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut zip = self.zip.borrow_mut();
        let mut found = zip.by_name_raw(name.as_bytes())?;
        if found.encrypted() {
            return Err(io::Error::other("encrypted"));
        }
        let packing = match found.compression() {
            CompressionMethod::Stored => None,
            m if m == CompressionMethod::DEFLATE => Some(Packing::Deflate),
            m if m == CompressionMethod::ZSTD => Some(Packing::Zstd),
            other => return Err(io::Error::other(format!("compressed as {other}"))),
        };
        let (mut packed, mut bytes) = (Vec::new(), Vec::new());
        found.read_to_end(&mut packed)?;
        match packing {
            None => bytes = packed,
            Some(packing) => {
                let most = MAX_HELD_BYTES.min(self.left.get()) + 1;
                let unpacked = packing.unpacked(&packed[..], packed.len() as u64);
                unpacked.take(most).read_to_end(&mut bytes)?;
            }
        }
        if bytes.len() as u64 > MAX_HELD_BYTES {
            let what = format!("a file of more than {} MiB in it", MAX_HELD_BYTES >> 20);
            return Err(io::Error::other(what));
        }
        let left = self.left.get().checked_sub(bytes.len() as u64);
        // Other files would be unpacked in vain.
        self.left.set(left.unwrap_or_default());
        if left.is_none() {
            let what = "its files give more than the files of sessions do; unpack it first";
            return Err(io::Error::other(what));
        }
        let mut crc = Crc::new();
        crc.update(&bytes);
        match crc.sum() == found.crc32() {
            true => Ok(bytes),
            false => Err(io::Error::other("its checksum is another")),
        }
    }
}

/// Returns whether macOS added a file for the appearance of a folder or the attributes of a file.
fn is_of_macos(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file == ".DS_Store" || file.starts_with("._") || name.split('/').any(|p| p == "__MACOSX")
}

fn damaged(name: &str, e: &dyn std::fmt::Display) -> InputError {
    let what = format!("the zip archive cannot be read ({e})");
    InputError::new(1, what, "a whole zip archive", "check that it was copied whole").at(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::recorded;

    #[test]
    fn files_of_an_archive_unpack_to_a_limit_together() {
        let path = recorded("../packed/tree.zip");
        let source = Source::at(&path);
        let archive = source.archive().unwrap().unwrap();
        let of = |name: &String| archive.member(name).map(|m| m.text().unwrap().len() as u64);
        assert_eq!(archive.left.get(), 256 << 20, "64 MiB for a small file, four times");
        let name = &archive.names()[0];
        let size = of(name).unwrap();
        archive.left.set(size);
        assert_eq!(of(name), Ok(size));
        let error = of(name).unwrap_err().to_string();
        assert!(error.contains("unpack it first"), "{error}");
        archive.left.set(size - 1);
        assert!(of(name).is_err());
        assert_eq!(archive.left.get(), 0, "no other file is unpacked in vain");
    }
}
