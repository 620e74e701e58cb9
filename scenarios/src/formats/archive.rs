//! Zip archives: the list of their files, and each member as a [`Source`].

use std::cell::RefCell;
use std::io::{self, BufRead, Read, Seek};

use flate2::Crc;
use zip::{CompressionMethod, ZipArchive};

use super::source::Source;
use super::unpack::{MAX_HELD_BYTES, Packing};
use crate::error::InputError;

/// Returns whether bytes are the beginning of a zip file: a member, or the end record of an empty archive.
pub(super) fn begins(start: &[u8]) -> bool {
    matches!(start, [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..])
}

/// Bytes of an archive.
pub(super) trait Seekable: BufRead + Seek {}
impl<T: BufRead + Seek> Seekable for T {}

/// A zip archive that is open for reading.
pub struct Archive<'a> {
    name: String,
    zip: RefCell<ZipArchive<Box<dyn Seekable + 'a>>>,
}

impl<'a> Archive<'a> {
    pub(super) fn open(name: &str, raw: Box<dyn Seekable + 'a>) -> Result<Archive<'a>, InputError> {
        let zip = ZipArchive::new(raw).map_err(|e| damaged(name, &e))?;
        Ok(Archive { name: name.into(), zip: zip.into() })
    }

    /// Returns the names of its files with their folders, such as `samples/1.json`, sorted. Hidden
    /// files are included, since hidden folders contain sessions; files that macOS adds are not.
    pub fn names(&self) -> Vec<String> {
        let zip = self.zip.borrow();
        let name = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        let mut names: Vec<String> = zip.file_names_raw().map(name).collect();
        names.retain(|n| !n.ends_with(['/', '\\']) && !is_of_macos(n));
        names.sort_unstable();
        names
    }

    /// Reads a file of the archive, named `ARCHIVE/NAME` in messages.
    pub fn member(&self, name: &str) -> Result<Source<'static>, InputError> {
        let called = format!("{}/{}", self.name, below(name));
        let bytes = self.bytes(name).map_err(|e| damaged(&called, &e))?;
        Ok(Source::from_member(bytes, called))
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
                let mut unpacked = packing.unpacked(&packed[..]).take(MAX_HELD_BYTES + 1);
                unpacked.read_to_end(&mut bytes)?;
            }
        }
        if bytes.len() as u64 > MAX_HELD_BYTES {
            let what = format!("a file of more than {} MiB in it", MAX_HELD_BYTES >> 20);
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

/// Returns a safe path of a member below its archive: `./a`, `/a` and `../a` all become `a`.
pub(crate) fn below(name: &str) -> String {
    let parts = name.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    parts.collect::<Vec<_>>().join("/")
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
